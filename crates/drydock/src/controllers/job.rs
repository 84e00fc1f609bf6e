//! `job-controller`: runs pods until enough of them have succeeded.
//!
//! A finished pod is counted exactly once, also over crashes: its uid is written to `uncountedTerminatedPods`, then
//! its finalizer is taken off, then the uid moves into the counts ([`tracking`]). Indexed jobs, success and failure
//! policies are not done yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_machinery::Context;

use super::events::Recorder;
use super::informer::ObjectKey;
use super::informers::Handle;
use super::ownership::{claim, controller_of, controller_ref, enqueue_controller, selector_of};
use super::queue::Queue;
use super::{Error, Reconciler, Setup, pods, queue_of};

mod tracking;

const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// The wait after a failed pod, doubled with each failure in a row.
const FIRST_BACKOFF: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_BACKOFF: SignedDuration = SignedDuration::from_secs(600);
/// At most this many pods are made or deleted in one go.
const BURST: usize = 500;

pub(crate) fn start(setup: &mut Setup<'_>) {
    let controller = Controller {
        jobs: setup.handle(),
        pods: setup.handle(),
        recorder: setup.recorder("job-controller", None),
        context: setup.context.clone(),
        queue: queue_of(&setup.informers.of::<Job>()),
        failures: Mutex::default(),
    };
    let owners = controller.jobs.informer.clone();
    controller.pods.on_change(enqueue_controller::<Job, Pod>(owners, controller.queue.clone()));
    setup.work(&controller.queue.clone(), controller);
}

struct Controller {
    jobs: Handle<Job>,
    pods: Handle<Pod>,
    recorder: Recorder,
    context: Context,
    queue: Queue<ObjectKey>,
    /// Failures in a row of each job by uid, and when the last one was.
    failures: Mutex<BTreeMap<String, (u32, Timestamp)>>,
}

/// What a sync knows of a job.
struct Sync {
    pods: Vec<Arc<Pod>>,
    active: Vec<Arc<Pod>>,
    succeeded: i32,
    failed: i32,
    /// Pods that ended and are in no count yet.
    ended: tracking::Ended,
}

/// How a job ends.
struct Verdict {
    kind: &'static str,
    reason: String,
    message: String,
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(found) = self.jobs.get(key) else {
            return self.release_orphans(key).await;
        };
        if is_finished(&found) {
            self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(&uid_of(&found));
            return Ok(());
        }
        let mut job = (*found).clone();
        let Some(selector) = selector_of(spec_of(&job).selector.as_ref()) else {
            return Ok(());
        };
        let pods = claim(&job, &self.jobs, &self.pods, &selector, |_| true).await?;
        let sync = self.look(&job, pods);
        let now = self.context.now();
        let suspended = spec_of(&job).suspend == Some(true);
        let status = job.status.get_or_insert_default();
        status.uncounted_terminated_pods.get_or_insert_default();
        if status.start_time.is_none() && !suspended {
            status.start_time = Some(Time(now));
        }

        let mut verdict = self.verdict(&job, &sync, now);
        let mut managed = Ok(());
        if verdict.is_some() {
            self.delete_pods(&job, &sync.active).await?;
        } else if job.metadata.deletion_timestamp.is_none() {
            managed = self.manage(&job, &sync, suspended).await;
            let none_active = self.active_now(&job).is_empty();
            let enough = match spec_of(&job).completions {
                None => sync.succeeded > 0,
                Some(wanted) => sync.succeeded >= wanted,
            };
            if managed.is_ok() && enough && none_active && !suspended {
                verdict = Some(Verdict {
                    kind: "SuccessCriteriaMet",
                    reason: "CompletionsReached".to_owned(),
                    message: "Reached expected number of succeeded pods".to_owned(),
                });
            } else {
                self.note_suspension(&mut job, suspended, now);
            }
        }
        self.track(found.as_ref(), job, sync, verdict).await?;
        managed
    }
}

impl Controller {
    fn look(&self, job: &Job, all: Vec<Arc<Pod>>) -> Sync {
        let status = job.status.clone().unwrap_or_default();
        let ended = tracking::Ended::of(job, &all);
        let active = all.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
        let count = |uids: &[String]| i32::try_from(uids.len()).unwrap_or(i32::MAX);
        let (succeeded, failed) = (count(&ended.succeeded), count(&ended.failed));
        self.note_failures(job, &all, &ended);
        Sync {
            active,
            succeeded: status.succeeded.unwrap_or_default() + succeeded,
            failed: status.failed.unwrap_or_default() + failed,
            ended,
            pods: all,
        }
    }

