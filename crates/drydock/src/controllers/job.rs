//! `job-controller`: runs pods until enough of them have succeeded.
//!
//! One pass over a job looks at its pods ([`Sync`]), decides whether and how the job ends ([`verdict`]), makes and
//! deletes pods ([`manage`]) and counts those that ended ([`tracking`]). A finished pod is counted exactly once, also
//! over crashes: its uid is written to `uncountedTerminatedPods`, then its finalizer is taken off, then the uid moves
//! into the counts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_machinery::Context;

use super::events::Recorder;
use super::informer::ObjectKey;
use super::informers::Handle;
use super::ownership::{claim_with, controller_of, enqueue_controller, selector_of};
use super::queue::Queue;
use super::{Error, Reconciler, Setup, pods};

mod backoff;
mod failure_policy;
mod indexes;
mod manage;
#[cfg(test)]
mod tests;
mod tracking;
mod verdict;

use backoff::Backoff;
use failure_policy::{action, has_failed};
use indexes::{Indexes, index_of, is_indexed, is_valid};
use verdict::Verdict;

const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// The name of this controller in `managedBy`.
const NAME: &str = "kubernetes.io/job-controller";
/// The waits after what the API refused: longer than those of other controllers.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(60);

pub(crate) fn start(setup: &mut Setup<'_>) {
    let controller = Controller {
        jobs: setup.handle(),
        pods: setup.handle(),
        recorder: setup.recorder("job-controller", None),
        context: setup.context.clone(),
        queue: Queue::with_backoff(FIRST_RETRY, LONGEST_RETRY),
        backoffs: Mutex::default(),
    };
    let adds = controller.queue.clone();
    controller.jobs.on_change(move |change| adds.add(ObjectKey::of(&change.latest().metadata)));
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
    /// Failures in a row of each job, by uid.
    backoffs: Mutex<BTreeMap<String, Backoff>>,
}

/// What a pass knows of a job's pods, as they were when it began.
struct Sync {
    pods: Vec<Arc<Pod>>,
    active: Vec<Arc<Pod>>,
    succeeded: i32,
    failed: i32,
    backoff: Backoff,
    /// Of an indexed job.
    indexes: Option<IndexSync>,
}

struct IndexSync {
    /// Those that the status tells of.
    before: Indexes,
    succeeded: Indexes,
    /// Only where indexes have limits of their own.
    failed: Option<Indexes>,
    /// The last failed pod of an index that is to get another, which has to tell the next one how often it failed.
    delayed: BTreeMap<i32, Arc<Pod>>,
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(found) = self.jobs.get(key) else {
            return self.release_orphans(key).await;
        };
        if spec_of(&found).managed_by.as_ref().is_some_and(|manager| manager != NAME) {
            return Ok(());
        }
        if is_finished(&found) {
            self.backoffs().remove(&uid_of(&found));
            return Ok(());
        }
        let mut job = (*found).clone();
        let Some(selector) = selector_of(spec_of(&job).selector.as_ref()) else {
            return Ok(());
        };
        let pods = claim_with(&job, &self.jobs, &self.pods, &selector, |_| true, Some(FINALIZER)).await?;
        let sync = self.look(&job, pods);
        let now = self.context.now();
        let suspended = spec_of(&job).suspend == Some(true);
        let status = job.status.get_or_insert_default();
        status.uncounted_terminated_pods.get_or_insert_default();
        if status.start_time.is_none() && !suspended {
            status.start_time = Some(Time(now));
        }

        let mut verdict = self.verdict(&job, &sync, now);
        let managed;
        if verdict.is_some() {
            managed = self.delete_active(&job, &sync.active).await;
            // What could not be deleted is tried again before the end is declared.
            verdict = verdict.filter(|_| managed.is_ok());
        } else if job.metadata.deletion_timestamp.is_none() {
            managed = self.manage(&job, &sync, suspended).await;
            if verdict::is_enough(&job, &sync) && self.active_now(&job).is_empty() {
                verdict = Some(Verdict::reached());
            } else {
                self.note_suspension(&mut job, suspended, now);
            }
        } else {
            managed = Ok(());
        }
        self.track(&found, job, &sync, verdict).await?;
        managed
    }
}

