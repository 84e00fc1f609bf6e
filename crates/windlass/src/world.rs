//! All that a plan may look at, and the record of what it looked at.
//!
//! A read never waits: what is not loaded halts the plan, the runtime loads it and plans again. Nothing here does
//! I/O; where the objects come from is behind [`Source`].

mod derive;
mod view;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::{Expression, Selector};

use crate::cache::{Lookup, Read, Reads, Stored};
use crate::memo::{Derived, Memo, Seen};
pub(crate) use view::{Glimpse, Views};

use crate::{Condition, External, Handle, Kind, Object, ObjectName, external};

/// What a plan may look at. Every read is recorded; a change of what was read plans again.
pub struct World {
    source: Rc<dyn Source>,
    namespace: String,
    reads: RefCell<Reads>,
    /// What was looked at, and how it was.
    glimpses: RefCell<Vec<Glimpse>>,
    /// While something is derived: what that has read, and how it was.
    seen: Option<RefCell<Vec<Seen>>>,
    /// Whether something was asked for that no read records.
    fickle: Cell<bool>,
    /// Whether the time was asked for.
    timed: Cell<bool>,
    /// The derived values that were made or handed out.
    derived: RefCell<Vec<Arc<Derived>>>,
    /// What was selected and could not be decoded.
    left_out: RefCell<Vec<Condition>>,
}

/// What is left of a world after a plan.
pub(crate) struct Looked {
    pub(crate) reads: Reads,
    /// What was looked at, and how it was; other than by what was derived.
    pub(crate) glimpses: Vec<Glimpse>,
    /// Derived values that the next plan may want again.
    pub(crate) derived: Vec<Arc<Derived>>,
    /// What was selected and could not be decoded.
    pub(crate) left_out: Vec<Condition>,
    /// Whether the time was asked for.
    timed: bool,
}

impl Looked {
    /// What was looked at, and how it was, if that is all that the outcome depends on, but for the time until it is
    /// looked at again.
    pub(crate) fn certain(&mut self, look_again: Option<Duration>) -> Option<Vec<Glimpse>> {
        if self.timed && look_again.is_none() {
            return None;
        }
        let inside = !self.reads.iter().any(|read| read.kind().is_external());
        let plain = inside && self.derived.is_empty() && self.left_out.is_empty();
        plain.then(|| std::mem::take(&mut self.glimpses))
    }
}

impl World {
    pub(crate) fn new(source: Box<dyn Source>, namespace: impl Into<String>) -> Self {
        Self::over(Rc::from(source), namespace.into())
    }

    fn over(source: Rc<dyn Source>, namespace: String) -> Self {
        Self {
            source,
            namespace,
            reads: RefCell::default(),
            glimpses: RefCell::default(),
            seen: None,
            fickle: Cell::new(false),
            timed: Cell::new(false),
            derived: RefCell::default(),
            left_out: RefCell::default(),
        }
    }

    /// The object of this name in the primary's namespace, if there is one.
    ///
    /// # Errors
    /// Halts while the kind is not loaded.
    pub fn get<K: Object>(&self, name: &str) -> Result<Option<K>, Halt> {
        self.get_in(&self.namespace, name)
    }

    /// The object of this name in another namespace, if there is one.
    ///
    /// # Errors
    /// Halts while the kind is not loaded.
    pub fn get_in<K: Object>(&self, namespace: &str, name: &str) -> Result<Option<K>, Halt> {
        let kind = Kind::of::<K>();
        let namespace = if kind.namespaced() { namespace } else { "" };
        self.read(&kind, ObjectName::new(namespace, name))?.map(|stored| decode(&kind, &stored)).transpose()
    }

    /// The object of this name in the primary's namespace, which the plan cannot do without.
    ///
    /// # Errors
    /// Halts while it is not there.
    pub fn need<K: Object>(&self, name: &str) -> Result<K, Halt> {
        self.get(name)?.ok_or_else(|| Halt::absent(&Kind::of::<K>(), name))
    }

    /// A dependent of this plan as it is now.
    ///
    /// # Errors
    /// Halts while it is not there.
    pub fn observed<K: Object>(&self, handle: &Handle<K>) -> Result<K, Halt> {
        let (kind, name) = (Kind::of::<K>(), handle.name());
        match self.read(&kind, name.clone())? {
            Some(stored) => decode(&kind, &stored),
            None => Err(Halt::absent(&kind, &name.name)),
        }
    }

