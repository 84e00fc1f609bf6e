//! An operator for websites: a page in a custom resource becomes servers that show it.

mod ingress;
mod page;
mod servers;
mod service;
mod website;

pub use website::{Website, WebsiteSpec, WebsiteStatus};

/// The operator, to be given to a [`windlass::Runtime`].
pub fn operator() -> windlass::Operator {
    windlass::Operator::new("website-operator").manages::<Website>()
}

/// A website to try it with.
pub const SAMPLE: &str = include_str!("../website.yaml");
