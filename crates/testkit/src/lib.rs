//! Tests of operators, in process on the drydock, in virtual time.
//!
//! A [`Harbour`] is a drydock with an operator in it: apply manifests, wait for conditions, break things, look at the
//! world. [`Matrix`] runs an operator's whole life under every fault that can be enumerated: a crash after each of
//! its writes, stale reads, cut and doubled watches, lost answers, refusals.
//!
//! [`play`] runs a test on the drydock by default and on a real cluster where one is named, written once: a [`Stage`] is
//! an operator and a namespace of its own on a [`Cluster`].
//!
//! Everything here panics with a message for people when what it waits for does not come: it is for tests only. Use
//! the first two with `#[tokio::test(start_paused = true)]`, so that hours pass in milliseconds; `play` pauses by itself.

// A test that cannot go on should say so and stop.
#![allow(clippy::panic, clippy::unwrap_used)]

pub mod account;
mod cluster;
mod conditions;
mod harbour;
mod matrix;
mod stage;
mod world;

pub use cluster::{Cluster, KUBECONFIG};
pub use harbour::{Harbour, OPERATOR};
pub use matrix::Matrix;
pub use stage::{Stage, play};
pub use world::World;
