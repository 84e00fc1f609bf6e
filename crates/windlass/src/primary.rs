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
    /// Every kind that [`plan`](Self::plan) may add. Objects of these kinds are watched from the start, and those
    /// that a complete plan no longer has are deleted, also after a restart.
    fn owns() -> Vec<Kind>;

    /// Fills in what the user left out and the schema cannot say.
    fn defaults(&mut self) {}

    /// What is wrong with the spec; nothing if it is valid. An invalid primary is reported and left as it is
    /// until it changes.
    fn validity(&self) -> Vec<Invalid> {
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
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}
