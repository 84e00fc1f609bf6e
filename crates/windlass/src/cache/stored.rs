//! One object as the cache keeps it.

mod head;

use std::borrow::Cow;
use std::sync::Arc;

use kube::ResourceExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::head::{Head, without};
use super::{Delivered, Labels, Share, Shares, Undecodable};
use crate::hash::seeded;
use crate::packed::Packed;
use crate::{MANAGED_BY, ObjectName};

/// An object as the cache keeps it: as packed text, and without managedFields other than the share of this process'
/// own field managers. What is needed to find it is kept beside.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) name: ObjectName,
    pub(crate) uid: Box<str>,
    pub(crate) resource_version: u64,
    pub(crate) deleting: bool,
    pub(crate) labels: Labels,
    /// Hashes of the uids of its owners.
    pub(super) owners: Box<[u64]>,
    /// A hash of what it says of its owners.
    ownership: u64,
    pub(crate) share: Option<Arc<Share>>,
    body: Packed,
    content: u64,
    status: u64,
}

impl Stored {
    pub(crate) fn new(object: &Delivered, shares: &Shares) -> Self {
        let text = object.text();
        // What is no object in form is kept nevertheless: whoever decodes it says what is wrong.
        let read: Head<'_> = serde_json::from_str(text).unwrap_or_default();
        let body = match read.managed_fields {
            Some(fields) => Cow::Owned(without(text, "managedFields", fields.get())),
            None => Cow::Borrowed(text),
        };
        Self {
            name: object.name(),
            uid: object.uid().unwrap_or_default().into(),
            resource_version: object.version(),
            deleting: read.deleting,
            owners: read.owners.into(),
            ownership: read.ownership,
            share: read.managed_fields.and_then(|fields| shares.of(fields)),
            body: shares.pack(&read.kind, &body),
            labels: shares.labels(&read.labels),
            content: read.content,
            status: read.status,
        }
    }

    /// An object that was made here.
    pub(crate) fn made<T: Serialize>(object: &T, shares: &Shares) -> Self {
        Self::new(&Delivered::made(object), shares)
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
        self.content == other.content && self.uid == other.uid && self.share == other.share
    }

    /// Whether the object of this uid is one of its owners.
    pub(crate) fn is_owned_by(&self, uid: &str) -> bool {
        self.owners.contains(&seeded(uid))
    }

    /// Whether an operator says that it made it, or has applied some of it.
    pub(crate) fn is_made_by(&self, operator: &str) -> bool {
        self.labels.get(MANAGED_BY) == Some(operator)
            || self.share.as_ref().is_some_and(|share| share.manager == operator)
    }

    /// A hash of what it says of its owners.
    pub(crate) fn ownership_hash(&self) -> u64 {
        self.ownership
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
