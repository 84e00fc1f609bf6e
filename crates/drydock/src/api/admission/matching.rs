//! Which writes a policy, a binding or a webhook is about.

use std::sync::Arc;

use serde_json::Value;
use windlass_machinery::selector::Labels;

use super::super::registry::Resource;
use super::super::write::{decoded, metadata_of};
use super::{Admission, Operation};
use crate::store::Key;

/// Whether constraints are about a write. Those of a policy name resources; a binding's may leave that out.
pub(super) fn matches(admission: &Admission<'_>, object: &Value, constraints: &Value, strict: bool) -> bool {
    let list = |field: &str| constraints[field].as_array().map(Vec::as_slice).unwrap_or_default();
    let equivalent = constraints["matchPolicy"] != "Exact";
    let any = |field: &str| seen_as(admission, object, list(field), equivalent).is_some();
    let named = !list("resourceRules").is_empty() || strict;
    selects_namespace(admission, object, &constraints["namespaceSelector"])
        && selects_object(admission, object, &constraints["objectSelector"])
        && !any("excludeResourceRules")
        && (!named || any("resourceRules"))
}

/// The resource that a rule names of a write: its own, or the same in another version.
pub(super) fn seen_as(
    admission: &Admission<'_>,
    object: &Value,
    rules: &[Value],
    equivalent: bool,
) -> Option<Arc<Resource>> {
    let own = admission.resource;
    if rules.iter().any(|one| rule(admission, own, object, one)) {
        return Some(Arc::clone(own));
    }
    if !equivalent || rules.is_empty() {
        return None;
    }
    let registry = admission.server.registry();
    let others = || registry.all().iter().filter(|one| one.table == own.table && one.version != own.version);
    let found = rules.iter().find_map(|one| others().find(|other| rule(admission, other, object, one)));
    found.map(Arc::clone)
}

fn rule(admission: &Admission<'_>, resource: &Resource, object: &Value, rule: &Value) -> bool {
    let strings = |field: &str| rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
    let has = |field: &str, value: &str| strings(field).any(|one| one == "*" || one == value);
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
    let name = admission.name(object);
    let names = strings("resourceNames").next().is_none() || strings("resourceNames").any(|one| one == name);
    has("operations", admission.operation.name())
        && has("apiGroups", &resource.group)
        && has("apiVersions", &resource.version)
        && resources()
        && scope
        && names
}

pub(super) fn selects_namespace(admission: &Admission<'_>, object: &Value, selector: &Value) -> bool {
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

pub(super) fn selects_object(admission: &Admission<'_>, object: &Value, selector: &Value) -> bool {
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

/// The labels of an object.
pub(super) fn labels(object: &Value) -> Option<&serde_json::Map<String, Value>> {
    metadata_of(object).get("labels").and_then(Value::as_object)
}
