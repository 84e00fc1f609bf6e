//! Webhook configurations.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_machinery::invalid::{FieldError, Path};
use windlass_machinery::names;

use super::super::admission::policy::check_condition;
use super::field::{At, Errors, has, list, number, optional_choice, reasons, required, strings, text};
use super::selector::label_selector;

/// A configuration of webhooks that only look.
pub(super) fn validating(out: &mut Errors, configuration: &Value) {
    webhooks(out, configuration, false);
}

/// A configuration of webhooks that change what they see.
pub(super) fn mutating(out: &mut Errors, configuration: &Value) {
    webhooks(out, configuration, true);
}

fn webhooks(out: &mut Errors, configuration: &Value, mutating: bool) {
    let at = &At::new("webhooks");
    let mut known = BTreeSet::new();
    for (index, hook) in list(configuration, "webhooks").iter().enumerate() {
        let at = &at.index(index);
        webhook(out, hook, mutating, at);
        versions(out, hook, &at.child("admissionReviewVersions"));
        let name = text(hook, "name");
        if !name.is_empty() && !known.insert(name) {
            out.push(FieldError::duplicate(at.child("name"), name));
        }
    }
}

fn webhook(out: &mut Errors, hook: &Value, mutating: bool, at: &At<'_>) {
    qualified(out, text(hook, "name"), &at.child("name"));
    let rules = &at.child("rules");
    for (index, rule) in list(hook, "rules").iter().enumerate() {
        self::rule(out, rule, &rules.index(index));
    }
    optional_choice(out, hook, "failurePolicy", at, &["Fail", "Ignore"]);
    optional_choice(out, hook, "matchPolicy", at, &["Equivalent", "Exact"]);
    if !has(hook, "sideEffects") {
        out.push(FieldError::required(at.child("sideEffects"), "must specify one of None, NoneOnDryRun"));
    }
    optional_choice(out, hook, "sideEffects", at, &["None", "NoneOnDryRun"]);
    if let Some(seconds) = number(hook, "timeoutSeconds").filter(|seconds| !(1..=30).contains(seconds)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        out.push(FieldError::invalid(at.child("timeoutSeconds"), seconds, why));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        label_selector(out, &hook[field], &at.child(field));
    }
    if mutating {
        optional_choice(out, hook, "reinvocationPolicy", at, &["IfNeeded", "Never"]);
    }
    client(out, &hook["clientConfig"], &at.child("clientConfig"));
    conditions(out, hook, &at.child("matchConditions"));
}

fn qualified(out: &mut Errors, name: &str, at: &At<'_>) {
    let why = names::dns1123_subdomain(name);
    if name.is_empty() {
        out.push(FieldError::required(at, ""));
    } else if !why.is_empty() {
        out.push(FieldError::invalid(at, name, why.join(",")));
    } else if name.split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        out.push(FieldError::invalid(at, name, why));
    }
}

/// What a rule is about.
pub(super) fn rule(out: &mut Errors, rule: &Value, at: &At<'_>) {
    const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    not_with_others(out, rule, "operations", "operations", at);
    let inner = &at.child("operations");
    for (index, operation) in strings(rule, "operations").enumerate() {
        if !OPERATIONS.contains(&operation) {
            out.push(FieldError::not_supported(inner.index(index), operation, OPERATIONS));
        }
    }
    not_with_others(out, rule, "apiGroups", "API groups", at);
    not_with_others(out, rule, "apiVersions", "API versions", at);
    let inner = &at.child("apiVersions");
    for (index, _) in strings(rule, "apiVersions").enumerate().filter(|(_, version)| version.is_empty()) {
        out.push(FieldError::required(inner.index(index), ""));
    }
    resources(out, rule, &at.child("resources"));
    optional_choice(out, rule, "scope", at, &["*", "Cluster", "Namespaced"]);
}

/// A list that is not empty, and in which `*` stands alone.
fn not_with_others(out: &mut Errors, rule: &Value, field: &str, what: &str, at: &At<'_>) {
    let at = at.child(field);
    match list(rule, field).len() {
        0 => out.push(FieldError::required(at, "")),
        1 => {}
        _ if strings(rule, field).any(|value| value == "*") => {
            let why = format!("if '*' is present, must not specify other {what}");
            out.push(FieldError::invalid(at, &rule[field], why));
        }
        _ => {}
    }
}

