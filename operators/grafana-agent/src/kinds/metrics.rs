//! MetricsInstance, and where metrics are sent.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::SecretKeySelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BasicAuth, OAuth2, Relabeling, SelectedStatus, Tls};

/// One pipeline of metrics: which monitors are scraped, and where their metrics go.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "monitoring.grafana.com",
    version = "v1alpha1",
    kind = "MetricsInstance",
    plural = "metricsinstances",
    category = "agent-operator",
    namespaced,
    status = "SelectedStatus",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = crate::schema::refine)]
pub struct MetricsInstanceSpec {
    /// How often the write-ahead log is cleaned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wal_truncate_frequency: Option<String>,
    /// How long samples stay in the write-ahead log at least.
    #[serde(rename = "minWALTime", skip_serializing_if = "Option::is_none")]
    pub min_wal_time: Option<String>,
    /// How long samples stay in the write-ahead log at most.
    #[serde(rename = "maxWALTime", skip_serializing_if = "Option::is_none")]
    pub max_wal_time: Option<String>,
    /// How long a stopping instance waits for what is still to be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_flush_deadline: Option<String>,
    /// Whether a stopping instance marks its series as stale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_stale_on_shutdown: Option<bool>,
    /// The ServiceMonitors to scrape: none if it is not given, all with `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_monitor_selector: Option<LabelSelector>,
    /// The namespaces of the ServiceMonitors: the instance's own if it is not given, all with `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_monitor_namespace_selector: Option<LabelSelector>,
    /// The PodMonitors to scrape: none if it is not given, all with `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_monitor_selector: Option<LabelSelector>,
    /// The namespaces of the PodMonitors: the instance's own if it is not given, all with `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_monitor_namespace_selector: Option<LabelSelector>,
    /// The Probes to run: none if it is not given, all with `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_selector: Option<LabelSelector>,
    /// The namespaces of the Probes: the instance's own if it is not given, all with `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_namespace_selector: Option<LabelSelector>,
    /// Where to send this instance's metrics; where the agent says if nothing is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remote_write: Vec<RemoteWrite>,
    /// The key of a Secret with more scrape configurations, a YAML list. They are taken as they are, and sharded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_scrape_configs: Option<SecretKeySelector>,
}

/// A place that metrics are sent to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoteWrite {
    /// The URL to send to.
    pub url: String,
    /// The name in the agent's own metrics; no two of one instance may have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How long one request may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_timeout: Option<String>,
    /// More headers for each request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The steps that rewrite or drop series before they are sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_relabel_configs: Vec<Relabeling>,
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
    /// AWS signatures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigv4: Option<SigV4>,
    /// TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_config: Option<Tls>,
    /// The proxy to go through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_url: Option<String>,
    /// How samples queue up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_config: Option<QueueConfig>,
    /// Whether and how often metadata of the series is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_config: Option<MetadataConfig>,
}

/// AWS's Signature Version 4.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SigV4 {
    /// The region; the one of the default credentials if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The key of a Secret with the access key; from the environment if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key: Option<SecretKeySelector>,
    /// The key of a Secret with the secret key; from the environment if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<SecretKeySelector>,
    /// The named profile to sign with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The role to assume.
    #[serde(rename = "roleARN", skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
}

/// How samples queue up before they are sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueConfig {
    /// How many samples one shard holds before reading of the log stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Integer>")]
    pub capacity: Option<i64>,
    /// How few shards there may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Integer>")]
    pub min_shards: Option<i64>,
    /// How many shards there may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Integer>")]
    pub max_shards: Option<i64>,
    /// How many samples one request holds at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Integer>")]
    pub max_samples_per_send: Option<i64>,
    /// How long a sample waits for others to be sent with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_send_deadline: Option<String>,
    /// How often a failed request is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Integer>")]
    pub max_retries: Option<i64>,
    /// The pause before the first repetition; it doubles each time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_backoff: Option<String>,
    /// The longest pause before a repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_backoff: Option<String>,
    /// Whether a request that was refused for its rate (429) is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_on_rate_limit: Option<bool>,
}

/// An integer of no particular size in the schema.
pub(super) struct Integer;

impl JsonSchema for Integer {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Integer".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "integer"})
    }
}

/// Whether and how often metadata of the series is sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataConfig {
    /// Whether it is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send: Option<bool>,
    /// How often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_interval: Option<String>,
}
