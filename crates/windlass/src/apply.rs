//! From a planned dependent and what is observed to what has to be done about it, and the requests that do it.

mod compare;
mod quantity;
mod request;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;

pub(crate) use compare::{difference, difference_in_value, without_nulls};
pub use quantity::same_quantity;
pub(crate) use request::{ApplyError, Requests};

use crate::cache::Stored;
use crate::plan::{Dependent, Owner};
use crate::{Condition, MANAGED_BY};

/// What has to be done about a dependent.
#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// It is as it should be.
    Nothing,
    /// It is not there: make it.
    Create,
    /// It is there and differs, first at this path.
    Apply(String),
    /// It is the user's, but has lost its owner.
    RepairOwner,
    /// It must not be touched; the condition says why.
    Leave(Condition),
}

/// Decides what has to be done. `made_before` says that a dependent that is made once was made.
pub(crate) fn decide(
    dependent: &Dependent,
    observed: Option<&Stored>,
    owner: &Owner,
    made_before: bool,
) -> Action {
    let what = format!("{} {}", dependent.kind, dependent.name);
    let Some(observed) = observed else {
        return if dependent.keep {
            Action::Leave(Condition::pending("Absent", format!("{what} is gone")))
        } else if dependent.once && made_before {
            let message = format!("{what} was made once and has been deleted; create it again to go on");
            Action::Leave(Condition::failed("Deleted", message))
        } else {
            Action::Create
        };
    };
    if dependent.keep {
        return Action::Nothing;
    }
    if observed.deleting {
        return Action::Leave(Condition::pending("Deleting", format!("{what} is being deleted")));
    }
    let tree = observed.value();
    match ownership(&tree, observed, owner) {
        Ownership::Ours if dependent.once => Action::Nothing,
        Ownership::Lost if dependent.once => Action::RepairOwner,
        // The user's own object under the name that the operator would have used: as good as one made here.
        Ownership::Nobody if dependent.once => Action::Nothing,
        Ownership::Nobody => {
            let message = format!(
                "{what} exists and was not made by {}; rename or delete it",
                owner.operator
            );
            Action::Leave(Condition::failed("NotOurs", message))
        }
        Ownership::Other(other) => {
            let message = format!(
                "{what} belongs to {} {}; rename or delete it",
                other.kind, other.name
            );
            Action::Leave(Condition::failed("NotOurs", message))
        }
        Ownership::Former => {
            let message = format!("{what} belongs to a former {} of this name", owner.reference.kind);
            Action::Leave(Condition::pending("Deleting", message))
        }
        Ownership::Lost => Action::Apply("metadata.ownerReferences".into()),
        Ownership::Ours => match &observed.share {
            Some(share) if share.manager == owner.operator => {
                match difference(&dependent.desired, &tree, &share.fields) {
                    Some(path) => Action::Apply(path),
                    None => Action::Nothing,
                }
            }
            _ => Action::Apply("metadata.managedFields".into()),
        },
    }
}

enum Ownership {
    Ours,
    /// Made by this operator, but without an owner.
    Lost,
    /// Owned by a primary of the same name that is gone.
    Former,
    Other(OwnerReference),
    /// Neither owned nor made by this operator.
    Nobody,
}

fn ownership(tree: &Value, observed: &Stored, owner: &Owner) -> Ownership {
    let references = tree
        .pointer("/metadata/ownerReferences")
        .cloned()
        .unwrap_or_default();
    let references: Vec<OwnerReference> = serde_json::from_value(references).unwrap_or_default();
    let us = &owner.reference;
    match references
        .into_iter()
        .find(|reference| reference.controller == Some(true))
    {
        Some(reference) if reference.uid == us.uid => Ownership::Ours,
        Some(reference) if reference.kind == us.kind && reference.name == us.name => Ownership::Former,
        Some(reference) => Ownership::Other(reference),
        None if observed.labels.get(MANAGED_BY) == Some(&owner.operator) => Ownership::Lost,
        None => Ownership::Nobody,
    }
}

#[cfg(test)]
mod tests;
