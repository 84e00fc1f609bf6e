//! Services: cluster addresses and node ports.

use std::collections::{BTreeSet, HashSet};
use std::net::Ipv4Addr;

use serde::Deserialize;
use serde_json::{Value, json};
use windlass_machinery::invalid::FieldError;

use super::super::status::{Failure, Outcome};
use super::super::write::{Write, name_of};
use crate::store::Scope;

/// The first address and the number of addresses of services (10.0.0.0/16).
const NETWORK: (Ipv4Addr, u32) = (Ipv4Addr::new(10, 0, 0, 0), 65_536);
const NODE_PORTS: std::ops::RangeInclusive<u64> = 30_000..=32_767;

/// Gives a new service what it did not ask for by name.
pub(super) fn create(write: &Write<'_>, object: &mut Value) -> Outcome<()> {
    object["status"] = json!({"loadBalancer": {}});
    refuse_families(object)?;
    allocate(write, object, &Value::Null)
}

/// Keeps what the service has, and gives it what its new type needs.
pub(super) fn update(write: &Write<'_>, new: &mut Value, old: &Value) -> Outcome<()> {
    if write.subresource == Some("status") {
        return Ok(());
    }
    let kind = new["spec"]["type"].as_str().unwrap_or_default().to_owned();
    // Whoever changes the first address means all of them.
    let (now, was) = (new["spec"]["clusterIP"].clone(), old["spec"]["clusterIP"].clone());
    let given = new["spec"].get("clusterIPs").filter(|all| all.as_array().is_some_and(|all| !all.is_empty()));
    let same = given.is_some_and(|given| *given == old["spec"]["clusterIPs"]);
    let kept = given.is_none() && kind != "ExternalName" && old["spec"]["type"] != "ExternalName";
    if now.is_string() && now != was && (same || (kept && now != "")) {
        new["spec"]["clusterIPs"] = if now == "" { json!([]) } else { json!([now]) };
    }
    if kind != "ExternalName" && old["spec"]["type"] != "ExternalName" {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if new["spec"].get(field).is_none_or(|value| value == "")
                && let Some(value) = old["spec"].get(field)
            {
                new["spec"][field] = value.clone();
            }
        }
    }
    if needs_check(&new["spec"])
        && needs_check(&old["spec"])
        && count(&new["spec"], "healthCheckNodePort") == 0
        && let Some(port) = old["spec"].get("healthCheckNodePort")
    {
        new["spec"]["healthCheckNodePort"] = port.clone();
    }
    drop_dependent(new, old);
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        let old_ports = old["spec"]["ports"].as_array().cloned().unwrap_or_default();
        for port in new["spec"]["ports"].as_array_mut().into_iter().flatten() {
            let same = old_ports
                .iter()
                .find(|old| old["port"] == port["port"] && old["protocol"] == port["protocol"]);
            if port.get("nodePort").is_none_or(|port| *port == 0)
                && let Some(number) = same.and_then(|old| old.get("nodePort"))
            {
                port["nodePort"] = number.clone();
            }
        }
    }
    allocate(write, new, old)
}

/// What came with the old type goes with it, unless the client changes it.
fn drop_dependent(new: &mut Value, old: &Value) {
    let kind = |service: &Value| service["spec"]["type"].as_str().unwrap_or_default().to_owned();
    let addressed = |service: &Value| kind(service) != "ExternalName";
    let ported = |service: &Value| match kind(service).as_str() {
        "NodePort" => true,
        "LoadBalancer" => service["spec"]["allocateLoadBalancerNodePorts"] != false,
        _ => false,
    };
    let balanced = |service: &Value| kind(service) == "LoadBalancer";
    let exposed = |service: &Value| {
        let ips = service["spec"]["externalIPs"].as_array().is_some_and(|ips| !ips.is_empty());
        matches!(kind(service).as_str(), "NodePort" | "LoadBalancer") || (kind(service) == "ClusterIP" && ips)
    };
    let checked = |service: &Value| needs_check(&service["spec"]);
    let mut fields: Vec<&str> = Vec::new();
    for (had, has, dependent) in [
        (
            addressed(old),
            addressed(new),
            &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"][..],
        ),
        (checked(old), checked(new), &["healthCheckNodePort"]),
        (balanced(old), balanced(new), &["allocateLoadBalancerNodePorts", "loadBalancerClass"]),
        (exposed(old), exposed(new), &["externalTrafficPolicy"]),
    ] {
        if had && !has {
            fields.extend(dependent);
        }
    }
    let ports = |service: &Value| {
        let ports = service["spec"]["ports"].as_array().into_iter().flatten();
        ports.map(|port| count(port, "nodePort")).collect::<Vec<_>>()
    };
    let releases = ported(old) && !ported(new) && ports(old) == ports(new);
    if let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|field, value| {
            !fields.contains(&field.as_str()) || old["spec"].get(field) != Some(value)
        });
    }
    if releases {
        for port in new["spec"]["ports"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut)
        {
            port.remove("nodePort");
        }
    }
    if !balanced(new) {
        new["status"]["loadBalancer"] = json!({});
    }
}

