//! Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers.

use serde_json::{Value, json};
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;
use windlass_machinery::selector::Labels;

use super::field::{
    At, Errors, count, entries, has, immutable, immutable_as, list, named, not_negative, number, text,
};
use super::{internal, pod, selector, storage};

const SPEC: At<'static> = At::new("spec");
const STATUS: At<'static> = At::new("status");

/// A deployment.
pub(super) fn deployment(out: &mut Errors, object: &Value) {
    let spec = &object["spec"];
    not_negative(out, spec, &["replicas"], &SPEC);
    selected_template(out, spec, "deployment", "ReplicaSet");
    deployment_strategy(out, &spec["strategy"], &SPEC.child("strategy"));
    not_negative(out, spec, &["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"], &SPEC);
    if let Some(seconds) = number(spec, "progressDeadlineSeconds")
        && seconds <= count(spec, "minReadySeconds")
    {
        let at = SPEC.child("progressDeadlineSeconds");
        out.push(FieldError::invalid(at, seconds, "must be greater than minReadySeconds"));
    }
}

/// A replica set.
pub(super) fn replica_set(out: &mut Errors, object: &Value) {
    not_negative(out, &object["spec"], &["replicas", "minReadySeconds"], &SPEC);
    selected_template(out, &object["spec"], "deployment", "ReplicaSet");
}

/// A changed deployment, replica set or daemon set.
pub(super) fn same_selector(out: &mut Errors, new: &Value, old: &Value) {
    immutable_as(out, &new["spec"]["selector"], &old["spec"]["selector"], &SPEC.child("selector"), |value| {
        internal::shown("LabelSelector", value)
    });
}

/// A replication controller.
pub(super) fn replication_controller(out: &mut Errors, object: &Value) {
    let spec = &object["spec"];
    not_negative(out, spec, &["minReadySeconds"], &SPEC);
    let wanted = Labels::from_labels(
        entries(spec, "selector").map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())),
    );
    if wanted.is_everything() {
        out.push(FieldError::required(SPEC.child("selector"), ""));
    }
    not_negative(out, spec, &["replicas"], &SPEC);
    let at = &SPEC.child("template");
    if !has(spec, "template") {
        out.push(FieldError::required(at, ""));
        return;
    }
    selector::matches_template(out, &wanted, &spec["template"], at);
    pod::template(out, &spec["template"], at);
    always(out, &spec["template"], at, "ReplicationController");
}

/// A revision of a controller.
pub(super) fn revision(out: &mut Errors, revision: &Value) {
    if revision["data"].is_null() {
        out.push(FieldError::required("data", "data is mandatory"));
    }
    revision_number(out, revision);
}

fn revision_number(out: &mut Errors, revision: &Value) {
    if let Some(number) = number(revision, "revision").filter(|number| *number < 0) {
        out.push(FieldError::invalid("revision", number, "must be greater than or equal to 0"));
    }
}

/// A changed revision.
pub(super) fn revision_update(out: &mut Errors, new: &Value, old: &Value) {
    revision_number(out, new);
    immutable(out, &new["data"], &old["data"], &At::new("data"));
}

/// A daemon set.
pub(super) fn daemon_set(out: &mut Errors, object: &Value) {
    let (spec, at) = (&object["spec"], &SPEC.child("selector"));
    selector::label_selector(out, &spec["selector"], at);
    let inner = &SPEC.child("template");
    if let Some(wanted) = selector::read(&spec["selector"]) {
        selector::matches_template(out, &wanted, &spec["template"], inner);
    }
    selector::not_empty(out, &spec["selector"], at, "daemonset");
    pod::template(out, &spec["template"], inner);
    always(out, &spec["template"], inner, "DaemonSet");
    not_negative(out, spec, &["minReadySeconds"], &SPEC);
    daemon_strategy(out, &spec["updateStrategy"], &SPEC.child("updateStrategy"));
    not_negative(out, spec, &["revisionHistoryLimit"], &SPEC);
}

