//! LogsInstance and PodLogs.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::SecretKeySelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metrics::Integer;
use super::{BasicAuth, NamespaceSelector, OAuth2, Relabeling, SelectedStatus, Stage, Tls};

/// One pipeline of logs: which PodLogs are followed, and where their lines go.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "monitoring.grafana.com",
    version = "v1alpha1",
    kind = "LogsInstance",
    plural = "logsinstances",
    category = "agent-operator",
    namespaced,
    status = "SelectedStatus",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = crate::schema::refine)]
pub struct LogsInstanceSpec {
    /// Where to send this instance's lines; where the agent says if nothing is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<LogsClient>,
    /// The PodLogs to follow: none if it is not given, all with `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_logs_selector: Option<LabelSelector>,
    /// The namespaces of the PodLogs: the instance's own if it is not given, all with `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_logs_namespace_selector: Option<LabelSelector>,
    /// The key of a Secret with more scrape configurations, a YAML list. They are taken as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_scrape_configs: Option<SecretKeySelector>,
    /// How files are followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_config: Option<TargetConfig>,
}

/// How files are followed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetConfig {
    /// How often directories are looked at for new and gone files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_period: Option<String>,
}

/// A Loki that lines are sent to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogsClient {
    /// The URL to send to, such as `http://loki:3100/loki/api/v1/push`.
    pub url: String,
    /// The tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// How long a line waits for others to be sent with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_wait: Option<String>,
    /// How many bytes are sent at once at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Integer>")]
    pub batch_size: Option<i64>,
    /// A user name and a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
    /// OAuth 2.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2>,
    /// A bearer token, readable by everybody who may read this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_token: Option<String>,
    /// A file in the agent's container with a bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_token_file: Option<String>,
    /// The proxy to go through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_url: Option<String>,
    /// TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_config: Option<Tls>,
    /// How a failed request is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_config: Option<Backoff>,
    /// More labels for each line.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub external_labels: BTreeMap<String, String>,
    /// How long one request may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
}

/// How a failed request is repeated.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backoff {
    /// The pause before the first repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_period: Option<String>,
    /// The longest pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_period: Option<String>,
    /// How often it is repeated before the lines are given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Integer>")]
    pub max_retries: Option<i64>,
}

/// Which pods' logs are followed, and how their lines are worked on.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "monitoring.grafana.com",
    version = "v1alpha1",
    kind = "PodLogs",
    plural = "podlogs",
    singular = "podlogs",
    category = "agent-operator",
    namespaced,
    status = "SelectedStatus",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = crate::schema::refine)]
pub struct PodLogsSpec {
    /// The label of the pod whose value becomes the label `job`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_label: Option<String>,
    /// The labels of the pod that the stream gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pod_target_labels: Vec<String>,
    /// The pods, by their labels.
    pub selector: LabelSelector,
    /// The namespaces of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    /// What is done to each line, step by step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pipeline_stages: Vec<Stage>,
    /// The steps that rewrite the labels of a stream before it is followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relabelings: Vec<Relabeling>,
}
