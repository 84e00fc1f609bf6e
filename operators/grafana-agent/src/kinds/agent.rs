//! GrafanaAgent.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::core::v1::{
    Affinity, Container, EmptyDirVolumeSource, EphemeralVolumeSource, LocalObjectReference,
    PersistentVolumeClaimSpec, PersistentVolumeClaimStatus, PodSecurityContext, ResourceRequirements,
    Toleration, TopologySpreadConstraint, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentStatus, ApiServerAuthorization, BasicAuth, LogsClient, RemoteWrite, Tls};
use crate::outcome::Outcome;

/// Agents that collect metrics and logs, and what they collect.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "monitoring.grafana.com",
    version = "v1alpha1",
    kind = "GrafanaAgent",
    plural = "grafanaagents",
    category = "agent-operator",
    namespaced,
    status = "AgentStatus",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Metrics", "type": "string", "jsonPath": ".status.metrics.summary"}"#,
    printcolumn = r#"{"name": "Logs", "type": "string", "jsonPath": ".status.logs.summary"}"#,
    printcolumn = r#"{"name": "Integrations", "type": "string", "jsonPath": ".status.integrations.summary"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = crate::schema::refine)]
pub struct GrafanaAgentSpec {
    /// How much is logged: `debug`, `info`, `warn` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<String>,
    /// How it is logged: `logfmt` or `json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_format: Option<String>,
    /// The API server in which targets are discovered; the one of the agent's own cluster if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server: Option<ApiServer>,
    /// More labels and annotations for the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_metadata: Option<PodMetadata>,
    /// The agent's version; it does not count where `image` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether the operator leaves the agent's objects as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// The agent's image, with its tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The config reloader's version; it does not count where `configReloaderImage` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_reloader_version: Option<String>,
    /// The config reloader's image, with its tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_reloader_image: Option<String>,
    /// Secrets from which images may be pulled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Where the write-ahead log is kept; a volume that goes with its pod if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// More volumes for the pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// Where those volumes are mounted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<VolumeMount>,
    /// What the agent's container asks for and may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// The labels of the nodes that the pods may run on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// The service account of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Secrets in the agent's namespace to mount, as `/var/lib/grafana-agent/extra-secrets/<name>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// ConfigMaps in the agent's namespace to mount, as `/var/lib/grafana-agent/extra-configmaps/<name>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_maps: Vec<String>,
    /// The pods' affinities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// The pods' tolerations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// How the pods spread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// The pods' security context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<PodSecurityContext>,
    /// More containers. One of the operator's own names (`grafana-agent`, `config-reloader`) is merged with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Container>,
    /// Containers that run before the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Container>,
    /// The pods' priority class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// The pods' runtime class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_class_name: Option<String>,
    /// The name of the agent's port; `http-metrics` if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_name: Option<String>,
    /// Metrics.
    #[serde(default)]
    pub metrics: MetricsSubsystem,
    /// Logs.
    #[serde(default)]
    pub logs: LogsSubsystem,
    /// Integrations.
    #[serde(default)]
    pub integrations: IntegrationsSubsystem,
    /// Whether the agent can be asked for its configuration.
    #[serde(rename = "enableConfigReadAPI", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub enable_config_read_api: Option<bool>,
    /// Whether the agent sends no report of its use to its makers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub disable_reporting: Option<bool>,
    /// Whether the agent cannot be asked for a support bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub disable_support_bundle: Option<bool>,
    /// What the last plan came to, so that the status need not render anew. No field of the API.
    #[serde(skip)]
    #[schemars(skip)]
    pub memo: Memo,
}

/// What a plan came to, kept with the object that was planned.
#[derive(Clone, Default)]
pub struct Memo(pub(crate) OnceLock<Arc<Outcome>>);

impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memo")
    }
}

