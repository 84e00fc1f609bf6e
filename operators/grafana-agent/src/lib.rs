//! The Grafana Agent operator: finds what an agent collects by selectors, renders its configurations, copies the
//! Secrets they name and deploys the agents.
//!
//! Start reading at [`kinds`] for the API, at [`discovery`] for what an agent selects, at [`config`] for how that is
//! rendered, at the module `agent` for what is deployed. [`manifests`] renders without a cluster.

mod agent;
pub mod assets;
pub mod config;
pub mod discovery;
pub mod document;
pub mod fault;
pub mod kinds;
pub mod kubelet;
mod listing;
pub mod manifests;
pub mod outcome;
mod schema;
mod selected;
pub mod text;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

use self::kinds::{
    GrafanaAgent, Integration, LogsInstance, MetricsInstance, PodLogs, PodMonitor, Probe, ServiceMonitor,
};
pub use self::listing::LISTING;

/// Manifests to try it with.
pub const SAMPLE: &str = include_str!("../samples/grafana-agent-sample.yaml");

/// The operator's name: its field manager, and `app.kubernetes.io/managed-by` on what it makes.
pub const OPERATOR: &str = "grafana-agent-operator";

/// The operator, to be given to a [`windlass::Runtime`].
#[must_use]
pub fn operator() -> windlass::Operator {
    windlass::Operator::new(OPERATOR)
        .manages::<GrafanaAgent>()
        .manages::<MetricsInstance>()
        .manages::<LogsInstance>()
        .manages::<PodLogs>()
        .manages::<Integration>()
        .manages::<ServiceMonitor>()
        .manages::<PodMonitor>()
        .manages::<Probe>()
}

/// The definitions of its kinds.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        GrafanaAgent::crd(),
        MetricsInstance::crd(),
        LogsInstance::crd(),
        PodLogs::crd(),
        Integration::crd(),
        ServiceMonitor::crd(),
        PodMonitor::crd(),
        Probe::crd(),
    ]
}
