//! Names and labels of an agent's objects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::OPERATOR;
use crate::kinds::{GrafanaAgent, Named as _};

/// The label that names the agent.
pub(super) const NAME: &str = "operator.agent.grafana.com/name";
/// The label that says what pods are for.
pub(super) const TYPE: &str = "operator.agent.grafana.com/type";
/// The label that numbers shards.
pub(super) const SHARD: &str = "operator.agent.grafana.com/shard";

/// The name of a child.
pub(super) fn child(agent: &GrafanaAgent, suffix: &str) -> String {
    format!("{}-{suffix}", agent.title())
}

/// The labels of all objects of an agent.
pub(super) fn common(agent: &GrafanaAgent) -> BTreeMap<String, String> {
    [
        ("app.kubernetes.io/name", "grafana-agent"),
        ("app.kubernetes.io/instance", agent.title()),
        (windlass::MANAGED_BY, OPERATOR),
        ("grafana-agent", agent.title()),
        (NAME, agent.title()),
    ]
    .map(|(label, value)| (label.to_owned(), value.to_owned()))
    .into()
}

/// Name and labels of a child.
pub(super) fn metadata(agent: &GrafanaAgent, name: String) -> ObjectMeta {
    ObjectMeta { name: Some(name), labels: Some(common(agent)), ..ObjectMeta::default() }
}

/// Name, labels and annotations of what runs pods: the agent's annotations, but for those of kubectl.
pub(super) fn workload(agent: &GrafanaAgent, name: String, labels: BTreeMap<String, String>) -> ObjectMeta {
    let annotations = agent.metadata.annotations.iter().flatten();
    let annotations: BTreeMap<String, String> = annotations
        .filter(|(name, _)| !name.starts_with("kubectl.kubernetes.io/"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    ObjectMeta {
        name: Some(name),
        labels: Some(labels),
        annotations: (!annotations.is_empty()).then_some(annotations),
        ..ObjectMeta::default()
    }
}