/// An API server to discover targets in.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["host"]))]
pub struct ApiServer {
    /// Its host, with or without a scheme.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// A user name and a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
    /// A bearer token, readable by everybody who may read this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_token: Option<String>,
    /// A file in the agent's container with a bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_token_file: Option<String>,
    /// TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_config: Option<Tls>,
    /// The `Authorization` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization: Option<ApiServerAuthorization>,
}

/// More labels and annotations for pods.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodMetadata {
    /// Without effect: a pod's name comes from what makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Labels. Those of the operator come before them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Where the write-ahead log is kept. The first of `emptyDir`, `ephemeral` and `volumeClaimTemplate` counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Without effect: the volume is always mounted as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_mount_sub_path: Option<bool>,
    /// A volume that goes with its pod, on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<EmptyDirVolumeSource>,
    /// A claimed volume that goes with its pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<EphemeralVolumeSource>,
    /// A claimed volume that stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_claim_template: Option<VolumeClaim>,
}

/// A claim for a volume.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeClaim {
    /// Without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name, labels and annotations of the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<PodMetadata>,
    /// What is claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<PersistentVolumeClaimSpec>,
    /// Without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PersistentVolumeClaimStatus>,
}

/// Metrics: the instances, and what holds for all of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricsSubsystem {
    /// Where to send metrics of instances that say nothing of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remote_write: Vec<RemoteWrite>,
    /// How many pods of each shard scrape the same targets; 1 if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// How many shards the targets are spread over; 1 if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<i32>,
    /// The label that tells replicas apart: `__replica__` if it is not given, none if it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_external_label_name: Option<String>,
    /// The label that names this agent: `cluster` if it is not given, none if it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_external_label_name: Option<String>,
    /// How often to scrape where nothing else is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scrape_interval: Option<String>,
    /// How long a scrape may take where nothing else is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scrape_timeout: Option<String>,
    /// More labels for every series.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub external_labels: BTreeMap<String, String>,
    /// Whether ServiceMonitors may name files of the agent's container.
    #[serde(rename = "arbitraryFSAccessThroughSMs", skip_serializing_if = "Option::is_none")]
    pub file_access: Option<FileAccess>,
    /// Whether labels of the samples never come before those of the target, whatever monitors say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub override_honor_labels: Option<bool>,
    /// Whether times of the samples are never taken over, whatever monitors say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub override_honor_timestamps: Option<bool>,
    /// Whether monitors find targets in their own namespace only, whatever they say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_namespace_selectors: Option<bool>,
    /// A label that always holds the namespace of the monitor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforced_namespace_label: Option<String>,
    /// How many samples any scrape may give.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforced_sample_limit: Option<i64>,
    /// How many targets any scrape configuration may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforced_target_limit: Option<i64>,
    /// The MetricsInstances: none if it is not given, all with `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_selector: Option<LabelSelector>,
    /// The namespaces of the MetricsInstances: the agent's own if it is not given, all with `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_namespace_selector: Option<LabelSelector>,
}

/// Whether ServiceMonitors may name files of the agent's container.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileAccess {
    /// Whether those that do are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<bool>,
}

/// Logs: the instances, and what holds for all of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogsSubsystem {
    /// Where to send the lines of instances that say nothing of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<LogsClient>,
    /// The label that names this agent: `cluster` if it is not given, none if it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs_external_label_name: Option<String>,
    /// Whether PodLogs find pods in their own namespace only, whatever they say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_namespace_selectors: Option<bool>,
    /// A label that always holds the namespace of the PodLogs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforced_namespace_label: Option<String>,
    /// The LogsInstances: none if it is not given, all with `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_selector: Option<LabelSelector>,
    /// The namespaces of the LogsInstances: the agent's own if it is not given, all with `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_namespace_selector: Option<LabelSelector>,
}

/// Integrations.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntegrationsSubsystem {
    /// The Integrations: none if it is not given, all with `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// The namespaces of the Integrations: the agent's own if it is not given, all with `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
}
