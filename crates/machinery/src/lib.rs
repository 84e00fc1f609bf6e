//! Kubernetes API machinery as pure functions: schemas, patches, server-side apply, selectors, quantities.
//!
//! Shared by the framework and the drydock. Nothing here does I/O; time and randomness come from a
//! [`context::Context`].

pub mod apply;
pub mod cel;
pub mod context;
pub mod cron;
pub mod decode;
pub mod encode;
pub mod fields;
pub mod go;
pub mod invalid;
pub mod managed;
pub mod names;
pub mod patch;
pub mod quantity;
pub mod schema;
pub mod selector;
pub mod structural;

pub use context::Context;
