//! The trait that an operator's author implements.

use std::time::Duration;

use kube::core::object::HasStatus;
use serde::{Serialize, de::DeserializeOwned};

use crate::{Halt, Kind, Object, Plan, Status, World};

/// A custom resource that an operator manages.
///
/// Implement it on the type that `#[derive(kube::CustomResource)]` makes. The status type flattens a
/// [`Status`](crate::Status), so that the schema has its fields.
pub trait Primary: Object + HasStatus<Status: Serialize + DeserializeOwned + Default> {
    /// Every kind of which [`plan`](Self::plan) may make objects. They are watched from the start, and those that a
    /// complete plan no longer has are deleted, also after a restart.
    fn owns() -> Vec<Kind>;

    /// Kinds whose objects somebody else makes, and of which [`plan`](Self::plan) sets some fields
    /// ([`existing`](crate::Handle::existing)). The operator may change them, but neither make nor delete any.
    #[must_use]
    fn adjusts() -> Vec<Kind> {
        Vec::new()
    }

    /// Kinds that [`plan`](Self::plan) and [`own_status`](Self::own_status) only look at; its own kind and those above
    /// need not be said again. The operator's permissions follow from these lists, so a plan that reads anything else is
    /// refused everywhere, not only on a cluster that forbids it.
    #[must_use]
    fn reads() -> Vec<Kind> {
        Vec::new()
    }

    /// Whether [`plan`](Self::plan) may add objects in other namespaces than the primary's own. They are cleaned up by
    /// means of a finalizer, which the operator must be allowed to set.
    #[must_use]
    fn reaches_out() -> bool {
        false
    }

    /// Kinds of its own objects that have to be gone, with all that they own, before it and the rest of what it owns may
    /// go: what still runs must not lose its permissions first.
    #[must_use]
    fn stops_first() -> Vec<Kind> {
        Vec::new()
    }

    /// Whether [`plan`](Self::plan) may have the primary itself deleted ([`Plan::retire`]), which the operator must be
    /// allowed to do.
    #[must_use]
    fn retires() -> bool {
        false
    }

    /// Fills in what the user left out and the schema cannot say.
    fn defaults(&mut self) {}

    /// What is wrong with the spec; nothing if it is valid. An invalid primary is reported and left as it is
    /// until it changes.
    fn validity(&self) -> Vec<Invalid> {
        Vec::new()
    }

    /// What is allowed, but worth telling whoever writes it, as the user wrote it: before the defaults. Told by an
    /// operator with webhooks only.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Says what should exist. Called whenever something that it read has changed: no I/O, no clock, no randomness
    /// other than through `world`.
    ///
    /// # Errors
    /// A plan that cannot go on returns a [`Halt`], mostly through `?` on a read. What it has added by then is
    /// applied; nothing is pruned.
    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt>;

    /// Fills in the operator's own fields of the status. `status` starts as the last one, with the framework's
    /// part, also given as `report`, already new.
    ///
    /// # Errors
    /// As for [`plan`](Self::plan); what was filled in by then is kept.
    fn own_status(&self, world: &World, report: &Status, status: &mut Self::Status) -> Result<(), Halt> {
        let _ = (world, report, status);
        Ok(())
    }

    /// The least time from one change of its dependents to the next: what happens meanwhile is gathered. The first
    /// change after a quiet time is never held back.
    #[must_use]
    fn pace() -> Duration {
        Duration::ZERO
    }

    /// Whether it has a status only while something is wrong: for objects that are many, or somebody else's. Nothing
    /// is then written to one that is well, and only the framework's part is ever written.
    #[must_use]
    fn quiet() -> bool {
        false
    }

    /// When to look again even if nothing has changed.
    fn look_again(&self) -> Option<Duration> {
        None
    }
}

/// One thing that is wrong with a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The field, as a path: `spec.elastic.storageSize`.
    pub field: String,
    /// What is wrong with it and the way out.
    pub message: String,
}

impl Invalid {
    /// Names the field, and says what is wrong with it and the way out.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }

    /// All of them in one line: the message of the condition, and of the refusal by a webhook.
    pub(crate) fn message(all: &[Self]) -> String {
        let all: Vec<_> = all.iter().map(ToString::to_string).collect();
        all.join("; ")
    }
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}
