//! Permissions as roles, and the bindings that give them to an account.

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use super::metadata;
use crate::{ObjectName, Permissions};

const GROUP: &str = "rbac.authorization.k8s.io";

/// The roles of this name with these permissions, and their bindings to a service account.
#[must_use]
pub fn roles(permissions: &Permissions, name: &str, account: &ObjectName) -> Vec<Value> {
    let mut objects = Vec::new();
    let cluster = permissions.in_cluster();
    if !cluster.is_empty() {
        objects.extend(role("ClusterRole", &ObjectName::new("", name), &cluster, account));
    }
    for (namespace, rules) in permissions.in_namespaces() {
        objects.extend(role("Role", &ObjectName::new(namespace, name), &rules, account));
    }
    objects
}

fn role(kind: &str, name: &ObjectName, rules: &[PolicyRule], account: &ObjectName) -> [Value; 2] {
    let version = format!("{GROUP}/v1");
    let subject = json!({"kind": "ServiceAccount", "namespace": account.namespace, "name": account.name});
    [
        json!({"apiVersion": version, "kind": kind, "metadata": metadata(name), "rules": rules}),
        json!({
            "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata(name),
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name.name},
            "subjects": [subject],
        }),
    ]
}