fn count(object: &Value, field: &str) -> i64 {
    object[field].as_i64().unwrap_or_default()
}

/// Whether nodes tell the balancer whether they have endpoints.
fn needs_check(spec: &Value) -> bool {
    spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

fn allocate(write: &Write<'_>, object: &mut Value, old: &Value) -> Outcome<()> {
    let kind = object["spec"]["type"].as_str().unwrap_or_default().to_owned();
    if kind == "ExternalName" {
        return Ok(());
    }
    // Addresses that do not agree are refused later.
    let first =
        object["spec"]["clusterIPs"].as_array().and_then(|all| all.first()).cloned().unwrap_or_default();
    if !first.is_null() && first != object["spec"]["clusterIP"] {
        return Ok(());
    }
    // What a service keeps is not looked for among all the others.
    let address = object["spec"]["clusterIP"].as_str().filter(|address| !address.is_empty());
    let keeps = kind == "ClusterIP" && address.is_some() && old["spec"]["clusterIP"].as_str() == address;
    let (addresses, ports) = if keeps { Default::default() } else { taken(write, name_of(object)) };
    if kind != "ClusterIP" {
        refuse_ports(object, &ports)?;
    }
    let name = name_of(object).to_owned();
    let spec = &mut object["spec"];
    let wanted = spec["clusterIP"].as_str().unwrap_or_default().to_owned();
    let address = match wanted.as_str() {
        "" => free_address(write, &addresses)?,
        "None" => wanted,
        _ if addresses.contains(&wanted) => {
            let error = FieldError::invalid(
                "spec.clusterIPs",
                json!([wanted]),
                format!("failed to allocate IP {wanted}: provided IP is already allocated"),
            );
            return Err(Failure::invalid("", "Service", name_of(object), &[error]));
        }
        _ if wanted.parse::<Ipv4Addr>().is_ok_and(|address| !in_network(address)) => {
            let error = FieldError::invalid(
                "spec.clusterIPs",
                json!([wanted]),
                format!(
                    "failed to allocate IP {wanted}: the provided network does not match the current range"
                ),
            );
            return Err(Failure::invalid("", "Service", &name, &[error]));
        }
        _ => wanted,
    };
    // Without a selector nobody knows which families the endpoints of a headless service will have.
    let open = address == "None" && spec.get("selector").is_none_or(|selector| selector.is_null());
    if open {
        if spec.get("ipFamilyPolicy").is_none() {
            spec["ipFamilyPolicy"] = "RequireDualStack".into();
        }
        if spec.get("ipFamilies").is_none() && spec["ipFamilyPolicy"] != "SingleStack" {
            spec["ipFamilies"] = json!(["IPv4", "IPv6"]);
        }
    }
    spec["clusterIPs"] = json!([address]);
    spec["clusterIP"] = address.into();
    if spec.get("ipFamilies").is_none() {
        spec["ipFamilies"] = json!(["IPv4"]);
    }
    if spec.get("ipFamilyPolicy").is_none() {
        spec["ipFamilyPolicy"] = "SingleStack".into();
    }
    let wants_ports =
        kind == "NodePort" || (kind == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false);
    let mut ports = ports;
    if wants_ports {
        for port in spec["ports"].as_array_mut().into_iter().flatten() {
            if port.get("nodePort").is_none_or(|port| *port == 0) {
                let start = NODE_PORTS.start() + write.server.context.below(2768);
                let free = NODE_PORTS
                    .map(|offset| NODE_PORTS.start() + (offset + start) % 2768)
                    .find(|port| !ports.contains(port))
                    .ok_or_else(|| Failure::internal("no free node port is left"))?;
                ports.insert(free);
                port["nodePort"] = free.into();
            }
        }
    }
    if needs_check(spec) && count(spec, "healthCheckNodePort") == 0 {
        let free = NODE_PORTS.clone().find(|port| !ports.contains(port));
        let free = free.ok_or_else(|| Failure::internal("no free node port is left"))?;
        spec["healthCheckNodePort"] = free.into();
    }
    // The real server keeps allocations as objects of their own.
    write.server.store.skip_revision();
    Ok(())
}

fn in_network(address: Ipv4Addr) -> bool {
    let (first, count) = NETWORK;
    (u32::from(first)..u32::from(first) + count).contains(&u32::from(address))
}

/// The cluster has addresses of one family only.
fn refuse_families(object: &Value) -> Outcome<()> {
    let spec = &object["spec"];
    let open = spec["clusterIP"] == "None" && spec.get("selector").is_none_or(Value::is_null);
    if open {
        return Ok(());
    }
    let mut errors = Vec::new();
    if spec["ipFamilyPolicy"] == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid("spec.ipFamilyPolicy", "RequireDualStack", why));
    }
    for (index, family) in spec["ipFamilies"].as_array().into_iter().flatten().enumerate() {
        if family == "IPv6" {
            let why = "not configured on this cluster";
            errors.push(FieldError::invalid(format!("spec.ipFamilies[{index}]"), family.clone(), why));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Failure::invalid("", "Service", name_of(object), &errors)) }
}

