//! Flow schemas and priority levels: who waits for whom when the API server is busy.

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, count, has, is, list, number, reasons, required, strings, text};

const SPEC: At<'static> = At::new("spec");
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// A flow schema.
pub(super) fn schema(out: &mut Errors, schema: &Value) {
    const MOST: i64 = 10_000;
    let spec = &schema["spec"];
    let (precedence, at) = (count(spec, "matchingPrecedence"), SPEC.child("matchingPrecedence"));
    if precedence <= 0 {
        out.push(FieldError::invalid(at, precedence, "must be a positive value"));
    }
    if precedence > MOST {
        out.push(FieldError::invalid(at, precedence, format!("must not be greater than {MOST}")));
    }
    if precedence == 1 && text(&schema["metadata"], "name") != "exempt" {
        let why = "only the schema named 'exempt' may have matchingPrecedence 1";
        out.push(FieldError::invalid(at, precedence, why));
    }
    let method = &spec["distinguisherMethod"];
    if !method.is_null() && !matches!(text(method, "type"), "ByUser" | "ByNamespace") {
        let at = SPEC.child("distinguisherMethod");
        let shown =
            windlass_machinery::invalid::Shown::raw(format!("{{\"Type\":{:?}}}", text(method, "type")));
        out.push(FieldError::not_supported(at.child("type"), shown, ["ByNamespace", "ByUser"]));
    }
    let (level, at) =
        (text(&spec["priorityLevelConfiguration"], "name"), &SPEC.child("priorityLevelConfiguration"));
    if level.is_empty() {
        out.push(FieldError::required(at.child("name"), "must reference a priority level"));
    } else {
        reasons(out, level, &at.child("name"), names::subdomain_name(level, false));
    }
    let at = &SPEC.child("rules");
    for (index, rule) in list(spec, "rules").iter().enumerate() {
        self::rule(out, rule, &at.index(index));
    }
}

fn rule(out: &mut Errors, rule: &Value, at: &At<'_>) {
    let inner = &at.child("subjects");
    if list(rule, "subjects").is_empty() {
        out.push(FieldError::required(inner, "subjects must contain at least one value"));
    }
    for (index, subject) in list(rule, "subjects").iter().enumerate() {
        self::subject(out, subject, &inner.index(index));
    }
    let (resources, paths) = (list(rule, "resourceRules"), list(rule, "nonResourceRules"));
    if resources.is_empty() && paths.is_empty() {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        out.push(FieldError::required(at, why));
    }
    let inner = &at.child("resourceRules");
    for (index, rule) in resources.iter().enumerate() {
        resource_rule(out, rule, &inner.index(index));
    }
    let inner = &at.child("nonResourceRules");
    for (index, rule) in paths.iter().enumerate() {
        let at = &inner.index(index);
        verbs(out, rule, at);
        alone(
            out,
            rule,
            "nonResourceURLs",
            "nonResourceURLs must contain at least one value",
            "non-resource URLs",
            at,
        );
        let at = &at.child("nonResourceURLs");
        for (index, path) in strings(rule, "nonResourceURLs").enumerate() {
            url(out, path, &at.index(index));
        }
    }
}

fn subject(out: &mut Errors, subject: &Value, at: &At<'_>) {
    const KINDS: [(&str, &str); 3] =
        [("Group", "group"), ("ServiceAccount", "serviceAccount"), ("User", "user")];
    let kind = text(subject, "kind");
    let Some((_, own)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        out.push(FieldError::not_supported(at.child("kind"), kind, KINDS.map(|(known, _)| known)));
        return;
    };
    for (known, field) in KINDS.iter().filter(|(_, field)| field != own && has(subject, field)) {
        let why = format!("{field} is forbidden when subject kind is not '{known}'");
        out.push(FieldError::forbidden(at.child(field), why));
    }
    let (found, at) = (&subject[*own], &at.child(own));
    if found.is_null() {
        out.push(FieldError::required(at, format!("{own} is required when subject kind is '{kind}'")));
        return;
    }
    let named = required(out, found, "name", at);
    if kind != "ServiceAccount" {
        return;
    }
    let name = text(found, "name");
    if named && name != "*" {
        reasons(out, name, &at.child("name"), names::subdomain_name(name, false));
    }
    let namespace = text(found, "namespace");
    if namespace.is_empty() {
        out.push(FieldError::required(at.child("namespace"), "must specify namespace for service account"));
    } else {
        reasons(out, namespace, &at.child("namespace"), names::label_name(namespace, false));
    }
}

fn verbs(out: &mut Errors, rule: &Value, at: &At<'_>) {
    alone(out, rule, "verbs", "verbs must contain at least one value", "verbs", at);
    let wild = strings(rule, "verbs").any(|verb| verb == "*");
    if !wild && strings(rule, "verbs").any(|verb| !VERBS.contains(&verb)) {
        out.push(FieldError::not_supported(at.child("verbs"), &rule["verbs"], VERBS));
    }
}

/// A list that is not empty, and in which `*` stands alone.
fn alone(out: &mut Errors, rule: &Value, field: &str, empty: &str, what: &str, at: &At<'_>) {
    let (all, at) = (list(rule, field), at.child(field));
    if all.is_empty() {
        out.push(FieldError::required(at, empty));
    } else if all.len() > 1 && strings(rule, field).any(|value| value == "*") {
        let why = format!("if '*' is present, must not specify other {what}");
        out.push(FieldError::invalid(at, &rule[field], why));
    }
}

