//! Where a pod may run: affinity, tolerations, spreading, gates.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, count, has, list, named, number, optional_choice, reasons, strings, text};
use super::selector::label_selector;

/// The affinity of a pod.
pub(super) fn affinity(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let (affinity, at) = (&spec["affinity"], &at.child("affinity"));
    let (node, inner) = (&affinity["nodeAffinity"], &at.child("nodeAffinity"));
    let (must, inner_must) = (&node[REQUIRED], &inner.child(REQUIRED));
    if !must.is_null() {
        node_selector(out, must, inner_must);
    }
    let preferred = &inner.child(PREFERRED);
    for (index, term) in list(node, PREFERRED).iter().enumerate() {
        let at = &preferred.index(index);
        weight(out, term, at);
        node_term(out, &term["preference"], &at.child("preference"), false);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let (affinity, at) = (&affinity[kind], &at.child(kind));
        let must = &at.child(REQUIRED);
        for (index, term) in list(affinity, REQUIRED).iter().enumerate() {
            pod_term(out, term, &must.index(index));
        }
        let preferred = &at.child(PREFERRED);
        for (index, term) in list(affinity, PREFERRED).iter().enumerate() {
            let at = &preferred.index(index);
            weight(out, term, at);
            pod_term(out, &term["podAffinityTerm"], &at.child("podAffinityTerm"));
        }
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// A node selector: terms, one of which has to hold.
pub(super) fn node_selector(out: &mut Errors, selector: &Value, at: &At<'_>) {
    let at = &at.child("nodeSelectorTerms");
    let terms = list(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        out.push(FieldError::required(at, "must have at least one node selector term"));
    }
    for (index, term) in terms.iter().enumerate() {
        node_term(out, term, &at.index(index), true);
    }
}

fn weight(out: &mut Errors, term: &Value, at: &At<'_>) {
    let weight = count(term, "weight");
    if !(1..=100).contains(&weight) {
        out.push(FieldError::invalid(at.child("weight"), weight, "must be in the range 1-100"));
    }
}

fn node_term(out: &mut Errors, term: &Value, at: &At<'_>, strict: bool) {
    let expressions = &at.child("matchExpressions");
    for (index, requirement) in list(term, "matchExpressions").iter().enumerate() {
        let at = &expressions.index(index);
        let values = list(requirement, "values").len();
        match text(requirement, "operator") {
            "In" | "NotIn" if values == 0 => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                out.push(FieldError::required(at.child("values"), why));
            }
            "Exists" | "DoesNotExist" if values > 0 => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                out.push(FieldError::forbidden(at.child("values"), why));
            }
            "Gt" | "Lt" if values != 1 => {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                out.push(FieldError::required(at.child("values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => {
                out.push(FieldError::invalid(at.child("operator"), other, "not a valid selector operator"));
            }
        }
        let key = text(requirement, "key");
        reasons(out, key, &at.child("key"), names::qualified_name(key));
        let at = &at.child("values");
        for (index, value) in strings(requirement, "values").enumerate().filter(|_| strict) {
            reasons(out, value, &at.index(index), names::label_value(value));
        }
    }
    let fields = &at.child("matchFields");
    for (index, requirement) in list(term, "matchFields").iter().enumerate() {
        let at = &fields.index(index);
        match text(requirement, "operator") {
            "In" | "NotIn" => {
                if list(requirement, "values").len() != 1 {
                    let why =
                        "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                    out.push(FieldError::required(at.child("values"), why));
                }
            }
            other => {
                out.push(FieldError::invalid(at.child("operator"), other, "not a valid selector operator"));
            }
        }
        let key = text(requirement, "key");
        if key != "metadata.name" {
            out.push(FieldError::invalid(at.child("key"), key, "not a valid field selector key"));
            continue;
        }
        let at = &at.child("values");
        for (index, value) in strings(requirement, "values").enumerate() {
            reasons(out, value, &at.index(index), names::subdomain_name(value, false));
        }
    }
}

fn pod_term(out: &mut Errors, term: &Value, at: &At<'_>) {
    label_selector(out, &term["labelSelector"], &at.child("labelSelector"));
    label_selector(out, &term["namespaceSelector"], &at.child("namespaceSelector"));
    for name in strings(term, "namespaces") {
        reasons(out, name, &at.child("namespace"), names::label_name(name, false));
    }
    topology_key(out, term, at);
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        label_keys(out, term, field, at);
    }
    let key = text(term, "topologyKey");
    reasons(out, key, &at.child("topologyKey"), names::qualified_name(key));
}

fn topology_key(out: &mut Errors, term: &Value, at: &At<'_>) {
    if text(term, "topologyKey").is_empty() {
        out.push(FieldError::required(at.child("topologyKey"), "can not be empty"));
    }
}

/// What a pod puts up with.
pub(super) fn tolerations(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let at = &at.child("tolerations");
    for (index, toleration) in list(spec, "tolerations").iter().enumerate() {
        let at = &at.index(index);
        let (operator, effect, value) =
            (text(toleration, "operator"), text(toleration, "effect"), text(toleration, "value"));
        named(out, toleration, "key", at, names::qualified_name);
        if text(toleration, "key").is_empty() && operator != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            out.push(FieldError::invalid(at.child("operator"), operator, why));
        }
        if number(toleration, "tolerationSeconds").is_some() && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            out.push(FieldError::invalid(at.child("effect"), effect, why));
        }
        match operator {
            "" | "Equal" => {
                let why = names::label_value(value);
                if !why.is_empty() {
                    out.push(FieldError::invalid(at.child("operator"), value, why.join(";")));
                }
            }
            "Exists" if !value.is_empty() => {
                let why = "value must be empty when `operator` is 'Exists'";
                out.push(FieldError::invalid(at.child("operator"), value, why));
            }
            "Exists" => {}
            "Lt" | "Gt" => {
                let known = ["Equal", "Exists", "Lt", "Gt"];
                out.push(FieldError::not_supported(at.child("operator"), operator, known));
            }
            other => out.push(FieldError::not_supported(at.child("operator"), other, ["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            optional_choice(out, toleration, "effect", at, EFFECTS);
        }
    }
}

/// What a taint does.
pub(super) const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// How pods are spread.
pub(super) fn spreading(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let at = &at.child("topologySpreadConstraints");
    let all = list(spec, "topologySpreadConstraints");
    let key = |constraint: &Value| {
        (text(constraint, "topologyKey").to_owned(), text(constraint, "whenUnsatisfiable").to_owned())
    };
    for (index, constraint) in all.iter().enumerate() {
        let at = &at.index(index);
        positive(out, count(constraint, "maxSkew"), &at.child("maxSkew"));
        topology_key(out, constraint, at);
        let action = text(constraint, "whenUnsatisfiable");
        if !matches!(action, "DoNotSchedule" | "ScheduleAnyway") {
            let known = ["DoNotSchedule", "ScheduleAnyway"];
            out.push(FieldError::not_supported(at.child("whenUnsatisfiable"), action, known));
        }
        if all[index + 1..].iter().any(|other| key(other) == key(constraint)) {
            let shown = format!("{{{}, {action}}}", text(constraint, "topologyKey"));
            out.push(FieldError::duplicate(at.child("{topologyKey, whenUnsatisfiable}"), shown));
        }
        if let Some(domains) = number(constraint, "minDomains") {
            let at = &at.child("minDomains");
            positive(out, domains, at);
            if action != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                out.push(FieldError::invalid(at, domains, why));
            }
        }
        optional_choice(out, constraint, "nodeAffinityPolicy", at, &["Honor", "Ignore"]);
        optional_choice(out, constraint, "nodeTaintsPolicy", at, &["Honor", "Ignore"]);
        label_selector(out, &constraint["labelSelector"], &at.child("labelSelector"));
        label_keys(out, constraint, "matchLabelKeys", at);
    }
}

/// Labels of the pod itself that the selector is to match as well.
fn label_keys(out: &mut Errors, term: &Value, field: &str, at: &At<'_>) {
    let at = &at.child(field);
    if list(term, field).is_empty() {
        return;
    }
    if !has(term, "labelSelector") {
        out.push(FieldError::forbidden(at, "must not be specified when labelSelector is not set"));
    }
    for (index, key) in strings(term, field).enumerate() {
        reasons(out, key, &at.index(index), names::qualified_name(key));
    }
}

fn positive(out: &mut Errors, value: i64, at: &At<'_>) {
    if value <= 0 {
        out.push(FieldError::invalid(at, value, "must be greater than zero"));
    }
}

/// What keeps a pod from being scheduled, and from being ready.
pub(super) fn gates(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let readiness = &at.child("readinessGates");
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let name = text(gate, "conditionType");
        reasons(out, name, &readiness.index(index).child("conditionType"), names::qualified_name(name));
    }
    let at = &at.child("schedulingGates");
    let mut known = BTreeSet::new();
    for (index, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        reasons(out, name, &at.index(index), names::qualified_name(name));
        if !known.insert(name) {
            out.push(FieldError::duplicate(at.index(index), name));
        }
    }
}
