//! What an object takes of what quotas limit, and which quotas are about it.

use serde_json::Value;
use windlass_machinery::quantity::{Format, Quantity};

use super::super::super::registry::Resource;
use super::super::super::strategy::qos_class;
use super::super::amounts::{self, Amounts, parsed};

/// Core resources that quotas count by their plain name.
const COUNTED: [&str; 4] = ["configmaps", "secrets", "replicationcontrollers", "resourcequotas"];
const BY_CLASS: &str = ".storageclass.storage.k8s.io/";
/// What every container has to say where it is limited.
const MUST_SAY: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// What an object takes.
pub(super) fn of(resource: &Resource, object: &Value) -> Amounts {
    let mut taken = Amounts::from([(format!("count/{}", resource.qualified()), count(1))]);
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod(&mut taken, object),
        ("", "services") => service(&mut taken, object),
        ("", "persistentvolumeclaims") => claim(&mut taken, object),
        ("", plural) if COUNTED.contains(&plural) => {
            taken.insert(plural.to_owned(), count(1));
        }
        _ => {}
    }
    taken
}

/// Whether an update of the object can change what it takes.
pub(super) fn changes(resource: &Resource, new: &Value, old: &Value) -> bool {
    let ends =
        |pod: &Value| pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0);
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "services" | "persistentvolumeclaims") => true,
        ("", "pods") => ends(new) != ends(old),
        _ => false,
    }
}

/// Which of the things that a quota limits objects of a resource take.
pub(super) fn limited<'h>(resource: &Resource, hard: impl Iterator<Item = &'h String>) -> Vec<&'h str> {
    let counted = format!("count/{}", resource.qualified());
    let fits = |name: &str| {
        name == counted
            || match (resource.group.as_str(), resource.plural.as_str()) {
                ("", "pods") => name == "pods" || is_computed(name),
                ("", "services") => {
                    matches!(name, "services" | "services.nodeports" | "services.loadbalancers")
                }
                ("", "persistentvolumeclaims") => {
                    matches!(name, "persistentvolumeclaims" | "requests.storage") || name.contains(BY_CLASS)
                }
                ("", plural) => COUNTED.contains(&plural) && name == plural,
                _ => false,
            }
    };
    hard.map(String::as_str).filter(|name| fits(name)).collect()
}

fn is_computed(name: &str) -> bool {
    let known = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    match name.split_once('.') {
        Some(("limits", resource)) => matches!(resource, "cpu" | "memory" | "ephemeral-storage"),
        Some(("requests", resource)) => {
            matches!(resource, "cpu" | "memory" | "ephemeral-storage")
                || resource.starts_with("hugepages-")
                || (resource.contains('/') && !resource.contains("kubernetes.io/"))
        }
        _ => known,
    }
}

/// What containers of a pod have to say and do not: `requests.cpu for: c; …`.
pub(super) fn unsaid(resource: &Resource, limited: &[&str], pod: &Value) -> Option<String> {
    let is_pod = resource.group.is_empty() && resource.plural == "pods";
    if !is_pod || pod["spec"]["resources"].as_object().is_some_and(|own| !own.is_empty()) {
        return None;
    }
    let mut missing: Vec<String> = Vec::new();
    for name in limited.iter().filter(|name| MUST_SAY.contains(name)) {
        let (list, resource) = match name.split_once('.') {
            Some(("limits", resource)) => ("limits", resource),
            Some((_, resource)) => ("requests", resource),
            None => ("requests", *name),
        };
        let lists = ["containers", "initContainers"];
        let all = lists.iter().flat_map(|list| amounts::containers(&pod["spec"], list));
        let mut without: Vec<&str> = all
            .filter(|container| container["resources"][list].get(resource).is_none())
            .filter_map(|container| container["name"].as_str())
            .collect();
        without.sort_unstable();
        if !without.is_empty() {
            missing.push(format!("{name} for: {}", without.join(",")));
        }
    }
    missing.sort();
    (!missing.is_empty()).then(|| format!("must specify {}", missing.join("; ")))
}