fn resources(out: &mut Errors, rule: &Value, at: &At<'_>) {
    let all: Vec<&str> = strings(rule, "resources").collect();
    if all.is_empty() {
        out.push(FieldError::required(at, ""));
    }
    let (mut whole, mut everywhere) = (BTreeSet::new(), BTreeSet::new());
    let mut plain = false;
    for (index, name) in all.iter().enumerate() {
        let at = at.index(index);
        if name.is_empty() {
            out.push(FieldError::required(at, ""));
            continue;
        }
        let Some((resource, sub)) = name.split_once('/') else {
            plain = *name != "*";
            continue;
        };
        if whole.contains(resource) {
            let why = format!("if '{resource}/*' is present, must not specify {name}");
            out.push(FieldError::invalid(at, *name, why));
        }
        if everywhere.contains(sub) {
            let why = format!("if '*/{sub}' is present, must not specify {name}");
            out.push(FieldError::invalid(at, *name, why));
        }
        if sub == "*" {
            whole.insert(resource);
        }
        if resource == "*" {
            everywhere.insert(sub);
        }
    }
    if all.len() > 1 && all.contains(&"*/*") {
        let why = "if '*/*' is present, must not specify other resources";
        out.push(FieldError::invalid(at, &rule["resources"], why));
    }
    if all.contains(&"*") && plain {
        let why = "if '*' is present, must not specify other resources without subresources";
        out.push(FieldError::invalid(at, &rule["resources"], why));
    }
}

fn client(out: &mut Errors, client: &Value, at: &At<'_>) {
    match (client["url"].as_str(), has(client, "service")) {
        (None, false) | (Some(_), true) => {
            out.push(FieldError::required(at, "exactly one of url or service is required"));
        }
        (Some(url), false) => self::url(out, url, &at.child("url")),
        (None, true) => service(out, &client["service"], &at.child("service")),
    }
}

fn url(out: &mut Errors, url: &str, at: &At<'_>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", rest));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme{FORM}");
        out.push(FieldError::invalid(at, scheme, why));
    }
    if host.is_empty() {
        out.push(FieldError::invalid(at, host, format!("host must be specified{FORM}")));
    }
    if let Some(user) = user {
        out.push(FieldError::invalid(at, user, "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        out.push(FieldError::invalid(at, fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        out.push(FieldError::invalid(at, query, "query parameters are not permitted in the URL"));
    }
}

fn service(out: &mut Errors, service: &Value, at: &At<'_>) {
    // The server mixes up the two here.
    for (field, said) in [("namespace", "name"), ("name", "namespace")] {
        if text(service, field).is_empty() {
            out.push(FieldError::required(at.child(said), ""));
        }
    }
    let port = number(service, "port").unwrap_or(443);
    let why = names::port_number(port);
    if !why.is_empty() {
        out.push(FieldError::invalid(
            at.child("port"),
            port,
            format!("port is not valid: {}", why.join(", ")),
        ));
    }
    let (path, at) = (text(service, "path"), at.child("path"));
    if matches!(path, "" | "/") {
        return;
    }
    if path == "//" {
        out.push(FieldError::invalid(at, path, "segment[0] may not be empty"));
        return;
    }
    if !path.starts_with('/') {
        out.push(FieldError::invalid(at, path, "must start with a '/'"));
    }
    let rest: String = path.chars().skip(1).collect();
    for (index, step) in rest.strip_suffix('/').unwrap_or(&rest).split('/').enumerate() {
        if step.is_empty() {
            out.push(FieldError::invalid(at, path, format!("segment[{index}] may not be empty")));
            continue;
        }
        for why in names::dns1123_subdomain(step) {
            out.push(FieldError::invalid(at, path, format!("segment[{index}]: {why}")));
        }
    }
}

fn versions(out: &mut Errors, hook: &Value, at: &At<'_>) {
    let all: Vec<&str> = strings(hook, "admissionReviewVersions").collect();
    if all.is_empty() {
        out.push(FieldError::required(at, "must specify one of v1, v1beta1"));
        return;
    }
    for (index, version) in all.iter().enumerate() {
        let at = &at.index(index);
        if all[..index].contains(version) {
            out.push(FieldError::invalid(at, *version, "duplicate version"));
        } else {
            reasons(out, version, at, names::dns1035_label(version));
        }
    }
    if !all.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        let why = "must include at least one of v1, v1beta1";
        out.push(FieldError::invalid(at, &hook["admissionReviewVersions"], why));
    }
}

fn conditions(out: &mut Errors, hook: &Value, at: &At<'_>) {
    let all = list(hook, "matchConditions");
    if all.len() > 64 {
        out.push(FieldError::too_many(at, all.len(), 64));
    }
    let mut known = BTreeSet::new();
    for (index, condition) in all.iter().enumerate() {
        let at = &at.index(index);
        let place = at.child("expression");
        check_condition(out, text(condition, "expression"), false, &Path::new(place.to_string()));
        let name = text(condition, "name");
        if required(out, condition, "name", at) {
            reasons(out, name, &at.child("name"), names::qualified_name(name));
            if !known.insert(name) {
                out.push(FieldError::duplicate(at.child("name"), name));
            }
        }
    }
}
