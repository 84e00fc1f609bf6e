//! ServiceMonitor, PodMonitor and Probe: the Prometheus Operator's kinds, as far as version 0.66 has fields.
//!
//! They are somebody else's, and there may be thousands: they have a status only while something is wrong with them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::SecretKeySelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Authorization, BasicAuth, NamespaceSelector, OAuth2, Relabeling, SafeTls, SelectedStatus, Tls};

/// A length of time, as Prometheus writes it.
const DURATION: &str = concat!(
    "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?",
    "(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
);

/// How to scrape the endpoints of Services.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "monitoring.coreos.com",
    version = "v1",
    kind = "ServiceMonitor",
    plural = "servicemonitors",
    shortname = "smon",
    category = "prometheus-operator",
    namespaced,
    status = "SelectedStatus",
    printcolumn = r#"{"name": "Left out because", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Degraded\")].message"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = crate::schema::refine)]
pub struct ServiceMonitorSpec {
    /// The label of the Service whose value becomes the label `job`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_label: Option<String>,
    /// The labels of the Service that its targets get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target_labels: Vec<String>,
    /// The labels of the pod that its targets get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pod_target_labels: Vec<String>,
    /// The ports to scrape.
    pub endpoints: Vec<Endpoint>,
    /// The Services, by their labels.
    pub selector: LabelSelector,
    /// The namespaces of the Services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    /// Limits.
    #[serde(flatten)]
    pub limits: Limits,
    /// What more is known of a target when it is relabeled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attach_metadata: Option<AttachMetadata>,
}

/// What more is known of a target when it is relabeled.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttachMetadata {
    /// The labels of its node. The agent must be allowed to read nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<bool>,
}

/// How much there may be of a monitor's targets, samples and labels; 0 is no limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// How many samples one scrape may give.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_limit: Option<i64>,
    /// How many targets there may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_limit: Option<i64>,
    /// How many labels a sample may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_limit: Option<i64>,
    /// How long the name of a label may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_name_length_limit: Option<i64>,
    /// How long the value of a label may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_value_length_limit: Option<i64>,
}

/// A port of a Service to scrape.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// What is the same for the ports of pods.
    #[serde(flatten)]
    pub scrape: Scrape,
    /// TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_config: Option<Tls>,
    /// A file in the agent's container with a bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_token_file: Option<String>,
}

/// What is the same for the ports of Services and of pods.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Scrape {
    /// The name of the port. It comes before `targetPort`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// The name or number of the container's port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_port: Option<IntOrString>,
    /// The path; `/metrics` if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `http` or `https`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["http", "https"]))]
    pub scheme: Option<String>,
    /// Parameters of the URL.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Vec<String>>,
    /// How often to scrape; as often as the agent says if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = DURATION))]
    pub interval: Option<String>,
    /// How long a scrape may take: no longer than the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = DURATION))]
    pub scrape_timeout: Option<String>,
    /// The key of a Secret with a bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_token_secret: Option<SecretKeySelector>,
    /// The `Authorization` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization: Option<Authorization>,
    /// Whether labels of the samples come before those of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub honor_labels: Option<bool>,
    /// Whether times of the samples are taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub honor_timestamps: Option<bool>,
    /// A user name and a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
    /// OAuth 2.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2>,
    /// The steps that rewrite or drop samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metric_relabelings: Vec<Relabeling>,
    /// The steps that rewrite or drop targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relabelings: Vec<Relabeling>,
    /// The proxy to go through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_url: Option<String>,
    /// Whether a redirection is followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follow_redirects: Option<bool>,
    /// Whether HTTP/2 is tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_http2: Option<bool>,
    /// Whether pods that have failed or finished are dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter_running: Option<bool>,
}

/// How to scrape pods.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "monitoring.coreos.com",
    version = "v1",
    kind = "PodMonitor",
    plural = "podmonitors",
    shortname = "pmon",
    category = "prometheus-operator",
    namespaced,
    status = "SelectedStatus",
    printcolumn = r#"{"name": "Left out because", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Degraded\")].message"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = crate::schema::refine)]
pub struct PodMonitorSpec {
    /// The label of the pod whose value becomes the label `job`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_label: Option<String>,
    /// The labels of the pod that its targets get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pod_target_labels: Vec<String>,
    /// The ports to scrape.
    pub pod_metrics_endpoints: Vec<PodMetricsEndpoint>,
    /// The pods, by their labels.
    pub selector: LabelSelector,
    /// The namespaces of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    /// Limits.
    #[serde(flatten)]
    pub limits: Limits,
    /// What more is known of a target when it is relabeled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attach_metadata: Option<AttachMetadata>,
}

/// A port of a pod to scrape.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodMetricsEndpoint {
    /// What is the same for the ports of Services.
    #[serde(flatten)]
    pub scrape: Scrape,
    /// TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_config: Option<SafeTls>,
}

impl From<&PodMetricsEndpoint> for Endpoint {
    fn from(endpoint: &PodMetricsEndpoint) -> Self {
        let PodMetricsEndpoint { scrape, tls_config } = endpoint.clone();
        Self { scrape, tls_config: tls_config.map(Tls::from), bearer_token_file: None }
    }
}

/// How to probe hosts and ingresses by way of a prober such as the blackbox exporter.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "monitoring.coreos.com",
    version = "v1",
    kind = "Probe",
    plural = "probes",
    shortname = "prb",
    category = "prometheus-operator",
    namespaced,
    status = "SelectedStatus",
    printcolumn = r#"{"name": "Left out because", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Degraded\")].message"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = crate::schema::refine)]
pub struct ProbeSpec {
    /// The value of the label `job`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// The prober.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prober: Option<Prober>,
    /// The prober's module to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// What is probed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<ProbeTargets>,
    /// How often to probe; as often as the agent says if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = DURATION))]
    pub interval: Option<String>,
    /// How long a probe may take: no longer than the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = DURATION))]
    pub scrape_timeout: Option<String>,
    /// TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_config: Option<SafeTls>,
    /// The key of a Secret with a bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_token_secret: Option<SecretKeySelector>,
    /// A user name and a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
    /// OAuth 2.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2>,
    /// The `Authorization` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization: Option<Authorization>,
    /// The steps that rewrite or drop samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metric_relabelings: Vec<Relabeling>,
    /// Limits.
    #[serde(flatten)]
    pub limits: Limits,
}

/// A prober.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prober {
    /// Its host and port.
    pub url: String,
    /// `http` or `https`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["http", "https"]))]
    pub scheme: Option<String>,
    /// The path at which it probes; `/probe` if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "/probe"))]
    pub path: Option<String>,
    /// The proxy to go through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_url: Option<String>,
}

/// What is probed: hosts or ingresses. Hosts come first where both are given.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeTargets {
    /// Hosts that are named here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub static_config: Option<ProbeStatic>,
    /// The hosts of ingresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<ProbeIngress>,
}

/// Hosts to probe.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeStatic {
    /// The hosts.
    #[serde(rename = "static", default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// Labels of the samples.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The steps that rewrite or drop targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relabeling_configs: Vec<Relabeling>,
}

/// Ingresses whose hosts are probed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeIngress {
    /// The ingresses, by their labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// The namespaces of the ingresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    /// The steps that rewrite or drop targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relabeling_configs: Vec<Relabeling>,
}
