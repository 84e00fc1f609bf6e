//! The fields that field selectors may name, beside the name and the namespace: a table by kind.

use serde_json::Value;

use super::super::registry::Resource;
use super::super::status::{Failure, Outcome};

/// A field of a selector, and how it reads in an object.
struct Field {
    name: &'static str,
    /// Where it is in the object.
    place: &'static str,
    /// How what is not there reads.
    zero: &'static str,
}

const fn text(name: &'static str) -> Field {
    Field { name, place: name, zero: "" }
}

const fn zero(name: &'static str, zero: &'static str) -> Field {
    Field { name, place: name, zero }
}

const fn at(name: &'static str, place: &'static str, zero: &'static str) -> Field {
    Field { name, place, zero }
}

static TABLE: &[(&str, &str, &[Field])] = &[
    (
        "",
        "pods",
        &[
            text("spec.nodeName"),
            text("spec.restartPolicy"),
            text("spec.schedulerName"),
            text("spec.serviceAccountName"),
            zero("spec.hostNetwork", "false"),
            text("status.phase"),
            text("status.podIP"),
            at("status.podIPs", "status.podIP", ""),
            text("status.nominatedNodeName"),
        ],
    ),
    (
        "",
        "events",
        &[
            text("involvedObject.kind"),
            text("involvedObject.namespace"),
            text("involvedObject.name"),
            text("involvedObject.uid"),
            text("involvedObject.apiVersion"),
            text("involvedObject.resourceVersion"),
            text("involvedObject.fieldPath"),
            text("reason"),
            text("reportingComponent"),
            at("source", "source.component", ""),
            text("type"),
        ],
    ),
    (
        "events.k8s.io",
        "events",
        &[
            text("regarding.kind"),
            text("regarding.namespace"),
            text("regarding.name"),
            text("regarding.uid"),
            text("regarding.apiVersion"),
            text("regarding.resourceVersion"),
            text("regarding.fieldPath"),
            text("reason"),
            text("reportingController"),
            text("type"),
        ],
    ),
    ("", "namespaces", &[text("status.phase")]),
    ("", "secrets", &[text("type")]),
    ("", "services", &[text("spec.clusterIP"), text("spec.type")]),
    ("", "nodes", &[zero("spec.unschedulable", "false")]),
    ("", "replicationcontrollers", &[zero("status.replicas", "0")]),
    ("batch", "jobs", &[at("status.successful", "status.succeeded", "0")]),
    ("certificates.k8s.io", "certificatesigningrequests", &[text("spec.signerName")]),
    ("resource.k8s.io", "resourceslices", &[text("spec.nodeName"), text("spec.driver")]),
];

fn fields(resource: &Resource) -> &'static [Field] {
    let found =
        TABLE.iter().find(|(group, plural, _)| *group == resource.group && *plural == resource.plural);
    found.map(|(_, _, fields)| *fields).unwrap_or_default()
}

/// Whether objects of a kind can be selected by a field.
///
/// # Errors
/// When they cannot.
pub(super) fn check(resource: &Resource, field: &str) -> Outcome<()> {
    let own = fields(resource);
    let custom = resource.custom.iter().flat_map(|custom| &custom.selectable);
    // Cluster-wide kinds with fields of their own know no namespace.
    let spaceless = !resource.namespaced && !own.is_empty();
    if field == "metadata.name"
        || (field == "metadata.namespace" && !spaceless)
        || own.iter().any(|known| known.name == field)
        || custom.clone().any(|known| known == field)
    {
        return Ok(());
    }
    Err(Failure::bad_request(if own.is_empty() && resource.custom.is_none() {
        format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    } else if resource.group == "resource.k8s.io" {
        format!("field label not supported for {}, Kind={}: {field}", resource.api_version(), resource.kind)
    } else if resource.group == "batch" {
        format!("field label {field:?} not supported for {}", resource.kind)
    } else {
        format!("field label not supported: {field}")
    }))
}

/// How a field of an object reads.
pub(super) fn read(resource: &Resource, object: &Value, field: &str) -> String {
    let known = fields(resource).iter().find(|known| known.name == field);
    let place = known.map_or(field, |known| known.place);
    match place.split('.').fold(object, |value, part| &value[part]) {
        Value::String(text) => text.clone(),
        Value::Null => known.map(|known| known.zero).unwrap_or_default().to_owned(),
        other => other.to_string(),
    }
}
