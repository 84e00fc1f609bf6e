//! Horizontal pod autoscalers.

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, count, has, list, not_negative, number, reasons, text};
use super::resources::{self, quantity};

const SPEC: At<'static> = At::new("spec");
/// What metrics come from, and the field that tells more of it, in the order in which they are looked at.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];

/// A horizontal pod autoscaler.
pub(super) fn autoscaler(out: &mut Errors, object: &Value) {
    let spec = &object["spec"];
    let (least, most) = (number(spec, "minReplicas"), count(spec, "maxReplicas"));
    if let Some(least) = least.filter(|least| *least < 1) {
        out.push(FieldError::invalid(SPEC.child("minReplicas"), least, "must be greater than or equal to 1"));
    }
    let at = SPEC.child("maxReplicas");
    if most == 0 {
        out.push(FieldError::required(at, "must be set and greater than 0"));
    } else if most < 0 {
        out.push(FieldError::invalid(at, most, "must be greater than or equal to 1"));
    }
    if least.is_some_and(|least| most < least) {
        out.push(FieldError::invalid(at, most, "must be greater than or equal to `minReplicas`"));
    }
    // Nobody scales what is in the core group, but for replication controllers.
    reference(out, &spec["scaleTargetRef"], &SPEC.child("scaleTargetRef"), false);
    let metrics = &SPEC.child("metrics");
    for (index, metric) in list(spec, "metrics").iter().enumerate() {
        self::metric(out, metric, &metrics.index(index));
    }
    // The older form has one metric.
    if let Some(share) = number(spec, "targetCPUUtilizationPercentage").filter(|share| *share < 1) {
        let at = "spec.metrics[0].resource.target.averageUtilization";
        out.push(FieldError::invalid(at, share, "must be greater than 0"));
    }
    let scales_to_zero =
        list(spec, "metrics").iter().any(|one| matches!(text(one, "type"), "Object" | "External"));
    if least == Some(0) && !scales_to_zero {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        out.push(FieldError::forbidden(metrics, why));
    }
    let at = &SPEC.child("behavior");
    for direction in ["scaleUp", "scaleDown"] {
        rules(out, &spec["behavior"][direction], &at.child(direction));
    }
}

/// The status of an autoscaler.
pub(super) fn status(out: &mut Errors, new: &Value, _: &Value) {
    not_negative(out, &new["status"], &["currentReplicas", "desiredReplicas"], &At::new("status"));
}

fn reference(out: &mut Errors, target: &Value, at: &At<'_>, core: bool) {
    for field in ["kind", "name"] {
        let value = text(target, field);
        if value.is_empty() {
            out.push(FieldError::required(at.child(field), ""));
        } else {
            reasons(out, value, &at.child(field), names::path_segment_name(value, false));
        }
    }
    let version = text(target, "apiVersion");
    let why = match version.matches('/').count() {
        0 if core || (version == "v1" && text(target, "kind") == "ReplicationController") => return,
        0 => "apiVersion must specify API group".to_owned(),
        1 => return,
        _ => format!("unexpected GroupVersion string: {version}"),
    };
    out.push(FieldError::invalid(at.child("apiVersion"), version, why));
}

fn metric(out: &mut Errors, metric: &Value, at: &At<'_>) {
    let kind = text(metric, "type");
    let mut known = SOURCES.map(|(known, _)| known);
    known.sort_unstable();
    let wanted = SOURCES.iter().find(|(known, _)| *known == kind).map(|(_, field)| *field);
    if kind.is_empty() {
        out.push(FieldError::required(at.child("type"), "must specify a metric source type"));
    }
    if wanted.is_none() {
        out.push(FieldError::not_supported(at.child("type"), kind, known));
    }
    let present: Vec<&str> =
        SOURCES.map(|(_, field)| field).into_iter().filter(|field| has(metric, field)).collect();
    if let Some(first) = present.first() {
        source(out, first, &metric[*first], &at.child(first));
    }
    match wanted {
        Some(field) if !has(metric, field) => {
            let why = "must populate information for the given metric source";
            out.push(FieldError::required(at.child(field), why));
        }
        None => out.push(FieldError::not_supported(at.child("type"), kind, known)),
        Some(_) => {}
    }
    if present.len() != 1 {
        for field in present.iter().filter(|field| Some(**field) != wanted) {
            out.push(FieldError::forbidden(at.child(field), "must populate the given metric source only"));
        }
    }
}

