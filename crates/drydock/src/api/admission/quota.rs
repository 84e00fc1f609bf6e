//! ResourceQuota: what is created is charged to the quotas of its namespace, or refused.
//!
//! The charge is a write of the quota's status before the object itself is written. What was charged for an object
//! that was then not written is given back by the quota controller, which counts what there is.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_machinery::quantity::{Format, Quantity};

use super::super::auth::User;
use super::super::options::WriteOptions;
use super::super::registry::Resource;
use super::super::status::{Failure, Outcome};
use super::super::write::{Edit, Write, decoded, name_of};
use super::{Admission, Operation};
use crate::store::Scope;

type Amounts = BTreeMap<String, Quantity>;

/// Core resources that quotas count by their plain name.
const COUNTED: [&str; 7] = [
    "pods",
    "services",
    "configmaps",
    "secrets",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
];

/// Charges a new object to the quotas of its namespace.
pub(super) async fn charge(admission: &Admission<'_>, object: &Value) -> Outcome<()> {
    if admission.operation != Operation::Create
        || admission.subresource.is_some()
        || !admission.resource.namespaced
    {
        return Ok(());
    }
    let registry = admission.server.registry();
    let Some(quotas) = registry.core("resourcequotas") else { return Ok(()) };
    let scope = Scope::Namespace(admission.namespace.into());
    let user = User::master("system:apiserver");
    for stored in admission.server.store.list(quotas.table, &scope).1 {
        let quota = decoded(&stored)?;
        let hard = amounts(&quota["spec"]["hard"]);
        let requested = requested(admission.resource, object, &hard);
        if requested.is_empty() {
            continue;
        }
        unspecified(admission, object, &quota, &hard)?;
        let mut write = Write {
            server: admission.server,
            resource: quotas,
            subresource: Some("status"),
            namespace: admission.namespace,
            user: &user,
            options: WriteOptions { dry_run: admission.dry_run, ..WriteOptions::internal() },
            warnings: Vec::new(),
        };
        let take = |quota: &mut Value| {
            let charged = charged(admission, object, quota, &requested)?;
            for (name, amount) in charged {
                quota["status"]["used"][name] = amount.to_string().into();
            }
            Ok(())
        };
        // A quota that was deleted meanwhile limits nothing.
        match Box::pin(write.update(&stored.key.name, &Edit(take))).await {
            Err(failure) if failure.reason == "NotFound" => {}
            other => drop(other?),
        }
    }
    Ok(())
}

/// What a quota has in use once the object is there.
fn charged(
    admission: &Admission<'_>,
    object: &Value,
    quota: &Value,
    requested: &Amounts,
) -> Outcome<Amounts> {
    let name = name_of(quota);
    let (hard, used) = (amounts(&quota["status"]["hard"]), amounts(&quota["status"]["used"]));
    let unknown: Vec<&str> =
        requested.keys().filter(|key| !used.contains_key(*key)).map(String::as_str).collect();
    if !unknown.is_empty() {
        let why = format!("status unknown for quota: {name}, resources: {}", unknown.join(","));
        return Err(Failure::forbidden(admission.resource, name_of(object), why));
    }
    let mut charged = Amounts::new();
    let mut exceeded: Vec<&String> = Vec::new();
    for (key, amount) in requested {
        let total = used[key].add(amount);
        if hard.get(key).is_some_and(|hard| total > *hard) {
            exceeded.push(key);
        }
        charged.insert(key.clone(), total);
    }
    if exceeded.is_empty() {
        return Ok(charged);
    }
    let shown = |amounts: &Amounts| {
        let parts = exceeded.iter().map(|key| format!("{key}={}", amounts[*key])).collect::<Vec<_>>();
        parts.join(",")
    };
    let why = format!(
        "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
        shown(requested),
        shown(&used),
        shown(&hard)
    );
    Err(Failure::forbidden(admission.resource, name_of(object), why))
}

