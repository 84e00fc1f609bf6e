//! The keys of Secrets and ConfigMaps that a configuration refers to.
//!
//! A reference is either written into the configuration as its value, or copied into the agent's own Secret and
//! written as the path of a file. Values are never logged.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMapKeySelector, SecretKeySelector};
use sha2::{Digest as _, Sha256};
use windlass::Halt;

use crate::document::Document;
use crate::fault::Fault;
use crate::kinds::SecretOrConfigMap;

/// Where copied keys are mounted in the agent's container.
pub const DIRECTORY: &str = "/var/lib/grafana-agent/secrets";

/// What a Secret or ConfigMap holds.
pub type Contents = BTreeMap<String, ByteString>;

/// Where Secrets and ConfigMaps are read.
pub trait Lookup {
    /// What a Secret holds; nothing if there is none.
    ///
    /// # Errors
    /// While Secrets are not loaded.
    fn secret(&self, namespace: &str, name: &str) -> Result<Option<Contents>, Halt>;

    /// What a ConfigMap holds; nothing if there is none.
    ///
    /// # Errors
    /// While ConfigMaps are not loaded.
    fn config_map(&self, namespace: &str, name: &str) -> Result<Option<Contents>, Halt>;
}

/// One key of a Secret or ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    source: Source,
    namespace: String,
    name: String,
    key: String,
    optional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Secret,
    ConfigMap,
}

impl Reference {
    /// A key of a Secret; nothing if it names none.
    #[must_use]
    pub fn secret(namespace: &str, selector: &SecretKeySelector) -> Option<Self> {
        (!selector.name.is_empty()).then(|| Self {
            source: Source::Secret,
            namespace: namespace.into(),
            name: selector.name.clone(),
            key: selector.key.clone(),
            optional: selector.optional == Some(true),
        })
    }

    /// A key of a ConfigMap; nothing if it names none.
    #[must_use]
    pub fn config_map(namespace: &str, selector: &ConfigMapKeySelector) -> Option<Self> {
        (!selector.name.is_empty()).then(|| Self {
            source: Source::ConfigMap,
            namespace: namespace.into(),
            name: selector.name.clone(),
            key: selector.key.clone(),
            optional: selector.optional == Some(true),
        })
    }

    /// A key of either; nothing if it names none.
    #[must_use]
    pub fn either(namespace: &str, selector: &SecretOrConfigMap) -> Option<Self> {
        let secret = selector.secret.as_ref().and_then(|secret| Self::secret(namespace, secret));
        secret.or_else(|| Self::config_map(namespace, selector.config_map.as_ref()?))
    }

    /// The path that tells it from all others: `/secrets/<namespace>/<name>/<key>`.
    #[must_use]
    pub fn path(&self) -> String {
        let source = match self.source {
            Source::Secret => "secrets",
            Source::ConfigMap => "configMaps",
        };
        format!("/{source}/{}/{}/{}", self.namespace, self.name, self.key)
    }

    fn missing(&self, object: bool) -> Fault {
        let (kind, reason) = match (self.source, object) {
            (Source::Secret, true) => ("Secret", "SecretMissing"),
            (Source::Secret, false) => ("Secret", "SecretKeyMissing"),
            (Source::ConfigMap, true) => ("ConfigMap", "ConfigMapMissing"),
            (Source::ConfigMap, false) => ("ConfigMap", "ConfigMapKeyMissing"),
        };
        let Self { namespace, name, key, .. } = self;
        Fault::new(
            reason,
            match object {
                true => format!("{kind} {namespace}/{name} is not there"),
                false => format!("{kind} {namespace}/{name} has no key {key:?}"),
            },
        )
    }
}

/// A Secret or ConfigMap: its namespace and name.
type Place = (Source, String, String);

/// What a reference comes to.
type Found = Result<Option<Rc<Contents>>, Fault>;

/// A reference that was used, and its value if it is there.
#[derive(Clone)]
pub struct Used {
    reference: Reference,
    value: Option<ByteString>,
}

/// Looks references up, and remembers which were used.
pub struct Assets<'a> {
    lookup: &'a dyn Lookup,
    read: RefCell<BTreeMap<Place, Option<Rc<Contents>>>>,
    used: RefCell<BTreeMap<String, Used>>,
    halt: RefCell<Option<Halt>>,
    names: BTreeMap<String, String>,
}

impl<'a> Assets<'a> {
    /// With nothing used yet.
    #[must_use]
    pub fn new(lookup: &'a dyn Lookup) -> Self {
        Self {
            lookup,
            read: RefCell::default(),
            used: RefCell::default(),
            halt: RefCell::default(),
            names: BTreeMap::new(),
        }
    }

    /// With other names for references that would share one with others.
    #[must_use]
    pub fn named(lookup: &'a dyn Lookup, names: BTreeMap<String, String>) -> Self {
        Self { names, ..Self::new(lookup) }
    }