    /// Remembers failures in a row, for the wait before the next pod.
    fn note_failures(&self, job: &Job, all: &[Arc<Pod>], ended: &tracking::Ended) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.context.now();
        if !ended.new_succeeded.is_empty() {
            failures.remove(&uid_of(job));
        }
        for uid in &ended.new_failed {
            let pod = all.iter().find(|pod| pod.metadata.uid.as_ref() == Some(uid));
            let when = pod.and_then(|pod| finished_at(pod)).unwrap_or(now);
            let (count, last) = failures.entry(uid_of(job)).or_insert((0, when));
            *count += 1;
            *last = when.max(*last);
        }
    }

    /// Whether the job ends here, and how.
    fn verdict(&self, job: &Job, sync: &Sync, now: Timestamp) -> Option<Verdict> {
        let conditions =
            job.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let begun = conditions.iter().find(|condition| {
            condition.status == "True"
                && matches!(condition.type_.as_str(), "SuccessCriteriaMet" | "FailureTarget")
        });
        if let Some(begun) = begun {
            let kind = if begun.type_ == "FailureTarget" { "FailureTarget" } else { "SuccessCriteriaMet" };
            let (reason, message) =
                (begun.reason.clone().unwrap_or_default(), begun.message.clone().unwrap_or_default());
            return Some(Verdict { kind, reason, message });
        }
        let spec = spec_of(job);
        let failed = |reason: &str, message: &str| {
            Some(Verdict { kind: "FailureTarget", reason: reason.to_owned(), message: message.to_owned() })
        };
        let limit = spec.backoff_limit.unwrap_or(6);
        if sync.failed > limit || restarted_too_often(spec, &sync.pods, limit) {
            return failed("BackoffLimitExceeded", "Job has reached the specified backoff limit");
        }
        let (Some(seconds), Some(since)) = (spec.active_deadline_seconds, start_time(job)) else {
            return None;
        };
        let left = SignedDuration::from_secs(seconds) - now.duration_since(since);
        match Duration::try_from(left) {
            Ok(left) if !left.is_zero() => self.queue.add_after(ObjectKey::of(&job.metadata), left),
            _ if spec.suspend == Some(true) => {}
            _ => {
                return failed("DeadlineExceeded", "Job was active longer than specified deadline");
            }
        }
        None
    }

    /// Makes and deletes pods, so that as many run as should.
    async fn manage(&self, job: &Job, sync: &Sync, suspended: bool) -> Result<(), Error> {
        let spec = spec_of(job);
        let active = sync.active.len();
        let parallelism = usize::try_from(spec.parallelism.unwrap_or(1)).unwrap_or_default();
        let wanted = match spec.completions {
            _ if suspended => 0,
            None if sync.succeeded > 0 => active,
            None => parallelism,
            Some(completions) => {
                usize::try_from(completions - sync.succeeded).unwrap_or_default().min(parallelism)
            }
        };
        if active > wanted {
            let now = self.context.now();
            let mut ranked = sync.active.clone();
            ranked.sort_by(|a, b| pods::deletion_order(a, b, now));
            ranked.truncate((active - wanted).min(BURST));
            return self.delete_pods(job, &ranked).await;
        }
        let replaces_failed_only = spec.pod_replacement_policy.as_deref() == Some("Failed");
        let terminating = sync.pods.iter().filter(|pod| replaces_failed_only && is_terminating(pod)).count();
        let missing = wanted.saturating_sub(active + terminating).min(BURST);
        if missing == 0 {
            return Ok(());
        }
        if let Some(wait) = self.wait_after_failure(job) {
            self.queue.add_after(ObjectKey::of(&job.metadata), wait);
            return Ok(());
        }
        let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
        let mut pod = pods::from_template(&spec.template, namespace, controller_ref(job));
        let finalizers = pod.metadata.finalizers.get_or_insert_default();
        if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            finalizers.push(FINALIZER.to_owned());
        }
        for _ in 0..missing {
            match self.pods.create(&pod).await {
                Ok(made) => {
                    let name = made.metadata.name.unwrap_or_default();
                    self.recorder.normal(job, "SuccessfulCreate", format!("Created pod: {name}"));
                }
                Err(error) if error.namespace_terminating() => return Ok(()),
                Err(error) => {
                    self.recorder.warning(
                        job,
                        "FailedCreate",
                        format!("Error creating: {}", error.message()),
                    );
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn wait_after_failure(&self, job: &Job) -> Option<Duration> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, last) = *failures.get(&uid_of(job))?;
        let backoff = FIRST_BACKOFF.saturating_mul(1 << (count - 1).min(10)).min(LONGEST_BACKOFF);
        let left = backoff - self.context.now().duration_since(last);
        Duration::try_from(left).ok().filter(|left| !left.is_zero())
    }

    async fn delete_pods(&self, job: &Job, doomed: &[Arc<Pod>]) -> Result<(), Error> {
        for pod in doomed {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            if let Err(error) = self.pods.delete(pod).await {
                self.recorder.warning(job, "FailedDelete", format!("Error deleting: {}", error.message()));
                return Err(error);
            }
            self.recorder.normal(job, "SuccessfulDelete", format!("Deleted pod: {name}"));
        }
        Ok(())
    }

    /// The job's active pods, those just made or deleted included.
    fn active_now(&self, job: &Job) -> Vec<Arc<Pod>> {
        let mine = self.pods.controlled_by(&uid_of(job));
        mine.into_iter().filter(|pod| pods::is_active(pod)).collect()
    }

    fn note_suspension(&self, job: &mut Job, suspended: bool, now: Timestamp) {
        let status = job.status.get_or_insert_default();
        let conditions = status.conditions.get_or_insert_default();
        let known = conditions.iter().position(|condition| condition.type_ == "Suspended");
        let was = known.is_some_and(|at| conditions[at].status == "True");
        if was == suspended {
            return;
        }
        let (value, reason, message) = if suspended {
            ("True", "JobSuspended", "Job suspended")
        } else {
            ("False", "JobResumed", "Job resumed")
        };
        let condition = condition("Suspended", value, reason, message, now);
        match known {
            Some(at) => conditions[at] = condition,
            None => conditions.push(condition),
        }
        status.start_time = (!suspended).then_some(Time(now));
        let event = if suspended { "Suspended" } else { "Resumed" };
        self.recorder.normal(job, event, message.to_owned());
    }

    /// Takes the finalizer off pods whose job is gone.
    async fn release_orphans(&self, key: &ObjectKey) -> Result<(), Error> {
        for pod in self.pods.in_namespace(&key.namespace) {
            let of_it = controller_of(&pod.metadata).is_some_and(|owner| {
                owner.kind == "Job" && owner.name == key.name && owner.api_version == "batch/v1"
            });
            if of_it {
                self.release(&pod).await?;
            }
        }
        Ok(())
    }
}

