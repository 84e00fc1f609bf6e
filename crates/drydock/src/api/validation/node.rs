//! Kinds of the whole cluster: nodes, namespaces and priority classes.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, entries, has, immutable, list, reasons, strings, text};
use super::{address, internal, resources, scheduling};

const SPEC: At<'static> = At::new("spec");

/// A new node.
pub(super) fn create(out: &mut Errors, node: &Value) {
    taints(out, node);
    capacity(out, node);
    features(out, node);
    let at = &SPEC.child("podCIDRs");
    for (index, range) in strings(&node["spec"], "podCIDRs").enumerate() {
        address::cidr(out, range, &at.index(index));
    }
    let all: Vec<&str> = strings(&node["spec"], "podCIDRs").collect();
    let sixth = all.iter().filter(|range| range.contains(':')).count();
    if all.len() > 2 || (all.len() == 2 && sixth != 1) {
        let why = "may specify no more than one CIDR for each IP family";
        out.push(FieldError::invalid(at, &node["spec"]["podCIDRs"], why));
    }
}

/// A changed node: all of it is looked at, and most of it twice.
pub(super) fn update(out: &mut Errors, new: &Value, old: &Value) {
    create(out, new);
    status(out, new, old);
}

/// A node whose status changes.
pub(super) fn status(out: &mut Errors, new: &Value, old: &Value) {
    capacity(out, new);
    features(out, new);
    let at = At::new("status.addresses");
    let all = list(&new["status"], "addresses");
    for (index, address) in all.iter().enumerate().filter(|(index, address)| all[..*index].contains(address))
    {
        out.push(FieldError::duplicate(at.index(index), internal::shown("NodeAddress", address)));
    }
    let (spec, was) = (&new["spec"], &old["spec"]);
    if !list(was, "podCIDRs").is_empty() && spec["podCIDRs"] != was["podCIDRs"] {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        out.push(FieldError::forbidden(SPEC.child("podCIDRs"), why));
    }
    if !text(was, "providerID").is_empty() && spec["providerID"] != was["providerID"] {
        let why = "node updates may not change providerID except from \"\" to valid";
        out.push(FieldError::forbidden(SPEC.child("providerID"), why));
    }
    taints(out, new);
    if spec["externalID"] != was["externalID"] {
        out.push(FieldError::forbidden(SPEC.child("externalID"), "may not be updated"));
    }
}

/// What a node says it can do.
fn features(out: &mut Errors, node: &Value) {
    let at = At::new("status");
    let at = &at.child("declaredFeatures");
    let names: Vec<&str> = strings(&node["status"], "declaredFeatures").collect();
    for (index, name) in names.iter().enumerate() {
        let plain =
            name.split('/').all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric()));
        if !plain || !name.starts_with(|first: char| first.is_ascii_uppercase()) {
            let why = format!(
                "invalid feature name {name:?}: must start with an UpperCamelCase segment, with subsequent segments \
                 separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric \
                 characters and slashes"
            );
            out.push(FieldError::invalid(at.index(index), *name, why));
        }
        match names.get(index + 1) {
            Some(next) if next == name => out.push(FieldError::duplicate(at.index(index + 1), *next)),
            Some(next) if next < name => {
                let why = "list must be sorted alphabetically";
                out.push(FieldError::invalid(at.index(index + 1), *next, why));
            }
            _ => {}
        }
    }
}

fn taints(out: &mut Errors, node: &Value) {
    // The server looks for them in the specification and reports them in the metadata.
    let at = At::new("metadata.taints");
    let mut known = BTreeSet::new();
    for (index, taint) in list(&node["spec"], "taints").iter().enumerate() {
        let at = &at.index(index);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        reasons(out, key, &at.child("key"), names::qualified_name(key));
        let why = names::label_value(value);
        if !why.is_empty() {
            out.push(FieldError::invalid(at.child("value"), value, why.join(";")));
        }
        super::field::choice(out, taint, "effect", at, scheduling::EFFECTS);
        if !known.insert((effect, key)) {
            let error = FieldError::duplicate(at, internal::shown("Taint", taint));
            let detail = "taints must be unique by key and effect pair".to_owned();
            out.push(FieldError { detail, ..error });
        }
    }
}

fn capacity(out: &mut Errors, node: &Value) {
    let at = At::new("status");
    for field in ["capacity", "allocatable"] {
        let at = &at.child(field);
        for (name, value) in entries(&node["status"], field) {
            resources::amount(out, name, value, &at.child(name));
        }
    }
}

/// A new namespace.
pub(super) fn namespace(out: &mut Errors, namespace: &Value) {
    let at = &SPEC.child("finalizers");
    for name in strings(&namespace["spec"], "finalizers") {
        reasons(out, name, at, names::qualified_name(name));
        if name != "kubernetes" && !name.contains('/') {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            out.push(FieldError::invalid(at, name, why));
        }
    }
}

/// The status of a namespace.
pub(super) fn namespace_status(out: &mut Errors, new: &Value, _: &Value) {
    let phase = text(&new["status"], "phase");
    let (wanted, when) = match has(&new["metadata"], "deletionTimestamp") {
        false => ("Active", "empty"),
        true => ("Terminating", "not empty"),
    };
    if phase != wanted {
        let why = format!("may only be '{wanted}' if `deletionTimestamp` is {when}");
        out.push(FieldError::invalid("status.Phase", phase, why));
    }
}

/// A priority class.
pub(super) fn priority(out: &mut Errors, class: &Value) {
    const SYSTEM: [(&str, i64); 2] =
        [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
    let (name, value) = (text(&class["metadata"], "name"), class["value"].as_i64().unwrap_or_default());
    if name.starts_with("system-") {
        let why = match SYSTEM.iter().find(|(known, _)| *known == name) {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, known)) if *known != value => {
                Some(format!("value of {name} PriorityClass must be {known}"))
            }
            Some(_) if class["globalDefault"] == true => {
                Some(format!("globalDefault of {name} PriorityClass must be false"))
            }
            Some(_) => None,
        };
        let text = "priority class names with 'system-' prefix are reserved for system use only. error: ";
        out.extend(why.map(|why| FieldError::forbidden("metadata.name", format!("{text}{why}"))));
    } else if value > 1_000_000_000 {
        let why = "maximum allowed value of a user defined priority is 1000000000";
        out.push(FieldError::forbidden("value", why));
    }
    if has(class, "preemptionPolicy") {
        let policy = text(class, "preemptionPolicy");
        if policy.is_empty() {
            out.push(FieldError::required("preemptionPolicy", ""));
        } else if !matches!(policy, "PreemptLowerPriority" | "Never") {
            let known = ["PreemptLowerPriority", "Never"];
            out.push(FieldError::not_supported("preemptionPolicy", policy, known));
        }
    }
}

/// A changed priority class.
pub(super) fn priority_update(out: &mut Errors, new: &Value, old: &Value) {
    if new["value"] != old["value"] {
        out.push(FieldError::forbidden("value", "may not be changed in an update."));
    }
    immutable(out, &new["preemptionPolicy"], &old["preemptionPolicy"], &At::new("preemptionPolicy"));
}
