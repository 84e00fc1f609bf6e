//! Events, in the words of both groups that have them.

use serde_json::{Value, json};
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, has, immutable, immutable_as, reasons, text};
use super::internal;

/// An event of the core group.
pub(super) fn old(out: &mut Errors, event: &Value) {
    event_of(out, event, "reportingComponent", "involvedObject");
}

/// An event of the events group.
pub(super) fn new(out: &mut Errors, event: &Value) {
    event_of(out, event, "reportingController", "regarding");
    series(out, event);
    if !has(event, "eventTime") {
        out.push(FieldError::required("eventTime", ""));
    }
    let kind = text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        out.push(FieldError::invalid("type", "", format!("has invalid value: {kind}")));
    }
    for (field, shown) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
    ] {
        if has(event, field) && event[field] != 0 {
            out.push(FieldError::invalid(shown, "", "needs to be unset"));
        }
    }
    let source = &event["deprecatedSource"];
    if !text(source, "component").is_empty() || !text(source, "host").is_empty() {
        out.push(FieldError::invalid("source", "", "needs to be unset"));
    }
}

/// A changed event of the events group: only the series goes on.
pub(super) fn update(out: &mut Errors, new: &Value, old: &Value) {
    event_of(out, new, "reportingController", "regarding");
    if new["series"] != old["series"] {
        series(out, new);
    }
    for (field, shown) in [("regarding", "involvedObject"), ("related", "related")] {
        let one = |event: &Value| match (field, &event[field]) {
            ("regarding", Value::Null) => serde_json::json!({}),
            (_, value) => value.clone(),
        };
        immutable_as(out, &one(new), &one(old), &At::new(shown), |value| {
            internal::shown("ObjectReference", value)
        });
    }
    for (field, shown) in [
        ("reason", "reason"),
        ("note", "message"),
        ("reason", "reason"),
        ("type", "type"),
        ("action", "action"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        immutable(out, &text(new, field).into(), &text(old, field).into(), &At::new(shown));
    }
    for (field, shown) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("eventTime", "eventTime"),
    ] {
        immutable(out, &new[field], &old[field], &At::new(shown));
    }
    let source = |event: &Value| {
        let source = &event["deprecatedSource"];
        json!({"Component": text(source, "component"), "Host": text(source, "host")})
    };
    immutable(out, &source(new), &source(old), &At::new("source"));
    let times = |event: &Value| Value::from(event["deprecatedCount"].as_i64().unwrap_or_default());
    immutable(out, &times(new), &times(old), &At::new("count"));
}

fn series(out: &mut Errors, event: &Value) {
    let series = &event["series"];
    if series.is_null() {
        return;
    }
    if series["count"].as_i64().unwrap_or_default() < 2 {
        out.push(FieldError::invalid("series.count", "", "should be at least 2"));
    }
    if !has(series, "lastObservedTime") {
        out.push(FieldError::required("series.lastObservedTime", ""));
    }
}

fn event_of(out: &mut Errors, event: &Value, controller: &str, object: &str) {
    let own = text(&event["metadata"], "namespace");
    let about = text(&event[object], "namespace");
    let timed = has(event, "eventTime");
    let wrong = match (timed, about.is_empty()) {
        (false, true) => own != "default",
        (false, false) => own != about,
        (true, true) => own != "default" && own != "kube-system",
        (true, false) => false,
    };
    if wrong {
        out.push(FieldError::invalid("involvedObject.namespace", about, "does not match event.namespace"));
    }
    if !timed {
        return;
    }
    let name = text(event, controller);
    if name.is_empty() {
        out.push(FieldError::required(controller, ""));
    }
    reasons(out, name, &At::new(controller), names::qualified_name(name));
    for (field, most) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
        if text(event, field).is_empty() {
            out.push(FieldError::required(field, ""));
        } else if text(event, field).len() > most {
            out.push(FieldError::invalid(field, "", format!("can have at most {most} characters")));
        }
    }
    let note = if controller == "reportingComponent" { "message" } else { "note" };
    if text(event, note).len() > 1024 {
        out.push(FieldError::invalid("message", "", "can have at most 1024 characters"));
    }
}
