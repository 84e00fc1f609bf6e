//! One object as the cache keeps it.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Share, Shares, Undecodable};
use crate::ObjectName;
use crate::annotation::OWNER;
use crate::hash::quick_hash;
use crate::packed::Packed;

/// An object as the cache keeps it: as packed text, and without managedFields other than the share of this process'
/// own field managers. What is needed to find it is kept beside.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) name: ObjectName,
    pub(crate) uid: Box<str>,
    pub(crate) resource_version: u64,
    pub(crate) deleting: bool,
    pub(crate) labels: Arc<BTreeMap<String, String>>,
    pub(crate) owners: Vec<Box<str>>,
    pub(crate) share: Option<Arc<Share>>,
    body: Packed,
    content: u64,
    status: u64,
}

impl Stored {
    pub(crate) fn new(object: DynamicObject, shares: &Shares) -> Self {
        let DynamicObject { types, mut metadata, mut data } = object;
        let share = shares.of(metadata.managed_fields.take().unwrap_or_default());
        let owners = metadata.owner_references.iter().flatten();
        let beyond = metadata.labels.iter().flatten();
        let beyond = beyond.filter(|(label, _)| *label == OWNER).map(|(_, uid)| uid.as_str().into());
        let owners = owners.map(|owner| owner.uid.as_str().into()).chain(beyond).collect();
        let resource_version = metadata.resource_version.as_deref().and_then(|v| v.parse().ok()).unwrap_or(0);
        if let Some(types) = types {
            data["apiVersion"] = types.api_version.into();
            data["kind"] = types.kind.into();
        }
        // Hashed without what changes at every write and means nothing.
        let version = metadata.resource_version.take();
        data["metadata"] = serde_json::to_value(&metadata).unwrap_or_default();
        let status = data.as_object_mut().and_then(|data| data.remove("status")).unwrap_or_default();
        let content = quick_hash(&data);
        let status_hash = quick_hash(&status);
        if !status.is_null() {
            data["status"] = status;
        }
        if let Some(version) = version {
            data["metadata"]["resourceVersion"] = version.into();
        }
        Self {
            name: ObjectName {
                namespace: metadata.namespace.unwrap_or_default(),
                name: metadata.name.unwrap_or_default(),
            },
            uid: metadata.uid.unwrap_or_default().into(),
            resource_version,
            deleting: metadata.deletion_timestamp.is_some(),
            labels: shares.labels(metadata.labels.unwrap_or_default()),
            owners,
            share,
            body: shares.pack(data["kind"].as_str().unwrap_or_default(), &data.to_string()),
            content,
            status: status_hash,
        }
    }

    pub(crate) fn decode<K: DeserializeOwned>(&self) -> Result<K, Undecodable> {
        let text = self.body.text();
        serde_json::from_str(&text).map_err(|error| Undecodable::of(&text, &error))
    }

    /// The object as a tree. What the cache keeps was parsed once, so this does not fail.
    pub(crate) fn value(&self) -> Value {
        self.decode().unwrap_or_default()
    }

    pub(crate) fn marked_deleting(&self) -> Self {
        Self { deleting: true, ..self.clone() }
    }

    /// Whether nothing that anybody reads differs.
    pub(crate) fn same_content(&self, other: &Self) -> bool {
        self.same_but_status(other) && self.status == other.status
    }

    /// Whether nothing other than the status differs.
    pub(crate) fn same_but_status(&self, other: &Self) -> bool {
        self.uid == other.uid && self.content == other.content && self.share == other.share
    }

    /// How much text is kept.
    pub(crate) fn size(&self) -> usize {
        self.body.size()
    }

    /// A hash of all but the status.
    pub(crate) fn content_hash(&self) -> u64 {
        self.content
    }

    /// A hash of the status, to tell our own writes from those of others.
    pub(crate) fn status_hash(&self) -> u64 {
        self.status
    }
}
