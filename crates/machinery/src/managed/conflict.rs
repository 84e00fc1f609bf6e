//! Conflicts between appliers, worded as the API server words them.

use std::fmt;

use super::record::Record;
use crate::fields::{FieldSet, Path};
use crate::go;

/// All fields that an apply would take from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(Vec<Conflict>);

/// One field that somebody else manages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager, as messages name it (`"kubectl" using v1`).
    pub manager: String,
    /// The field.
    pub path: Path,
}

impl std::error::Error for Conflicts {}

impl Conflicts {
    /// The conflicts, those of one manager after the other.
    #[must_use]
    pub fn all(&self) -> &[Conflict] {
        &self.0
    }

    pub(super) fn of<'r>(records: impl Iterator<Item = &'r Record>, touched: &FieldSet) -> Option<Self> {
        let mut found: Vec<(String, &Record, FieldSet)> = records
            .map(|record| (record, record.set.intersection(touched)))
            .filter(|(_, set)| !set.is_empty())
            .map(|(record, set)| (record.identifier(), record, set))
            .collect();
        found.sort_by(|(left, ..), (right, ..)| left.cmp(right));
        let conflicts: Vec<Conflict> = found
            .iter()
            .flat_map(|(_, record, set)| {
                let manager = describe(record);
                set.paths().into_iter().map(move |path| Conflict { manager: manager.clone(), path })
            })
            .collect();
        (!conflicts.is_empty()).then_some(Self(conflicts))
    }

    /// The conflicts that are left when some fields are no matter of conflict.
    pub(super) fn without(&self, allowed: &FieldSet) -> Option<Self> {
        let left: Vec<_> =
            self.0.iter().filter(|conflict| !allowed.contains(conflict.path.elements())).cloned().collect();
        (!left.is_empty()).then_some(Self(left))
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [Conflict { manager, path }] = self.0.as_slice() {
            return write!(out, "Apply failed with 1 conflict: conflict with {manager}: {path}");
        }
        write!(out, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut last = None;
        for Conflict { manager, path } in &self.0 {
            if last != Some(manager) {
                let before = if last.is_some() { "\n" } else { "" };
                write!(out, "{before}conflicts with {manager}:")?;
                last = Some(manager);
            }
            write!(out, "\n- {path}")?;
        }
        Ok(())
    }
}

fn describe(record: &Record) -> String {
    let mut text = go::quote(&record.manager);
    if !record.subresource.is_empty() {
        text.push_str(" with subresource ");
        text.push_str(&go::quote(&record.subresource));
    }
    if !record.applied {
        text.push_str(" using ");
        text.push_str(&record.api_version);
    }
    text
}
