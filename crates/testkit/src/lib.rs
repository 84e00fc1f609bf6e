//! Tests of operators, in process on the drydock, in virtual time.
//!
//! A [`Harbour`] is a drydock with an operator in it: apply manifests, wait for conditions, break things, look at the
//! world. [`Matrix`] runs an operator's whole life under every fault that can be enumerated: a crash after each of
//! its writes, stale reads, cut and doubled watches, lost answers, refusals.
//!
//! Everything here panics with a message for people when what it waits for does not come: it is for tests only. Use
//! it with `#[tokio::test(start_paused = true)]`, so that hours pass in milliseconds.

// A test that cannot go on should say so and stop.
#![allow(clippy::panic, clippy::unwrap_used)]

mod harbour;
mod matrix;
mod world;

pub use harbour::{Harbour, OPERATOR};
pub use matrix::Matrix;
pub use world::World;
