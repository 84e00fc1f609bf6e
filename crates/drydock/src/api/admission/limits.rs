//! LimitRanger: what containers get that say nothing of their resources, and how much they may take.

use serde_json::{Value, json};
use windlass_machinery::quantity::Quantity;

use super::super::status::{Failure, Outcome};
use super::super::write::{decoded, metadata_mut, metadata_of, name_of};
use super::amounts::{self, Amounts, containers, listed};
use super::{Admission, Operation};
use crate::store::Scope;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// The largest number whose thousandths can be counted.
const COUNTABLE: i64 = i64::MAX / 1000;

/// Gives the containers of a new pod the defaults of their namespace.
pub(super) fn fill(admission: &Admission<'_>, pod: &mut Value) -> Outcome<()> {
    if !admission.is_for("", "pods") || !is_limited(admission) {
        return Ok(());
    }
    for range in ranges(admission)? {
        let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
        for limit in of_type(&range, "Container") {
            requests.extend(listed(&limit["defaultRequest"]));
            limits.extend(listed(&limit["default"]));
        }
        let mut notes = Vec::new();
        for (list, what) in [("containers", "container"), ("initContainers", "init container")] {
            let found = pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            for container in found {
                for (kind, defaults, word) in
                    [("limits", &limits, "limit"), ("requests", &requests, "request")]
                {
                    let set = set_absent(container, kind, defaults);
                    if !set.is_empty() {
                        let name = container["name"].as_str().unwrap_or_default();
                        notes.push((word, format!("{} {word} for {what} {name}", set.join(", "))));
                    }
                }
                // Requests are named before limits.
                if let [.., (limit, _), (request, _)] = notes.as_slice()
                    && (*limit, *request) == ("limit", "request")
                {
                    let last = notes.len() - 1;
                    notes.swap(last - 1, last);
                }
            }
        }
        if notes.is_empty() {
            continue;
        }
        let notes: Vec<String> = notes.into_iter().map(|(_, note)| note).collect();
        let metadata = metadata_mut(pod);
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        annotations[ANNOTATION] = format!("LimitRanger plugin set: {}", notes.join("; ")).into();
    }
    Ok(())
}

