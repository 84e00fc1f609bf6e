//! A pod's status as a kubelet writes it: phase, conditions, addresses and containers.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{HostIP, Pod, PodCondition, PodIP, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::ADDRESS;
use super::container::{Machine, State};
use super::pod::Worker;
use crate::controllers::pods;

/// What the API should know of a pod now.
pub(super) fn pod_status(worker: &Worker, now: Timestamp) -> PodStatus {
    let phase = phase(worker);
    let begun = worker.main.iter().chain(&worker.init).any(|machine| machine.id.is_some());
    let ended = matches!(phase, "Succeeded" | "Failed");
    let conditions = [
        condition("PodReadyToStartContainers", if begun && !ended { Ok(()) } else { Err((None, None)) }),
        initialized(worker, phase),
        ready(worker, phase),
        containers_ready(worker, phase),
    ];
    let mut conditions: Vec<PodCondition> = conditions.into_iter().map(|c| dated(worker, c, now)).collect();
    // Those of others (the scheduler's, readiness gates) stay as they are.
    let others = worker.pod.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    let mine = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"];
    conditions.extend(others.filter(|other| !mine.contains(&other.type_.as_str())).cloned());
    if !conditions.iter().any(|condition| condition.type_ == "PodScheduled") {
        conditions.push(dated(worker, condition("PodScheduled", Ok(())), now));
    }
    let statuses = |machines: &[Machine], init| {
        let all: Vec<_> = machines.iter().map(|machine| machine.status(init)).collect();
        Some(all).filter(|all| !all.is_empty())
    };
    let old = worker.pod.status.clone().unwrap_or_default();
    let pod_ip = if worker.pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true) {
        ADDRESS.to_owned()
    } else {
        worker.address.clone()
    };
    let addressed = begun || old.pod_ip.is_some();
    PodStatus {
        phase: Some(phase.to_owned()),
        conditions: Some(conditions),
        host_ip: Some(ADDRESS.to_owned()),
        host_ips: Some(vec![HostIP { ip: ADDRESS.to_owned() }]),
        pod_ip: addressed.then(|| pod_ip.clone()),
        pod_ips: addressed.then(|| vec![PodIP { ip: pod_ip }]),
        start_time: old.start_time.clone().or(worker.written.start_time.clone()).or(Some(Time(now))),
        init_container_statuses: statuses(&worker.init, true),
        container_statuses: statuses(&worker.main, false),
        observed_generation: worker.pod.metadata.generation,
        reason: worker.failure.map(|(reason, _)| reason.to_owned()).or(old.reason),
        message: worker.failure.map(|(_, message)| message.to_owned()).or(old.message),
        ..old
    }
}

/// The patch that a kubelet sends: merged by type, in a fixed order, for this pod only.
pub(super) fn status_patch(pod: &Pod, status: &PodStatus) -> Value {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let order: Vec<Value> = conditions.iter().map(|condition| json!({"type": condition.type_})).collect();
    // A patch takes away only what it says: the reason and the message of before must not stay.
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|condition| {
            let mut tree = json!(condition);
            for field in ["reason", "message"] {
                tree.as_object_mut().map(|tree| tree.entry(field).or_insert(Value::Null));
            }
            tree
        })
        .collect();
    let mut patch = json!({
        "metadata": {"uid": pod.metadata.uid},
        "status": {
            "$setElementOrder/conditions": order,
            "phase": status.phase,
            "conditions": conditions,
            "hostIP": status.host_ip,
            "hostIPs": status.host_ips,
            "podIP": status.pod_ip,
            "podIPs": status.pod_ips,
            "startTime": status.start_time,
            "initContainerStatuses": status.init_container_statuses,
            "containerStatuses": status.container_statuses,
            "observedGeneration": status.observed_generation,
        },
    });
    for (field, text) in [("reason", &status.reason), ("message", &status.message)] {
        if let Some(text) = text {
            patch["status"][field] = text.as_str().into();
        }
    }
    patch
}