/// A job of OnFailure pods fails by the restarts of their containers.
fn restarted_too_often(spec: &JobSpec, pods: &[Arc<Pod>], limit: i32) -> bool {
    let policy = spec.template.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    if policy != Some("OnFailure") {
        return false;
    }
    let running = pods.iter().filter(|pod| matches!(pods::phase(pod), "Running" | "Pending"));
    let statuses = running.filter_map(|pod| pod.status.as_ref());
    let restarts: i32 = statuses
        .flat_map(|status| status.container_statuses.iter().chain(&status.init_container_statuses).flatten())
        .map(|container| container.restart_count)
        .sum();
    if limit == 0 { restarts > 0 } else { restarts >= limit }
}

fn spec_of(job: &Job) -> &JobSpec {
    static NONE: std::sync::OnceLock<JobSpec> = std::sync::OnceLock::new();
    job.spec.as_ref().unwrap_or_else(|| NONE.get_or_init(JobSpec::default))
}

fn uid_of(job: &Job) -> String {
    job.metadata.uid.clone().unwrap_or_default()
}

fn start_time(job: &Job) -> Option<Timestamp> {
    job.status.as_ref().and_then(|status| status.start_time.as_ref()).map(|time| time.0)
}

fn is_terminating(pod: &Pod) -> bool {
    pods::is_terminating(pod) && !pods::is_finished(pod)
}

fn finished_at(pod: &Pod) -> Option<Timestamp> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let ends =
        statuses.iter().filter_map(|status| status.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref());
    ends.map(|time| time.0).max()
}

/// When and whether a job is over, well or not.
pub(super) fn is_finished(job: &Job) -> bool {
    finished_condition(job).is_some()
}

pub(super) fn finished_condition(job: &Job) -> Option<&JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|c| c.status == "True" && matches!(c.type_.as_str(), "Complete" | "Failed"))
}

fn condition(kind: &str, value: &str, reason: &str, message: &str, now: Timestamp) -> JobCondition {
    JobCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}
