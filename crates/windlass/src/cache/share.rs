//! The share that our own field managers have in an object, out of its managedFields.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::core::Expression;
use serde_json::Value;

use super::{Read, Stored};
use crate::MANAGED_BY;
use crate::packed::{Models, Packed};

/// The fields that one of our operators has applied, in the form of `FieldsV1`: `f:` fields, `k:` list items by
/// their keys, `v:` items of sets.
#[derive(Debug, PartialEq)]
pub(crate) struct Share {
    pub(crate) manager: String,
    pub(crate) fields: Value,
}

/// Makes shares, and what else of objects is mostly alike. It keeps one copy of what is equal: the children of a
/// thousand primaries have a handful of different shares.
#[derive(Debug)]
pub(crate) struct Shares {
    operators: BTreeSet<String>,
    known: Mutex<BTreeMap<String, Arc<Share>>>,
    labels: Mutex<HashMap<u64, Weak<Labels>>>,
    models: Models,
}

type Labels = BTreeMap<String, String>;

impl Shares {
    pub(crate) fn new(operators: BTreeSet<String>) -> Self {
        let (known, labels, models) = Default::default();
        Self { operators, known, labels, models }
    }

    /// These labels; one copy of those that are equal.
    pub(super) fn labels(&self, labels: Labels) -> Arc<Labels> {
        let mut hasher = DefaultHasher::new();
        labels.hash(&mut hasher);
        let mut known = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() == known.capacity() {
            known.retain(|_, labels| labels.strong_count() > 0);
        }
        let slot = known.entry(hasher.finish()).or_default();
        if let Some(same) = slot.upgrade().filter(|one| **one == labels) {
            return same;
        }
        let labels = Arc::new(labels);
        *slot = Arc::downgrade(&labels);
        labels
    }

    /// The text of an object of this kind.
    pub(super) fn pack(&self, kind: &str, text: &str) -> Packed {
        self.models.pack(kind, text)
    }

    /// Our share in an object with these managedFields.
    pub(crate) fn of(&self, managed_fields: Vec<ManagedFieldsEntry>) -> Option<Arc<Share>> {
        let applied = |entry: &ManagedFieldsEntry| {
            entry.operation.as_deref() == Some("Apply")
                && entry.subresource.as_deref().unwrap_or_default().is_empty()
                && entry.manager.as_ref().is_some_and(|manager| self.operators.contains(manager))
        };
        let entry = managed_fields.into_iter().find(applied)?;
        let mut fields = entry.fields_v1?.0;
        // Owner references are compared by themselves; with the owner's uid in it, no two shares would be equal.
        if let Some(metadata) = fields.get_mut("f:metadata").and_then(Value::as_object_mut) {
            metadata.remove("f:ownerReferences");
        }
        let share = Share { manager: entry.manager.unwrap_or_default(), fields };
        let text = format!("{} {}", share.manager, share.fields);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > 1024 {
            known.retain(|_, share| Arc::strong_count(share) > 1);
        }
        Some(Arc::clone(known.entry(text).or_insert_with(|| Arc::new(share))))
    }

    /// Whether an operator of this process made the object.
    pub(crate) fn made_here(&self, stored: &Stored) -> bool {
        stored.share.is_some() || stored.labels.get(MANAGED_BY).is_some_and(|by| self.operators.contains(by))
    }

    /// Whether a read selects only among what operators of this process made, which is always kept.
    pub(crate) fn covers(&self, read: &Read) -> bool {
        let Read::Selected { selector, .. } = read else {
            return true;
        };
        selector.clone().into_iter().any(|expression| match expression {
            Expression::Equal(label, value) => label == MANAGED_BY && self.operators.contains(&value),
            _ => false,
        })
    }
}
