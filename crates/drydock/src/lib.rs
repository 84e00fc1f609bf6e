//! The drydock: an embedded Kubernetes control plane for developing and testing operators.
//!
//! One process, no root, no downloads: an API server ([`api`]) over a [`store`], the [`controllers`] and a
//! [`node`] as ordinary clients of it. Tests call it in process with no socket ([`Drydock::client`]); the
//! command line serves it over TLS ([`serve`]). Never for production.

pub mod api;
pub mod controllers;
mod drydock;
pub mod faults;
pub mod logs;
pub mod node;
pub mod pki;
pub mod record;
pub mod serve;
mod snapshot;
pub mod store;
pub mod webhook;

pub use api::auth::User;
pub use drydock::{Drydock, Options, StartError};
pub use snapshot::{Snapshot, SnapshotError};
pub use webhook::Webhooks;
