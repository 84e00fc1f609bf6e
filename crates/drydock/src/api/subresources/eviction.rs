//! Evicting pods, as far as their disruption budgets let them go.

use serde_json::{Value, json};
use windlass_machinery::selector::Labels;

use super::super::options::DeleteOptions;
use super::super::request::Query;
use super::super::status::{Failure, Outcome};
use super::super::write::{Write, decoded, metadata_of, name_of};
use super::{admit, set_condition, success};
use crate::store::Scope;

/// Evicts a pod.
///
/// # Errors
/// When it is not there, or a disruption budget holds it back.
pub async fn evict(write: &mut Write<'_>, name: &str, eviction: Value, query: &Query) -> Outcome<Value> {
    if name_of(&eviction) != name {
        return Err(Failure::bad_request("name in URL does not match name in Eviction object"));
    }
    let eviction = &admit(write, "eviction", name, eviction).await?;
    let options = eviction.get("deleteOptions").filter(|options| options.is_object());
    let mut options = DeleteOptions::parse(options, query)?;
    options.dry_run |= write.options.dry_run;
    write.options.dry_run = options.dry_run;
    let stored = write.server.store.get(write.resource.table, &write.key(name));
    let pod = decoded(&*stored.ok_or_else(|| Failure::not_found(write.resource, name))?)?;
    if !goes_anyway(&pod) {
        spend(write, &pod, options.dry_run).await?;
    }
    write
        .touch(name, |write, pod| {
            let now = write.server.context.now_text();
            set_condition(
                pod,
                json!({
                    "type": "DisruptionTarget", "status": "True", "lastProbeTime": null,
                    "lastTransitionTime": now, "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting",
                }),
            );
            Ok(())
        })
        .await?;
    write.delete(name, &options).await?;
    Ok(success(201))
}

/// A pod that serves nobody is no disruption.
fn goes_anyway(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Pending"))
        || metadata_of(pod).contains_key("deletionTimestamp")
}

/// Takes one disruption from the budget that covers the pod.
async fn spend(write: &mut Write<'_>, pod: &Value, dry_run: bool) -> Outcome<()> {
    let registry = write.server.registry();
    let Some(budgets) = registry.find("policy", "v1", "poddisruptionbudgets") else { return Ok(()) };
    let (_, all) = write.server.store.list(budgets.table, &Scope::Namespace(write.namespace.into()));
    let mut covering = Vec::new();
    for stored in all {
        let budget = decoded(&stored)?;
        let selector = budget["spec"].get("selector").filter(|selector| !selector.is_null());
        let labels = Labels::from_object(selector).map_err(|error| Failure::internal(error.to_string()))?;
        if labels.matches_map(metadata_of(pod).get("labels").and_then(Value::as_object)) {
            covering.push(budget);
        }
    }
    let budget = match covering.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            return Err(Failure::internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    };
    let number = |budget: &Value, field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let enough = number(budget, "currentHealthy") >= number(budget, "desiredHealthy")
        && number(budget, "desiredHealthy") > 0;
    let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
    if !is_ready(pod) && (always || enough) {
        return Ok(());
    }
    let mut other = Write {
        server: write.server,
        resource: budgets,
        subresource: None,
        namespace: write.namespace,
        user: write.user,
        options: super::super::options::WriteOptions { dry_run, ..write.options.clone() },
        warnings: Vec::new(),
    };
    let now = write.server.context.now_text();
    let (budget_name, pod_name) = (name_of(budget).to_owned(), name_of(pod).to_owned());
    other
        .touch(&budget_name, |_, budget| {
            let generation = metadata_of(budget).get("generation").and_then(Value::as_i64).unwrap_or(0);
            if number(budget, "observedGeneration") < generation {
                let why =
                    format!("The disruption budget {budget_name} is still being processed by the server.");
                return Err(held_back(&why, Some(10)));
            }
            let allowed = number(budget, "disruptionsAllowed");
            if allowed < 1 {
                let why = format!(
                    "The disruption budget {budget_name} needs {} healthy pods and has {} currently",
                    number(budget, "desiredHealthy"),
                    number(budget, "currentHealthy")
                );
                return Err(held_back(&why, None));
            }
            budget["status"]["disruptionsAllowed"] = (allowed - 1).into();
            budget["status"]["disruptedPods"][pod_name.as_str()] = now.clone().into();
            Ok(())
        })
        .await?;
    Ok(())
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

fn held_back(why: &str, again: Option<u64>) -> Failure {
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": why}]});
    if let Some(seconds) = again {
        details["retryAfterSeconds"] = seconds.into();
    }
    Failure::too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.")
        .with_details(details)
}
