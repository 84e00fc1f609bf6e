//! Owner references: who controls what, adoption of orphans and release of strays.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::api::Patch;
use kube::core::{Selector, SelectorExt as _};
use serde_json::json;

use super::Error;
use super::informer::{Change, Informer, Kind, ObjectKey};
use super::informers::Handle;
use super::queue::Queue;

/// The owner that controls an object.
pub(crate) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// A reference to a controlling owner.
pub(crate) fn controller_ref<K: Kind>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.meta().name.clone().unwrap_or_default(),
        uid: owner.meta().uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Reads a selector. A selector that cannot be read selects nothing.
pub(crate) fn selector_of(selector: Option<&LabelSelector>) -> Option<Selector> {
    let selector = selector?;
    let empty = selector.match_labels.as_ref().is_none_or(|labels| labels.is_empty())
        && selector.match_expressions.as_ref().is_none_or(|expressions| expressions.is_empty());
    if empty {
        return None;
    }
    Selector::try_from(selector.clone()).ok()
}

pub(crate) fn selects(selector: &Selector, meta: &ObjectMeta) -> bool {
    match &meta.labels {
        Some(labels) => selector.matches(labels),
        None => selector.matches(&Default::default()),
    }
}

/// Adds the controller's key to its queue when one of its dependents changes.
pub(crate) fn enqueue_controller<O: Kind, D: Kind>(
    owners: Arc<Informer<O>>,
    queue: Queue<ObjectKey>,
) -> impl Fn(&Change<D>) {
    move |change| {
        let owner_of = |object: &Arc<D>| controller_of(object.meta()).cloned();
        let old = change.old.as_ref().and_then(owner_of);
        let new = change.new.as_ref().and_then(owner_of);
        let namespace = change.latest().meta().namespace.clone().unwrap_or_default();
        for owner in [&old, &new].into_iter().flatten() {
            if owner.kind == O::kind(&()) && owner.api_version == O::api_version(&()) {
                queue.add(ObjectKey::new(&namespace, &owner.name));
            }
        }
        // An orphan is for whoever selects it.
        if new.is_none() && change.new.is_some() {
            for owner in owners.in_namespace(&namespace) {
                queue.add(ObjectKey::of(owner.meta()));
            }
        }
    }
}

/// The dependents of an owner: those it controls and its selector matches, after adopting orphans that it matches
/// and releasing what it does not.
pub(crate) async fn claim<O: Kind, D: Kind>(
    owner: &O,
    owners: &Handle<O>,
    dependents: &Handle<D>,
    selector: &Selector,
    wanted: impl Fn(&D) -> bool,
) -> Result<Vec<Arc<D>>, Error> {
    claim_with(owner, owners, dependents, selector, wanted, None).await
}

/// As [`claim`], and gives what is adopted a finalizer.
pub(crate) async fn claim_with<O: Kind, D: Kind>(
    owner: &O,
    owners: &Handle<O>,
    dependents: &Handle<D>,
    selector: &Selector,
    wanted: impl Fn(&D) -> bool,
    finalizer: Option<&str>,
) -> Result<Vec<Arc<D>>, Error> {
    let uid = owner.meta().uid.clone().unwrap_or_default();
    let namespace = owner.meta().namespace.clone().unwrap_or_default();
    let mut claimed = Vec::new();
    for object in dependents.controlled_by(&uid) {
        if !wanted(&object) {
            continue;
        }
        if selects(selector, object.meta()) {
            claimed.push(object);
        } else if owner.meta().deletion_timestamp.is_none() {
            release(&uid, dependents, &object).await?;
        }
    }
    if owner.meta().deletion_timestamp.is_some() {
        return Ok(claimed);
    }
    let mut verified = false;
    for object in dependents.orphans(&namespace) {
        if object.meta().deletion_timestamp.is_some() || !wanted(&object) || !selects(selector, object.meta())
        {
            continue;
        }
        if !verified {
            // The cache may not know yet that the owner is being deleted.
            let fresh = owners.read(&ObjectKey::of(owner.meta())).await?;
            let alive = fresh.is_some_and(|fresh| {
                fresh.meta().uid == owner.meta().uid && fresh.meta().deletion_timestamp.is_none()
            });
            if !alive {
                return Err(Error::Other(format!("{} is being deleted", ObjectKey::of(owner.meta()))));
            }
            verified = true;
        }
        let reference = controller_ref(owner);
        let mut patch = json!({"metadata": {"uid": object.meta().uid, "ownerReferences": [reference]}});
        if let Some(finalizer) = finalizer {
            patch["metadata"]["finalizers"] = json!([finalizer]);
        }
        match dependents.patch(&ObjectKey::of(object.meta()), &Patch::Strategic(patch)).await {
            Ok(adopted) => claimed.push(Arc::new(adopted)),
            Err(error) if error.has_reason("NotFound") || error.has_reason("Invalid") => {}
            Err(error) => return Err(error),
        }
    }
    claimed.sort_by_cached_key(|object| ObjectKey::of(object.meta()));
    Ok(claimed)
}

async fn release<D: Kind>(owner: &str, dependents: &Handle<D>, object: &D) -> Result<(), Error> {
    let patch = json!({"metadata": {
        "uid": object.meta().uid,
        "ownerReferences": [{"$patch": "delete", "uid": owner}],
    }});
    match dependents.patch(&ObjectKey::of(object.meta()), &Patch::Strategic(patch)).await {
        Err(error) if !error.has_reason("NotFound") && !error.has_reason("Invalid") => Err(error),
        _ => Ok(()),
    }
}