fn resource_rule(out: &mut Errors, rule: &Value, at: &At<'_>) {
    verbs(out, rule, at);
    alone(out, rule, "apiGroups", "resource rules must supply at least one api group", "api groups", at);
    alone(out, rule, "resources", "resource rules must supply at least one resource", "resources", at);
    let all = list(rule, "namespaces");
    if !all.is_empty() || !is(rule, "clusterScope") {
        let empty = "resource rules that are not cluster scoped must supply at least one namespace";
        alone(out, rule, "namespaces", empty, "namespaces", at);
    }
    if strings(rule, "namespaces").any(|name| name == "*") {
        return;
    }
    let at = &at.child("namespaces");
    for (index, name) in strings(rule, "namespaces").enumerate() {
        for why in names::label_name(name, false) {
            let why = format!("each member of this list must be '*' or a DNS-1123 label; {why}");
            out.push(FieldError::invalid(at.index(index), name, why));
        }
    }
}

fn url(out: &mut Errors, path: &str, at: &At<'_>) {
    if path == "*" {
        return;
    }
    let why = if path.is_empty() {
        "must not be empty"
    } else if path == "/" {
        return;
    } else if !path.starts_with('/') {
        "must start with slash"
    } else if path.contains(' ') {
        "must not contain white-space"
    } else if path.contains("//") {
        "must not contain double slash"
    } else if path.trim_end_matches('*').contains('*') || path.matches('*').count() > 1 {
        "wildcard can only do suffix matching"
    } else {
        return;
    };
    out.push(FieldError::invalid(at, path, why));
}

/// A priority level.
pub(super) fn level(out: &mut Errors, level: &Value) {
    let spec = &level["spec"];
    let (kind, at) = (text(spec, "type"), &SPEC.child("type"));
    if (text(&level["metadata"], "name") == "exempt") != (kind == "Exempt") {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        out.push(FieldError::invalid(at, kind, why));
    }
    match kind {
        "Exempt" => {
            if has(spec, "limited") {
                let why = "must be nil if the type is not Limited";
                out.push(FieldError::forbidden(SPEC.child("limited"), why));
            }
            shares(out, &spec["exempt"], &SPEC.child("exempt"));
        }
        "Limited" => {
            if has(spec, "exempt") {
                out.push(FieldError::forbidden(SPEC.child("exempt"), "must be nil if the type is Limited"));
            }
            let limited = &SPEC.child("limited");
            if has(spec, "limited") {
                shares(out, &spec["limited"], limited);
                response(out, &spec["limited"]["limitResponse"], &limited.child("limitResponse"));
            } else {
                out.push(FieldError::required(limited, "must not be empty when type is Limited"));
            }
        }
        "" => out.push(FieldError::required(at, "")),
        other => out.push(FieldError::not_supported(at, other, ["Exempt", "Limited"])),
    }
}

fn shares(out: &mut Errors, level: &Value, at: &At<'_>) {
    let below = |field: &str| number(level, field).filter(|value| *value < 0);
    if let Some(shares) = below("nominalConcurrencyShares") {
        out.push(FieldError::invalid(
            at.child("nominalConcurrencyShares"),
            shares,
            "must be a non-negative integer",
        ));
    }
    if let Some(share) = number(level, "lendablePercent").filter(|share| !(0..=100).contains(share)) {
        let why = "must be between 0 and 100, inclusive";
        out.push(FieldError::invalid(at.child("lendablePercent"), share, why));
    }
    if let Some(share) = below("borrowingLimitPercent") {
        let why = "if specified, must be a non-negative integer";
        out.push(FieldError::invalid(at.child("borrowingLimitPercent"), share, why));
    }
}

fn response(out: &mut Errors, response: &Value, at: &At<'_>) {
    const MOST: i64 = 10_000_000;
    let (queuing, inner) = (&response["queuing"], &at.child("queuing"));
    match text(response, "type") {
        "Reject" if !queuing.is_null() => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            out.push(FieldError::forbidden(inner, why));
        }
        "Reject" => {}
        "Queue" if queuing.is_null() => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            out.push(FieldError::required(inner, why));
        }
        "Queue" => {
            for field in ["queueLengthLimit", "queues", "handSize"] {
                let value = count(queuing, field);
                if value <= 0 {
                    out.push(FieldError::invalid(inner.child(field), value, "must be positive"));
                }
            }
            let (queues, hand) = (count(queuing, "queues"), count(queuing, "handSize"));
            if queues > MOST {
                let why = format!("must not be greater than {MOST}");
                out.push(FieldError::invalid(inner.child("queues"), queues, why));
            }
            if hand > 0 && hand > queues {
                let why = format!("should not be greater than queues ({queues})");
                out.push(FieldError::invalid(inner.child("handSize"), hand, why));
            }
            #[allow(clippy::cast_precision_loss, reason = "the server reckons so")]
            let bits = ((queues as f64).log2() * hand as f64).ceil();
            if hand > 0 && hand <= queues && bits > 60.0 {
                let why = format!(
                    "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than 60"
                );
                out.push(FieldError::invalid(inner.child("handSize"), hand, why));
            }
        }
        "" => out.push(FieldError::required(at.child("type"), "")),
        other => out.push(FieldError::not_supported(at.child("type"), other, ["Queue", "Reject"])),
    }
}
