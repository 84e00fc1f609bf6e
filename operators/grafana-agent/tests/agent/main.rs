//! The operator as its users see it: what it renders, its CRDs, and its life on the drydock.

// A test that cannot go on should say so and stop.
#![allow(clippy::panic, clippy::unwrap_used)]

mod conformance;
mod fields;
mod grammar;
mod kubelet;
mod life;
mod manifests;
mod permissions;
mod relabel;
mod rendering;
mod schemas;
mod workloads;
