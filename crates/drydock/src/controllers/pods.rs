//! What controllers ask about pods, and how they make them from a template.

use std::cmp::Ordering;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|condition| condition.status == "True")
}

pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

pub(crate) fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether a pod counts as a replica.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !is_terminating(pod)
}

/// Since when a pod has been ready.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    condition(pod, "Ready")
        .filter(|ready| ready.status == "True")?
        .last_transition_time
        .as_ref()
        .map(|time| time.0)
}

/// Whether a pod has been ready for long enough.
pub(crate) fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    if !is_ready(pod) {
        return false;
    }
    if min_ready_seconds == 0 {
        return true;
    }
    let wait = SignedDuration::from_secs(i64::from(min_ready_seconds));
    ready_since(pod).is_some_and(|since| since.checked_add(wait).is_ok_and(|when| when <= now))
}

/// When the next of these pods will have been ready for long enough.
pub(crate) fn next_available<'a>(
    pods: impl Iterator<Item = &'a Pod>,
    min_ready_seconds: i32,
    now: Timestamp,
) -> Option<Duration> {
    let wait = SignedDuration::from_secs(i64::from(min_ready_seconds));
    let times = pods.filter_map(ready_since).filter_map(|since| since.checked_add(wait).ok());
    let next = times.filter(|when| *when > now).min()?;
    Duration::try_from(next.duration_since(now)).ok()
}

/// A pod as its template describes it, without a name.
pub(crate) fn from_template(template: &PodTemplateSpec, namespace: &str, owner: OwnerReference) -> Pod {
    let meta = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            generate_name: Some(prefix(&owner.name)),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// `name-`, where that can begin a pod's name.
fn prefix(name: &str) -> String {
    format!("{name}-")
}

/// Which pods to delete first: unassigned, pending, unready, of lower deletion cost, ready for a shorter time, more
/// often restarted, younger ones.
pub(crate) fn deletion_order(a: &Pod, b: &Pod, now: Timestamp) -> Ordering {
    let assigned = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let phase_rank = |pod: &Pod| match phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    assigned(a)
        .cmp(&assigned(b))
        .then_with(|| phase_rank(a).cmp(&phase_rank(b)))
        .then_with(|| is_ready(a).cmp(&is_ready(b)))
        .then_with(|| deletion_cost(a).cmp(&deletion_cost(b)))
        .then_with(|| by_age(ready_since(a), ready_since(b), a, b, now))
        .then_with(|| restarts(b).cmp(&restarts(a)))
        .then_with(|| by_age(created(a), created(b), a, b, now))
}

fn deletion_cost(pod: &Pod) -> i32 {
    let annotations = pod.metadata.annotations.as_ref();
    annotations
        .and_then(|all| all.get("controller.kubernetes.io/pod-deletion-cost"))
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.into_iter().flatten().map(|status| status.restart_count).max().unwrap_or_default()
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// Younger first, by orders of magnitude of age; pods of like age by uid, so that it is not always the youngest.
fn by_age(a: Option<Timestamp>, b: Option<Timestamp>, pod_a: &Pod, pod_b: &Pod, now: Timestamp) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let (Some(a), Some(b)) = (a, b) else {
        return a.is_some().cmp(&b.is_some());
    };
    let rank = |time: Timestamp| {
        let age = now.duration_since(time).as_nanos();
        if age > 0 { i128::from(age.ilog2()) } else { -1 }
    };
    rank(a).cmp(&rank(b)).then_with(|| pod_a.metadata.uid.cmp(&pod_b.metadata.uid))
}
