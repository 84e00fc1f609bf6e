//! The share that our own field managers have in an object, out of its managedFields.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kube::core::Expression;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Labels, Read, Stored, labels};
use crate::MANAGED_BY;
use crate::hash::{Entries, Hashed, Key, seeded};
use crate::packed::{Models, Packed};

/// The fields that one of our operators has applied, in the form of `FieldsV1`: `f:` fields, `k:` list items by
/// their keys, `v:` items of sets.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) manager: String,
    pub(crate) fields: Value,
}

/// Of what is equal there is one copy.
impl PartialEq for Share {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.manager == other.manager && self.fields == other.fields
    }
}

/// Makes shares, and what else of objects is mostly alike. It keeps one copy of what is equal: the children of a
/// thousand primaries have a handful of different shares.
#[derive(Debug)]
pub(crate) struct Shares {
    operators: BTreeSet<String>,
    /// By a hash of the fields and one of the manager.
    known: Mutex<HashMap<(u64, u64), Arc<Share>>>,
    labels: labels::Known,
    models: Models,
}

impl Shares {
    pub(crate) fn new(operators: BTreeSet<String>) -> Self {
        let (known, labels, models) = Default::default();
        Self { operators, known, labels, models }
    }

    /// These labels; one copy of those that are equal.
    pub(super) fn labels(&self, labels: &BTreeMap<String, String>) -> Labels {
        self.labels.labels(labels)
    }

    /// The text of an object of this kind.
    pub(super) fn pack(&self, kind: &str, text: &str) -> Packed {
        self.models.pack(kind, text)
    }

    /// Our share in an object with these managedFields.
    pub(crate) fn of(&self, managed_fields: &RawValue) -> Option<Arc<Share>> {
        let entries: Vec<Entry<'_>> = serde_json::from_str(managed_fields.get()).ok()?;
        let entry = entries.into_iter().find(|entry| {
            entry.operation == "Apply"
                && entry.subresource.is_empty()
                && self.operators.contains(entry.manager.as_ref())
        })?;
        let fields = entry.fields_v1?.get();
        let hash = serde_json::from_str::<FieldsHash>(fields).ok()?.0;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = known.get(&(hash, seeded(&entry.manager))) {
            return Some(Arc::clone(share));
        }
        let mut tree: Value = serde_json::from_str(fields).ok()?;
        if let Some(metadata) = tree.get_mut(METADATA).and_then(Value::as_object_mut) {
            metadata.remove(OWNERS);
        }
        let share = Arc::new(Share { manager: entry.manager.into_owned(), fields: tree });
        if known.len() == known.capacity() {
            known.retain(|_, share| Arc::strong_count(share) > 1);
        }
        known.insert((hash, seeded(&share.manager)), Arc::clone(&share));
        Some(share)
    }

    /// Whether an operator of this process made the object.
    pub(crate) fn made_here(&self, stored: &Stored) -> bool {
        stored.share.is_some() || stored.labels.get(MANAGED_BY).is_some_and(|by| self.operators.contains(by))
    }

    /// Whether a read selects only among what operators of this process made, which is always kept.
    pub(crate) fn covers(&self, read: &Read) -> bool {
        let Read::Selected(selection) = read else {
            return true;
        };
        selection.expressions.iter().any(|expression| match expression {
            Expression::Equal(label, value) => label == MANAGED_BY && self.operators.contains(value),
            _ => false,
        })
    }
}

/// Owner references are compared by themselves; with the owner's uid in it, no two shares would be equal.
const OWNERS: &str = "f:ownerReferences";
const METADATA: &str = "f:metadata";

/// One manager's entry in managedFields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(borrow, default)]
    manager: Cow<'a, str>,
    #[serde(borrow, default)]
    operation: Cow<'a, str>,
    #[serde(borrow, default)]
    subresource: Cow<'a, str>,
    #[serde(borrow, default, rename = "fieldsV1")]
    fields_v1: Option<&'a RawValue>,
}

/// A hash of an entry's fields but [`OWNERS`].
struct FieldsHash(u64);

impl<'de> Deserialize<'de> for FieldsHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor { within: None }).map(|hash| Self(hash.0))
    }
}

/// Walks through fields, at first those of the whole object.
struct FieldsVisitor {
    within: Option<&'static str>,
}

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Hashed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Hashed, A::Error> {
        let mut entries = Entries::default();
        while let Some(key) = map.next_key::<Key<'de>>()? {
            match (self.within, &*key) {
                (None, METADATA) => {
                    let raw: &'de RawValue = map.next_value()?;
                    let mut metadata = serde_json::Deserializer::from_str(raw.get());
                    let hash = metadata.deserialize_map(Self { within: Some(METADATA) });
                    entries.add(&key, &hash.map_err(serde::de::Error::custom)?);
                }
                (Some(METADATA), OWNERS) => drop(map.next_value::<IgnoredAny>()?),
                _ => entries.add(&key, &map.next_value()?),
            }
        }
        Ok(entries.finish())
    }
}
