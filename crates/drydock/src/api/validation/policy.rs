//! Admission policies and their bindings, but for the expressions: [`super::super::admission`] compiles those.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_machinery::invalid::{FieldError, Path};
use windlass_machinery::names;

use super::super::admission::policy::{check_binding, check_condition, check_mutations, check_policy};
use super::field::{At, Errors, has, list, reasons, strings, text};
use super::selector::label_selector;
use super::webhook;

const SPEC: At<'static> = At::new("spec");

/// A policy.
pub(super) fn policy(out: &mut Errors, policy: &Value) {
    let spec = &policy["spec"];
    around(out, spec, false);
    check_policy(out, policy);
    let name = text(&policy["metadata"], "name");
    let at = &SPEC.child("auditAnnotations");
    let mut known = BTreeSet::new();
    for (index, annotation) in list(spec, "auditAnnotations").iter().enumerate() {
        let at = &at.index(index);
        let key = text(annotation, "key");
        let whole = format!("{name}/{key}");
        if name.is_empty() {
            out.push(FieldError::invalid(at.child("key"), key, "requires metadata.name be non-empty"));
        } else {
            reasons(out, &whole, &at.child("key"), names::qualified_name(&whole));
        }
        if !known.insert(key) {
            out.push(FieldError::duplicate(at.child("key"), key));
        }
    }
}

/// A policy that changes objects.
pub(super) fn mutating_policy(out: &mut Errors, policy: &Value) {
    let spec = &policy["spec"];
    around(out, spec, true);
    let at = &SPEC.child("matchConstraints");
    let rules = list(&spec["matchConstraints"], "resourceRules");
    if !has(spec, "matchConstraints") {
        out.push(FieldError::required(at, ""));
    } else if rules.is_empty() {
        out.push(FieldError::required(at.child("resourceRules"), ""));
    }
    mutable_operations(out, &spec["matchConstraints"], at);
    let at = &SPEC.child("mutations");
    if list(spec, "mutations").is_empty() {
        out.push(FieldError::required(at, "mutations must contain at least one item"));
    }
    for (index, mutation) in list(spec, "mutations").iter().enumerate() {
        self::mutation(out, mutation, &at.index(index));
    }
    check_mutations(out, policy);
    let (policy, at) = (text(spec, "reinvocationPolicy"), SPEC.child("reinvocationPolicy"));
    match policy {
        "" => out.push(FieldError::required(at, "")),
        "IfNeeded" | "Never" => {}
        other => out.push(FieldError::not_supported(at, other, ["IfNeeded", "Never"])),
    }
}

/// What is deleted is not changed any more.
fn mutable_operations(out: &mut Errors, matched: &Value, at: &At<'_>) {
    let at = &at.child("resourceRules");
    for operation in list(matched, "resourceRules").iter().flat_map(|rule| strings(rule, "operations")) {
        if !matches!(operation, "CONNECT" | "CREATE" | "UPDATE" | "*") {
            let known = ["*", "CONNECT", "CREATE", "UPDATE"];
            out.push(FieldError::not_supported(at.child("operations"), operation, known));
        }
    }
}

fn mutation(out: &mut Errors, mutation: &Value, at: &At<'_>) {
    const KINDS: [(&str, &str); 2] =
        [("ApplyConfiguration", "applyConfiguration"), ("JSONPatch", "jsonPatch")];
    let kind = text(mutation, "patchType");
    if kind.is_empty() {
        out.push(FieldError::required(at.child("patchType"), ""));
        return;
    }
    if !KINDS.iter().any(|(known, _)| *known == kind) {
        out.push(FieldError::not_supported(at.child("patchType"), kind, KINDS.map(|(known, _)| known)));
        return;
    }
    for (known, field) in KINDS {
        let inner = &at.child(field);
        if known != kind && has(mutation, field) {
            let why = format!("must not be specified when patchType is {kind}");
            out.push(FieldError::invalid(inner, format!("{{{field}}}"), why));
        }
        if known != kind {
            continue;
        }
        if !has(mutation, field) {
            out.push(FieldError::required(inner, format!("must be specified when patchType is {kind}")));
        } else if text(&mutation[field], "expression").trim().is_empty() {
            out.push(FieldError::required(inner.child("expression"), ""));
        }
    }
}

/// What both kinds of policies have: when they are for an object, and what happens when they fail.
fn around(out: &mut Errors, spec: &Value, mutates: bool) {
    let (failure, at) = (spec["failurePolicy"].as_str(), SPEC.child("failurePolicy"));
    match failure {
        None => out.push(FieldError::required(at, "")),
        Some("Fail" | "Ignore") => {}
        Some(other) => out.push(FieldError::not_supported(at, other, ["Fail", "Ignore"])),
    }
    if has(spec, "paramKind") {
        param_kind(out, &spec["paramKind"], &SPEC.child("paramKind"));
    }
    if has(spec, "matchConstraints") {
        match_resources(out, &spec["matchConstraints"], &SPEC.child("matchConstraints"));
    }
    let at = &SPEC.child("matchConditions");
    let conditions = list(spec, "matchConditions");
    if conditions.len() > 64 {
        out.push(FieldError::too_many(at, conditions.len(), 64));
    }
    let mut known = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let (name, at) = (text(condition, "name"), at.index(index));
        if mutates && name.is_empty() {
            out.push(FieldError::required(at.child("name"), ""));
        }
        if mutates {
            let place = Path::new(at.child("expression").to_string());
            check_condition(out, text(condition, "expression"), has(spec, "paramKind"), &place);
        }
        if name.is_empty() {
            continue;
        }
        reasons(out, name, &at.child("name"), names::qualified_name(name));
        if !known.insert(name) {
            out.push(FieldError::duplicate(at.child("name"), name));
        }
    }
}

