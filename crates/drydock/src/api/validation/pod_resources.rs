//! What a pod as a whole asks for, besides its containers.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_machinery::invalid::FieldError;

use super::super::admission::amounts::{is_of_pods, of_containers};
use super::field::{At, Errors, entries, has, list, text};
use super::resources::{self, quantity};

/// The resources of a pod, and how they fit those of its containers.
pub(super) fn of_pod(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let own = &spec["resources"];
    if own.is_null() {
        return;
    }
    let at = &at.child("resources");
    if spec["os"]["name"] == "windows" {
        out.push(FieldError::forbidden(at, "may not be set for a windows pod"));
        return;
    }
    if has(own, "claims") {
        let why = "claims may not be set for Resources at pod-level";
        out.push(FieldError::forbidden(at.child("claims"), why));
        claims(out, list(own, "claims"), spec, &at.child("claims"));
    }
    resources::requirements(out, own, at, |out, name, at| {
        if !is_of_pods(name) {
            out.push(FieldError::not_supported(at, name, ["cpu", "hugepages-", "memory"]));
        }
    });
    for field in ["requests", "limits"] {
        let at = &at.child(field);
        for (name, used) in of_containers(spec, field) {
            let huge = name.starts_with("hugepages-");
            let Some(given) = quantity(&own[field][name.as_str()]).filter(|_| field == "requests" || huge)
            else {
                continue;
            };
            if used > given {
                let why = format!("must be greater than or equal to aggregate container {field} of {used}");
                out.push(FieldError::invalid(at.key(&name), given.to_string(), why));
            }
        }
    }
    for (index, container) in list(spec, "containers").iter().enumerate() {
        for (name, limit) in entries(&container["resources"], "limits") {
            let (Some(limit), Some(most)) = (quantity(limit), quantity(&own["limits"][name.as_str()])) else {
                continue;
            };
            if limit > most {
                let at = format!("{at}.containers[{index}][{name}].limits");
                let why = format!("must be less than or equal to pod limits of {most}");
                out.push(FieldError::invalid(at, limit.to_string(), why));
            }
        }
    }
}

/// The claims that are used are those of the pod.
pub(super) fn claims(out: &mut Errors, claims: &[Value], spec: &Value, at: &At<'_>) {
    let known: BTreeSet<&str> =
        list(spec, "resourceClaims").iter().map(|claim| text(claim, "name")).collect();
    let mut used = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let (name, request, at) = (text(claim, "name"), text(claim, "request"), at.index(index));
        if name.is_empty() {
            out.push(FieldError::required(at, ""));
            continue;
        }
        let key = if request.is_empty() { name.to_owned() } else { format!("{name}/{request}") };
        if used.contains(&key) {
            out.push(FieldError::duplicate(at, &key));
        } else if used.contains(name) {
            out.push(FieldError::duplicate(at, name));
        }
        used.insert(key);
        if !known.contains(name) {
            let names = known.iter().copied().collect::<Vec<_>>().join(", ");
            let rest = if known.is_empty() { " which is empty".to_owned() } else { format!(": {names}") };
            let detail = format!("must be one of the names in pod.spec.resourceClaims{rest}");
            out.push(FieldError { detail, ..FieldError::not_found(at, name) });
        }
    }
}
