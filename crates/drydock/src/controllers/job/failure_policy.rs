//! What a job's pod failure policy says of a failed pod.

use k8s_openapi::api::batch::v1::{Job, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::super::pods;
use super::spec_of;

/// What becomes of a failed pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// It counts against the limits.
    Count,
    /// It does not.
    Ignore,
    /// Its index has failed.
    FailIndex,
    /// The whole job has failed, and why.
    FailJob(String),
}

impl Action {
    pub(super) fn counts(&self) -> bool {
        *self != Self::Ignore
    }
}

/// Whether a pod is replaced only when it has really ended, not yet when it is being deleted.
pub(super) fn only_failed(job: &Job) -> bool {
    let spec = spec_of(job);
    spec.pod_replacement_policy.as_deref() == Some("Failed") || spec.pod_failure_policy.is_some()
}

/// Whether a pod has failed, as far as its job is concerned.
pub(super) fn has_failed(job: &Job, pod: &Pod) -> bool {
    match pods::phase(pod) {
        "Failed" => true,
        "Succeeded" => false,
        // One that is deleted may never get to tell how it ended.
        _ => pods::is_terminating(pod) && !only_failed(job),
    }
}

/// What the first rule that matches a failed pod says.
pub(super) fn action(job: &Job, pod: &Pod) -> Action {
    let rules = spec_of(job).pod_failure_policy.as_ref().map(|policy| policy.rules.as_slice());
    for (at, rule) in rules.unwrap_or_default().iter().enumerate() {
        if let Some(why) = matches(rule, pod) {
            return match rule.action.as_str() {
                "Ignore" => Action::Ignore,
                "FailIndex" => Action::FailIndex,
                "FailJob" => Action::FailJob(format!("{why} matching FailJob rule at index {at}")),
                _ => Action::Count,
            };
        }
    }
    Action::Count
}

/// What of a pod matches a rule.
fn matches(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let (namespace, name) = (
        pod.metadata.namespace.as_deref().unwrap_or_default(),
        pod.metadata.name.as_deref().unwrap_or_default(),
    );
    if let Some(codes) = &rule.on_exit_codes {
        let containers = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
        let (container, code) = containers.filter_map(|one| exit_of(one, codes)).next()?;
        return Some(format!(
            "Container {container} for pod {namespace}/{name} failed with exit code {code}"
        ));
    }
    let patterns = rule.on_pod_conditions.as_deref().unwrap_or_default();
    let found = status.conditions.iter().flatten().find(|condition| {
        patterns.iter().any(|pattern| {
            pattern.type_ == condition.type_
                && pattern.status.as_deref().unwrap_or("True") == condition.status
        })
    })?;
    Some(format!("Pod {namespace}/{name} has condition {}", found.type_))
}

fn exit_of<'a>(
    container: &'a ContainerStatus,
    wanted: &PodFailurePolicyOnExitCodesRequirement,
) -> Option<(&'a str, i32)> {
    let code = container.state.as_ref()?.terminated.as_ref()?.exit_code;
    let named = wanted.container_name.as_ref().is_none_or(|name| *name == container.name);
    let listed = wanted.values.contains(&code);
    let matches = match wanted.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    };
    (named && code != 0 && matches).then_some((container.name.as_str(), code))
}
