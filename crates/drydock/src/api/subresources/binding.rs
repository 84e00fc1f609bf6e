//! Binding pods to nodes, by `pods/NAME/binding` or by posting a Binding.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use windlass_machinery::invalid::FieldError;

use super::super::status::{Failure, Outcome};
use super::super::write::{Write, metadata_mut, metadata_of, name_of};
use super::{admit, set_condition, success, within};

/// Binds the pod that a posted Binding names.
pub(super) fn post<'a>(write: &'a mut Write<'_>, binding: Value) -> BoxFuture<'a, Outcome<Value>> {
    async move {
        let name = name_of(&binding).to_owned();
        if name.is_empty() {
            return Err(Failure::bad_request("Name parameter required."));
        }
        let registry = write.server.registry();
        let pods = registry.core("pods").ok_or_else(Failure::no_such_resource)?;
        let mut own = within(write, pods, "binding");
        let bound = bind(&mut own, &name, binding).await;
        let mut warnings = std::mem::take(&mut own.warnings);
        write.warnings.append(&mut warnings);
        bound
    }
    .boxed()
}

/// Binds a pod to the node that the body names.
///
/// # Errors
/// When the pod is bound already, or not there.
pub async fn bind(write: &mut Write<'_>, name: &str, binding: Value) -> Outcome<Value> {
    if name_of(&binding) != name {
        return Err(Failure::bad_request("name in URL does not match name in Binding object"));
    }
    let binding = &admit(write, "binding", name, binding).await?;
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    // The real server does not foresee these.
    let kind = binding["target"]["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "Node") {
        let error = FieldError::not_supported("target.kind", kind, ["Node", "<empty>"]);
        return Err(Failure::internal(error.to_string()));
    }
    if node.is_empty() {
        return Err(Failure::internal(FieldError::required("target.name", "").to_string()));
    }
    write
        .touch(name, |write, pod| {
            expect(write, name, binding, pod)?;
            if let Some(why) = obstacle(name, pod) {
                return Err(Failure::conflict_name("", "pods/binding", name, &why));
            }
            pod["spec"]["nodeName"] = node.into();
            for field in ["annotations", "labels"] {
                for (key, value) in binding["metadata"][field].as_object().into_iter().flatten() {
                    pod["metadata"][field][key] = value.clone();
                }
            }
            let now = write.server.context.now_text();
            set_condition(
                pod,
                json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}),
            );
            Ok(())
        })
        .await?;
    Ok(success(201))
}

/// A Binding may name the pod more closely than by its name.
fn expect(write: &Write<'_>, name: &str, binding: &Value, pod: &Value) -> Outcome<()> {
    for (field, title) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let text = |object: &Value| {
            metadata_of(object).get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (wanted, there) = (text(binding), text(pod));
        if !wanted.is_empty() && wanted != there {
            let why = format!(
                "Precondition failed: {title} in precondition: {wanted}, {title} in object meta: {there}"
            );
            return Err(write.storage_conflict(name, &why));
        }
    }
    Ok(())
}

/// Why a pod cannot be bound.
fn obstacle(name: &str, pod: &mut Value) -> Option<String> {
    if metadata_mut(pod).contains_key("deletionTimestamp") {
        return Some(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let bound = pod["spec"].get("nodeName").and_then(Value::as_str).filter(|node| !node.is_empty());
    if let Some(bound) = bound {
        return Some(format!("pod {name} is already assigned to node {bound:?}"));
    }
    let gated = pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    gated.then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
}
