//! Priority: what a pod's class is worth.

use serde_json::Value;

use super::super::status::{Failure, Outcome};
use super::super::write::{decoded, name_of};
use super::{Admission, Operation};
use crate::store::{Key, Scope};

const PREEMPTS: &str = "PreemptLowerPriority";

/// Gives a new pod the priority of its class, of the default class, or none.
pub(super) fn assign(admission: &Admission<'_>, pod: &mut Value) -> Outcome<()> {
    let refused = |pod: &Value, why: String| Failure::forbidden(admission.resource, name_of(pod), why);
    let named =
        pod["spec"]["priorityClassName"].as_str().filter(|name| !name.is_empty()).map(ToOwned::to_owned);
    let class = match &named {
        Some(name) => {
            let found = class(admission, name)?;
            Some(found.ok_or_else(|| refused(pod, format!("no PriorityClass with name {name} was found")))?)
        }
        None => default(admission)?,
    };
    let worth = class.as_ref().and_then(|class| class["value"].as_i64()).unwrap_or(0);
    let policy =
        class.as_ref().and_then(|class| class["preemptionPolicy"].as_str()).unwrap_or(PREEMPTS).to_owned();
    if let Some(given) = pod["spec"].get("priority").and_then(Value::as_i64).filter(|given| *given != worth) {
        return Err(refused(
            pod,
            format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
                 controller computed {worth} from the given PriorityClass name"
            ),
        ));
    }
    if let Some(given) =
        pod["spec"].get("preemptionPolicy").and_then(Value::as_str).filter(|given| *given != policy)
    {
        return Err(refused(
            pod,
            format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority \
                 admission controller computed {policy} from the given PriorityClass name"
            ),
        ));
    }
    if named.is_none()
        && let Some(class) = &class
    {
        pod["spec"]["priorityClassName"] = name_of(class).into();
    }
    pod["spec"]["priority"] = worth.into();
    pod["spec"]["preemptionPolicy"] = policy.into();
    Ok(())
}

/// A pod that is changed keeps what its class was worth.
pub(super) fn keep(admission: &Admission<'_>, pod: &mut Value) {
    let Some(old) = admission.old else { return };
    for field in ["priority", "preemptionPolicy"] {
        if pod["spec"].get(field).is_none()
            && let Some(known) = old["spec"].get(field)
        {
            pod["spec"][field] = known.clone();
        }
    }
}

/// There is one default class, and those of the system stay.
pub(super) fn check_class(admission: &Admission<'_>, class: &Value) -> Outcome<()> {
    if !admission.is_for("scheduling.k8s.io", "priorityclasses") {
        return Ok(());
    }
    if admission.operation == Operation::Delete {
        let name = admission.old.map(name_of).unwrap_or_default();
        if matches!(name, "system-node-critical" | "system-cluster-critical") {
            let why = "this is a system priority class and cannot be deleted";
            return Err(Failure::forbidden(admission.resource, name, why));
        }
        return Ok(());
    }
    if class["globalDefault"] != true {
        return Ok(());
    }
    let Some(known) = default(admission)? else { return Ok(()) };
    let (known, own) = (name_of(&known), name_of(class));
    if admission.operation == Operation::Update && known == own {
        return Ok(());
    }
    let why = format!("PriorityClass {known} is already marked as default. Only one default can exist");
    Err(Failure::forbidden(admission.resource, own, why))
}

fn class(admission: &Admission<'_>, name: &str) -> Outcome<Option<Value>> {
    let registry = admission.server.registry();
    let Some(classes) = registry.find("scheduling.k8s.io", "v1", "priorityclasses") else { return Ok(None) };
    let stored = admission.server.store.get(classes.table, &Key::new("", name));
    stored.map(|stored| decoded(&stored)).transpose()
}

/// The default class; of several the one that is worth least.
fn default(admission: &Admission<'_>) -> Outcome<Option<Value>> {
    let registry = admission.server.registry();
    let Some(classes) = registry.find("scheduling.k8s.io", "v1", "priorityclasses") else { return Ok(None) };
    let mut least: Option<Value> = None;
    for stored in admission.server.store.list(classes.table, &Scope::All).1 {
        let class = decoded(&stored)?;
        let worth = |class: &Value| class["value"].as_i64().unwrap_or(0);
        if class["globalDefault"] == true && least.as_ref().is_none_or(|known| worth(&class) < worth(known)) {
            least = Some(class);
        }
    }
    Ok(least)
}
