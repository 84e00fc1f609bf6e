//! One dependent as planned, its type erased.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

use crate::annotation::{MADE_FOR, OWNER};
use crate::cache::Stored;
use crate::hash::quick_hash;
use crate::{Condition, Kind, MANAGED_BY, ObjectName};

/// How the framework treats a dependent. Most need none of this: [`Handle`](crate::Handle) has a short word for the
/// usual cases.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// A change of it plans again. Without it, drift is found only when something else plans. True by default.
    pub watched: bool,
    /// It goes with the primary: by garbage collection where an owner reference can say so, else cleaned up by the
    /// framework. Without it, it outlives the primary and is never pruned. True by default.
    pub owned: bool,
    /// Made if it is not there. Without it, somebody else makes it, and it is waited for. True by default.
    pub created: bool,
    /// Kept as planned. Without it, it is the user's once it is there. True by default.
    pub updated: bool,
    /// Whether its condition counts for the primary's readiness. False by default. What could not be made counts in
    /// any case.
    pub checked_for_readiness: bool,
    /// What it is called in the status; its kind by default.
    pub type_name: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            watched: true,
            owned: true,
            created: true,
            updated: true,
            checked_for_readiness: false,
            type_name: None,
        }
    }
}

/// The primary, as its dependents need to know it.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) operator: String,
    pub(crate) name: ObjectName,
    pub(crate) reference: OwnerReference,
}

impl Owner {
    /// For whom an object is made, as [`MADE_FOR`] says it.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.reference.kind, self.name)
    }
}

pub(super) type Judge = Box<dyn Fn(&Stored) -> Condition + Send + Sync>;

/// One dependent as planned, its type erased.
pub(crate) struct Dependent {
    pub(crate) kind: Kind,
    pub(crate) name: ObjectName,
    pub(crate) desired: Value,
    pub(crate) config: Config,
    /// Left as it was observed.
    pub(crate) keep: bool,
    pub(crate) after: Vec<usize>,
    pub(super) condition: Option<Judge>,
}

impl Dependent {
    pub(crate) fn new(kind: Kind, name: ObjectName) -> Self {
        Self {
            kind,
            name,
            desired: Value::Null,
            config: Config::default(),
            keep: false,
            after: vec![],
            condition: None,
        }
    }

    /// How it is, from what is observed.
    pub(crate) fn judge(&self, stored: &Stored) -> Condition {
        match &self.condition {
            Some(judge) => judge(stored),
            None => crate::readiness::of(&self.kind, stored),
        }
    }

    /// Whether its condition follows from what is observed by the rule for its kind alone.
    pub(crate) fn judged_by_kind(&self) -> bool {
        self.condition.is_none()
    }

    /// A hash of all that decides what is to be done about an object that is there.
    pub(crate) fn fingerprint(&self, owner: &Owner, adopt: bool) -> u64 {
        let mut hasher = DefaultHasher::new();
        (quick_hash(&self.desired), &self.config, self.keep, adopt, &owner.reference.uid).hash(&mut hasher);
        hasher.finish()
    }

    pub(crate) fn type_name(&self) -> &str {
        self.config.type_name.as_deref().unwrap_or_else(|| self.kind.name())
    }

    /// Made here, and then the user's.
    pub(crate) fn once(&self) -> bool {
        self.config.created && !self.config.updated
    }

    /// Somebody else's, of which only some fields are set here.
    pub(crate) fn shared(&self) -> bool {
        !self.config.created && !self.config.owned
    }

    /// Whether nothing is ever written to it.
    pub(crate) fn only_looked_at(&self) -> bool {
        self.keep || !(self.config.created || self.config.updated)
    }

    /// Whether it goes with the primary, and an owner reference cannot say so: garbage collection knows no owners
    /// in other namespaces.
    pub(crate) fn needs_cleanup(&self, owner: &Owner) -> bool {
        let beyond = !owner.name.namespace.is_empty() && self.name.namespace != owner.name.namespace;
        self.config.owned && !self.only_looked_at() && (self.kind.is_external() || beyond)
    }

    /// Says in the desired object whose it is.
    pub(super) fn mark(&mut self, owner: &Owner) {
        if self.only_looked_at() || self.kind.is_external() || self.shared() || !self.desired.is_object() {
            return;
        }
        let beyond = self.needs_cleanup(owner);
        let metadata = &mut self.desired["metadata"];
        metadata["labels"][MANAGED_BY] = owner.operator.as_str().into();
        if self.config.owned && !beyond {
            metadata["ownerReferences"] = json!([owner.reference]);
        } else {
            metadata["annotations"][MADE_FOR] = owner.title().into();
        }
        if beyond {
            metadata["labels"][OWNER] = owner.reference.uid.as_str().into();
        }
    }
}
