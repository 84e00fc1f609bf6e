//! The Grafana Agent operator: finds what an agent collects by selectors, renders its configurations, copies the
//! Secrets they name and deploys the agents.
//!
//! Start reading at [`kinds`] for the API, at [`discovery`] for what an agent selects, at [`config`] for how that is
//! rendered. [`manifests`] renders without a cluster.

pub mod assets;
pub mod config;
pub mod discovery;
pub mod document;
pub mod fault;
pub mod kinds;
pub mod manifests;
pub mod outcome;
