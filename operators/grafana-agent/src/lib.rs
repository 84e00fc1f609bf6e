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
mod schema;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

use self::kinds::{
    GrafanaAgent, Integration, LogsInstance, MetricsInstance, PodLogs, PodMonitor, Probe, ServiceMonitor,
};

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
