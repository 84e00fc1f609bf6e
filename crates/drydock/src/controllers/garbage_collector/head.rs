//! What the graph needs of an object's metadata; the rest is skipped where it is read.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// An object of which nothing but its metadata is of interest.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Seen {
    pub(super) metadata: Head,
}

/// Metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Head {
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) owner_references: Option<Vec<OwnerReference>>,
    pub(super) finalizers: Option<Vec<String>>,
    pub(super) deletion_timestamp: Option<IgnoredAny>,
}

impl Head {
    pub(super) fn revision(&self) -> u64 {
        self.resource_version.parse().unwrap_or_default()
    }
}
