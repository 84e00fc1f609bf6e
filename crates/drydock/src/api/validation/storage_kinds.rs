//! What drivers of storage tell the cluster: drivers, their nodes and capacities, attachments and attributes.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{
    At, Errors, entries, has, immutable, immutable_as, list, number, reasons, required, strings, text,
};
use super::internal;
use super::resources::quantity;
use super::selector::label_selector;
use super::storage::{driver_name, parameters, provisioner};

const SPEC: At<'static> = At::new("spec");

/// A driver.
pub(super) fn driver(out: &mut Errors, driver: &Value) {
    let spec = &driver["spec"];
    let policy = text(spec, "fsGroupPolicy");
    if has(spec, "fsGroupPolicy") && !matches!(policy, "ReadWriteOnceWithFSType" | "File" | "None") {
        let known = ["File", "None", "ReadWriteOnceWithFSType"];
        out.push(FieldError::not_supported(SPEC.child("fsGroupPolicy"), policy, known));
    }
    token_requests(out, spec, &SPEC.child("tokenRequests"));
    for mode in
        strings(spec, "volumeLifecycleModes").filter(|mode| !matches!(*mode, "Persistent" | "Ephemeral"))
    {
        let at = SPEC.child("volumeLifecycleModes");
        out.push(FieldError::not_supported(at, mode, ["Persistent", "Ephemeral"]));
    }
    if let Some(period) = number(spec, "nodeAllocatableUpdatePeriodSeconds").filter(|period| *period < 10) {
        let at = SPEC.child("nodeAllocatableUpdatePeriodSeconds");
        out.push(FieldError::invalid(at, period, "must be greater than or equal to 10 seconds"));
    }
    if has(spec, "serviceAccountTokenInSecrets") && list(spec, "tokenRequests").is_empty() {
        let at = SPEC.child("serviceAccountTokenInSecrets");
        let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        out.push(FieldError::invalid(at, &spec["serviceAccountTokenInSecrets"], why));
    }
}