/// Refuses pods and claims that take too much or too little.
pub(super) fn check(admission: &Admission<'_>, object: &Value) -> Outcome<()> {
    let (pod, claim) = (admission.is_for("", "pods"), admission.is_for("", "persistentvolumeclaims"));
    if !is_limited(admission) || !(pod || claim) {
        return Ok(());
    }
    for range in ranges(admission)? {
        let mut errors = Vec::new();
        for limit in range["spec"]["limits"].as_array().into_iter().flatten() {
            match limit["type"].as_str().unwrap_or_default() {
                kind @ "Container" if pod => {
                    let lists = ["containers", "initContainers"];
                    for container in lists.iter().flat_map(|list| containers(&object["spec"], list)) {
                        let taken = |list: &str| listed(&container["resources"][list]);
                        bounds(&mut errors, limit, kind, &taken("requests"), &taken("limits"));
                    }
                }
                kind @ "Pod" if pod => {
                    let (requests, limits) =
                        (amounts::of_pod(object, "requests"), amounts::of_pod(object, "limits"));
                    bounds(&mut errors, limit, kind, &requests, &limits);
                }
                kind @ "PersistentVolumeClaim" if claim => {
                    let requests = listed(&object["spec"]["resources"]["requests"]);
                    for (name, least) in listed(&limit["min"]) {
                        errors.extend(too_small(kind, &name, &least, &requests, &Amounts::new()));
                    }
                    for (name, most) in listed(&limit["max"]) {
                        errors.extend(too_large(kind, &name, &most, "request", requests.get(&name), None));
                    }
                }
                _ => {}
            }
        }
        let mut distinct: Vec<String> = Vec::new();
        for error in errors {
            if !distinct.contains(&error) {
                distinct.push(error);
            }
        }
        let why = match distinct.as_slice() {
            [] => continue,
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        return Err(Failure::forbidden(admission.resource, name_of(object), why));
    }
    Ok(())
}

/// New pods, and claims as long as nobody deletes them.
fn is_limited(admission: &Admission<'_>) -> bool {
    let leaving = admission.old.is_some_and(|old| metadata_of(old).contains_key("deletionTimestamp"));
    admission.subresource.is_none()
        && match admission.operation {
            Operation::Create => true,
            Operation::Update => admission.is_for("", "persistentvolumeclaims") && !leaving,
            Operation::Delete => false,
        }
}

fn ranges(admission: &Admission<'_>) -> Outcome<Vec<Value>> {
    let registry = admission.server.registry();
    let Some(ranges) = registry.core("limitranges") else { return Ok(Vec::new()) };
    let scope = Scope::Namespace(admission.namespace.into());
    admission.server.store.list(ranges.table, &scope).1.iter().map(|stored| decoded(stored)).collect()
}

fn of_type<'r>(range: &'r Value, kind: &'r str) -> impl Iterator<Item = &'r Value> {
    range["spec"]["limits"].as_array().into_iter().flatten().filter(move |limit| limit["type"] == kind)
}

/// Sets what a container does not say itself; returns the names of it.
fn set_absent(container: &mut Value, kind: &str, defaults: &Amounts) -> Vec<String> {
    let mut set = Vec::new();
    for (name, amount) in defaults {
        if container["resources"][kind].get(name).is_none() {
            container["resources"][kind][name] = amount.to_string().into();
            set.push(name.clone());
        }
    }
    set
}

fn bounds(out: &mut Vec<String>, limit: &Value, kind: &str, requests: &Amounts, limits: &Amounts) {
    for (name, least) in listed(&limit["min"]) {
        out.extend(too_small(kind, &name, &least, requests, limits));
    }
    for (name, most) in listed(&limit["max"]) {
        out.extend(too_large(kind, &name, &most, "limit", limits.get(&name), requests.get(&name)));
    }
    for (name, most) in listed(&limit["maxLimitRequestRatio"]) {
        out.extend(too_wide(kind, &name, &most, requests.get(&name), limits.get(&name)));
    }
}

fn too_small(
    kind: &str,
    name: &str,
    least: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let said = format!("minimum {name} usage per {kind} is {least}");
    let Some(request) = requests.get(name) else { return Some(format!("{said}.  No request is specified")) };
    if request < least {
        return Some(format!("{said}, but request is {request}"));
    }
    let limit = limits.get(name).filter(|limit| *limit < least)?;
    Some(format!("{said}, but limit is {limit}"))
}

fn too_large(
    kind: &str,
    name: &str,
    most: &Quantity,
    what: &str,
    taken: Option<&Quantity>,
    request: Option<&Quantity>,
) -> Option<String> {
    let said = format!("maximum {name} usage per {kind} is {most}");
    let Some(taken) = taken else { return Some(format!("{said}.  No {what} is specified")) };
    if taken > most {
        return Some(format!("{said}, but {what} is {taken}"));
    }
    let request = request.filter(|request| *request > most)?;
    Some(format!("{said}, but request is {request}"))
}

fn too_wide(
    kind: &str,
    name: &str,
    most: &Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let said = format!("{name} max limit to request ratio per {kind} is {most}");
    let Some(request) = request.filter(|request| !request.is_zero()) else {
        return Some(format!("{said}, but no request is specified or request is 0"));
    };
    let Some(limit) = limit.filter(|limit| !limit.is_zero()) else {
        return Some(format!("{said}, but no limit is specified or limit is 0"));
    };
    let small = [request, limit, most].iter().all(|amount| amount.value() <= COUNTABLE);
    let count = |amount: &Quantity| if small { amount.milli_value() } else { amount.value() };
    let ratio = count(limit) as f64 / count(request) as f64;
    let exceeds = if most.value() <= COUNTABLE {
        ratio * 1000.0 > most.milli_value() as f64
    } else {
        ratio > most.value() as f64
    };
    exceeds.then(|| format!("{said}, but provided ratio is {ratio:.6}"))
}