    /// Something outside Kubernetes as it is now, if it is there.
    ///
    /// # Errors
    /// Halts until it could be observed.
    pub fn external<X: External>(&self, id: &str) -> Result<Option<X::Observed>, Halt> {
        let kind = Kind::external(X::TYPE);
        let Some(stored) = self.read(&kind, ObjectName::new("", id))? else {
            return Ok(None);
        };
        serde_json::from_value(external::observed(&stored))
            .map_err(|error| Halt::failed("Undecodable", format!("failed to decode {kind} {id}: {error}")))
    }

    /// All objects that match, ordered by namespace and name. One that cannot be decoded is left out: the primary
    /// becomes Degraded and says which, the plan goes on with the others, and nothing is pruned meanwhile.
    ///
    /// # Errors
    /// Halts while the kind, or the namespaces that the query selects by label, are not loaded.
    pub fn select<K: Object>(&self, query: &Query) -> Result<Vec<K>, Halt> {
        let kind = Kind::of::<K>();
        let found = self.found::<K>(query)?;
        Ok(found.iter().filter_map(|stored| self.decoded(&kind, stored)).collect())
    }

    /// One of several objects, unless it has to be left out.
    fn decoded<K: Object>(&self, kind: &Kind, stored: &Stored) -> Option<K> {
        let outcome = decode(kind, stored);
        if let Err(halt) = &outcome {
            let mut left_out = self.left_out.borrow_mut();
            if !left_out.contains(halt.condition()) {
                left_out.push(halt.condition().clone());
            }
            self.fickle.set(true);
        }
        outcome.ok()
    }

    /// What a query selects.
    fn found<K: Object>(&self, query: &Query) -> Result<Vec<Arc<Stored>>, Halt> {
        let kind = Kind::of::<K>();
        let namespaces = match &query.namespaces {
            _ if !kind.namespaced() => vec![None],
            Namespaces::Own => vec![Some(self.namespace.clone())],
            Namespaces::All => vec![None],
            Namespaces::Named(names) => names.iter().cloned().map(Some).collect(),
            Namespaces::Labelled(labels) => {
                let query = Query { labels: labels.clone(), namespaces: Namespaces::All };
                let found = self.select::<Namespace>(&query)?;
                found.into_iter().map(|namespace| namespace.metadata.name).collect()
            }
        };
        let mut found = Vec::new();
        for namespace in namespaces {
            let read = Read::selected(kind.clone(), namespace, query.labels.clone());
            let matching = self.source.selected(&read);
            let read = self.source.known(read);
            self.reads.borrow_mut().insert(read.clone());
            let matching = matching.ok_or_else(|| Halt::loading(&kind))?;
            if let Some(seen) = &self.seen {
                seen.borrow_mut().push(Seen::Selected(read.clone(), matching.clone()));
            }
            self.saw_all(read, &matching);
            found.extend(matching);
        }
        Ok(found)
    }

    /// The time now. It does not plan again as time passes: [`Primary::look_again`](crate::Primary::look_again)
    /// does.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.fickle.set(true);
        self.timed.set(true);
        self.source.now()
    }

    /// `length` random letters and digits: unpredictable, and the same each time the same primary asks for the
    /// same `key`. Use it for what is made [once](Handle::once); a restart draws anew.
    #[must_use]
    pub fn random(&self, key: &str, length: usize) -> String {
        self.fickle.set(true);
        self.source.random(key, length)
    }

    /// What was looked at.
    pub(crate) fn finish(self) -> Looked {
        Looked {
            reads: self.reads.into_inner(),
            glimpses: self.glimpses.into_inner(),
            derived: self.derived.into_inner(),
            left_out: self.left_out.into_inner(),
            timed: self.timed.get(),
        }
    }

    fn read(&self, kind: &Kind, name: ObjectName) -> Result<Option<Arc<Stored>>, Halt> {
        let lookup = self.source.named(kind, &name);
        let read = Read::named(kind.clone(), name);
        let stored = self.looked_up(&read, lookup)?;
        self.saw(read, stored.as_deref());
        Ok(stored)
    }

    /// Notes a read by name, and what it found.
    fn looked_up(&self, read: &Read, lookup: Lookup) -> Result<Option<Arc<Stored>>, Halt> {
        if let Some(seen) = &self.seen {
            match &lookup {
                Lookup::Absent => seen.borrow_mut().push(Seen::Named(read.clone(), None)),
                Lookup::Present(now) => {
                    seen.borrow_mut().push(Seen::Named(read.clone(), Some(Arc::clone(now))));
                }
                Lookup::Loading | Lookup::Failed(_) => self.fickle.set(true),
            }
        }
        self.reads.borrow_mut().insert(read.clone());
        match lookup {
            Lookup::Loading => Err(Halt::loading(read.kind())),
            Lookup::Failed(error) => {
                let message = format!("failed to observe {read}: {error}");
                Err(Halt::waiting("CannotObserve", message))
            }
            Lookup::Absent => Ok(None),
            Lookup::Present(stored) => Ok(Some(stored)),
        }
    }
}

