//! What the server itself notes in the status of objects once they are written: whether the priority level of a flow
//! schema exists, and whether an API service can be reached.

use std::sync::Arc;

use serde_json::{Value, json};

use super::auth::User;
use super::definitions;
use super::registry::Resource;
use super::server::Server;
use super::write::{decoded, metadata_mut, metadata_of, name_of};
use crate::store::{Key, Scope};

/// A kind that is looked after: who writes its condition and how, and what the condition is.
struct Upkeep {
    group: &'static str,
    plural: &'static str,
    manager: (&'static str, &'static str),
    /// What else the condition depends on: groups and resources.
    on: &'static [(&'static str, &'static str)],
    /// A text that is in every object that has such a condition.
    mark: &'static str,
    condition: fn(&Server, &Value) -> Option<Value>,
}

static TABLE: &[Upkeep] = &[
    Upkeep {
        group: "flowcontrol.apiserver.k8s.io",
        plural: "flowschemas",
        manager: ("api-priority-and-fairness-config-consumer-v1", "Apply"),
        on: &[("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations")],
        mark: "\"priorityLevelConfiguration\"",
        condition: dangling,
    },
    Upkeep {
        group: "apiregistration.k8s.io",
        plural: "apiservices",
        manager: ("kube-apiserver", "Update"),
        on: &[("", "services"), ("discovery.k8s.io", "endpointslices")],
        mark: "\"service\":",
        condition: available,
    },
];

/// Acts on an object that was written or removed.
pub(super) async fn changed(server: &Server, resource: &Arc<Resource>, new: Option<&Value>) {
    let of = |group: &str, plural: &str| resource.group == group && resource.plural == plural;
    for upkeep in TABLE {
        if of(upkeep.group, upkeep.plural) {
            if let Some(new) = new {
                note(server, resource, upkeep, new).await;
            }
        } else if upkeep.on.iter().any(|(group, plural)| of(group, plural)) {
            let registry = server.registry();
            let Some(kept) = registry.find(upkeep.group, "v1", upkeep.plural) else { continue };
            let all = server.store.list(kept.table, &Scope::All).1;
            // Most objects of a kind need not be looked at, which shows before they are read.
            let kept_ones = all.iter().filter(|stored| has(&stored.body, upkeep.mark));
            for object in kept_ones.filter_map(|stored| decoded(stored).ok()) {
                note(server, kept, upkeep, &object).await;
            }
        }
    }
}

fn has(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|part| part == text.as_bytes())
}

async fn note(server: &Server, resource: &Arc<Resource>, upkeep: &Upkeep, object: &Value) {
    let Some(wanted) = (upkeep.condition)(server, object) else { return };
    let is = |condition: &Value| {
        ["type", "status", "reason", "message"].iter().all(|field| condition[*field] == wanted[*field])
    };
    if object["status"]["conditions"].as_array().into_iter().flatten().any(is) {
        return;
    }
    let now = server.context.now_text();
    let user = User::master("system:apiserver");
    let mut write = definitions::own_write(server, resource, &user, Some("status"));
    let name = name_of(object).to_owned();
    let touched = write.touch(&name, |_, object| {
        set_condition(object, &wanted, &now);
        set_manager(object, upkeep, &wanted, &resource.api_version(), &now);
        Ok(())
    });
    if let Err(failure) = Box::pin(touched).await {
        tracing::warn!(%name, message = %failure.message, "failed to note the condition of an object");
    }
}

fn set_condition(object: &mut Value, wanted: &Value, now: &str) {
    let mut wanted = wanted.clone();
    wanted["lastTransitionTime"] = now.into();
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    let conditions = &mut object["status"]["conditions"];
    match conditions.as_array_mut() {
        None => *conditions = json!([wanted]),
        Some(all) => match all.iter_mut().find(|known| known["type"] == wanted["type"]) {
            None => all.push(wanted),
            Some(known) => {
                if known["status"] == wanted["status"] {
                    wanted["lastTransitionTime"] = known["lastTransitionTime"].clone();
                }
                *known = wanted;
            }
        },
    }
}

/// Notes who manages the condition.
fn set_manager(object: &mut Value, upkeep: &Upkeep, wanted: &Value, version: &str, now: &str) {
    let (manager, operation) = upkeep.manager;
    let mut fields = json!({".": {}});
    for field in ["lastTransitionTime", "message", "reason", "status", "type"] {
        fields[format!("f:{field}")] = json!({});
    }
    let mut conditions = json!({});
    // An apply owns what it names, an update the list as well.
    if operation == "Update" {
        conditions["."] = json!({});
    }
    conditions[format!("k:{{\"type\":{}}}", wanted["type"])] = fields;
    let entry = json!({
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:conditions": conditions}},
        "subresource": "status",
    });
    let managers = metadata_mut(object).entry("managedFields").or_insert_with(|| json!([]));
    if let Some(managers) = managers.as_array_mut() {
        managers.retain(|known| known["manager"] != manager || known["subresource"] != "status");
        // Those who apply come before those who update.
        let place = if operation == "Apply" { 0 } else { managers.len() };
        managers.insert(place, entry);
    }
}

/// Whether the priority level of a flow schema is there.
fn dangling(server: &Server, schema: &Value) -> Option<Value> {
    let name = schema["spec"]["priorityLevelConfiguration"]["name"].as_str()?;
    let registry = server.registry();
    let levels = registry.find("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations")?;
    let (status, reason, what) = match server.store.get(levels.table, &Key::new("", name)) {
        Some(_) => ("False", "Found", "and it exists"),
        None => ("True", "NotFound", "but there is no such object"),
    };
    let message =
        format!("This FlowSchema references the PriorityLevelConfiguration object named {name:?} {what}");
    Some(json!({"type": "Dangling", "status": status, "reason": reason, "message": message}))
}

/// Whether an API service that another server has can be reached at all; what is served here always can.
fn available(server: &Server, service: &Value) -> Option<Value> {
    let reference = &service["spec"]["service"];
    let (namespace, name) = (reference["namespace"].as_str()?, reference["name"].as_str()?);
    let registry = server.registry();
    let services = registry.core("services")?;
    let condition = |reason: &str, message: String| {
        Some(json!({"type": "Available", "status": "False", "reason": reason, "message": message}))
    };
    let Some(found) = server.store.get(services.table, &Key::new(namespace, name)) else {
        return condition("ServiceNotFound", format!("service/{name} in {namespace:?} is not present"));
    };
    let found = decoded(&found).ok()?;
    let wanted = &reference["port"];
    let mut ports = found["spec"]["ports"].as_array().into_iter().flatten();
    let Some(port) = ports.find(|port| port["port"] == *wanted) else {
        let message = format!("service/{name} in {namespace:?} is not listening on port {wanted}");
        return condition("ServicePortError", message);
    };
    let slices = registry.find("discovery.k8s.io", "v1", "endpointslices")?;
    let slices: Vec<Value> = server
        .store
        .list(slices.table, &Scope::Namespace(namespace.into()))
        .1
        .iter()
        .filter_map(|stored| decoded(stored).ok())
        .filter(|slice| {
            metadata_of(slice).get("labels").is_some_and(|of| of["kubernetes.io/service-name"] == name)
        })
        .collect();
    if slices.is_empty() {
        let message = format!("cannot find endpointslices for service/{name} in {namespace:?}");
        return condition("EndpointsNotFound", message);
    }
    let shown = port["name"].as_str().unwrap_or_default();
    let message = format!(
        "endpointslices for service/{name} in {namespace:?} have no addresses with port name {shown:?}"
    );
    condition("MissingEndpoints", message)
}
