//! The Monocle operator: deploys Monocle (change metrics for code reviews), keeps it configured and reports on it.
//!
//! Start reading at [`monocle`]: the custom resource and its plan. Each object it plans has a file of its own below.

mod listing;
pub mod monocle;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

pub use listing::LISTING;
pub use monocle::{Monocle, MonocleSpec, MonocleStatus};

/// A manifest to try it with.
pub const SAMPLE: &str = include_str!("../samples/monocle-sample.yaml");

/// The operator's name: its field manager, and `app.kubernetes.io/managed-by` on what it makes.
pub const OPERATOR: &str = "monocle-operator";

/// The operator, to be given to a [`windlass::Runtime`].
#[must_use]
pub fn operator() -> windlass::Operator {
    windlass::Operator::new(OPERATOR).manages::<Monocle>()
}

/// The definitions of its kinds.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![Monocle::crd()]
}