/// A changed driver.
pub(super) fn driver_update(out: &mut Errors, new: &Value, old: &Value) {
    driver(out, new);
    for (field, shown) in
        [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
    {
        immutable(out, &new["spec"][field], &old["spec"][field], &SPEC.child(shown));
    }
}

fn token_requests(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let mut known = BTreeSet::new();
    for (index, request) in list(spec, "tokenRequests").iter().enumerate() {
        let at = &at.index(index);
        let audience = text(request, "audience");
        if !known.insert(audience) {
            out.push(FieldError::duplicate(at.child("audience"), audience));
            continue;
        }
        let Some(seconds) = number(request, "expirationSeconds") else { continue };
        let at = at.child("expirationSeconds");
        if seconds < 600 {
            out.push(FieldError::invalid(at, seconds, "may not specify a duration less than 10 minutes"));
        }
        if seconds > 1 << 32 {
            out.push(FieldError::invalid(at, seconds, "may not specify a duration larger than 2^32 seconds"));
        }
    }
}

/// The drivers of a node.
pub(super) fn node(out: &mut Errors, node: &Value) {
    let at = &SPEC.child("drivers");
    let mut known = BTreeSet::new();
    for (index, driver) in list(&node["spec"], "drivers").iter().enumerate() {
        let at = &at.index(index);
        driver_name(out, driver, "name", at);
        if required(out, driver, "nodeID", at) && text(driver, "nodeID").len() > 256 {
            let why = "must be 256 characters or less";
            out.push(FieldError::invalid(at.child("nodeID"), text(driver, "nodeID"), why));
        }
        let inner = at.child("allocatable");
        super::field::not_negative(out, &driver["allocatable"], &["count"], &inner);
        let name = text(driver, "name");
        if !known.insert(name) {
            out.push(FieldError::duplicate(at.child("name"), name));
        }
        let mut keys = BTreeSet::new();
        for key in strings(driver, "topologyKeys") {
            if key.is_empty() {
                out.push(FieldError::required(at, key));
            }
            if !keys.insert(key) {
                out.push(FieldError::duplicate(at, key));
            }
            reasons(out, key, at, names::qualified_name(key));
        }
    }
}

/// Changed drivers of a node.
pub(super) fn node_update(out: &mut Errors, new: &Value, old: &Value) {
    node(out, new);
    let fixed = |driver: &Value| {
        let mut driver = driver.clone();
        driver.as_object_mut().map(|map| map.remove("allocatable"));
        driver
    };
    for was in list(&old["spec"], "drivers") {
        for now in list(&new["spec"], "drivers").iter().filter(|now| text(now, "name") == text(was, "name")) {
            immutable_as(out, &fixed(now), &fixed(was), &SPEC.child("drivers"), |value| {
                internal::shown("CSINodeDriver", value)
            });
        }
    }
}

/// What is left in a place.
pub(super) fn capacity(out: &mut Errors, capacity: &Value) {
    label_selector(out, &capacity["nodeTopology"], &At::new("nodeTopology"));
    let class = text(capacity, "storageClassName");
    reasons(out, class, &At::new("storageClassName"), names::subdomain_name(class, false));
    if quantity(&capacity["capacity"]).is_some_and(|amount| amount.sign() < 0) {
        let why = "must be greater than or equal to 0";
        out.push(FieldError::invalid("capacity", &capacity["capacity"], why));
    }
}

/// A changed capacity.
pub(super) fn capacity_update(out: &mut Errors, new: &Value, old: &Value) {
    capacity(out, new);
    immutable_as(out, &new["nodeTopology"], &old["nodeTopology"], &At::new("nodeTopology"), |value| {
        internal::shown("LabelSelector", value)
    });
    let class = |object: &Value| json!(text(object, "storageClassName"));
    immutable(out, &class(new), &class(old), &At::new("storageClassName"));
}

/// A volume attached to a node.
pub(super) fn attachment(out: &mut Errors, attachment: &Value) {
    let spec = &attachment["spec"];
    driver_name(out, spec, "attacher", &SPEC);
    let (source, at) = (&spec["source"], &SPEC.child("source"));
    let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (has(source, "inlineVolumeSpec"), source["persistentVolumeName"].as_str()) {
        (false, None) => out.push(FieldError::required(at, why)),
        (true, Some(_)) => out.push(FieldError::forbidden(at, why)),
        (false, Some("")) => {
            let why = "must specify non empty persistentVolumeName";
            out.push(FieldError::required(at.child("persistentVolumeName"), why));
        }
        _ => {}
    }
    let node = text(spec, "nodeName");
    reasons(out, node, &SPEC.child("nodeName"), names::subdomain_name(node, false));
    let status = &At::new("status");
    for field in ["attachError", "detachError"] {
        let at = status.child(field);
        if text(&attachment["status"][field], "message").len() > 1024 {
            out.push(FieldError::too_long(at.child("message"), 256 * 1024));
        }
    }
    if let Some(name) = source["persistentVolumeName"].as_str() {
        reasons(out, name, &at.child("persistentVolumeName"), names::subdomain_name(name, false));
    }
}

/// A changed attachment.
pub(super) fn attachment_update(out: &mut Errors, new: &Value, old: &Value) {
    attachment(out, new);
    immutable_as(out, &new["spec"], &old["spec"], &SPEC, |value| {
        internal::shown("VolumeAttachmentSpec", value)
    });
}

/// Attributes that volumes of a driver can get.
pub(super) fn attributes(out: &mut Errors, class: &Value) {
    provisioner(out, class, "driverName");
    parameters(out, class);
    if entries(class, "parameters").next().is_none() {
        out.push(FieldError::required("parameters", "must contain at least one key/value pair"));
    }
}

/// Changed attributes.
pub(super) fn attributes_update(out: &mut Errors, new: &Value, old: &Value) {
    for field in ["driverName", "parameters"] {
        if new[field] != old[field] {
            out.push(FieldError::forbidden(field, format!("updates to {field} are forbidden.")));
        }
    }
    attributes(out, new);
}