    /// The value; nothing if an optional one is missing.
    ///
    /// # Errors
    /// If it is missing, or no text.
    pub fn value(&self, reference: Option<Reference>) -> Result<Option<Document>, Fault> {
        let Some(reference) = reference else { return Ok(None) };
        let Some(contents) = self.find(&reference)? else { return Ok(None) };
        let bytes = contents.get(&reference.key).map_or(&[][..], |value| value.0.as_slice());
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(Document::Secret(text.to_owned()))),
            Err(_) => {
                let message = format!("{} is no text in UTF-8", reference.path());
                Err(Fault::new("NotText", message))
            }
        }
    }

    /// The text of a key that is configuration itself; it is not copied.
    ///
    /// # Errors
    /// If it is missing, or no text.
    pub fn text(&self, reference: Option<Reference>) -> Result<Option<String>, Fault> {
        let Some(key) = reference.as_ref().map(Reference::path) else { return Ok(None) };
        let known = self.used.borrow().contains_key(&key);
        let value = self.value(reference);
        if !known {
            self.used.borrow_mut().remove(&key);
        }
        Ok(match value? {
            Some(Document::Secret(text)) => Some(text),
            _ => None,
        })
    }

    /// The path of the copy; nothing if an optional one is missing.
    ///
    /// # Errors
    /// If it is missing.
    pub fn path(&self, reference: Option<Reference>) -> Result<Option<String>, Fault> {
        let Some(reference) = reference else { return Ok(None) };
        Ok(self.find(&reference)?.map(|_| self.path_of(&reference)))
    }

    /// The path of the copy, whether it is there or not.
    #[must_use]
    pub fn path_of(&self, reference: &Reference) -> String {
        format!("{DIRECTORY}/{}", self.name_of(reference))
    }

    /// The key that a reference is copied to.
    #[must_use]
    pub fn name_of(&self, reference: &Reference) -> String {
        let path = reference.path();
        self.names.get(&path).cloned().unwrap_or_else(|| sanitize(&path))
    }

    /// What to copy: every used reference that is there, by its name in the copy.
    #[must_use]
    pub fn copies(&self) -> BTreeMap<String, ByteString> {
        let used = self.used.borrow();
        let copy = |used: &Used| Some((self.name_of(&used.reference), used.value.clone()?));
        used.values().filter_map(copy).collect()
    }

    /// All that was used.
    #[must_use]
    pub fn used(&self) -> BTreeMap<String, Used> {
        self.used.borrow().clone()
    }

    /// Counts as used what was used elsewhere.
    pub fn absorb(&self, used: &BTreeMap<String, Used>) {
        if !used.is_empty() {
            self.used.borrow_mut().extend(used.iter().map(|(path, used)| (path.clone(), used.clone())));
        }
    }

    /// The names of all copies, by the path of what was copied.
    #[must_use]
    pub fn names(&self) -> BTreeMap<String, String> {
        let used = self.used.borrow();
        used.iter().map(|(path, used)| (path.clone(), self.name_of(&used.reference))).collect()
    }

    /// What could not be read yet.
    #[must_use]
    pub fn halt(&self) -> Option<Halt> {
        self.halt.borrow().clone()
    }

    /// Two used references of one name: names that tell them apart, to start over with. The first keeps its own.
    #[must_use]
    pub fn collisions(&self) -> Option<BTreeMap<String, String>> {
        let mut taken = BTreeSet::new();
        let mut names = BTreeMap::new();
        for path in self.used.borrow().keys() {
            if !taken.insert(sanitize(path)) {
                let hash = Sha256::digest(path.as_bytes());
                let suffix: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
                names.insert(path.clone(), format!("{}_{suffix}", sanitize(path)));
            }
        }
        (names != self.names).then_some(names)
    }

    /// What holds the reference; nothing if it is optional and missing.
    fn find(&self, reference: &Reference) -> Found {
        let contents = self.open(reference);
        let value = contents.as_ref().and_then(|contents| contents.get(&reference.key).cloned());
        self.used.borrow_mut().insert(reference.path(), Used { reference: reference.clone(), value });
        if self.halt.borrow().is_some() && contents.is_none() {
            // Whatever is rendered now is thrown away.
            return Ok(None);
        }
        let missing = match &contents {
            None => true,
            Some(contents) if !contents.contains_key(&reference.key) => false,
            Some(_) => return Ok(contents),
        };
        if reference.optional { Ok(None) } else { Err(reference.missing(missing)) }
    }

    fn open(&self, reference: &Reference) -> Option<Rc<Contents>> {
        let place = (reference.source, reference.namespace.clone(), reference.name.clone());
        if let Some(known) = self.read.borrow().get(&place) {
            return known.clone();
        }
        let found = match reference.source {
            Source::Secret => self.lookup.secret(&reference.namespace, &reference.name),
            Source::ConfigMap => self.lookup.config_map(&reference.namespace, &reference.name),
        };
        match found {
            Ok(contents) => {
                let contents = contents.map(Rc::new);
                self.read.borrow_mut().insert(place, contents.clone());
                contents
            }
            Err(halt) => {
                self.halt.borrow_mut().get_or_insert(halt);
                None
            }
        }
    }
}

/// A label's or key's name with every character that is none of it replaced by `_`.
#[must_use]
pub fn sanitize(text: &str) -> String {
    text.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}
