//! What should exist for a primary: the dependents, their order, and what counts for readiness.

mod dependent;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::Duration;

pub use self::dependent::Config;
pub(crate) use self::dependent::{Dependent, Owner};
use crate::cache::Stored;
use crate::{Condition, External, Kind, Object, ObjectName};

/// The dependents of one primary, in the order in which they are applied.
pub struct Plan {
    owner: Owner,
    dependents: Vec<Rc<RefCell<Option<Dependent>>>>,
    problems: Vec<Problem>,
    look_again: Option<Duration>,
    retire: bool,
}

impl Plan {
    pub(crate) fn new(owner: Owner) -> Self {
        Self { owner, dependents: Vec::new(), problems: Vec::new(), look_again: None, retire: false }
    }

    /// Adds a dependent: an object that should exist as given here. It is put into the primary's namespace if it
    /// names none, owned by the primary and labelled [`MANAGED_BY`](crate::MANAGED_BY); fields not given here are
    /// left to others.
    pub fn add<K: Object>(&mut self, mut object: K) -> Handle<K> {
        let kind = Kind::of::<K>();
        let meta = object.meta_mut();
        if kind.namespaced() && meta.namespace.is_none() {
            meta.namespace = Some(self.owner.name.namespace.clone());
        }
        let name = ObjectName::of(&object);
        let desired = serde_json::to_value(&object).map(|mut value| {
            value["apiVersion"] = kind.api_version().into();
            value["kind"] = kind.name().into();
            value
        });
        if let Err(error) = &desired {
            self.fail("Unserialisable", format!("failed to serialise {kind} {name}: {error}"));
        }
        self.push(Dependent { desired: desired.unwrap_or_default(), ..Dependent::new(kind, name) })
    }

    /// Adds one dependent for each of `objects`; an `Option` counts as none or one.
    pub fn add_each<K: Object>(&mut self, objects: impl IntoIterator<Item = K>) -> Vec<Handle<K>> {
        objects.into_iter().map(|object| self.add(object)).collect()
    }

    /// Adds something outside Kubernetes that should be as given here; `id` names it among its type. It is observed,
    /// made, changed and removed by the [`External`] that the operator was [given](crate::Operator::external).
    pub fn add_external<X: External>(&mut self, id: impl Into<String>, desired: &X::Desired) -> Handle<X> {
        let (kind, id) = (Kind::external(X::TYPE), id.into());
        let tree = serde_json::to_value(desired);
        if let Err(error) = &tree {
            self.fail("Unserialisable", format!("failed to serialise {kind} {id}: {error}"));
        }
        self.push(Dependent {
            desired: tree.unwrap_or_default(),
            ..Dependent::new(kind, ObjectName::new("", id))
        })
    }

    /// Plans again after this time even if nothing has changed; the shortest of several holds.
    pub fn look_again(&mut self, after: Duration) {
        self.look_again = Some(self.look_again.map_or(after, |sooner| sooner.min(after)));
    }

    /// Has the primary itself deleted, once all is as planned: its time has come. Its type must
    /// [declare](crate::Primary::retires) it.
    pub fn retire(&mut self) {
        self.retire = true;
    }

    /// Leaves an object of the primary as it was observed: neither changed nor pruned.
    pub fn keep<K: Object>(&mut self, observed: &K) -> Handle<K> {
        let keep = Dependent { keep: true, ..Dependent::new(Kind::of::<K>(), ObjectName::of(observed)) };
        self.push(keep)
    }

