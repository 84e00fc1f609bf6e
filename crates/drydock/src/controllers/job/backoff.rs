//! How long a job waits before it replaces failed pods.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use super::super::pods;
use super::failure_policy::action;

/// The wait after a failed pod, doubled with each failure in a row.
const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_secs(600);
/// How often the pods of an index have failed, so that they count.
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// How often they have failed and that was ignored.
const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// Failures in a row, and when the last one was.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    last: Option<Timestamp>,
}

impl Backoff {
    /// With pods that have ended since.
    pub(super) fn with(self, succeeded: &[Arc<Pod>], failed: &[Arc<Pod>]) -> Self {
        let latest_success = succeeded.iter().filter_map(|pod| ended_at(pod)).max();
        let failed = failed.iter().filter_map(|pod| ended_at(pod));
        let since: Vec<_> = failed.filter(|at| latest_success.is_none_or(|success| *at > success)).collect();
        let before = if latest_success.is_some() { Self::default() } else { self };
        Self {
            failures: before.failures + u32::try_from(since.len()).unwrap_or(u32::MAX),
            last: since.into_iter().max().or(before.last),
        }
    }

    /// What is left of the wait.
    pub(super) fn left(self, now: Timestamp) -> Option<Duration> {
        let last = self.last.filter(|_| self.failures > 0)?;
        let wait = FIRST.saturating_mul(1 << (self.failures - 1).min(10)).min(LONGEST);
        Duration::try_from(wait - now.duration_since(last)).ok().filter(|left| !left.is_zero())
    }
}

/// What is left of the wait before the pod of an index is replaced.
pub(super) fn left_of_index(failed: &Pod, now: Timestamp) -> Option<Duration> {
    let failures = count(failed, FAILURES).saturating_add(count(failed, IGNORED)).saturating_add(1);
    Backoff { failures, last: ended_at(failed) }.left(now)
}

/// How often the index of a pod had failed before it.
pub(super) fn failures_before(pod: &Pod) -> u32 {
    count(pod, FAILURES)
}

/// Tells a new pod how often its index has failed.
pub(super) fn note_failures(pod: &mut Pod, job: &Job, replaced: Option<&Pod>) {
    let (mut failures, mut ignored) = (0, 0);
    if let Some(replaced) = replaced {
        (failures, ignored) = (count(replaced, FAILURES), count(replaced, IGNORED));
        if action(job, replaced).counts() {
            failures = failures.saturating_add(1);
        } else {
            ignored = ignored.saturating_add(1);
        }
    }
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(FAILURES.to_owned(), failures.to_string());
    if ignored > 0 {
        annotations.insert(IGNORED.to_owned(), ignored.to_string());
    }
}

/// The later of two failed pods of an index.
pub(super) fn is_later(pod: &Pod, than: &Pod) -> bool {
    let all = |pod: &Pod| count(pod, FAILURES).saturating_add(count(pod, IGNORED));
    all(than) <= all(pod) && ended_at(than) <= ended_at(pod)
}

fn count(pod: &Pod, annotation: &str) -> u32 {
    let text = pod.metadata.annotations.as_ref().and_then(|all| all.get(annotation));
    text.and_then(|text| text.parse::<i32>().ok())
        .and_then(|number| u32::try_from(number).ok())
        .unwrap_or_default()
}

/// When a pod ended: its last container, or when it stopped being ready, was deleted, or was made.
fn ended_at(pod: &Pod) -> Option<Timestamp> {
    let containers =
        pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let ends: Option<Vec<Timestamp>> = containers
        .iter()
        .map(|one| Some(one.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0))
        .collect();
    let unready = || {
        let ready = pods::condition(pod, "Ready").filter(|ready| ready.status == "False")?;
        Some(ready.last_transition_time.as_ref()?.0)
    };
    let deleted = || {
        let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or_default());
        pod.metadata.deletion_timestamp.as_ref()?.0.checked_sub(grace).ok()
    };
    ends.and_then(|ends| ends.into_iter().max())
        .or_else(unready)
        .or_else(deleted)
        .or_else(|| Some(pod.metadata.creation_timestamp.as_ref()?.0))
}
