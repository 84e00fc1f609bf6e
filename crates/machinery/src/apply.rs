//! Values with their types: validate, merge, compare, list fields, remove and extract them.
//!
//! These are the operations of structured-merge-diff that server-side apply is made of. What to do with them,
//! and who owns which field, is in [`crate::managed`].

mod atomic;
mod compare;
mod field_set;
mod merge;
mod place;
mod remove;
mod validate;

use serde_json::Value;

use crate::fields::FieldSet;
use crate::schema::Type;

pub use compare::Comparison;
pub use validate::ValidationErrors;

pub(crate) use compare::compare_objects;
pub(crate) use merge::merge_objects;
pub(crate) use place::Place;

/// Whether a list may hold an element twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// It may: stored objects.
    Allowed,
    /// It may not: configurations that are applied.
    Refused,
}

/// Checks a value against its type.
///
/// # Errors
/// When it does not conform; the text lists everything that is wrong.
pub fn validate(value: &Value, ty: Type<'_>, duplicates: Duplicates) -> Result<(), ValidationErrors> {
    validate::validate(value, Place::of(ty), duplicates)
}

/// All fields that a value mentions: its leaves, and the elements of its lists and maps.
#[must_use]
pub fn to_field_set(value: &Value, ty: Type<'_>) -> FieldSet {
    field_set::of(value, Place::of(ty))
}

/// Merges a configuration into a value; where both have a field the configuration's counts.
#[must_use]
pub fn merge(live: &Value, config: &Value, ty: Type<'_>) -> Value {
    merge::merge(live, config, Place::of(ty))
}

/// The paths of what would be replaced as a whole if the configuration were merged: atomic lists and maps.
#[must_use]
pub fn atomic_parts(config: &Value, ty: Type<'_>) -> Vec<String> {
    atomic::parts(config, Place::of(ty))
}

/// What differs between two values.
#[must_use]
pub fn compare(old: &Value, new: &Value, ty: Type<'_>) -> Comparison {
    compare::compare(old, new, Place::of(ty))
}

/// The value without the given fields and elements.
#[must_use]
pub fn remove_items(value: &Value, items: &FieldSet, ty: Type<'_>) -> Value {
    remove::remove(value, items, Place::of(ty))
}

/// The value with nothing but the given fields and elements.
#[must_use]
pub fn extract_items(value: &Value, items: &FieldSet, ty: Type<'_>) -> Value {
    remove::extract(value, items, Place::of(ty))
}

#[cfg(test)]
pub(crate) mod tests;
