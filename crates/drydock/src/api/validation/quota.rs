//! Resource quotas and limit ranges.

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, entries, has, list, reasons, strings, text};
use super::resources::{self, quantity};

const SPEC: At<'static> = At::new("spec");

/// A limit range.
pub(super) fn limit_range(out: &mut Errors, range: &Value) {
    let at = &SPEC.child("limits");
    let mut known: Vec<&str> = Vec::new();
    for (index, limit) in list(&range["spec"], "limits").iter().enumerate() {
        let at = &at.index(index);
        let kind = text(limit, "type");
        let why = names::qualified_name(kind);
        if !why.is_empty() {
            reasons(out, kind, &at.child("type"), why);
        } else if !kind.contains('/') && !matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim") {
            let why = "must be a standard limit type or fully qualified";
            out.push(FieldError::invalid(at.child("type"), kind, why));
        }
        if known.contains(&kind) {
            out.push(FieldError::duplicate(at.child("type"), kind));
        }
        known.push(kind);
        limit_item(out, limit, kind, at);
    }
}

fn limit_item(out: &mut Errors, limit: &Value, kind: &str, at: &At<'_>) {
    let mut keys: Vec<&str> = Vec::new();
    for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        if kind == "PersistentVolumeClaim" && field == "maxLimitRequestRatio" {
            let bounded = has(&limit["min"], "storage") || has(&limit["max"], "storage");
            if !bounded {
                let why = "either minimum or maximum storage value is required, but neither was provided";
                out.push(FieldError::required(at.child("limits"), why));
            }
        }
        let at = &at.child(field);
        if kind == "Pod" && matches!(field, "default" | "defaultRequest") {
            if has(limit, field) {
                out.push(FieldError::forbidden(at, "may not be specified when `type` is 'Pod'"));
            }
            continue;
        }
        for (name, _) in entries(limit, field) {
            match kind {
                "Pod" | "Container" => resources::container_name(out, name, &at.key(name)),
                _ => resources::name(out, name, &at.key(name)),
            }
            if !keys.contains(&name.as_str()) {
                keys.push(name);
            }
        }
    }
    for key in keys {
        limit_bounds(out, limit, key, at);
    }
}

fn limit_bounds(out: &mut Errors, limit: &Value, key: &str, at: &At<'_>) {
    let of = |field: &str| quantity(&limit[field][key]);
    let (min, max) = (of("min"), of("max"));
    let (default, request, ratio) = (of("default"), of("defaultRequest"), of("maxLimitRequestRatio"));
    // Each row: what is too great for what, where it is said, and which of the two is shown.
    let rows = [
        (&min, "min value", &max, "max value", "min", true),
        (&min, "min value", &request, "default request value", "defaultRequest", false),
        (&request, "default request value", &max, "max value", "defaultRequest", true),
        (&request, "default request value", &default, "default limit value", "defaultRequest", true),
        (&min, "min value", &default, "default value", "default", true),
        (&default, "default value", &max, "max value", "default", false),
    ];
    for (less, less_name, more, more_name, field, shows_less) in rows {
        if let (Some(less), Some(more)) = (less, more)
            && less > more
        {
            let shown = if shows_less { less } else { more };
            let why = format!("{less_name} {less} is greater than {more_name} {more}");
            out.push(FieldError::invalid(at.child(field).key(key), shown.to_string(), why));
        }
    }
    if let Some(ratio) = &ratio {
        let at = at.child("maxLimitRequestRatio");
        if ratio.milli_value() < 1000 {
            out.push(FieldError::invalid(
                at.key(key),
                ratio.to_string(),
                format!("ratio {ratio} is less than 1"),
            ));
        }
        if let (Some(min), Some(max)) = (&min, &max) {
            let widest = max.milli_value() as f64 / min.milli_value() as f64;
            if ratio.milli_value() as f64 / 1000.0 > widest {
                let why = format!("ratio {ratio} is greater than max/min = {widest:.6}");
                out.push(FieldError::invalid(at.key(key), ratio.to_string(), why));
            }
        }
    }
    if let (Some(default), Some(request), false) = (&default, &request, resources::overcommits(key))
        && default != request
    {
        let why = format!("default value {default} must equal to defaultRequest value {request} in {key}");
        out.push(FieldError::invalid(at.child("defaultRequest").key(key), request.to_string(), why));
    }
}