/// Where the objects come from: the cache of a runtime, or a list in a test.
pub(crate) trait Source {
    /// One object by its name.
    fn named(&self, kind: &Kind, name: &ObjectName) -> Lookup;
    /// All objects that a read selects, in order; `None` while they are not loaded.
    fn selected(&self, read: &Read) -> Option<Vec<Arc<Stored>>>;
    /// A read, as it was recorded: of many that are equal one is kept.
    fn known(&self, read: Read) -> Read {
        read
    }
    /// The time now.
    fn now(&self) -> Timestamp;
    /// The random text of this key.
    fn random(&self, key: &str, length: usize) -> String;
    /// Where is kept what was made of objects in this pass, if anywhere.
    fn views(&self) -> Option<&Views> {
        None
    }
    /// Where derived values are kept; nowhere, if each plan is to derive its own.
    fn memo(&self) -> Option<&Memo> {
        None
    }
}

fn decode<K: Object>(kind: &Kind, stored: &Stored) -> Result<K, Halt> {
    stored.decode().map_err(|error| {
        Halt::failed("Undecodable", format!("failed to decode {kind} {}: {error}", stored.name))
    })
}

/// Which objects to select: by labels, in the primary's own namespace unless said otherwise.
#[derive(Clone, Debug, Default)]
pub struct Query {
    labels: Selector,
    namespaces: Namespaces,
}

#[derive(Clone, Debug, Default)]
enum Namespaces {
    #[default]
    Own,
    All,
    Named(Vec<String>),
    Labelled(Selector),
}

impl Query {
    /// Objects that carry all of these labels.
    pub fn labels<N: Into<String>, V: Into<String>>(labels: impl IntoIterator<Item = (N, V)>) -> Self {
        let equal = |(name, value): (N, V)| Expression::Equal(name.into(), value.into());
        Self::matching(labels.into_iter().map(equal).collect())
    }

    /// Objects that a selector matches. A `LabelSelector` of the API converts into one.
    #[must_use]
    pub fn matching(labels: Selector) -> Self {
        Self { labels, namespaces: Namespaces::Own }
    }

    /// In every namespace.
    #[must_use]
    pub fn everywhere(self) -> Self {
        Self { namespaces: Namespaces::All, ..self }
    }

    /// In these namespaces.
    #[must_use]
    pub fn in_namespaces(self, names: impl IntoIterator<Item = String>) -> Self {
        Self { namespaces: Namespaces::Named(names.into_iter().collect()), ..self }
    }

    /// In the namespaces whose labels a selector matches.
    #[must_use]
    pub fn in_namespaces_matching(self, labels: Selector) -> Self {
        Self { namespaces: Namespaces::Labelled(labels), ..self }
    }
}

/// Why a plan could not be finished.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Halt(pub(crate) Condition, pub(crate) HaltKind);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HaltKind {
    Loading(Kind),
    Said,
}

impl Halt {
    /// Something is not there yet; its appearance plans again, if it was read.
    pub fn waiting(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Condition::pending(reason, message), HaltKind::Said)
    }

    /// Something is wrong, and a person has to change it.
    pub fn failed(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Condition::failed(reason, message), HaltKind::Said)
    }

    fn absent(kind: &Kind, name: &str) -> Self {
        Self::waiting("Absent", format!("{kind} {name} is not there"))
    }

    fn loading(kind: &Kind) -> Self {
        let condition = Condition::pending("Loading", format!("{} are being loaded", kind.plural()));
        Self(condition, HaltKind::Loading(kind.clone()))
    }

    /// What it comes to for the primary.
    #[must_use]
    pub fn condition(&self) -> &Condition {
        &self.0
    }

    /// Whether something is not loaded yet, which the runtime sees to by itself.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        matches!(self.1, HaltKind::Loading(_))
    }
}