impl Controller {
    fn look(&self, job: &Job, all: Vec<Arc<Pod>>) -> Sync {
        let (spec, status) = (spec_of(job), job.status.clone().unwrap_or_default());
        let uncounted = status.uncounted_terminated_pods.unwrap_or_default();
        let (known_succeeded, known_failed) =
            (uncounted.succeeded.unwrap_or_default(), uncounted.failed.unwrap_or_default());
        let is_new = |pod: &Pod, known: &[String]| {
            let uid = pod.metadata.uid.as_deref().unwrap_or_default();
            has_finalizer(pod) && is_valid(spec, pod) && !known.iter().any(|known| known == uid)
        };
        let succeeded: Vec<_> = all
            .iter()
            .filter(|pod| is_new(pod, &known_succeeded) && pods::phase(pod) == "Succeeded")
            .cloned()
            .collect();
        let failed: Vec<_> =
            all.iter().filter(|pod| is_new(pod, &known_failed) && has_failed(job, pod)).cloned().collect();
        let counted = failed.iter().filter(|pod| action(job, pod).counts()).count();
        let backoff = self.backoffs().get(&uid_of(job)).copied().unwrap_or_default();
        let active: Vec<_> = all.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
        let indexes = is_indexed(spec).then(|| IndexSync::of(job, &all, &active));
        let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let done = status.succeeded.unwrap_or_default() + number(succeeded.len() + known_succeeded.len());
        Sync {
            succeeded: indexes.as_ref().map_or(done, |indexes| indexes.succeeded.len()),
            failed: status.failed.unwrap_or_default() + number(counted + known_failed.len()),
            backoff: backoff.with(&succeeded, &failed),
            active,
            pods: all,
            indexes,
        }
    }

    fn backoffs(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Backoff>> {
        self.backoffs.lock().unwrap_or_else(PoisonError::into_inner)
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

impl IndexSync {
    fn of(job: &Job, all: &[Arc<Pod>], active: &[Arc<Pod>]) -> Self {
        let spec = spec_of(job);
        let completions = spec.completions.unwrap_or_default();
        let status = job.status.clone().unwrap_or_default();
        let tracked: Vec<_> = all
            .iter()
            .filter(|pod| has_finalizer(pod) && is_valid(spec, pod))
            .filter_map(|pod| Some((index_of(pod)?, pod)))
            .collect();
        let before = Indexes::parse(status.completed_indexes.as_deref().unwrap_or_default(), completions);
        let new = tracked.iter().filter(|(_, pod)| pods::phase(pod) == "Succeeded").map(|(index, _)| *index);
        let succeeded = before.with(&new.collect());
        let failed = spec.backoff_limit_per_index.map(|limit| {
            let new = tracked.iter().filter(|(_, pod)| verdict::fails_index(job, pod, limit));
            Indexes::parse(status.failed_indexes.as_deref().unwrap_or_default(), completions)
                .with(&new.map(|(index, _)| *index).collect())
        });
        let mut delayed: BTreeMap<i32, Arc<Pod>> = BTreeMap::new();
        if let Some(failed) = &failed {
            let running: Indexes = active.iter().filter_map(|pod| index_of(pod)).collect();
            for (index, pod) in tracked.iter().filter(|(_, pod)| has_failed(job, pod)) {
                let over = succeeded.has(*index) || failed.has(*index) || running.has(*index);
                if !over && delayed.get(index).is_none_or(|known| backoff::is_later(pod, known)) {
                    delayed.insert(*index, Arc::clone(pod));
                }
            }
        }
        Self { before, succeeded, failed, delayed }
    }
}

fn spec_of(job: &Job) -> &JobSpec {
    static NONE: std::sync::OnceLock<JobSpec> = std::sync::OnceLock::new();
    job.spec.as_ref().unwrap_or_else(|| NONE.get_or_init(JobSpec::default))
}

fn uid_of(job: &Job) -> String {
    job.metadata.uid.clone().unwrap_or_default()
}

fn has_finalizer(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

fn is_terminating(pod: &Pod) -> bool {
    pods::is_terminating(pod) && !pods::is_finished(pod)
}

/// Whether a job is over, well or not.
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
