//! Integration.

use k8s_openapi::api::core::v1::{ConfigMapKeySelector, SecretKeySelector, Volume, VolumeMount};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::SelectedStatus;

/// One integration of the agent, such as an exporter that is built in.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "monitoring.grafana.com",
    version = "v1alpha1",
    kind = "Integration",
    plural = "integrations",
    category = "agent-operator",
    namespaced,
    status = "SelectedStatus",
    printcolumn = r#"{"name": "Integration", "type": "string", "jsonPath": ".spec.name"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["config", "name", "type"]), transform = crate::schema::refine)]
pub struct IntegrationSpec {
    /// Its name, such as `node_exporter`.
    pub name: String,
    /// Where and how often it may run.
    #[serde(rename = "type")]
    pub kind: IntegrationType,
    /// Its settings, as the agent's `integrations-next` knows them.
    #[serde(default)]
    #[schemars(schema_with = "anything")]
    pub config: Map<String, Value>,
    /// More volumes for the pods that run it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// Where those volumes are mounted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<VolumeMount>,
    /// Keys of Secrets in its namespace. They are mounted as
    /// `/etc/grafana-agent/integrations/secrets/<namespace>/<name>/<key>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretKeySelector>,
    /// Keys of ConfigMaps in its namespace. They are mounted as
    /// `/etc/grafana-agent/integrations/configMaps/<namespace>/<name>/<key>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_maps: Vec<ConfigMapKeySelector>,
}

/// Where and how often an integration may run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntegrationType {
    /// On every node, rather than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_nodes: Option<bool>,
    /// Only one of its name in an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique: Option<bool>,
}

fn anything(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
