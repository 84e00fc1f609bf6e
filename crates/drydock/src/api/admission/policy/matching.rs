//! Which writes a policy or a binding is about.

use serde_json::Value;
use windlass_machinery::selector::Labels;

use super::super::super::write::{decoded, name_of};
use super::super::{Admission, Operation};
use super::labels;
use crate::store::Key;

/// Whether constraints are about a write. Those of a policy name resources; a binding's may leave that out.
pub(super) fn matches(admission: &Admission<'_>, object: &Value, constraints: &Value, strict: bool) -> bool {
    let list = |field: &str| constraints[field].as_array().map(Vec::as_slice).unwrap_or_default();
    let equivalent = constraints["matchPolicy"] != "Exact";
    let any = |field: &str| list(field).iter().any(|one| rule(admission, object, one, equivalent));
    let named = !list("resourceRules").is_empty() || strict;
    selects_namespace(admission, object, &constraints["namespaceSelector"])
        && selects_object(admission, object, &constraints["objectSelector"])
        && !any("excludeResourceRules")
        && (!named || any("resourceRules"))
}

fn rule(admission: &Admission<'_>, object: &Value, rule: &Value, equivalent: bool) -> bool {
    let resource = admission.resource;
    let strings = |field: &str| rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
    let has = |field: &str, value: &str| strings(field).any(|one| one == "*" || one == value);
    let operation = match admission.operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
    };
    let whole = match admission.subresource {
        Some(part) => format!("{}/{part}", resource.plural),
        None => resource.plural.clone(),
    };
    let resources = || {
        strings("resources").any(|one| match (one.split_once('/'), admission.subresource) {
            (Some((name, part)), Some(wanted)) => {
                (name == "*" || name == resource.plural) && (part == "*" || part == wanted)
            }
            (Some((name, "*")), None) => name == "*" || name == resource.plural,
            (Some(_), None) => false,
            (None, None) => one == "*" || one == whole,
            (None, Some(_)) => false,
        })
    };
    let scope = match rule["scope"].as_str() {
        Some("Cluster") => !resource.namespaced,
        Some("Namespaced") => resource.namespaced,
        _ => true,
    };
    let name = match name_of(object) {
        "" => admission.old.map(name_of).unwrap_or_default(),
        name => name,
    };
    let names = strings("resourceNames").next().is_none() || strings("resourceNames").any(|one| one == name);
    has("operations", operation)
        && has("apiGroups", &resource.group)
        && (equivalent || has("apiVersions", &resource.version))
        && resources()
        && scope
        && names
}

fn selects_namespace(admission: &Admission<'_>, object: &Value, selector: &Value) -> bool {
    let Ok(selector) = Labels::from_object(Some(selector).filter(|one| !one.is_null())) else {
        return false;
    };
    if selector.is_everything() || selector.is_nothing() {
        return true;
    }
    if admission.is_for("", "namespaces") {
        let of =
            if admission.operation == Operation::Delete { admission.old.unwrap_or(object) } else { object };
        return selector.matches_map(labels(of));
    }
    if !admission.resource.namespaced {
        return true;
    }
    namespace(admission).is_none_or(|namespace| selector.matches_map(labels(&namespace)))
}

fn selects_object(admission: &Admission<'_>, object: &Value, selector: &Value) -> bool {
    if selector.as_object().is_none_or(serde_json::Map::is_empty) {
        return true;
    }
    let Ok(selector) = Labels::from_object(Some(selector)) else {
        return false;
    };
    let new = admission.operation != Operation::Delete && selector.matches_map(labels(object));
    new || admission.old.is_some_and(|old| selector.matches_map(labels(old)))
}

/// The namespace of a write.
pub(super) fn namespace(admission: &Admission<'_>) -> Option<Value> {
    if !admission.resource.namespaced {
        return None;
    }
    let registry = admission.server.registry();
    let table = registry.core("namespaces")?.table;
    let stored = admission.server.store.get(table, &Key::new("", admission.namespace))?;
    decoded(&stored).ok()
}
