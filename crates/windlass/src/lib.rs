//! Windlass: write what should exist for a custom resource as a pure function; the framework does the rest.
//!
//! Six words hold the whole of it:
//!
//! - a [`Primary`] is a custom resource that an operator manages; its [`plan`](Primary::plan) says what should
//!   exist for it;
//! - the [`Plan`] collects the *dependents*: objects made for the primary, with their order and what counts for
//!   readiness;
//! - the [`World`] is all that a plan may look at. Its reads are tracked: what was read decides what is watched,
//!   so nobody writes event mappers;
//! - an [`Operator`] is a name and its primaries;
//! - a [`Runtime`] *runs* operators: watches, queue, apply, prune, status, retries;
//! - [`test`](mod@test) plans without a server.
//!
//! `plan` never does I/O, so the same function serves for reconciling, for a dry run and for unit tests.

mod apply;
mod cache;
mod condition;
mod controller;
mod crd;
mod event;
mod hash;
mod kind;
mod operator;
mod plan;
mod primary;
mod queue;
mod readiness;
mod reconcile;
mod runtime;
mod status;
pub mod test;
mod world;

pub use condition::{Condition, State};
pub use hash::content_hash;
pub use kind::{Kind, Object, ObjectName};
pub use operator::Operator;
pub use plan::{Handle, Plan};
pub use primary::{Invalid, Primary};
pub use runtime::{Error, Runtime};
pub use status::{DependentStatus, Status};
pub use windlass_machinery::Context;
pub use world::{Halt, Query, World};

/// The label that says which operator keeps an object. The framework sets it on every dependent.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
