//! `cronjob-controller`: makes a Job at each time of a schedule.
//!
//! A Job's name says which time it is for, so that none is made twice. What a time is and which ones were missed is in
//! [`times`]; old Jobs are deleted by [`history`].

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::DeleteParams;
use windlass_machinery::Context;

use super::events::{Recorder, reference};
use super::informer::ObjectKey;
use super::informers::Handle;
use super::job::{finished_condition, is_finished};
use super::ownership::{controller_of, controller_ref};
use super::queue::Queue;
use super::{Error, Reconciler, Setup};

mod history;
#[cfg(test)]
mod tests;
mod times;

use times::Times;

const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

pub(crate) fn start(setup: &mut Setup<'_>) {
    let queue = Queue::new();
    let controller = Controller {
        cron_jobs: setup.handle(),
        jobs: setup.handle(),
        recorder: setup.recorder("cronjob-controller", None),
        context: setup.context.clone(),
        queue: queue.clone(),
    };
    let (adds, context) = (queue.clone(), setup.context.clone());
    controller.cron_jobs.on_change(move |change| {
        let key = ObjectKey::of(&change.latest().metadata);
        let when = |job: &CronJob| (job.spec.schedule.clone(), job.spec.time_zone.clone());
        match (&change.old, &change.new) {
            // Times that a new schedule would have had in the past are none that were missed.
            (Some(old), Some(new)) if when(old) != when(new) => {
                if let Ok(times) = Times::of(new) {
                    let now = context.now();
                    adds.add_after(key, wait(times.next(now), now));
                }
            }
            _ => adds.add(key),
        }
    });
    let adds = queue.clone();
    controller.jobs.on_change(move |change| {
        let namespace = change.latest().metadata.namespace.clone().unwrap_or_default();
        let owner = controller_of(&change.latest().metadata).filter(|owner| owner.kind == "CronJob");
        if let Some(owner) = owner {
            adds.add(ObjectKey::new(&namespace, &owner.name));
        }
    });
    setup.work(&queue, controller);
}

struct Controller {
    cron_jobs: Handle<CronJob>,
    jobs: Handle<Job>,
    recorder: Recorder,
    context: Context,
    queue: Queue<ObjectKey>,
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(found) = self.cron_jobs.get(key) else {
            return Ok(());
        };
        let mut cron = (*found).clone();
        let jobs = self.jobs.controlled_by(found.metadata.uid.as_deref().unwrap_or_default());
        self.clean_up(&mut cron, &jobs).await;
        self.note_jobs(&mut cron, &jobs).await?;
        let synced = match cron.metadata.deletion_timestamp {
            None => self.start_due(&mut cron).await,
            Some(_) => Ok(None),
        };
        if cron.status != found.status {
            self.cron_jobs.update_status(&cron).await?;
        }
        if let Some(next) = synced? {
            self.queue.add_after(key.clone(), next);
        }
        Ok(())
    }
}

impl Controller {
    /// Takes note of Jobs that ended, went missing or came from elsewhere.
    async fn note_jobs(&self, cron: &mut CronJob, jobs: &[Arc<Job>]) -> Result<(), Error> {
        for job in jobs {
            let name = job.metadata.name.clone().unwrap_or_default();
            let listed = status_of(cron).active.iter().flatten().any(|one| one.uid == job.metadata.uid);
            if !listed && !is_finished(job) {
                let message = format!("Saw a job that the controller did not create or forgot: {name}");
                self.recorder.warning(cron, "UnexpectedJob", message);
            } else if let Some(end) = finished_condition(job).filter(|_| listed) {
                forget(cron, job.metadata.uid.as_deref());
                let message = format!("Saw completed job: {name}, condition: {}", end.type_);
                self.recorder.normal(cron, "SawCompletedJob", message);
            } else if finished_condition(job).is_some_and(|end| end.type_ == "Complete") {
                let done = job.status.as_ref().and_then(|status| status.completion_time.clone());
                let last = &mut status_of(cron).last_successful_time;
                if done.as_ref().map(|time| time.0) > last.as_ref().map(|time| time.0) {
                    *last = done;
                }
            }
        }
        for listed in status_of(cron).active.clone().unwrap_or_default() {
            if jobs.iter().any(|job| job.metadata.uid == listed.uid) {
                continue;
            }
            let name = listed.name.clone().unwrap_or_default();
            let key = ObjectKey::new(cron.metadata.namespace.as_deref().unwrap_or_default(), &name);
            if self.jobs.read(&key).await?.is_none() {
                self.recorder.normal(cron, "MissingJob", format!("Active job went missing: {name}"));
                forget(cron, listed.uid.as_deref());
            }
        }
        Ok(())
    }

