//! Packages for the Operator Lifecycle Manager: bundles, and catalogs of them.
//!
//! What a bundle holds is the framework's; here it is written, read, checked and put into catalogs.

pub(crate) mod bundle;
pub(crate) mod catalog;
mod directory;
mod facts;
mod graph;
mod image;
mod validate;
mod version;