    /// Leaves each of these objects of the primary as it was observed.
    pub fn keep_each<'a, K: Object>(&mut self, observed: impl IntoIterator<Item = &'a K>) -> Vec<Handle<K>> {
        observed.into_iter().map(|object| self.keep(object)).collect()
    }

    /// Reports something that is wrong without stopping the plan: the primary becomes Degraded.
    pub fn fail(&mut self, reason: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem(Condition::failed(reason, message)));
    }

    /// Reports something that is still to come without stopping the plan: the primary is Progressing.
    pub fn wait(&mut self, reason: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem(Condition::pending(reason, message)));
    }

    /// For a plan of no custom resource: what it adds has no owner.
    pub(crate) fn disown(&mut self) {
        for dependent in &self.dependents {
            if let Some(dependent) = dependent.borrow_mut().as_mut() {
                dependent.config.owned = false;
            }
        }
    }

    fn push<K>(&mut self, dependent: Dependent) -> Handle<K> {
        let index = self.dependents.len();
        let entry = Rc::new(RefCell::new(Some(dependent)));
        self.dependents.push(Rc::clone(&entry));
        Handle { index, entry, object: PhantomData }
    }

    pub(crate) fn finish(self) -> Finished {
        let dependents = self.dependents.iter().filter_map(|entry| {
            let mut dependent = entry.borrow_mut().take()?;
            dependent.mark(&self.owner);
            Some(dependent)
        });
        let dependents = dependents.collect();
        Finished { dependents, problems: self.problems, look_again: self.look_again, retire: self.retire }
    }
}

/// What a plan has come to.
pub(crate) struct Finished {
    pub(crate) dependents: Vec<Dependent>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) look_again: Option<Duration>,
    pub(crate) retire: bool,
}

/// A dependent that was added to a plan; say more about it, or [look at it](crate::World::observed).
pub struct Handle<K> {
    index: usize,
    entry: Rc<RefCell<Option<Dependent>>>,
    object: PhantomData<K>,
}

impl<K> Clone for Handle<K> {
    fn clone(&self) -> Self {
        Self { index: self.index, entry: Rc::clone(&self.entry), object: PhantomData }
    }
}

impl<K> Handle<K> {
    /// Made once, and from then on the user's: never changed, and reported rather than made again when it is
    /// deleted.
    // Neither this nor what follows is `#[must_use]`: a handle that nothing else needs is dropped.
    pub fn once(self) -> Self {
        self.set(|dependent| dependent.config.updated = false)
    }

    /// Counts for the primary's readiness.
    pub fn ready(self) -> Self {
        self.set(|dependent| dependent.config.checked_for_readiness = true)
    }

    /// Outlives the primary, and is never pruned.
    pub fn unowned(self) -> Self {
        self.set(|dependent| dependent.config.owned = false)
    }

    /// Somebody else makes it; where it is there, the fields given here are kept as given.
    pub fn existing(self) -> Self {
        self.set(|dependent| (dependent.config.created, dependent.config.owned) = (false, false))
    }

    /// Says all of it at once.
    pub fn config(self, config: Config) -> Self {
        self.set(|dependent| dependent.config = config)
    }

    /// Held back, when it is made and whenever it changes, until another is ready; or several, or the one in an
    /// `Option` if there is one.
    pub fn after<'a, O: 'a>(self, others: impl IntoIterator<Item = &'a Handle<O>>) -> Self {
        let others: Vec<usize> = others.into_iter().map(|other| other.index).collect();
        self.set(|dependent| dependent.after.extend(others))
    }

    /// Namespace and name; of an external thing, its id.
    #[must_use]
    pub fn name(&self) -> ObjectName {
        self.entry.borrow().as_ref().map(|dependent| dependent.name.clone()).unwrap_or_default()
    }

    fn set(self, change: impl FnOnce(&mut Dependent)) -> Self {
        if let Some(dependent) = self.entry.borrow_mut().as_mut() {
            change(dependent);
        }
        self
    }
}

impl<K: Object> Handle<K> {
    /// Decides its condition from what is observed, in place of the rule for its kind.
    pub fn condition(self, condition: impl Fn(&K) -> Condition + Send + Sync + 'static) -> Self {
        let judge = move |stored: &Stored| match stored.decode::<K>() {
            Ok(object) => condition(&object),
            Err(error) => Condition::failed("Undecodable", error.to_string()),
        };
        self.set(|dependent| dependent.condition = Some(Box::new(judge)))
    }
}

impl<K> IntoIterator for &Handle<K> {
    type Item = Self;
    type IntoIter = std::iter::Once<Self>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self)
    }
}

/// Something to report that belongs to no dependent.
#[derive(Clone, Debug)]
pub(crate) struct Problem(pub(crate) Condition);
