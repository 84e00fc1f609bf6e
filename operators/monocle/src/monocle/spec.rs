//! The fields of a Monocle.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, ResourceRequirements, Toleration};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::Status;

use super::Identities;

/// One Monocle: Elasticsearch, the API and the crawler.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "monocle.monocle.change-metrics.io",
    version = "v1alpha1",
    kind = "Monocle",
    plural = "monocles",
    namespaced,
    status = "MonocleStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "API", "type": "string", "jsonPath": ".status.api"}"#,
    printcolumn = r#"{"name": "Crawler", "type": "string", "jsonPath": ".status.crawler"}"#,
    printcolumn = r#"{"name": "Elastic", "type": "string", "jsonPath": ".status.elastic"}"#,
    printcolumn = r#"{"name": "URL", "type": "string", "jsonPath": ".status.url"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MonocleSpec {
    /// The Monocle image.
    #[serde(default = "monocle_image")]
    #[schemars(length(min = 1), regex(pattern = r"^\S*$"))]
    pub image: String,

    /// The URL that people use; `http://localhost:8090` if it is not given.
    #[serde(rename = "publicURL", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^https?://.+"))]
    pub public_url: Option<String>,

    /// The older name of `publicURL`, which comes first where both are given.
    #[serde(rename = "monoclePublicURL", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^https?://.+"))]
    pub monocle_public_url: Option<String>,

    /// The database.
    #[serde(default)]
    pub elastic: ElasticSpec,

    /// Where and with what the API runs.
    #[serde(default, skip_serializing_if = "Component::is_empty")]
    pub api: Component,

    /// Where and with what the crawler runs.
    #[serde(default, skip_serializing_if = "Component::is_empty")]
    pub crawler: Component,

    /// An Ingress to the API; without it there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<IngressSpec>,

    /// A ConfigMap of the user's own with a `config.yaml`; the operator then makes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_ref: Option<Reference>,

    /// A Secret of the user's own with `CRAWLERS_API_KEY` and `MONOCLE_JWK_GEN_KEY`; the operator then makes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<Reference>,
}

/// The database: one of its own, or an external one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElasticSpec {
    /// The Elasticsearch image.
    #[serde(default = "elastic_image")]
    #[schemars(length(min = 1), regex(pattern = r"^\S*$"))]
    pub image: String,

    /// The size of its volume.
    #[serde(default = "storage_size")]
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"))]
    pub storage_size: String,

    /// The class of its volume; the cluster's default if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,

    /// An external Elasticsearch; the operator then runs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^https?://.+"))]
    pub url: Option<String>,

    /// What becomes of the data when the Monocle goes.
    #[serde(default)]
    pub retention: Retention,

    /// Where and with what it runs.
    #[serde(flatten)]
    pub component: Component,
}

/// What becomes of the data when the Monocle goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Retention {
    /// The volume claim stays.
    #[default]
    Retain,
    /// The volume claim goes too.
    Delete,
}

/// Where and with what the pods of a component run, as in a Pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// Requests and limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Labels that its node must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Taints of nodes that it tolerates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
    /// Nodes and neighbours that it prefers or avoids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
}

/// How the API is reached from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressSpec {
    /// The host name.
    #[schemars(regex(
        pattern = r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    ))]
    pub host: String,
    /// The class; the cluster's default if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_name: Option<String>,
    /// The Secret with the certificate; without it there is no TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_secret: Option<String>,
    /// Annotations, for the Ingress controller.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// An object in the Monocle's namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// What is known of a Monocle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MonocleStatus {
    /// Conditions and dependents.
    #[serde(flatten)]
    pub common: Status,
    /// The API in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// The crawler in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crawler: Option<String>,
    /// Elasticsearch in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elastic: Option<String>,
    /// The URL that people use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The `config.yaml` that identities were last updated for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identities: Option<Identities>,
}

impl Component {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for ElasticSpec {
    fn default() -> Self {
        Self {
            image: elastic_image(),
            storage_size: storage_size(),
            storage_class_name: None,
            url: None,
            retention: Retention::default(),
            component: Component::default(),
        }
    }
}

/// The Monocle image, unless told otherwise.
pub(crate) const MONOCLE_IMAGE: &str = "quay.io/change-metrics/monocle:1.9.0";
/// The Elasticsearch image, unless told otherwise.
pub(crate) const ELASTIC_IMAGE: &str = "elasticsearch:7.17.5";

fn monocle_image() -> String {
    MONOCLE_IMAGE.into()
}

fn elastic_image() -> String {
    ELASTIC_IMAGE.into()
}

fn storage_size() -> String {
    "1Gi".into()
}
