//! Roles and their bindings.

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, has, list, reasons, required, text};
use super::{internal, selector};

const GROUP: &str = "rbac.authorization.k8s.io";

/// A role of a namespace.
pub(super) fn role(out: &mut Errors, role: &Value) {
    rules(out, role, true);
}

/// A role of the cluster.
pub(super) fn cluster_role(out: &mut Errors, role: &Value) {
    rules(out, role, false);
    if !has(role, "aggregationRule") {
        return;
    }
    let at = &At::new("aggregationRule.clusterRoleSelectors");
    let selectors = list(&role["aggregationRule"], "clusterRoleSelectors");
    if selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        out.push(FieldError::required(at, why));
    }
    for (index, one) in selectors.iter().enumerate() {
        selector::label_selector(out, one, &at.index(index));
        if selector::read(one).is_none() {
            out.push(FieldError::invalid(at.index(index), Value::Null, "invalid label selector."));
        }
    }
}

/// A binding of a namespace.
pub(super) fn binding(out: &mut Errors, binding: &Value) {
    bound(out, binding, &["Role", "ClusterRole"], true);
}

/// A binding of the cluster.
pub(super) fn cluster_binding(out: &mut Errors, binding: &Value) {
    bound(out, binding, &["ClusterRole"], false);
}

/// A changed binding.
pub(super) fn same_role(out: &mut Errors, new: &Value, old: &Value) {
    if new["roleRef"] != old["roleRef"] {
        let shown = internal::shown("RoleRef", &new["roleRef"]);
        out.push(FieldError::invalid("roleRef", shown, "cannot change roleRef"));
    }
}

fn rules(out: &mut Errors, role: &Value, namespaced: bool) {
    let at = &At::new("rules");
    for (index, rule) in list(role, "rules").iter().enumerate() {
        let at = &at.index(index);
        let none = |field: &str| list(rule, field).is_empty();
        if none("verbs") {
            out.push(FieldError::required(at.child("verbs"), "verbs must contain at least one value"));
        }
        if !none("nonResourceURLs") {
            let (at, urls) = (at.child("nonResourceURLs"), &rule["nonResourceURLs"]);
            if namespaced {
                out.push(FieldError::invalid(at, urls, "namespaced rules cannot apply to non-resource URLs"));
            }
            if !none("apiGroups") || !none("resources") || !none("resourceNames") {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                out.push(FieldError::invalid(at, urls, why));
            }
            continue;
        }
        if none("apiGroups") {
            let why = "resource rules must supply at least one api group";
            out.push(FieldError::required(at.child("apiGroups"), why));
        }
        if none("resources") {
            let why = "resource rules must supply at least one resource";
            out.push(FieldError::required(at.child("resources"), why));
        }
    }
}

fn bound(out: &mut Errors, binding: &Value, kinds: &[&str], namespaced: bool) {
    let (role, at) = (&binding["roleRef"], &At::new("roleRef"));
    let (group, kind, name) = (text(role, "apiGroup"), text(role, "kind"), text(role, "name"));
    if group != GROUP {
        out.push(FieldError::not_supported(at.child("apiGroup"), group, [GROUP]));
    }
    if !kinds.contains(&kind) {
        out.push(FieldError::not_supported(at.child("kind"), kind, kinds));
    }
    if required(out, role, "name", at) {
        reasons(out, name, &at.child("name"), names::path_segment_name(name, false));
    }
    let at = &At::new("subjects");
    for (index, subject) in list(binding, "subjects").iter().enumerate() {
        self::subject(out, subject, namespaced, &at.index(index));
    }
}

fn subject(out: &mut Errors, subject: &Value, namespaced: bool, at: &At<'_>) {
    let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
    required(out, subject, "name", at);
    match text(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                reasons(out, name, &at.child("name"), names::subdomain_name(name, false));
            }
            if !group.is_empty() {
                out.push(FieldError::not_supported(at.child("apiGroup"), group, [""]));
            }
            if !namespaced && text(subject, "namespace").is_empty() {
                out.push(FieldError::required(at.child("namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                out.push(FieldError::not_supported(at.child("apiGroup"), group, [GROUP]));
            }
        }
        other => {
            let known = ["ServiceAccount", "User", "Group"];
            out.push(FieldError::not_supported(at.child("kind"), other, known));
        }
    }
}