/// Containers must say what they need of anything that is limited.
fn unspecified(admission: &Admission<'_>, object: &Value, quota: &Value, hard: &Amounts) -> Outcome<()> {
    if !admission.is_for("", "pods") {
        return Ok(());
    }
    let missing: Vec<String> = hard
        .keys()
        .filter_map(|key| compute_resource(key).map(|(list, resource)| (key, list, resource)))
        .filter_map(|(key, list, resource)| {
            let without: Vec<&str> = containers(object, &["containers", "initContainers"])
                .filter(|container| container["resources"][list].get(resource).is_none())
                .filter_map(|container| container["name"].as_str())
                .collect();
            (!without.is_empty()).then(|| format!("{key} for: {}", without.join(",")))
        })
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let why = format!("failed quota: {}: must specify {}", name_of(quota), missing.join("; "));
    Err(Failure::forbidden(admission.resource, name_of(object), why))
}

/// What an object takes of what a quota limits.
fn requested(resource: &Resource, object: &Value, hard: &Amounts) -> Amounts {
    let one = || Quantity::new(1, Format::Decimal);
    let counted = format!("count/{}", resource.qualified());
    let core = |plural: &str| resource.group.is_empty() && resource.plural == plural;
    let mut found = Amounts::new();
    for key in hard.keys() {
        let amount = match key.as_str() {
            name if name == counted => Some(one()),
            name if COUNTED.contains(&name) => core(name).then(one),
            "services.nodeports" if core("services") => Some(node_ports(object)),
            "services.loadbalancers" if core("services") => {
                (object["spec"]["type"] == "LoadBalancer").then(one)
            }
            "requests.storage" if core("persistentvolumeclaims") => {
                parsed(&object["spec"]["resources"]["requests"]["storage"])
            }
            name if core("pods") => {
                compute_resource(name).map(|(list, resource)| compute(object, list, resource))
            }
            _ => None,
        };
        if let Some(amount) = amount.filter(|amount| !amount.is_zero()) {
            found.insert(key.clone(), amount);
        }
    }
    found
}

/// Which list of a container's resources a quota's name is about, and which resource.
fn compute_resource(name: &str) -> Option<(&'static str, &str)> {
    match name.split_once('.') {
        Some(("limits", resource)) => Some(("limits", resource)),
        Some(("requests", "storage")) => None,
        Some(("requests", resource)) => Some(("requests", resource)),
        None if matches!(name, "cpu" | "memory" | "ephemeral-storage") => Some(("requests", name)),
        _ => None,
    }
}

/// The sum over containers, or the largest init container where that is more.
fn compute(pod: &Value, list: &str, resource: &str) -> Quantity {
    let amount = |container: &Value| parsed(&container["resources"][list][resource]);
    let none = || Quantity::new(0, Format::Decimal);
    let main = containers(pod, &["containers"]).filter_map(amount).reduce(|a, b| a.add(&b));
    let init = containers(pod, &["initContainers"]).filter_map(amount).max();
    main.into_iter().chain(init).max().unwrap_or_else(none)
}

fn containers<'p>(pod: &'p Value, lists: &'p [&str]) -> impl Iterator<Item = &'p Value> {
    lists.iter().filter_map(|list| pod["spec"][*list].as_array()).flatten()
}

fn node_ports(service: &Value) -> Quantity {
    let exposed = matches!(service["spec"]["type"].as_str(), Some("NodePort" | "LoadBalancer"));
    let ports = service["spec"]["ports"].as_array().map_or(0, Vec::len);
    Quantity::new(if exposed { i64::try_from(ports).unwrap_or(i64::MAX) } else { 0 }, Format::Decimal)
}

fn amounts(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    entries.filter_map(|(name, amount)| Some((name.clone(), parsed(amount)?))).collect()
}

fn parsed(amount: &Value) -> Option<Quantity> {
    Quantity::parse(amount.as_str()?).ok()
}
