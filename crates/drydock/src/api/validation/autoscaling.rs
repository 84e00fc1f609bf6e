//! Horizontal pod autoscalers, and the classes that runtimes have.

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, immutable, list, reasons, text};

const SPEC: At<'static> = At::new("spec");

/// A horizontal pod autoscaler.
pub(super) fn autoscaler(out: &mut Errors, object: &Value) {
    let spec = &object["spec"];
    let number = |field: &str| spec[field].as_i64();
    let (least, most) = (number("minReplicas"), number("maxReplicas").unwrap_or(0));
    if let Some(least) = least.filter(|least| *least < 1) {
        out.push(FieldError::invalid(SPEC.child("minReplicas"), least, "must be greater than or equal to 1"));
    }
    if most < 1 {
        out.push(FieldError::required(SPEC.child("maxReplicas"), "must be set and greater than 0"));
    }
    if least.is_some_and(|least| most < least) {
        let why = "must be greater than or equal to `minReplicas`";
        out.push(FieldError::invalid(SPEC.child("maxReplicas"), most, why));
    }
    reference(out, &spec["scaleTargetRef"], &SPEC.child("scaleTargetRef"));
    for (index, metric) in list(spec, "metrics").iter().enumerate() {
        one_metric(out, metric, &SPEC.child("metrics").index(index));
    }
    let scales_to_zero =
        list(spec, "metrics").iter().any(|one| matches!(text(one, "type"), "Object" | "External"));
    if least == Some(0) && !scales_to_zero {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        out.push(FieldError::forbidden(SPEC.child("metrics"), why));
    }
}

fn reference(out: &mut Errors, target: &Value, at: &At<'_>) {
    for field in ["kind", "name"] {
        let value = text(target, field);
        if value.is_empty() {
            out.push(FieldError::required(at.child(field), ""));
        } else {
            reasons(out, value, &at.child(field), names::path_segment_name(value, false));
        }
    }
    let version = text(target, "apiVersion");
    if version.is_empty() {
        out.push(FieldError::invalid(at.child("apiVersion"), version, "apiVersion must specify API group"));
    }
}

fn one_metric(out: &mut Errors, metric: &Value, at: &At<'_>) {
    const KINDS: [(&str, &str); 5] = [
        ("ContainerResource", "containerResource"),
        ("External", "external"),
        ("Object", "object"),
        ("Pods", "pods"),
        ("Resource", "resource"),
    ];
    let kind = text(metric, "type");
    if kind.is_empty() {
        out.push(FieldError::required(at.child("type"), "must specify a metric source type"));
        return;
    }
    let Some((_, field)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        let known = KINDS.map(|(known, _)| known);
        out.push(FieldError::not_supported(at.child("type"), kind, known));
        return;
    };
    if metric[*field].is_null() {
        let why = "must populate information for the given metric source";
        out.push(FieldError::required(at.child(field), why));
    }
}

/// A runtime class.
pub(super) fn runtime_class(out: &mut Errors, class: &Value) {
    let handler = text(class, "handler");
    reasons(out, handler, &At::new("handler"), names::dns1123_label(handler));
}

/// A runtime class keeps its handler.
pub(super) fn runtime_class_update(out: &mut Errors, new: &Value, old: &Value) {
    immutable(out, &new["handler"], &old["handler"], &At::new("handler"));
}
