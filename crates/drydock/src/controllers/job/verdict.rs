//! Whether a job ends, and how.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::Pod;

use super::super::informer::ObjectKey;
use super::super::pods;
use super::failure_policy::{Action, action, has_failed};
use super::{Controller, Sync, backoff, indexes, spec_of};

/// The end of a job: the condition that announces it, its reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) succeeded: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Verdict {
    fn failed(reason: &str, message: &str) -> Self {
        Self { succeeded: false, reason: reason.to_owned(), message: message.to_owned() }
    }

    /// All the pods that were to succeed have.
    pub(super) fn reached() -> Self {
        let (reason, message) = ("CompletionsReached", "Reached expected number of succeeded pods");
        Self { succeeded: true, reason: reason.to_owned(), message: message.to_owned() }
    }

    /// The condition that announces the end, while pods still run.
    pub(super) fn target(&self) -> &'static str {
        if self.succeeded { "SuccessCriteriaMet" } else { "FailureTarget" }
    }

    /// The condition of the end.
    pub(super) fn end(&self) -> &'static str {
        if self.succeeded { "Complete" } else { "Failed" }
    }

    /// The end that was announced before.
    fn announced(job: &Job) -> Option<Self> {
        let conditions = job.status.as_ref()?.conditions.as_deref()?;
        let of = |kind: &str| conditions.iter().find(|one| one.status == "True" && one.type_ == kind);
        let (succeeded, found) = match (of("SuccessCriteriaMet"), of("FailureTarget")) {
            (Some(met), _) => (true, met),
            (None, failed) => (false, failed?),
        };
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Some(Self { succeeded, reason: text(&found.reason), message: text(&found.message) })
    }
}

impl Controller {
    /// Whether the job ends here, other than by all its pods having succeeded.
    pub(super) fn verdict(&self, job: &Job, sync: &Sync, now: Timestamp) -> Option<Verdict> {
        Verdict::announced(job)
            .or_else(|| by_policy(job, &sync.pods))
            .or_else(|| self.by_limits(job, sync, now))
            .or_else(|| by_indexes(job, sync))
    }

    fn by_limits(&self, job: &Job, sync: &Sync, now: Timestamp) -> Option<Verdict> {
        let spec = spec_of(job);
        let limit = spec.backoff_limit.unwrap_or(6);
        if sync.failed > limit || restarted_too_often(spec, &sync.pods, limit) {
            let message = "Job has reached the specified backoff limit";
            return Some(Verdict::failed("BackoffLimitExceeded", message));
        }
        let seconds = spec.active_deadline_seconds.filter(|_| spec.suspend != Some(true))?;
        let since = job.status.as_ref()?.start_time.as_ref()?.0;
        let left = SignedDuration::from_secs(seconds) - now.duration_since(since);
        match Duration::try_from(left) {
            Ok(left) if !left.is_zero() => {
                self.queue.add_after(ObjectKey::of(&job.metadata), left);
                None
            }
            _ => Some(Verdict::failed("DeadlineExceeded", "Job was active longer than specified deadline")),
        }
    }
}

/// A rule of the pod failure policy fails the job as soon as it matches one pod.
fn by_policy(job: &Job, all: &[Arc<Pod>]) -> Option<Verdict> {
    let failed = all.iter().filter(|pod| has_failed(job, pod));
    let why = failed.filter_map(|pod| match action(job, pod) {
        Action::FailJob(why) => Some(why),
        _ => None,
    });
    Some(Verdict::failed("PodFailurePolicy", &why.into_iter().next()?))
}

fn by_indexes(job: &Job, sync: &Sync) -> Option<Verdict> {
    let (spec, indexes) = (spec_of(job), sync.indexes.as_ref()?);
    let completions = spec.completions.unwrap_or_default();
    if let Some(failed) = indexes.failed.as_ref().map(indexes::Indexes::len) {
        if spec.max_failed_indexes.is_some_and(|most| failed > most) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(Verdict::failed("MaxFailedIndexesExceeded", message));
        }
        if failed > 0 && failed + indexes.succeeded.len() >= completions {
            return Some(Verdict::failed("FailedIndexes", "Job has failed indexes"));
        }
    }
    let rule = indexes::fulfilled(spec.success_policy.as_ref()?, completions, &indexes.succeeded)?;
    let message = format!("Matched rules at index {rule}");
    Some(Verdict { succeeded: true, reason: "SuccessPolicy".to_owned(), message })
}

/// Whether as many pods have succeeded as are wanted.
pub(super) fn is_enough(job: &Job, sync: &Sync) -> bool {
    match spec_of(job).completions {
        None => sync.succeeded > 0,
        Some(wanted) => sync.succeeded >= wanted,
    }
}

/// Whether a pod's failure is the last that its index may have.
pub(super) fn fails_index(job: &Job, pod: &Pod, limit: i32) -> bool {
    has_failed(job, pod)
        && match action(job, pod) {
            Action::FailIndex => true,
            Action::Ignore => false,
            _ => i64::from(backoff::failures_before(pod)) >= i64::from(limit),
        }
}

/// A job of OnFailure pods fails by the restarts of their containers.
fn restarted_too_often(spec: &JobSpec, all: &[Arc<Pod>], limit: i32) -> bool {
    let policy = spec.template.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    if policy != Some("OnFailure") {
        return false;
    }
    let running = all.iter().filter(|pod| matches!(pods::phase(pod), "Running" | "Pending"));
    let statuses = running.filter_map(|pod| pod.status.as_ref());
    let restarts: i32 = statuses
        .flat_map(|status| status.container_statuses.iter().chain(&status.init_container_statuses).flatten())
        .map(|container| container.restart_count)
        .sum();
    if limit == 0 { restarts > 0 } else { restarts >= limit }
}
