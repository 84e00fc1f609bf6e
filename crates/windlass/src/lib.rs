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
//! `plan` never does I/O, so the same function serves for reconciling, for a dry run and for unit tests. A whole
//! operator, and a test of it:
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use kube::{CustomResource, core::ObjectMeta};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use windlass::{Halt, Kind, Operator, Plan, Primary, Status, World, content_hash, test::Cluster};
//!
//! #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! #[kube(group = "example.org", version = "v1", kind = "Greeting", namespaced, status = "Status")]
//! struct GreetingSpec {
//!     text: String,
//!     secret: Option<String>,
//! }
//!
//! impl Primary for Greeting {
//!     fn owns() -> Vec<Kind> {
//!         vec![Kind::of::<ConfigMap>()]
//!     }
//!
//!     fn reads() -> Vec<Kind> {
//!         vec![Kind::of::<Secret>()]
//!     }
//!
//!     fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
//!         let mut data = vec![("text".to_owned(), self.spec.text.clone())];
//!         if let Some(name) = &self.spec.secret {
//!             // Read, hence watched: a new value plans this Greeting again.
//!             let secret: Secret = world.need(name)?;
//!             data.push(("secret-hash".to_owned(), content_hash(&secret.data)));
//!         }
//!         let metadata = ObjectMeta { name: self.metadata.name.clone(), ..ObjectMeta::default() };
//!         plan.add(ConfigMap { metadata, data: Some(data.into_iter().collect()), ..ConfigMap::default() });
//!         Ok(())
//!     }
//! }
//!
//! let operator = Operator::new("greeter").manages::<Greeting>();
//! # assert_eq!(operator.crds().len(), 1);
//!
//! let mut greeting = Greeting::new("hello", GreetingSpec { text: "hi".into(), secret: None });
//! let planned = Cluster::new().plan(&greeting);
//! assert_eq!(planned.object::<ConfigMap>("hello").and_then(|map| map.data).map(|data| data.len()), Some(1));
//!
//! greeting.spec.secret = Some("tokens".into());
//! let planned = Cluster::new().plan(&greeting);
//! assert_eq!(planned.halt().map(ToString::to_string).as_deref(), Some("Secret tokens is not there"));
//! ```

pub mod admission;
pub mod annotation;
mod apply;
mod cache;
mod condition;
mod controller;
mod crd;
mod declared;
mod event;
pub mod explain;
mod external;
mod hash;
mod kind;
pub mod manifests;
mod memo;
mod metrics;
pub mod olm;
mod operator;
mod packed;
mod permissions;
mod plan;
pub mod preview;
mod primary;
mod queue;
mod readiness;
mod reconcile;
mod replica;
mod runtime;
mod server;
mod standing;
mod status;
pub mod test;
mod world;

pub use apply::{is_quantity, same_quantity};
pub use condition::{Condition, State};
pub use external::{External, ExternalError};
pub use hash::content_hash;
pub use kind::{Kind, Object, ObjectName};
pub use operator::Operator;
pub use permissions::Permissions;
pub use plan::{Config, Handle, Plan};
pub use primary::{Invalid, Primary};
pub use replica::{LeaseName, LeaseTimes};
pub use runtime::{Error, Runtime};
pub use server::{Page, Port};
pub use status::{DependentStatus, Status};
pub use windlass_machinery::Context;
pub use world::{Halt, Query, World};

/// The label that says which operator keeps an object. The framework sets it on every dependent.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