    /// Starts what is due. Gives the time until something is due again.
    async fn start_due(&self, cron: &mut CronJob) -> Result<Option<Duration>, Error> {
        let spec = cron.spec.clone();
        let times = match Times::of(cron) {
            Ok(times) => times,
            Err(times::Unreadable { reason, message }) => {
                self.recorder.warning(cron, reason, message);
                return Ok(None);
            }
        };
        if spec.suspend == Some(true) {
            return Ok(None);
        }
        let now = self.context.now();
        let Some(due) = self.due(cron, &spec, &times, now) else {
            return Ok(Some(wait(times.next(now), now)));
        };
        if spec.concurrency_policy.as_deref() == Some("Forbid") && !is_idle(cron) {
            let message =
                "Not starting job because prior execution is running and concurrency policy is Forbid";
            self.recorder.normal(cron, "JobAlreadyActive", message.to_owned());
            return Ok(Some(wait(times.next(now), now)));
        }
        if spec.concurrency_policy.as_deref() == Some("Replace") {
            self.replace(cron).await?;
        }
        let job = match self.jobs.create(&job_of(cron, &spec, due, &times)).await {
            Ok(job) => {
                let name = job.metadata.name.as_deref().unwrap_or_default();
                self.recorder.normal(cron, "SuccessfulCreate", format!("Created job {name}"));
                job
            }
            Err(error) if error.has_reason("AlreadyExists") => {
                let namespace = cron.metadata.namespace.as_deref().unwrap_or_default();
                match self.jobs.read(&ObjectKey::new(namespace, &name_of(cron, due))).await? {
                    // One that this made before and did not come to note.
                    Some(job)
                        if controller_of(&job.metadata)
                            .is_some_and(|owner| Some(&owner.uid) == cron.metadata.uid.as_ref()) =>
                    {
                        job
                    }
                    _ => return Ok(None),
                }
            }
            Err(error) if error.namespace_terminating() => return Err(error),
            Err(error) => {
                let message = format!("Error creating job: {}", error.message());
                self.recorder.warning(cron, "FailedCreate", message);
                return Err(error);
            }
        };
        let status = status_of(cron);
        status.active.get_or_insert_default().push(reference(&job));
        status.last_schedule_time = Some(Time(due));
        let times = Times::of(cron).unwrap_or(times);
        Ok(Some(wait(times.next(now), now)))
    }

    /// The time for which a Job is to be made now.
    fn due(&self, cron: &CronJob, spec: &CronJobSpec, times: &Times, now: Timestamp) -> Option<Timestamp> {
        let (due, many) = times.due(now)?;
        if many {
            let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds \
                           or check clock skew";
            self.recorder.warning(cron, "TooManyMissedTimes", message.to_owned());
        }
        let deadline = spec.starting_deadline_seconds.map(SignedDuration::from_secs);
        if deadline.is_some_and(|deadline| due.checked_add(deadline).is_ok_and(|last| last < now)) {
            let message = format!(
                "Missed scheduled time to start a job: {}",
                due.strftime("%a, %d %b %Y %H:%M:%S +0000")
            );
            self.recorder.warning(cron, "MissSchedule", message);
            return None;
        }
        let status = cron.status.clone().unwrap_or_default();
        let name = name_of(cron, due);
        let made = status.active.iter().flatten().any(|one| one.name.as_ref() == Some(&name))
            || status.last_schedule_time.as_ref().is_some_and(|last| last.0 == due);
        (!made).then_some(due)
    }

    /// Deletes what still runs.
    async fn replace(&self, cron: &mut CronJob) -> Result<(), Error> {
        let namespace = cron.metadata.namespace.clone().unwrap_or_default();
        for listed in status_of(cron).active.clone().unwrap_or_default() {
            let name = listed.name.unwrap_or_default();
            match self.jobs.read(&ObjectKey::new(&namespace, &name)).await {
                Ok(Some(job)) => self.delete(cron, &job).await?,
                Ok(None) => forget(cron, listed.uid.as_deref()),
                Err(error) => {
                    self.recorder.warning(cron, "FailedGet", format!("Get job: {}", error.message()));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    async fn delete(&self, cron: &mut CronJob, job: &Job) -> Result<(), Error> {
        let name = job.metadata.name.clone().unwrap_or_default();
        if let Err(error) = self.jobs.delete_with(job, DeleteParams::background()).await {
            self.recorder.warning(cron, "FailedDelete", format!("Deleted job: {}", error.message()));
            return Err(error);
        }
        forget(cron, job.metadata.uid.as_deref());
        self.recorder.normal(cron, "SuccessfulDelete", format!("Deleted job {name}"));
        Ok(())
    }
}

fn job_of(cron: &CronJob, spec: &CronJobSpec, due: Timestamp, times: &Times) -> Job {
    let template = spec.job_template.metadata.clone().unwrap_or_default();
    let mut annotations = template.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED.to_owned(), times.text(due));
    Job {
        metadata: ObjectMeta {
            name: Some(name_of(cron, due)),
            namespace: cron.metadata.namespace.clone(),
            labels: template.labels,
            annotations: Some(annotations),
            owner_references: Some(vec![controller_ref(cron)]),
            ..ObjectMeta::default()
        },
        spec: spec.job_template.spec.clone(),
        status: None,
    }
}

/// The name of the Job for a time: it carries the minute.
fn name_of(cron: &CronJob, due: Timestamp) -> String {
    format!("{}-{}", cron.metadata.name.as_deref().unwrap_or_default(), due.as_second() / 60)
}

fn status_of(cron: &mut CronJob) -> &mut CronJobStatus {
    cron.status.get_or_insert_default()
}

fn is_idle(cron: &CronJob) -> bool {
    cron.status.as_ref().and_then(|status| status.active.as_ref()).is_none_or(Vec::is_empty)
}

/// Takes a Job off the list of those that run.
fn forget(cron: &mut CronJob, uid: Option<&str>) {
    let active = &mut status_of(cron).active;
    *active = active.take().map(|all| all.into_iter().filter(|one| one.uid.as_deref() != uid).collect());
    *active = active.take().filter(|all: &Vec<_>| !all.is_empty());
}

/// How long it is until a time, and a little: it must have come when this is over.
fn wait(until: Option<Timestamp>, now: Timestamp) -> Duration {
    const LITTLE: Duration = Duration::from_millis(100);
    // What has no next time is looked at again when it changes.
    const NEVER: Duration = Duration::from_secs(10 * 365 * 86_400);
    until.map_or(NEVER, |until| Duration::try_from(until.duration_since(now)).unwrap_or_default() + LITTLE)
}