fn source(out: &mut Errors, field: &str, source: &Value, at: &At<'_>) {
    let given = |name: &str| has(&source["target"], name);
    let goal = &at.child("target");
    match field {
        "object" => reference(out, &source["describedObject"], &at.child("describedObject"), true),
        "resource" | "containerResource" => {
            let name = text(source, "name");
            if name.is_empty() {
                out.push(FieldError::required(at.child("name"), "must specify a resource name"));
            } else if field == "containerResource" {
                resources::container_name(out, name, &at.child("name"));
            }
        }
        _ => {}
    }
    if field == "containerResource" {
        let name = text(source, "container");
        if name.is_empty() {
            out.push(FieldError::required(at.child("container"), "must specify a container"));
        } else {
            reasons(out, name, &at.child("container"), names::dns1123_label(name));
        }
    }
    if matches!(field, "object" | "external" | "pods") {
        let name = text(&source["metric"], "name");
        let inner = at.child("metric");
        if name.is_empty() {
            out.push(FieldError::required(inner.child("name"), "must specify a metric name"));
        } else {
            reasons(out, name, &inner.child("name"), names::path_segment_name(name, false));
        }
    }
    target(out, &source["target"], goal);
    let (value, average, share) = (given("value"), given("averageValue"), given("averageUtilization"));
    match field {
        "object" if !value && !average => out.push(FieldError::required(
            goal.child("averageValue"),
            "must set either a target value or averageValue",
        )),
        "external" if !value && !average => out.push(FieldError::required(
            goal.child("averageValue"),
            "must set either a target value for metric or a per-pod target",
        )),
        "external" if value && average => out.push(FieldError::forbidden(
            goal.child("value"),
            "may not set both a target value for metric and a per-pod target",
        )),
        "pods" if !average => out.push(FieldError::required(
            goal.child("averageValue"),
            "must specify a positive target averageValue",
        )),
        "resource" | "containerResource" if !share && !average => out.push(FieldError::required(
            goal.child("averageUtilization"),
            "must set either a target raw value or a target utilization",
        )),
        "resource" | "containerResource" if share && average => out.push(FieldError::forbidden(
            goal.child("averageValue"),
            "may not set both a target raw value and a target utilization",
        )),
        _ => {}
    }
}

fn target(out: &mut Errors, target: &Value, at: &At<'_>) {
    let kind = text(target, "type");
    if kind.is_empty() {
        out.push(FieldError::required(at.child("type"), "must specify a metric target type"));
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let why = "must be either Utilization, Value, or AverageValue";
        out.push(FieldError::invalid(at.child("type"), kind, why));
    }
    for field in ["value", "averageValue"] {
        if quantity(&target[field]).is_some_and(|amount| amount.sign() != 1) {
            out.push(FieldError::invalid(at.child(field), &target[field], "must be positive"));
        }
    }
    if let Some(share) = number(target, "averageUtilization").filter(|share| *share < 1) {
        out.push(FieldError::invalid(at.child("averageUtilization"), share, "must be greater than 0"));
    }
}

fn rules(out: &mut Errors, rules: &Value, at: &At<'_>) {
    const WINDOW: i64 = 3600;
    const PERIOD: i64 = 1800;
    if rules.is_null() {
        return;
    }
    let window = number(rules, "stabilizationWindowSeconds").unwrap_or_default();
    let inner = at.child("stabilizationWindowSeconds");
    if window < 0 {
        out.push(FieldError::invalid(inner, window, "must be greater than or equal to zero"));
    }
    if window > WINDOW {
        out.push(FieldError::invalid(inner, window, format!("must be less than or equal to {WINDOW}")));
    }
    if let Some(policy) =
        rules["selectPolicy"].as_str().filter(|policy| !matches!(*policy, "Max" | "Min" | "Disabled"))
    {
        out.push(FieldError::not_supported(at.child("selectPolicy"), policy, ["Disabled", "Max", "Min"]));
    }
    let policies = &at.child("policies");
    if list(rules, "policies").is_empty() {
        out.push(FieldError::required(policies, "must specify at least one Policy"));
    }
    for (index, policy) in list(rules, "policies").iter().enumerate() {
        let at = &policies.index(index);
        let kind = text(policy, "type");
        if !matches!(kind, "Pods" | "Percent") {
            out.push(FieldError::not_supported(at.child("type"), kind, ["Percent", "Pods"]));
        }
        for field in ["value", "periodSeconds"] {
            let value = count(policy, field);
            if value <= 0 {
                out.push(FieldError::invalid(at.child(field), value, "must be greater than zero"));
            }
        }
        let period = count(policy, "periodSeconds");
        if period > PERIOD {
            let why = format!("must be less than or equal to {PERIOD}");
            out.push(FieldError::invalid(at.child("periodSeconds"), period, why));
        }
    }
    if quantity(&rules["tolerance"]).is_some_and(|tolerance| tolerance.sign() < 0) {
        let why = "must be greater than or equal to 0";
        out.push(FieldError::invalid(at.child("tolerance"), &rules["tolerance"], why));
    }
}
