//! DefaultIngressClass: which class an ingress gets that names none.

use serde_json::Value;

use super::super::status::Outcome;
use super::super::write::{decoded, metadata_of, name_of};
use super::{Admission, Operation};
use crate::store::Scope;

const DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";
/// How ingresses named their class before there was a field for it.
const OLD_CLASS: &str = "kubernetes.io/ingress.class";

/// Gives a new ingress that names no class the newest default one.
pub(super) fn default_class(admission: &Admission<'_>, ingress: &mut Value) -> Outcome<()> {
    let new = admission.operation == Operation::Create && admission.subresource.is_none();
    if !new || !admission.is_for("networking.k8s.io", "ingresses") {
        return Ok(());
    }
    let marked = |object: &Value, key: &str| {
        metadata_of(object)
            .get("annotations")
            .and_then(|all| all.get(key))
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    if ingress["spec"]["ingressClassName"].is_string() || marked(ingress, OLD_CLASS).is_some() {
        return Ok(());
    }
    let registry = admission.server.registry();
    let Some(classes) = registry.find("networking.k8s.io", "v1", "ingressclasses") else { return Ok(()) };
    let mut newest: Option<(String, String)> = None;
    for stored in admission.server.store.list(classes.table, &Scope::All).1 {
        let class = decoded(&stored)?;
        let made = metadata_of(&class).get("creationTimestamp").and_then(Value::as_str).unwrap_or_default();
        if marked(&class, DEFAULT).as_deref() == Some("true")
            && newest.as_ref().is_none_or(|(at, _)| made > at.as_str())
        {
            newest = Some((made.to_owned(), name_of(&class).to_owned()));
        }
    }
    if let Some((_, name)) = newest {
        ingress["spec"]["ingressClassName"] = name.into();
    }
    Ok(())
}