/// Whether a quota's scopes are about an object.
pub(super) fn in_scope(resource: &Resource, quota: &Value, object: &Value) -> bool {
    let exists = |scope: &Value| (scope.clone(), Value::from("Exists"), Value::Null);
    let plain = quota["spec"]["scopes"].as_array().into_iter().flatten().map(exists);
    let selected = quota["spec"]["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten();
    let selected =
        selected.map(|one| (one["scopeName"].clone(), one["operator"].clone(), one["values"].clone()));
    plain.chain(selected).all(|(scope, operator, values)| {
        let scope = scope.as_str().unwrap_or_default();
        match (resource.group.as_str(), resource.plural.as_str()) {
            ("", "pods") => pod_in_scope(scope, operator.as_str().unwrap_or_default(), &values, object),
            ("", "persistentvolumeclaims") if scope == "VolumeAttributesClass" => {
                let class = object["spec"]["volumeAttributesClassName"].as_str().unwrap_or_default();
                chosen(operator.as_str().unwrap_or_default(), &values, class)
            }
            _ => false,
        }
    })
}

fn pod_in_scope(scope: &str, operator: &str, values: &Value, pod: &Value) -> bool {
    let spec = &pod["spec"];
    let ends = spec["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0);
    let modest = || qos_class(spec) == "BestEffort";
    match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => modest(),
        "NotBestEffort" => !modest(),
        "PriorityClass" => chosen(operator, values, spec["priorityClassName"].as_str().unwrap_or_default()),
        "CrossNamespacePodAffinity" => crosses_namespaces(spec),
        _ => false,
    }
}

fn chosen(operator: &str, values: &Value, name: &str) -> bool {
    let listed = values.as_array().is_some_and(|values| values.iter().any(|value| value == name));
    match operator {
        "Exists" => !name.is_empty(),
        "DoesNotExist" => name.is_empty(),
        "In" => !name.is_empty() && listed,
        "NotIn" => name.is_empty() || !listed,
        _ => false,
    }
}

fn crosses_namespaces(spec: &Value) -> bool {
    let crosses = |term: &Value| {
        term["namespaces"].as_array().is_some_and(|names| !names.is_empty())
            || term["namespaceSelector"].is_object()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let affinity = &spec["affinity"][*kind];
        let list = |name: &str| affinity[name].as_array().into_iter().flatten();
        list("requiredDuringSchedulingIgnoredDuringExecution").any(crosses)
            || list("preferredDuringSchedulingIgnoredDuringExecution")
                .any(|one| crosses(&one["podAffinityTerm"]))
    })
}

fn pod(taken: &mut Amounts, pod: &Value) {
    if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
        return;
    }
    taken.insert("pods".to_owned(), count(1));
    let (mut requests, mut limits) = (amounts::of_pod(pod, "requests"), amounts::of_pod(pod, "limits"));
    let overhead = amounts::listed(&pod["spec"]["overhead"]);
    amounts::add(&mut requests, &overhead);
    let limited = overhead.into_iter().filter(|(name, _)| limits.contains_key(name)).collect();
    amounts::add(&mut limits, &limited);
    for (name, amount) in requests {
        if !name.contains('/') {
            taken.insert(name.clone(), amount.clone());
        }
        taken.insert(format!("requests.{name}"), amount);
    }
    for (name, amount) in limits {
        taken.insert(format!("limits.{name}"), amount);
    }
}

fn service(taken: &mut Amounts, service: &Value) {
    let spec = &service["spec"];
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let given = ports.iter().filter(|port| port["nodePort"].as_i64().is_some_and(|port| port != 0)).count();
    let (balancers, node_ports) = match spec["type"].as_str() {
        Some("NodePort") => (0, ports.len()),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => (1, given),
        Some("LoadBalancer") => (1, ports.len()),
        _ => (0, 0),
    };
    taken.insert("services".to_owned(), count(1));
    taken.insert("services.loadbalancers".to_owned(), count(balancers));
    taken.insert("services.nodeports".to_owned(), count(node_ports));
}

fn claim(taken: &mut Amounts, claim: &Value) {
    let old_class = &claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
    let class = old_class.as_str().or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default();
    let storage = parsed(&claim["spec"]["resources"]["requests"]["storage"]);
    let counted = [("persistentvolumeclaims", Some(count(1))), ("requests.storage", storage)];
    for (name, amount) in counted.into_iter().filter_map(|(name, amount)| Some((name, amount?))) {
        if !class.is_empty() {
            taken.insert(format!("{class}{BY_CLASS}{name}"), amount.clone());
        }
        taken.insert(name.to_owned(), amount);
    }
}

fn count(number: usize) -> Quantity {
    Quantity::new(i64::try_from(number).unwrap_or(i64::MAX), Format::Decimal)
}