/// A node port is given once, and from the range there is.
fn refuse_ports(object: &Value, taken: &BTreeSet<u64>) -> Outcome<()> {
    let mut errors = Vec::new();
    for (index, port) in object["spec"]["ports"].as_array().into_iter().flatten().enumerate() {
        let Some(number) = port["nodePort"].as_u64().filter(|number| *number > 0) else { continue };
        let why = if !NODE_PORTS.contains(&number) {
            "provided port is not in the valid range. The range of valid ports is 30000-32767"
        } else if taken.contains(&number) {
            "provided port is already allocated"
        } else {
            continue;
        };
        errors.push(FieldError::invalid(
            format!("spec.ports[{index}].nodePort"),
            port["nodePort"].clone(),
            why,
        ));
    }
    if errors.is_empty() { Ok(()) } else { Err(Failure::invalid("", "Service", name_of(object), &errors)) }
}

/// The addresses and node ports of all other services.
fn taken(write: &Write<'_>, name: &str) -> (HashSet<String>, BTreeSet<u64>) {
    let (mut addresses, mut ports) = (HashSet::new(), BTreeSet::new());
    let (_, services) = write.server.store.list(write.resource.table, &Scope::All);
    for stored in services {
        if *stored.key.name == *name && *stored.key.namespace == *write.namespace {
            continue;
        }
        let Ok(Claims { spec }) = serde_json::from_slice(&stored.body) else { continue };
        addresses.extend(spec.cluster_ips);
        ports.extend(spec.ports.into_iter().filter_map(|port| port.node_port));
    }
    (addresses, ports)
}

/// What a service has for itself; the rest of it is skipped.
#[derive(Deserialize)]
struct Claims {
    spec: ClaimsOfSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimsOfSpec {
    #[serde(default, rename = "clusterIPs")]
    cluster_ips: Vec<String>,
    #[serde(default)]
    ports: Vec<ClaimsOfPort>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimsOfPort {
    node_port: Option<u64>,
}

fn free_address(write: &Write<'_>, taken: &HashSet<String>) -> Outcome<String> {
    let (first, count) = NETWORK;
    let start = u32::try_from(write.server.context.below(u64::from(count))).unwrap_or_default();
    (0..count)
        .map(|offset| (start + offset) % count)
        // The first addresses are the network's own and the API server's.
        .filter(|offset| (10..count - 1).contains(offset))
        .map(|offset| Ipv4Addr::from(u32::from(first) + offset).to_string())
        .find(|address| !taken.contains(address))
        .ok_or_else(|| Failure::internal("no free cluster address is left"))
}
