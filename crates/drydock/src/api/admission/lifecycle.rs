//! NamespaceLifecycle: nothing new in a namespace that is not there or is going away.

use serde_json::{Value, json};

use super::super::status::{Failure, Outcome};
use super::super::write::{is_leaving, name_of};
use super::{Admission, Operation};
use crate::store::Key;

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) fn check(admission: &Admission<'_>, object: &Value) -> Outcome<()> {
    let resource = admission.resource;
    if admission.operation == Operation::Delete {
        let name = admission.old.map(name_of).unwrap_or_default();
        if admission.is_for("", "namespaces") && IMMORTAL.contains(&name) {
            return Err(Failure::forbidden(resource, name, "this namespace may not be deleted"));
        }
        return Ok(());
    }
    if !resource.namespaced || admission.operation != Operation::Create {
        return Ok(());
    }
    let registry = admission.server.registry();
    let Some(namespaces) = registry.core("namespaces") else { return Ok(()) };
    let name = admission.namespace;
    let stored = admission
        .server
        .store
        .get(namespaces.table, &Key::new("", name))
        .ok_or_else(|| Failure::not_found(namespaces, name))?;
    if !is_leaving(&stored) {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {name} because it is being terminated");
    let mut failure = Failure::forbidden(resource, name_of(object), why);
    if let Some(details) = &mut failure.details {
        details.insert(
            "causes".into(),
            json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {name} is being terminated"),
                "field": "metadata.namespace",
            }]),
        );
    }
    Err(failure)
}
