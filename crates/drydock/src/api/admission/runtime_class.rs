//! RuntimeClass: what the way a pod is run costs, and where it can be run.

use serde_json::{Value, json};

use super::super::status::{Failure, Outcome};
use super::super::write::{decoded, name_of};
use super::{Admission, Operation, amounts};
use crate::store::Key;

/// Gives a new pod the overhead, node selector and tolerations of its class.
pub(super) fn fill(admission: &Admission<'_>, pod: &mut Value) -> Outcome<()> {
    let Some(class) = class_of(admission, pod)? else { return Ok(()) };
    let overhead = &class["overhead"]["podFixed"];
    if overhead.is_object() {
        check_overhead(admission, pod, overhead, true)?;
        pod["spec"]["overhead"] = overhead.clone();
    }
    let scheduling = &class["scheduling"];
    for (key, wanted) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
        if let Some(own) = pod["spec"]["nodeSelector"].get(key).filter(|own| *own != wanted) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                text(wanted),
                text(own)
            );
            return Err(Failure::forbidden(admission.resource, name_of(pod), why));
        }
        pod["spec"]["nodeSelector"][key] = wanted.clone();
    }
    if let Some(more) = scheduling["tolerations"].as_array() {
        let mut all = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        all.extend(more.iter().cloned());
        pod["spec"]["tolerations"] = json!(distinct(&all));
    }
    // An absent list was made null by looking at it.
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.retain(|_, value| !value.is_null());
    }
    Ok(())
}

/// The overhead of a new pod is that of its class, and nothing without one.
pub(super) fn check(admission: &Admission<'_>, pod: &Value) -> Outcome<()> {
    if !admission.is_for("", "pods")
        || admission.subresource.is_some()
        || admission.operation != Operation::Create
    {
        return Ok(());
    }
    let class = class_of(admission, pod)?.unwrap_or_default();
    let overhead = &class["overhead"]["podFixed"];
    if overhead.is_object() {
        return check_overhead(admission, pod, overhead, false);
    }
    if pod["spec"]["overhead"].is_null() {
        return Ok(());
    }
    let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
    Err(Failure::forbidden(admission.resource, name_of(pod), why))
}

fn check_overhead(admission: &Admission<'_>, pod: &Value, wanted: &Value, may_lack: bool) -> Outcome<()> {
    let own = &pod["spec"]["overhead"];
    let lacks = own.as_object().is_none_or(|own| own.is_empty());
    if (may_lack && lacks) || amounts::listed(own) == amounts::listed(wanted) {
        return Ok(());
    }
    let why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
    Err(Failure::forbidden(admission.resource, name_of(pod), why))
}

fn class_of(admission: &Admission<'_>, pod: &Value) -> Outcome<Option<Value>> {
    let Some(name) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(None) };
    let registry = admission.server.registry();
    let Some(classes) = registry.find("node.k8s.io", "v1", "runtimeclasses") else { return Ok(None) };
    let stored = admission.server.store.get(classes.table, &Key::new("", name)).ok_or_else(|| {
        let why = format!("pod rejected: RuntimeClass {name:?} not found");
        Failure::forbidden(admission.resource, name_of(pod), why)
    })?;
    decoded(&stored).map(Some)
}

/// Tolerations without those that others of them include.
fn distinct(all: &[Value]) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let later = all.get(index + 1..).unwrap_or_default();
        let included = kept.iter().any(|other| includes(other, one))
            || later.iter().any(|other| other != one && includes(other, one));
        if !included {
            kept.push(one.clone());
        }
    }
    kept
}

/// Whether one toleration tolerates all that another does.
fn includes(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let text = |toleration: &Value, field: &str| toleration[field].as_str().unwrap_or_default().to_owned();
    let exists = text(wide, "operator") == "Exists";
    if text(wide, "key") != text(narrow, "key") && !(text(wide, "key").is_empty() && exists) {
        return false;
    }
    let effect = text(wide, "effect");
    if effect != text(narrow, "effect") && !effect.is_empty() {
        return false;
    }
    let seconds = |toleration: &Value| toleration["tolerationSeconds"].as_i64();
    if effect == "NoExecute"
        && let Some(most) = seconds(wide)
        && seconds(narrow).is_none_or(|seconds| seconds > most)
    {
        return false;
    }
    match text(wide, "operator").as_str() {
        "Exists" => true,
        "Equal" | "" => {
            matches!(text(narrow, "operator").as_str(), "Equal" | "")
                && text(wide, "value") == text(narrow, "value")
        }
        _ => false,
    }
}