fn param_kind(out: &mut Errors, kind: &Value, at: &At<'_>) {
    let (version, inner) = (text(kind, "apiVersion"), at.child("apiVersion"));
    let parts: Vec<&str> = version.split('/').collect();
    let (group, number) = match parts.as_slice() {
        [number] => ("", *number),
        [group, number] => (*group, *number),
        _ => ("", ""),
    };
    if version.is_empty() {
        out.push(FieldError::required(inner, ""));
    } else if parts.len() > 2 {
        out.push(FieldError::invalid(inner, version, format!("unexpected GroupVersion string: {version}")));
    } else {
        let why = names::dns1123_subdomain(group);
        if !group.is_empty() && !why.is_empty() {
            out.push(FieldError::invalid(inner, group, why.join(",")));
        }
        let why = names::dns1035_label(number);
        if number.is_empty() {
            out.push(FieldError::invalid(inner, version, "version must be specified"));
        } else if !why.is_empty() {
            out.push(FieldError::invalid(inner, number, why.join(",")));
        }
    }
    let (name, inner) = (text(kind, "kind"), at.child("kind"));
    let why = names::dns1035_label(&name.to_lowercase());
    if name.is_empty() {
        out.push(FieldError::required(inner, ""));
    } else if !why.is_empty() {
        let why = format!("may have mixed case, but should otherwise match: {}", why.join(","));
        out.push(FieldError::invalid(inner, name, why));
    }
}

fn match_resources(out: &mut Errors, matched: &Value, at: &At<'_>) {
    let (policy, inner) = (matched["matchPolicy"].as_str(), at.child("matchPolicy"));
    match policy {
        None => out.push(FieldError::required(inner, "")),
        Some("Exact" | "Equivalent") => {}
        Some(other) => out.push(FieldError::not_supported(inner, other, ["Equivalent", "Exact"])),
    }
    for field in ["namespaceSelector", "objectSelector"] {
        label_selector(out, &matched[field], &at.child(field));
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        let at = &at.child(field);
        for (index, rule) in list(matched, field).iter().enumerate() {
            let at = &at.index(index);
            let inner = &at.child("resourceNames");
            let mut known = BTreeSet::new();
            for (index, name) in strings(rule, "resourceNames").enumerate() {
                reasons(out, name, &inner.index(index), names::path_segment_name(name, false));
                if !known.insert(name) {
                    out.push(FieldError::duplicate(inner.index(index), name));
                }
            }
            webhook::rule(out, rule, at);
        }
    }
}

/// A binding of a policy.
pub(super) fn binding(out: &mut Errors, binding: &Value) {
    bound(out, binding);
    check_binding(out, binding);
    let at = &SPEC.child("validationActions");
    let mut known = BTreeSet::new();
    for (index, action) in strings(&binding["spec"], "validationActions").enumerate() {
        if !known.insert(action) {
            out.push(FieldError::duplicate(at.index(index), action));
        }
    }
}

/// A binding of a policy that changes objects.
pub(super) fn mutating_binding(out: &mut Errors, binding: &Value) {
    if text(&binding["spec"], "policyName").is_empty() {
        out.push(FieldError::required(SPEC.child("policyName"), ""));
    }
    bound(out, binding);
    mutable_operations(out, &binding["spec"]["matchResources"], &SPEC.child("matchResources"));
}

fn bound(out: &mut Errors, binding: &Value) {
    let spec = &binding["spec"];
    let (name, at) = (text(spec, "policyName"), &SPEC.child("policyName"));
    if !name.is_empty() {
        reasons(out, name, at, names::subdomain_name(name, false));
    }
    if has(spec, "paramRef") {
        param_ref(out, &spec["paramRef"], &SPEC.child("paramRef"));
    }
    if has(spec, "matchResources") {
        match_resources(out, &spec["matchResources"], &SPEC.child("matchResources"));
    }
}

fn param_ref(out: &mut Errors, reference: &Value, at: &At<'_>) {
    let (name, selects) = (text(reference, "name"), has(reference, "selector"));
    if !name.is_empty() {
        reasons(out, name, &at.child("name"), names::path_segment_name(name, false));
    }
    label_selector(out, &reference["selector"], &at.child("selector"));
    if !name.is_empty() && selects {
        for field in ["name", "selector"] {
            out.push(FieldError::forbidden(at.child(field), "name and selector are mutually exclusive"));
        }
    }
    if name.is_empty() && !selects {
        out.push(FieldError::required(at, "one of name or selector must be specified"));
    }
    let (action, inner) = (text(reference, "parameterNotFoundAction"), at.child("parameterNotFoundAction"));
    match action {
        "" => out.push(FieldError::required(inner, "")),
        "Allow" | "Deny" => {}
        other => out.push(FieldError::not_supported(inner, other, ["Deny", "Allow"])),
    }
}