fn phase(worker: &Worker) -> &'static str {
    let policy = worker.restart_policy();
    let failed_init = worker.init.iter().any(|machine| machine.is_terminated() && !machine.is_initialized());
    if failed_init && policy == "Never" {
        return "Failed";
    }
    let begun = worker.main.iter().any(|machine| machine.id.is_some());
    let initializing = !begun && worker.init.iter().any(|machine| !machine.is_initialized());
    let never_started =
        |machine: &Machine| matches!(machine.state, State::Waiting { .. }) && machine.last.is_none();
    if !worker.is_stopping() && (initializing || worker.main.iter().any(never_started)) {
        return "Pending";
    }
    if worker.main.iter().any(Machine::is_running) {
        return "Running";
    }
    let restarting = worker.main.iter().any(|machine| !machine.is_terminated());
    if worker.failure.is_some() {
        return "Failed";
    }
    // Its sidecars end after it.
    if worker.init.iter().any(Machine::is_running) {
        return "Running";
    }
    match (worker.main.iter().all(Machine::has_succeeded), worker.is_stopping()) {
        (true, false) if policy == "Always" => "Running",
        (true, _) => "Succeeded",
        (false, true) => "Failed",
        (false, false) if restarting || policy != "Never" => "Running",
        (false, false) => "Failed",
    }
}

/// True, or false with a reason and a message.
type Verdict = Result<(), (Option<&'static str>, Option<String>)>;

fn condition(kind: &str, verdict: Verdict) -> PodCondition {
    let (status, reason, message) = match verdict {
        Ok(()) => ("True", None, None),
        Err((reason, message)) => ("False", reason, message),
    };
    PodCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.map(str::to_owned),
        message,
        ..PodCondition::default()
    }
}

fn initialized(worker: &Worker, phase: &str) -> PodCondition {
    let incomplete = names(worker.init.iter().filter(|machine| !machine.is_initialized()));
    if phase == "Succeeded" {
        let done = condition("Initialized", Ok(()));
        return PodCondition { reason: Some("PodCompleted".to_owned()), ..done };
    }
    if incomplete.is_empty() {
        return condition("Initialized", Ok(()));
    }
    let message = format!("containers with incomplete status: [{incomplete}]");
    condition("Initialized", Err((Some("ContainersNotInitialized"), Some(message))))
}

fn containers_ready(worker: &Worker, phase: &str) -> PodCondition {
    condition("ContainersReady", readiness(worker, phase))
}

fn ready(worker: &Worker, phase: &str) -> PodCondition {
    let gates = worker.pod.spec.as_ref().and_then(|spec| spec.readiness_gates.clone()).unwrap_or_default();
    let verdict = readiness(worker, phase).and_then(|()| {
        let failing: Vec<String> = gates
            .iter()
            .filter_map(|gate| match pods::condition(&worker.pod, &gate.condition_type) {
                None => Some(format!(
                    "corresponding condition of pod readiness gate {:?} does not exist.",
                    gate.condition_type
                )),
                Some(condition) if condition.status != "True" => Some(format!(
                    "the status of pod readiness gate {:?} is not \"True\", but {}",
                    gate.condition_type, condition.status
                )),
                Some(_) => None,
            })
            .collect();
        if failing.is_empty() {
            Ok(())
        } else {
            Err((Some("ReadinessGatesNotReady"), Some(failing.join(", "))))
        }
    });
    condition("Ready", verdict)
}

fn readiness(worker: &Worker, phase: &str) -> Verdict {
    match phase {
        "Succeeded" => return Err((Some("PodCompleted"), None)),
        "Failed" => return Err((Some("PodFailed"), None)),
        _ => {}
    }
    let unready = names(worker.main.iter().filter(|machine| !machine.ready));
    if unready.is_empty() {
        return Ok(());
    }
    Err((Some("ContainersNotReady"), Some(format!("containers with unready status: [{unready}]"))))
}

fn names<'a>(machines: impl Iterator<Item = &'a Machine>) -> String {
    machines.map(|machine| machine.spec.name.as_str()).collect::<Vec<_>>().join(" ")
}

/// Dates a condition: now, unless its status is what it was.
fn dated(worker: &Worker, mut condition: PodCondition, now: Timestamp) -> PodCondition {
    let before = worker.written.conditions.iter().flatten().find(|before| before.type_ == condition.type_);
    condition.last_transition_time = before
        .filter(|before| before.status == condition.status)
        .and_then(|before| before.last_transition_time.clone())
        .or(Some(Time(now)));
    condition.observed_generation = worker.pod.metadata.generation;
    condition
}
