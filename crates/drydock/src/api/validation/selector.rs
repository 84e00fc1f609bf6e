//! `LabelSelector`, and templates that a selector has to match.

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;
use windlass_machinery::selector::Labels;

use super::field::{At, Errors, has, labels, list, reasons, strings, text};
use super::internal;

/// What is wrong with a label selector; none at all is right.
pub(super) fn label_selector(out: &mut Errors, selector: &Value, at: &At<'_>) {
    labels(out, selector, "matchLabels", at);
    let at = &at.child("matchExpressions");
    for (index, requirement) in list(selector, "matchExpressions").iter().enumerate() {
        self::requirement(out, requirement, &at.index(index));
    }
}

fn requirement(out: &mut Errors, requirement: &Value, at: &At<'_>) {
    let values = list(requirement, "values");
    match text(requirement, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            out.push(FieldError::required(at.child("values"), why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            out.push(FieldError::forbidden(at.child("values"), why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            out.push(FieldError::invalid(at.child("operator"), other, "not a valid selector operator"));
        }
    }
    let key = text(requirement, "key");
    reasons(out, key, &at.child("key"), names::qualified_name(key));
    let at = &at.child("values");
    for (index, value) in strings(requirement, "values").enumerate() {
        reasons(out, value, &at.index(index), names::label_value(value));
    }
}

/// What a workload demands of its selector: that it is there, valid and not empty (`kind` names the workload).
pub(super) fn of_workload(out: &mut Errors, spec: &Value, at: &At<'_>, kind: &str) {
    let selector = &spec["selector"];
    let at = at.child("selector");
    if selector.is_null() {
        out.push(FieldError::required(at, ""));
        return;
    }
    label_selector(out, selector, &at);
    not_empty(out, selector, &at, kind);
}

/// A selector that selects everything is not for a workload.
pub(super) fn not_empty(out: &mut Errors, selector: &Value, at: &At<'_>, kind: &str) {
    let empty = |field: &str| selector[field].as_object().is_none_or(serde_json::Map::is_empty);
    if !selector.is_null() && empty("matchLabels") && list(selector, "matchExpressions").is_empty() {
        let shown = internal::shown("LabelSelector", selector);
        out.push(FieldError::invalid(at, shown, format!("empty selector is invalid for {kind}")));
    }
}

/// The selector as one that matches; nothing where it makes no sense.
pub(super) fn read(selector: &Value) -> Option<Labels> {
    Labels::from_object(Some(selector).filter(|selector| !selector.is_null())).ok()
}

/// The selector has to match the labels of the template.
pub(super) fn matches_template(out: &mut Errors, selector: &Labels, template: &Value, at: &At<'_>) {
    if selector.is_everything() {
        return;
    }
    let labels = &template["metadata"]["labels"];
    if !selector.matches_map(labels.as_object()) {
        let shown = if has(&template["metadata"], "labels") { labels } else { &Value::Null };
        out.push(FieldError::invalid(
            at.child("metadata").child("labels"),
            shown,
            "`selector` does not match template `labels`",
        ));
    }
}
