//! What needs a way into a running pod: exec, attach, portforward and proxy. The drydock has none, and says so once it
//! has looked at the request as a real server does.

use serde_json::Value;

use super::super::log;
use super::super::options::parse_unsigned;
use super::super::request::Query;
use super::super::status::{Failure, Outcome};
use super::super::write::{Write, decoded};
use crate::store::Key;

/// Whether a subresource is a way into a pod, a service or a node.
#[must_use]
pub fn is_connection(sub: &str) -> bool {
    matches!(sub, "exec" | "attach" | "portforward" | "proxy")
}

/// Why a connection cannot be made.
///
/// # Errors
/// Always, but in the server's own words only where a real one could have made it.
pub fn refuse(write: &Write<'_>, sub: &str, name: &str, query: &Query) -> Outcome<()> {
    let resource = write.resource;
    match (sub, resource.plural.as_str()) {
        ("proxy", "services") => service(write, name)?,
        ("proxy", "pods") => {
            // The name may say which port is meant, and how to talk to it.
            let parts: Vec<&str> = name.split(':').collect();
            let id = if parts.len() == 3 { parts[1] } else { parts[0] };
            let pod = object(write, id)?;
            if pod["status"]["podIP"].as_str().unwrap_or_default().is_empty() {
                return Err(Failure::bad_request("address not allowed"));
            }
        }
        ("proxy", _) => drop(object(write, name.split(':').next().unwrap_or_default())?),
        ("portforward", _) => {
            for port in query.all("ports") {
                parse_unsigned(port).map_err(|error| {
                    Failure::bad_request(format!("cannot convert to []int32: {}", error.message))
                })?;
            }
            assigned(write, &object(write, name)?, name)?;
        }
        _ => {
            let pod = object(write, name)?;
            log::container(&pod, name, query.get("container"))?;
            assigned(write, &pod, name)?;
        }
    }
    Err(Failure::not_implemented(format!(
        "the drydock does not have {}/{sub} of {} {name:?}; use a real cluster for it",
        resource.plural, resource.kind
    )))
}

fn object(write: &Write<'_>, name: &str) -> Outcome<Value> {
    let stored = write.server.store.get(write.resource.table, &write.key(name));
    decoded(&*stored.ok_or_else(|| Failure::not_found(write.resource, name))?)
}

fn assigned(write: &Write<'_>, pod: &Value, name: &str) -> Outcome<()> {
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        return Err(Failure::bad_request(format!("pod {name} does not have a host assigned")));
    }
    let registry = write.server.registry();
    let known =
        registry.core("nodes").and_then(|nodes| write.server.store.get(nodes.table, &Key::new("", node)));
    match known {
        Some(_) => Ok(()),
        // The real server takes it for the name of what was asked for.
        None => Err(Failure::not_found(write.resource, node)),
    }
}

/// A service by its name, `NAME:PORT` or `SCHEME:NAME:PORT`.
fn service(write: &Write<'_>, name: &str) -> Outcome<()> {
    let parts: Vec<&str> = name.split(':').collect();
    let (id, port) = match parts.as_slice() {
        [id] => (*id, ""),
        [id, port] | ["http" | "https" | "", id, port] => (*id, *port),
        _ => return Err(Failure::bad_request(format!("invalid service request {name:?}"))),
    };
    let service = object(write, id)?;
    let ports = service["spec"]["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let number = port.parse::<u64>().ok();
    let known = |known: &Value| {
        known["name"].as_str().unwrap_or_default() == port
            || (number.is_some() && known["port"].as_u64() == number)
    };
    if !port.is_empty() && !ports.iter().any(known) {
        return Err(Failure::unavailable(format!("no service port {port} found for service {id:?}")));
    }
    let registry = write.server.registry();
    let endpoints = registry
        .core("endpoints")
        .and_then(|endpoints| write.server.store.get(endpoints.table, &Key::new(write.namespace, id)));
    let endpoints = decoded(&*endpoints.ok_or_else(|| Failure::not_found(write.resource, id))?)?;
    let ready = endpoints["subsets"].as_array().into_iter().flatten();
    if !ready.into_iter().any(|subset| subset["addresses"].as_array().is_some_and(|all| !all.is_empty())) {
        return Err(Failure::unavailable(format!("no endpoints available for service {id:?}")));
    }
    Ok(())
}
