//! DefaultStorageClass and PersistentVolumeClaimResize: which class a claim gets, and whether it may grow.

use serde_json::Value;
use windlass_machinery::quantity::Quantity;

use super::super::status::{Failure, Outcome};
use super::super::write::{decoded, metadata_of, name_of};
use super::{Admission, Operation};
use crate::store::{Key, Scope, TableId};

const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
const OLD_DEFAULT: &str = "storageclass.beta.kubernetes.io/is-default-class";
/// How claims named their class before there was a field for it.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Gives a new claim that names no class the newest default one.
pub(super) fn default_class(admission: &Admission<'_>, claim: &mut Value) -> Outcome<()> {
    if !is_claim(admission, Operation::Create) || class_of(claim).is_some() {
        return Ok(());
    }
    let Some(table) = classes(admission) else { return Ok(()) };
    let mut newest: Option<(String, String)> = None;
    for stored in admission.server.store.list(table, &Scope::All).1 {
        let class = decoded(&stored)?;
        let metadata = metadata_of(&class);
        let marked =
            |key: &str| metadata.get("annotations").and_then(|all| all.get(key)).is_some_and(|v| v == "true");
        let made = metadata.get("creationTimestamp").and_then(Value::as_str).unwrap_or_default();
        // Of several the newest counts, and of those the first by name.
        if (marked(DEFAULT) || marked(OLD_DEFAULT))
            && newest.as_ref().is_none_or(|(at, _)| made > at.as_str())
        {
            newest = Some((made.to_owned(), name_of(&class).to_owned()));
        }
    }
    if let Some((_, name)) = newest {
        claim["spec"]["storageClassName"] = name.into();
    }
    Ok(())
}

/// Lets a claim ask for more only if its class can give it.
pub(super) fn resize(admission: &Admission<'_>, claim: &Value) -> Outcome<()> {
    let Some(old) = admission.old.filter(|_| is_claim(admission, Operation::Update)) else {
        return Ok(());
    };
    let size =
        |claim: &Value| Quantity::parse(claim["spec"]["resources"]["requests"]["storage"].as_str()?).ok();
    if size(claim) <= size(old) {
        return Ok(());
    }
    let refused = |why: &str| Err(Failure::forbidden(admission.resource, name_of(claim), why));
    if old["status"]["phase"] != "Bound" {
        return refused("only bound persistent volume claims can be expanded");
    }
    let class = classes(admission).zip(class_of(claim));
    let stored = class.and_then(|(table, name)| admission.server.store.get(table, &Key::new("", name)));
    let can = stored.map(|stored| decoded(&stored)).transpose()?;
    if can.is_some_and(|class| class["allowVolumeExpansion"] == true) {
        return Ok(());
    }
    refused(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
    )
}

fn is_claim(admission: &Admission<'_>, operation: Operation) -> bool {
    admission.operation == operation
        && admission.subresource.is_none()
        && admission.is_for("", "persistentvolumeclaims")
}

fn classes(admission: &Admission<'_>) -> Option<TableId> {
    let registry = admission.server.registry();
    registry.find("storage.k8s.io", "v1", "storageclasses").map(|resource| resource.table)
}

/// The class that a claim names, which may be the empty one.
fn class_of(claim: &Value) -> Option<&str> {
    let annotations = metadata_of(claim).get("annotations");
    let old = annotations.and_then(|all| all.get(OLD_CLASS)).and_then(Value::as_str);
    old.or_else(|| claim["spec"]["storageClassName"].as_str())
}
