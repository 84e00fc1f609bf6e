//! What should exist for a primary: the dependents, their order, and what counts for readiness.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;

use crate::cache::Stored;
use crate::{Condition, Kind, MANAGED_BY, Object, ObjectName};

/// The dependents of one primary, in the order in which they are applied.
pub struct Plan {
    owner: Owner,
    dependents: Vec<Rc<RefCell<Option<Dependent>>>>,
    problems: Vec<Problem>,
}

impl Plan {
    pub(crate) fn new(owner: Owner) -> Self {
        Self {
            owner,
            dependents: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Adds a dependent: an object that should exist as given here. It is put into the primary's namespace if it
    /// names none, owned by the primary and labelled [`MANAGED_BY`]; fields not given here are left to others.
    pub fn add<K: Object>(&mut self, mut object: K) -> Handle<K> {
        let kind = Kind::of::<K>();
        let meta = object.meta_mut();
        if kind.namespaced() && meta.namespace.is_none() {
            meta.namespace = Some(self.owner.name.namespace.clone());
        }
        meta.owner_references = Some(vec![self.owner.reference.clone()]);
        meta.labels
            .get_or_insert_default()
            .insert(MANAGED_BY.into(), self.owner.operator.clone());
        let name = ObjectName::of(&object);
        let desired = serde_json::to_value(&object).map(|mut value| {
            value["apiVersion"] = kind.api_version().into();
            value["kind"] = kind.name().into();
            value
        });
        if let Err(error) = &desired {
            self.fail(
                "Unserialisable",
                format!("failed to serialise {kind} {name}: {error}"),
            );
        }
        self.push(Dependent {
            desired: desired.unwrap_or_default(),
            ..Dependent::new(kind, name)
        })
    }

    /// Adds one dependent for each of `objects`; an `Option` counts as none or one.
    pub fn add_each<K: Object>(&mut self, objects: impl IntoIterator<Item = K>) -> Vec<Handle<K>> {
        objects.into_iter().map(|object| self.add(object)).collect()
    }

    /// Leaves an object of the primary as it was observed: neither changed nor pruned.
    pub fn keep<K: Object>(&mut self, observed: &K) -> Handle<K> {
        let keep = Dependent {
            keep: true,
            ..Dependent::new(Kind::of::<K>(), ObjectName::of(observed))
        };
        self.push(keep)
    }

    /// Reports something that is wrong without stopping the plan: the primary becomes Degraded.
    pub fn fail(&mut self, reason: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem(Condition::failed(reason, message)));
    }

    /// Reports something that is still to come without stopping the plan: the primary is Progressing.
    pub fn wait(&mut self, reason: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem(Condition::pending(reason, message)));
    }

    fn push<K: Object>(&mut self, dependent: Dependent) -> Handle<K> {
        let index = self.dependents.len();
        let entry = Rc::new(RefCell::new(Some(dependent)));
        self.dependents.push(Rc::clone(&entry));
        Handle {
            index,
            entry,
            object: PhantomData,
        }
    }

    pub(crate) fn finish(self) -> (Vec<Dependent>, Vec<Problem>) {
        (
            self.dependents
                .iter()
                .filter_map(|entry| entry.borrow_mut().take())
                .collect(),
            self.problems,
        )
    }
}

/// A dependent that was added to a plan; say more about it, or [look at it](crate::World::observed).
#[derive(Clone)]
pub struct Handle<K> {
    index: usize,
    entry: Rc<RefCell<Option<Dependent>>>,
    object: PhantomData<K>,
}

impl<K: Object> Handle<K> {
    /// Made once, and from then on the user's: never changed, and reported rather than made again when it is
    /// deleted.
    // Neither this nor what follows is `#[must_use]`: a handle that nothing else needs is dropped.
    pub fn once(self) -> Self {
        self.set(|dependent| dependent.once = true)
    }

    /// Counts for the primary's readiness.
    pub fn ready(self) -> Self {
        self.set(|dependent| dependent.counts = true)
    }

    /// Held back, when it is made and whenever it changes, until another is ready; or several, or the one in an
    /// `Option` if there is one.
    pub fn after<'a, O: Object>(self, others: impl IntoIterator<Item = &'a Handle<O>>) -> Self {
        let others: Vec<usize> = others.into_iter().map(|other| other.index).collect();
        self.set(|dependent| dependent.after.extend(others))
    }

    /// Decides its condition from what is observed, in place of the rule for its kind.
    pub fn condition(self, condition: impl Fn(&K) -> Condition + Send + Sync + 'static) -> Self {
        let judge = move |stored: &Stored| match stored.decode::<K>() {
            Ok(object) => condition(&object),
            Err(error) => Condition::failed("Undecodable", error.to_string()),
        };
        self.set(|dependent| dependent.condition = Some(Box::new(judge)))
    }

    /// Namespace and name.
    #[must_use]
    pub fn name(&self) -> ObjectName {
        self.entry
            .borrow()
            .as_ref()
            .map(|dependent| dependent.name.clone())
            .unwrap_or_default()
    }

    fn set(self, change: impl FnOnce(&mut Dependent)) -> Self {
        if let Some(dependent) = self.entry.borrow_mut().as_mut() {
            change(dependent);
        }
        self
    }
}

impl<K> IntoIterator for &Handle<K> {
    type Item = Self;
    type IntoIter = std::iter::Once<Self>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self)
    }
}

/// The primary, as its dependents need to know it.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) operator: String,
    pub(crate) name: ObjectName,
    pub(crate) reference: OwnerReference,
}

/// Something to report that belongs to no dependent.
#[derive(Clone, Debug)]
pub(crate) struct Problem(pub(crate) Condition);

type Judge = Box<dyn Fn(&Stored) -> Condition + Send + Sync>;

/// One dependent as planned, its type erased.
pub(crate) struct Dependent {
    pub(crate) kind: Kind,
    pub(crate) name: ObjectName,
    pub(crate) desired: Value,
    pub(crate) once: bool,
    pub(crate) keep: bool,
    pub(crate) counts: bool,
    pub(crate) after: Vec<usize>,
    pub(crate) condition: Option<Judge>,
}

impl Dependent {
    fn new(kind: Kind, name: ObjectName) -> Self {
        let desired = Value::Null;
        Self {
            kind,
            name,
            desired,
            once: false,
            keep: false,
            counts: false,
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
}