/// A resource quota.
pub(super) fn quota(out: &mut Errors, quota: &Value) {
    amounts(out, &quota["spec"], "hard", &SPEC);
    quota_scopes(out, &quota["spec"]);
}

/// A changed resource quota.
pub(super) fn quota_update(out: &mut Errors, new: &Value, old: &Value) {
    self::quota(out, new);
    let scopes = |object: &Value| {
        let mut scopes: Vec<String> = strings(&object["spec"], "scopes").map(ToOwned::to_owned).collect();
        scopes.sort();
        scopes.dedup();
        scopes
    };
    if scopes(new) != scopes(old) {
        out.push(FieldError::invalid(SPEC.child("scopes"), &new["spec"]["scopes"], "field is immutable"));
    }
}

/// The status of a resource quota.
pub(super) fn quota_status(out: &mut Errors, new: &Value, _: &Value) {
    let at = At::new("status");
    amounts(out, &new["status"], "hard", &at);
    amounts(out, &new["status"], "used", &at);
}

fn amounts(out: &mut Errors, object: &Value, field: &str, at: &At<'_>) {
    let at = &at.child(field);
    for (name, value) in entries(object, field) {
        resources::quota_name(out, name, &at.key(name));
        resources::amount(out, name, value, &at.key(name));
    }
}

fn quota_scopes(out: &mut Errors, spec: &Value) {
    const KNOWN: [&str; 7] = [
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "VolumeAttributesClass",
        "CrossNamespacePodAffinity",
    ];
    let at = &SPEC.child("scopes");
    let fits = |scope: &str, name: &str| match scope {
        "BestEffort" => name == "pods",
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => {
            name == "pods" || (resources::is_computing(name) && !name.contains("storage"))
        }
        _ => true,
    };
    let conflicts = |scopes: &[&str]| {
        [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]]
            .iter()
            .filter(|pair| pair.iter().all(|scope| scopes.contains(scope)))
            .count()
    };
    let scopes: Vec<&str> = strings(spec, "scopes").collect();
    for scope in &scopes {
        if !KNOWN.contains(scope) {
            out.push(FieldError::invalid(at, &spec["scopes"], "unsupported scope"));
        }
        for (name, _) in entries(spec, "hard").filter(|(name, _)| resources::is_quota(name)) {
            if !fits(scope, name) {
                out.push(FieldError::invalid(at, &spec["scopes"], "unsupported scope applied to resource"));
            }
        }
    }
    for _ in 0..conflicts(&scopes) {
        out.push(FieldError::invalid(at, &spec["scopes"], "conflicting scopes"));
    }
    let at = &SPEC.child("scopeSelector");
    let at = &at.child("matchExpressions");
    for requirement in list(&spec["scopeSelector"], "matchExpressions") {
        let (scope, operator) = (text(requirement, "scopeName"), text(requirement, "operator"));
        if !KNOWN.contains(&scope) {
            out.push(FieldError::invalid(at.child("scopeName"), scope, "unsupported scope"));
        }
        let plain = !matches!(scope, "PriorityClass" | "VolumeAttributesClass") && KNOWN.contains(&scope);
        if plain && operator != "Exists" {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            out.push(FieldError::invalid(at.child("operator"), operator, why));
        }
        let values = list(requirement, "values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                out.push(FieldError::required(at.child("values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                out.push(FieldError::invalid(at.child("values"), &requirement["values"], why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                out.push(FieldError::invalid(at.child("operator"), other, "not a valid selector operator"));
            }
        }
    }
}
