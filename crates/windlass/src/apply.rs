//! From a planned dependent and what is observed to what has to be done about it, and the requests that do it.

mod compare;
mod quantity;
mod request;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;

pub(crate) use compare::{difference, difference_in_value, without_nulls};
pub use quantity::{is_quantity, same_quantity};
pub(crate) use request::{ApplyError, Requests};

use crate::cache::Stored;
use crate::plan::{Dependent, Owner};
use crate::{Condition, MANAGED_BY, annotation};

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

impl Action {
    /// What was found, for people.
    pub(crate) fn found(&self) -> String {
        match self {
            Self::Nothing => "as planned".into(),
            Self::Create => "not there".into(),
            Self::Apply(path) => format!("differs at {path}"),
            Self::RepairOwner => "has lost its owner".into(),
            Self::Leave(condition) => format!("left alone: {}", condition.message),
        }
    }
}

/// Decides what has to be done. `made_before` says that a dependent that is made once was made; `adopt`, that the
/// user wants an existing object to become this dependent.
pub(crate) fn decide(
    dependent: &Dependent,
    observed: Option<&Stored>,
    owner: &Owner,
    made_before: bool,
    adopt: bool,
) -> Action {
    let what = format!("{} {}", dependent.kind, dependent.name);
    let Some(observed) = observed else {
        return if dependent.keep {
            Action::Leave(Condition::pending("Absent", format!("{what} is gone")))
        } else if !dependent.config.created {
            let message = format!("{what} is not there, and is not made here");
            Action::Leave(Condition::pending("Absent", message))
        } else if dependent.once() && made_before {
            let message = format!("{what} was made once and has been deleted; create it again to go on");
            Action::Leave(Condition::failed("Deleted", message))
        } else {
            Action::Create
        };
    };
    if dependent.only_looked_at() {
        return Action::Nothing;
    }
    if observed.deleting {
        return Action::Leave(Condition::pending("Deleting", format!("{what} is being deleted")));
    }
    let tree = observed.value();
    if dependent.shared() {
        return shared(dependent, observed, &tree, owner);
    }
    let not_ours = |why: String| Action::Leave(Condition::failed("NotOurs", format!("{what} {why}")));
    match Ownership::of(dependent, &tree, observed, owner) {
        Ownership::Ours if dependent.once() => Action::Nothing,
        Ownership::Lost if dependent.once() => Action::RepairOwner,
        Ownership::Nobody if dependent.once() && adopt => Action::RepairOwner,
        // The user's own object under the name that the operator would have used: as good as one made here.
        Ownership::Nobody if dependent.once() => Action::Nothing,
        Ownership::Nobody if adopt => Action::Apply("metadata.ownerReferences".into()),
        Ownership::Nobody => not_ours(format!(
            "exists and was not made by {}; rename or delete it, or have it taken over by the annotation {}: {}/{}",
            owner.operator,
            annotation::ADOPT,
            dependent.kind,
            dependent.name.name
        )),
        Ownership::Other(other) => not_ours(format!("belongs to {other}; rename or delete it")),
        Ownership::Former => {
            let message = format!("{what} belongs to a former {} of this name", owner.reference.kind);
            Action::Leave(Condition::pending("Deleting", message))
        }
        Ownership::Lost => Action::Apply("metadata.ownerReferences".into()),
        Ownership::Ours => match &observed.share {
            Some(share) if share.manager == owner.operator => {
                match difference(&dependent.desired, &tree, &share.fields) {
                    Some(path) => Action::Apply(path),
                    None if lacks_owner(dependent, observed) => {
                        Action::Apply("metadata.ownerReferences".into())
                    }
                    None => Action::Nothing,
                }
            }
            _ => Action::Apply("metadata.managedFields".into()),
        },
    }
}

/// Whether an owner that the plan names is not there: one of its own, beside or instead of the primary.
fn lacks_owner(dependent: &Dependent, observed: &Stored) -> bool {
    let named = dependent.desired.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let mut uids = named.into_iter().flatten().filter_map(|reference| reference["uid"].as_str());
    uids.any(|uid| !observed.is_owned_by(uid))
}

/// Somebody else's object: whoever set the fields, they only have to have the values.
fn shared(dependent: &Dependent, observed: &Stored, tree: &Value, owner: &Owner) -> Action {
    let share = observed.share.as_ref().filter(|share| share.manager == owner.operator);
    let fields = share.map_or(&Value::Null, |share| &share.fields);
    match difference_in_value(&dependent.desired, tree, fields) {
        Some(path) => Action::Apply(path),
        None => Action::Nothing,
    }
}

enum Ownership {
    Ours,
    /// Made by this operator, but without a word of its owner, or with a wrong one.
    Lost,
    /// Owned by a primary of the same name that is gone, and to be collected with it.
    Former,
    /// Somebody else's: kind and name.
    Other(String),
    /// Neither owned nor made by this operator.
    Nobody,
}

impl Ownership {
    fn of(dependent: &Dependent, tree: &Value, observed: &Stored, owner: &Owner) -> Self {
        let references = tree.pointer("/metadata/ownerReferences").cloned().unwrap_or_default();
        let references: Vec<OwnerReference> = serde_json::from_value(references).unwrap_or_default();
        let controller = references.into_iter().find(|reference| reference.controller == Some(true));
        let by_reference =
            dependent.config.owned && dependent.desired.pointer("/metadata/ownerReferences").is_some();
        let made_for = tree
            .pointer("/metadata/annotations")
            .and_then(|all| all.get(annotation::MADE_FOR))
            .and_then(Value::as_str);
        let us = &owner.reference;
        match controller {
            Some(reference) if reference.uid == us.uid && by_reference => Self::Ours,
            // It was owned by reference in an earlier release, and is to be so no more.
            Some(reference) if reference.uid == us.uid => Self::Lost,
            Some(reference) if reference.kind == us.kind && reference.name == us.name => Self::Former,
            Some(reference) => Self::Other(format!("{} {}", reference.kind, reference.name)),
            None => match made_for {
                Some(other) if other != owner.title() => Self::Other(other.to_owned()),
                Some(_) if by_reference => Self::Lost,
                Some(_) if dependent.needs_cleanup(owner) && !observed.is_owned_by(&us.uid) => Self::Lost,
                Some(_) => Self::Ours,
                None if observed.labels.get(MANAGED_BY) == Some(&*owner.operator) => Self::Lost,
                None => Self::Nobody,
            },
        }
    }
}

#[cfg(test)]
mod tests;
