//! Nobody grants what they do not have: roles and bindings are held to what their writer may do.
//!
//! Members of `system:masters` are exempt, and so is who may `escalate` the role or `bind` what a binding names.

use serde_json::{Map, Value};
use windlass_machinery::go::quote;

use super::super::status::{Failure, Outcome};
use super::super::write::{Write, metadata_of, name_of};
use super::rbac::{GROUP, RoleRef};
use super::rule::{self, Rule};
use super::{Attributes, ResourceTarget, Target};

/// Whether the writer may write that role or binding; any other object is fine.
///
/// # Errors
/// 403 with the permissions that the writer lacks.
pub fn check(write: &Write<'_>, new: &Value, old: Option<&Value>) -> Outcome<()> {
    let resource = write.resource;
    if resource.group != GROUP || write.user.is_master() || old.is_some_and(|old| only_collection(new, old)) {
        return Ok(());
    }
    match resource.plural.as_str() {
        "roles" | "clusterroles" => role(write, new, old),
        "rolebindings" | "clusterrolebindings" => binding(write, new),
        _ => Ok(()),
    }
}

fn role(write: &Write<'_>, new: &Value, old: Option<&Value>) -> Outcome<()> {
    // A new role has no name in the path that could be allowed.
    if may(write, "escalate", &write.resource.plural, old.map(name_of).unwrap_or_default()) {
        return Ok(());
    }
    let rules: Vec<Rule> = serde_json::from_value(new["rules"].clone()).unwrap_or_default();
    holds(write, &rules).map_err(|why| Failure::forbidden(write.resource, name_of(new), why))?;
    if aggregates(new) || old.is_some_and(aggregates) {
        let star = || vec!["*".to_owned()];
        let everything = [
            Rule { verbs: star(), api_groups: star(), resources: star(), ..Rule::default() },
            Rule { verbs: star(), non_resource_urls: star(), ..Rule::default() },
        ];
        holds(write, &everything).map_err(|_| {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            Failure::forbidden(write.resource, name_of(new), why)
        })?;
    }
    Ok(())
}

fn binding(write: &Write<'_>, new: &Value) -> Outcome<()> {
    let role: RoleRef = serde_json::from_value(new["roleRef"].clone()).unwrap_or_default();
    let plural = match role.kind.as_str() {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        // Validation has more to say about it.
        _ => return Ok(()),
    };
    if may(write, "bind", plural, &role.name) {
        return Ok(());
    }
    let rules = write.server.auth.policy().rules_of(&role, write.namespace).map(<[Rule]>::to_vec);
    let rules = rules.ok_or_else(|| Failure::not_found(write.resource, &role.name))?;
    holds(write, &rules).map_err(|why| Failure::forbidden(write.resource, name_of(new), why))
}

fn may(write: &Write<'_>, verb: &str, resource: &str, name: &str) -> bool {
    let target = ResourceTarget { group: GROUP, resource, namespace: write.namespace, name, subresource: "" };
    write.server.auth.decide(write.user, &Attributes { verb, target: Target::Resource(target) }).is_allowed()
}

/// Whether the writer has all of these permissions, where it writes.
fn holds(write: &Write<'_>, rules: &[Rule]) -> Result<(), String> {
    let (held, unresolved) = write.server.auth.policy().rules_for(write.user, write.namespace);
    let missing: Vec<String> = rule::missing(&held, rules).into_iter().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let user = write.user;
    let mut why = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        quote(&user.name),
        rule::quoted(&user.groups),
        missing.join("\n")
    );
    if let Some(error) = unresolved.error() {
        why.push_str(&format!("; resolution errors: [{error}]"));
    }
    Err(why)
}

fn aggregates(role: &Value) -> bool {
    role["aggregationRule"]["clusterRoleSelectors"].as_array().is_some_and(|selectors| !selectors.is_empty())
}

/// Whether a change is of nothing but what the garbage collector changes.
fn only_collection(new: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut metadata: Map<String, Value> = metadata_of(object).clone();
        metadata
            .retain(|field, _| !matches!(field.as_str(), "ownerReferences" | "finalizers" | "managedFields"));
        let mut object = object.clone();
        object["metadata"] = Value::Object(metadata);
        object
    };
    rest(new) == rest(old)
}