/// A new stateful set.
pub(super) fn stateful_set(out: &mut Errors, object: &Value) {
    stateful_spec(out, &object["spec"], true);
}

/// A changed stateful set.
pub(super) fn stateful_set_update(out: &mut Errors, new: &Value, old: &Value) {
    const CHANGEABLE: [&str; 7] = [
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    ];
    stateful_spec(out, &new["spec"], false);
    let rest = |object: &Value| {
        let mut map = object["spec"].as_object().cloned().unwrap_or_default();
        map.retain(|field, _| !CHANGEABLE.contains(&field.as_str()));
        map
    };
    if rest(new) != rest(old) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        out.push(FieldError::forbidden(SPEC, why));
    }
}

/// The status of a deployment.
pub(super) fn deployment_status(out: &mut Errors, new: &Value, old: &Value) {
    let numbers = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    not_negative(out, &new["status"], &numbers, &STATUS);
    at_most(out, new, &["updatedReplicas", "readyReplicas", "availableReplicas"], "readyReplicas");
    not_decremented(out, new, old);
}

/// The status of a replica set or replication controller.
pub(super) fn replica_status(out: &mut Errors, new: &Value, _: &Value) {
    let numbers = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    not_negative(out, &new["status"], &numbers, &STATUS);
    at_most(out, new, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"], "readyReplicas");
}

/// The status of a stateful set.
pub(super) fn stateful_status(out: &mut Errors, new: &Value, old: &Value) {
    let numbers = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    not_negative(out, &new["status"], &numbers, &STATUS);
    let bounded = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    at_most(out, new, &bounded, "status.readyReplicas");
    not_decremented(out, new, old);
}

/// The status of a daemon set.
pub(super) fn daemon_status(out: &mut Errors, new: &Value, old: &Value) {
    let numbers = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    not_negative(out, &new["status"], &numbers, &STATUS);
    not_decremented(out, new, old);
}

/// A number or a percentage, zero or more.
pub(super) fn share(out: &mut Errors, object: &Value, field: &str, at: &At<'_>) {
    if let Some(percent) = object[field].as_str() {
        let why = names::percent(percent);
        out.extend(why.into_iter().map(|why| FieldError::invalid(at.child(field), percent, why)));
    } else {
        not_negative(out, object, &[field], at);
    }
}

/// A percentage of all, at most.
pub(super) fn not_more_than_all(out: &mut Errors, object: &Value, field: &str, at: &At<'_>) {
    if percentage(&object[field]).is_some_and(|percent| percent > 100) {
        out.push(FieldError::invalid(at.child(field), &object[field], "must not be greater than 100%"));
    }
}

fn percentage(value: &Value) -> Option<i64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    digits.chars().all(|c| c.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// What a share comes to; a number may be written as text.
fn share_value(value: &Value) -> i64 {
    let text = || value.as_str().and_then(|text| text.parse().ok());
    percentage(value).or_else(|| value.as_i64()).or_else(text).unwrap_or_default()
}

/// A selector and a template that it matches; `kind` is what the selector is for, `owner` what the template is for.
fn selected_template(out: &mut Errors, spec: &Value, kind: &str, owner: &str) {
    selector::of_workload(out, spec, &SPEC, kind);
    let at = &SPEC.child("template");
    match selector::read(&spec["selector"]) {
        None => {
            let at = SPEC.child("selector");
            let shown = internal::shown("LabelSelector", &spec["selector"]);
            out.push(FieldError::invalid(at, shown, "invalid label selector"));
        }
        Some(wanted) => {
            selector::matches_template(out, &wanted, &spec["template"], at);
            pod::template(out, &spec["template"], at);
            always(out, &spec["template"], at, owner);
        }
    }
}

/// Pods of a template run until they are deleted.
fn always(out: &mut Errors, template: &Value, at: &At<'_>, owner: &str) {
    let (spec, at) = (&template["spec"], &at.child("spec"));
    let policy = text(spec, "restartPolicy");
    if policy != "Always" {
        out.push(FieldError::not_supported(at.child("restartPolicy"), policy, ["Always"]));
    }
    if has(spec, "activeDeadlineSeconds") {
        let why = format!("activeDeadlineSeconds in {owner} is not Supported");
        out.push(FieldError::forbidden(at.child("activeDeadlineSeconds"), why));
    }
}

fn deployment_strategy(out: &mut Errors, strategy: &Value, at: &At<'_>) {
    let (rolling, inner) = (&strategy["rollingUpdate"], &at.child("rollingUpdate"));
    match text(strategy, "type") {
        "Recreate" => {
            if !rolling.is_null() {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                out.push(FieldError::forbidden(inner, why));
            }
        }
        "RollingUpdate" if rolling.is_null() => {
            out.push(FieldError::required(inner, "this should be defaulted and never be nil"));
        }
        "RollingUpdate" => {
            share(out, rolling, "maxUnavailable", inner);
            share(out, rolling, "maxSurge", inner);
            if share_value(&rolling["maxUnavailable"]) == 0 && share_value(&rolling["maxSurge"]) == 0 {
                let at = inner.child("maxUnavailable");
                out.push(FieldError::invalid(
                    at,
                    &rolling["maxUnavailable"],
                    "may not be 0 when `maxSurge` is 0",
                ));
            }
            not_more_than_all(out, rolling, "maxUnavailable", inner);
        }
        _ => {
            let shown = internal::shown("DeploymentStrategy", strategy);
            out.push(FieldError::not_supported(at, shown, ["Recreate", "RollingUpdate"]));
        }
    }
}

fn daemon_strategy(out: &mut Errors, strategy: &Value, at: &At<'_>) {
    let (rolling, inner) = (&strategy["rollingUpdate"], &at.child("rollingUpdate"));
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" if rolling.is_null() => out.push(FieldError::required(inner, "")),
        "RollingUpdate" => {
            for field in ["maxUnavailable", "maxSurge"] {
                share(out, rolling, field, inner);
            }
            for field in ["maxUnavailable", "maxSurge"] {
                not_more_than_all(out, rolling, field, inner);
            }
            match (share_value(&rolling["maxUnavailable"]) != 0, share_value(&rolling["maxSurge"]) != 0) {
                (true, true) => {
                    let why = "may not be set when maxUnavailable is non-zero";
                    out.push(FieldError::invalid(inner.child("maxSurge"), &rolling["maxSurge"], why));
                }
                (false, false) => {
                    let at = inner.child("maxUnavailable");
                    out.push(FieldError::required(at, "cannot be 0 when maxSurge is 0"));
                }
                _ => {}
            }
        }
        _ => {
            let shown = internal::shown("DaemonSetUpdateStrategy", strategy);
            out.push(FieldError::not_supported(at, shown, ["RollingUpdate", "OnDelete"]));
        }
    }
}

fn stateful_spec(out: &mut Errors, spec: &Value, new: bool) {
    match text(spec, "podManagementPolicy") {
        "" => out.push(FieldError::required(SPEC.child("podManagementPolicy"), "")),
        "OrderedReady" | "Parallel" => {}
        other => {
            let why = "must be 'OrderedReady' or 'Parallel'";
            out.push(FieldError::invalid(SPEC.child("podManagementPolicy"), other, why));
        }
    }
    stateful_strategy(out, &spec["updateStrategy"], &SPEC.child("updateStrategy"));
    let at = &SPEC.child("persistentVolumeClaimRetentionPolicy");
    let policy = &spec["persistentVolumeClaimRetentionPolicy"];
    for field in ["whenDeleted", "whenScaled"].iter().filter(|_| !policy.is_null()) {
        if !matches!(text(policy, field), "Retain" | "Delete") {
            out.push(FieldError::not_supported(at.child(field), text(policy, field), ["Retain", "Delete"]));
        }
    }
    if new {
        let at = &SPEC.child("volumeClaimTemplates");
        for (index, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
            storage::claim_spec(out, &claim["spec"], &at.index(index).child("spec"));
        }
    }
    not_negative(out, spec, &["replicas", "minReadySeconds"], &SPEC);
    not_negative(out, &spec["ordinals"], &["start"], &SPEC.child("ordinals"));
    if new {
        named(out, spec, "serviceName", &SPEC, names::dns1123_label);
    }
    selector::of_workload(out, spec, &SPEC, "statefulset");
    let at = &SPEC.child("template");
    match selector::read(&spec["selector"]) {
        None => {
            let shown = internal::shown("LabelSelector", &spec["selector"]);
            out.push(FieldError::invalid(SPEC.child("selector"), shown, ""));
        }
        Some(wanted) => {
            let template = with_claims(spec);
            selector::matches_template(out, &wanted, &template, at);
            pod::template(out, &template, at);
            pod::template_metadata(out, &template, at);
        }
    }
    always(out, &spec["template"], at, "StatefulSet");
}

/// The template as pods of the set will have it: with its claims, and names of its own.
fn with_claims(spec: &Value) -> Value {
    let mut template = spec["template"].clone();
    let mut claims: Vec<&str> =
        list(spec, "volumeClaimTemplates").iter().map(|claim| text(&claim["metadata"], "name")).collect();
    claims.sort_unstable();
    claims.dedup();
    if let Some(pod) = template.get_mut("spec").and_then(Value::as_object_mut) {
        pod.remove("hostname");
        pod.remove("subdomain");
        if !claims.is_empty() {
            let mut volumes: Vec<Value> = claims
                .iter()
                .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
                .collect();
            let own = pod.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
            volumes.extend(own.into_iter().filter(|volume| !claims.contains(&text(volume, "name"))));
            pod.insert("volumes".into(), volumes.into());
        }
    }
    template
}

fn stateful_strategy(out: &mut Errors, strategy: &Value, at: &At<'_>) {
    let (rolling, inner) = (&strategy["rollingUpdate"], &at.child("rollingUpdate"));
    match text(strategy, "type") {
        "" => out.push(FieldError::required(at, "")),
        "OnDelete" => {
            if !rolling.is_null() {
                let shown = internal::shown("RollingUpdateStatefulSetStrategy", rolling);
                out.push(FieldError::invalid(
                    inner,
                    shown,
                    "only allowed for updateStrategy 'RollingUpdate'",
                ));
            }
        }
        "RollingUpdate" => {
            not_negative(out, rolling, &["partition"], inner);
        }
        _ => {
            let shown = internal::shown("StatefulSetUpdateStrategy", strategy);
            out.push(FieldError::invalid(at, shown, "must be 'RollingUpdate' or 'OnDelete'"));
        }
    }
}

/// None of the counts is greater than that of all replicas, nor is there more available than ready.
fn at_most(out: &mut Errors, object: &Value, fields: &[&str], ready: &str) {
    let status = &object["status"];
    for field in fields.iter().filter(|field| count(status, field) > count(status, "replicas")) {
        let why = "cannot be greater than status.replicas";
        out.push(FieldError::invalid(STATUS.child(field), count(status, field), why));
    }
    let available = count(status, "availableReplicas");
    if available > count(status, "readyReplicas") {
        let at = STATUS.child("availableReplicas");
        out.push(FieldError::invalid(at, available, format!("cannot be greater than {ready}")));
    }
}

fn not_decremented(out: &mut Errors, new: &Value, old: &Value) {
    let collisions = |object: &Value| number(&object["status"], "collisionCount");
    if collisions(old).is_some_and(|old| collisions(new).is_none_or(|new| new < old)) {
        let value = collisions(new).unwrap_or_default();
        out.push(FieldError::invalid(STATUS.child("collisionCount"), value, "cannot be decremented"));
    }
}
