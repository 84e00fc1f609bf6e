//! What several kinds share: authentication, TLS, relabeling.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMapKeySelector, SecretKeySelector};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A user name and a password, each in a Secret.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BasicAuth {
    /// The key of a Secret that holds the user name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<SecretKeySelector>,
    /// The key of a Secret that holds the password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<SecretKeySelector>,
}

/// The `Authorization` header of requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authorization {
    /// The scheme; `Bearer` if it is not given. `Basic` is not possible here: use `basicAuth`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// The key of a Secret that holds what follows the scheme.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<SecretKeySelector>,
}

/// The `Authorization` header of requests to the API server.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiServerAuthorization {
    /// What is not read from a file.
    #[serde(flatten)]
    pub safe: Authorization,
    /// A file in the agent's container that holds what follows the scheme.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials_file: Option<String>,
}

/// A token obtained from an OAuth 2.0 server with client credentials.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OAuth2 {
    /// Where the client's id is.
    pub client_id: SecretOrConfigMap,
    /// The key of a Secret that holds the client's secret.
    pub client_secret: SecretKeySelector,
    /// The URL that gives out tokens.
    #[schemars(length(min = 1))]
    pub token_url: String,
    /// What to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// More parameters for the URL that gives out tokens.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub endpoint_params: BTreeMap<String, String>,
}

/// A key of a Secret or of a ConfigMap.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretOrConfigMap {
    /// The key of a Secret. It comes first where both are given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretKeySelector>,
    /// The key of a ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapKeySelector>,
}

/// How to talk TLS, with nothing read from files of the agent's container.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SafeTls {
    /// The certificate of the authority that the server is checked against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<SecretOrConfigMap>,
    /// The client's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<SecretOrConfigMap>,
    /// The key of a Secret that holds the client's private key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_secret: Option<SecretKeySelector>,
    /// The name that the server's certificate must be for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Whether any certificate of the server is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure_skip_verify: Option<bool>,
}

/// How to talk TLS. A file comes before what is in a Secret or ConfigMap.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// What is not read from files.
    #[serde(flatten)]
    pub safe: SafeTls,
    /// A file in the agent's container with the authority's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// A file in the agent's container with the client's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<String>,
    /// A file in the agent's container with the client's private key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
}

impl From<SafeTls> for Tls {
    fn from(safe: SafeTls) -> Self {
        Self { safe, ..Self::default() }
    }
}

/// One step that rewrites the labels of a target, a series or a log stream.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Relabeling {
    /// The labels whose values are joined and matched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(regex(pattern = "^[a-zA-Z_][a-zA-Z0-9_]*$")))]
    pub source_labels: Vec<String>,
    /// What stands between the joined values; `;` if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    /// The label that the result is written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_label: Option<String>,
    /// The expression that the joined values are matched with; `(.*)` if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// What the hash of the joined values is divided by.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "int64"))]
    pub modulus: Option<i64>,
    /// What is written where the expression matches, with `$1` for its groups; `$1` if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
    /// What to do where the expression matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "replace", "enum" = [
        "replace", "Replace", "keep", "Keep", "drop", "Drop", "hashmod", "HashMod", "labelmap", "LabelMap",
        "labeldrop", "LabelDrop", "labelkeep", "LabelKeep", "lowercase", "Lowercase", "uppercase", "Uppercase",
        "keepequal", "KeepEqual", "dropequal", "DropEqual",
    ]))]
    pub action: Option<String>,
}

/// The namespaces in which targets are looked for: the object's own if neither field is given.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSelector {
    /// All namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any: Option<bool>,
    /// These namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_names: Vec<String>,
}
