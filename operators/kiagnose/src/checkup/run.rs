//! Where a run is, found from what is recorded in the status and from what is observed.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use kube::{Resource, ResourceExt as _};
use windlass::{Halt, Query, World};

use super::sight::{self, Sight};
use super::{Checkup, RunRecord, job};

/// Where a run is.
pub(super) enum Stage {
    /// A new run is asked for: the former one is to be forgotten.
    Again,
    /// The spec was changed just before the start was recorded. Nothing has run: from the beginning.
    Outdated { job: Job, map: ConfigMap },
    /// What a former run left is going.
    Clearing,
    /// Something has to be there first.
    Waiting(Note),
    /// The ConfigMap, the permission to write it and the Job are made; the Job is suspended.
    Preparing { job: Prepared, map: Option<ConfigMap> },
    /// The start is recorded, and with it the Job, which may run now.
    Releasing { map: ConfigMap },
    /// The Job runs.
    Running { map: ConfigMap, note: Note },
    /// It is over; the verdict is not written yet.
    Ended { end: End, job: Option<Job>, map: Option<ConfigMap>, pods: Vec<Pod> },
    /// The verdict is written.
    Judged { job: Option<Job>, map: Option<ConfigMap> },
}

/// The Job of a run that has not started.
pub(super) enum Prepared {
    /// It is not there.
    None,
    /// It was made for a spec that has changed since, or is being deleted.
    Unfit,
    /// It only has to be recorded, by its uid.
    Fit(String),
}

/// Something to say while nothing is decided.
pub(super) struct Note {
    pub(super) reason: String,
    pub(super) message: String,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The checkup exited with 0.
    Complete,
    /// It failed, as the Job says.
    Failed(String),
    /// It took too long.
    Timeout,
    /// Something was deleted that a run cannot do without; it is named here.
    Deleted(&'static str, String),
    /// Somebody stopped the Job.
    Suspended,
    /// Its service account did not appear in time.
    NoServiceAccount,
}

impl Note {
    fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }

    pub(super) fn running() -> Self {
        Self::new("Running", "the checkup is running")
    }
}

impl Stage {
    /// When time alone takes it on.
    pub(super) fn look_again(&self, checkup: &Checkup, now: Timestamp) -> Option<Duration> {
        let until = match self {
            Self::Waiting(_) => checkup.give_up_at(now),
            Self::Judged { .. } => checkup.expires_at(),
            _ => None,
        };
        let left = until?.duration_since(now).max(jiff::SignedDuration::ZERO);
        // Whole seconds are compared.
        Duration::try_from(left).ok().map(|left| left + Duration::from_millis(10))
    }
}

/// Finds out where a run is.
pub(super) fn look(checkup: &Checkup, world: &World) -> Result<Stage, Halt> {
    let now = world.now();
    let status = checkup.status.clone().unwrap_or_default();
    let record = status.run.clone().unwrap_or_else(|| RunRecord::new(checkup.rerun(), now));
    let finished = status.completion_time.is_some();
    if finished && record.rerun != checkup.rerun() && checkup.rerun().is_some() {
        return Ok(Stage::Again);
    }
    let job = world.get::<Job>(&checkup.name_any())?;
    let map = world.get::<ConfigMap>(&checkup.results())?;
    let is_left = |uid: Option<String>| uid.is_some_and(|uid| record.former.contains(&uid));
    if is_left(job.as_ref().and_then(Job::uid)) || is_left(map.as_ref().and_then(ConfigMap::uid)) {
        return Ok(Stage::Clearing);
    }
    // Somebody else's are not looked at.
    let taken = job.as_ref().is_some_and(|job| !is_of(checkup, job));
    let job = job.filter(|job| is_of(checkup, job));
    if finished {
        return Ok(Stage::Judged { job, map: map.filter(|map| is_of(checkup, map)) });
    }
    if status.start_time.is_none() {
        if taken {
            let message =
                format!("Job {} exists and is not this Checkup's; delete or rename it", checkup.name_any());
            return Ok(Stage::Waiting(Note::new("NotOurs", message)));
        }
        return before_the_start(checkup, job, map, world, now);
    }
    let map = match map.filter(|map| record.results_uid.is_some() && map.uid() == record.results_uid) {
        None => {
            confirm_gone("configmaps", checkup, &checkup.results(), record.results_uid.as_deref(), world)?;
            let end = End::Deleted("ResultsDeleted", format!("ConfigMap {}", checkup.results()));
            return Ok(Stage::Ended { end, pods: pods(job.as_ref(), world)?, job, map: None });
        }
        Some(map) => map,
    };
    let over = |end: End, job: Option<Job>| -> Result<Stage, Halt> {
        Ok(Stage::Ended { end, pods: pods(job.as_ref(), world)?, job, map: Some(map.clone()) })
    };
    let name = checkup.name_any();
    let Some(job) = job.filter(|job| record.job_uid.is_some() && job.uid() == record.job_uid) else {
        confirm_gone("jobs", checkup, &name, record.job_uid.as_deref(), world)?;
        return over(End::Deleted("JobDeleted", format!("Job {name}")), None);
    };
    if job.metadata.deletion_timestamp.is_some() && !is_finished(&job) {
        return over(End::Deleted("JobDeleted", format!("Job {name}")), Some(job));
    }
    let suspended = job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
    match end_of(&job) {
        Some(end) => over(end, Some(job)),
        // What runs again after a stop would be a second run.
        None if suspended && job::is_released(&job) => over(End::Suspended, Some(job)),
        None if suspended && !job::is_made_for(checkup, &job) => Ok(Stage::Outdated { job, map }),
        None if suspended => Ok(Stage::Releasing { map }),
        None => {
            let note = trouble(&pods(Some(&job), world)?).unwrap_or_else(Note::running);
            Ok(Stage::Running { map, note })
        }
    }
}

fn before_the_start(
    checkup: &Checkup,
    job: Option<Job>,
    map: Option<ConfigMap>,
    world: &World,
    now: Timestamp,
) -> Result<Stage, Halt> {
    if let Err(message) = checkup.spec.params.read() {
        return Ok(Stage::Waiting(Note::new("InvalidParams", message)));
    }
    let name = &checkup.spec.service_account_name;
    if world.get::<ServiceAccount>(name)?.is_some() {
        let job = match job {
            None => Prepared::None,
            Some(job) if job::is_made_for(checkup, &job) && job.metadata.deletion_timestamp.is_none() => {
                Prepared::Fit(job.uid().unwrap_or_default())
            }
            Some(_) => Prepared::Unfit,
        };
        return Ok(Stage::Preparing { job, map: map.filter(|map| is_of(checkup, map)) });
    }
    if checkup.give_up_at(now).is_some_and(|time| time <= now) {
        confirm_gone("serviceaccounts", checkup, name, None, world)?;
        return Ok(Stage::Ended { end: End::NoServiceAccount, job: None, map: None, pods: Vec::new() });
    }
    let message = format!("service account {name} is not there; the checkup starts as soon as it is");
    Ok(Stage::Waiting(Note::new("ServiceAccountMissing", message)))
}

impl Checkup {
    /// When a run that cannot start is given up.
    fn give_up_at(&self, now: Timestamp) -> Option<Timestamp> {
        let record = self.status.as_ref().and_then(|status| status.run.as_ref());
        let since = record.map_or(super::whole_seconds(now), |record| record.requested.0);
        since.checked_add(self.spec.time_limit()).ok()
    }
}

/// Whether an object is controlled by this Checkup.
pub(super) fn is_of<K: Resource>(checkup: &Checkup, object: &K) -> bool {
    let owners = object.meta().owner_references.iter().flatten();
    owners
        .into_iter()
        .any(|owner| owner.controller == Some(true) && Some(&owner.uid) == checkup.metadata.uid.as_ref())
}

pub(super) fn is_finished(job: &Job) -> bool {
    end_of(job).is_some()
}

/// How a Job ended, if it has.
fn end_of(job: &Job) -> Option<End> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let has = |kind: &str| conditions.iter().find(|one| one.type_ == kind && one.status == "True");
    if let Some(failed) = has("Failed") {
        return Some(match failed.reason.as_deref() {
            Some("DeadlineExceeded") => End::Timeout,
            _ => End::Failed(failed.message.clone().unwrap_or_default()),
        });
    }
    has("Complete").map(|_| End::Complete)
}

fn pods(job: Option<&Job>, world: &World) -> Result<Vec<Pod>, Halt> {
    let Some(uid) = job.and_then(Job::uid) else {
        return Ok(Vec::new());
    };
    world.select(&Query::labels([("batch.kubernetes.io/controller-uid", uid)]))
}

/// Why a pod does not get going, if it does not.
fn trouble(pods: &[Pod]) -> Option<Note> {
    pods.iter().filter_map(|pod| pod.status.as_ref()).find_map(|status| {
        let waiting = status.container_statuses.iter().flatten().find_map(|container| {
            let waiting = container.state.as_ref()?.waiting.as_ref()?;
            let reason = waiting.reason.clone()?;
            let usual = matches!(reason.as_str(), "ContainerCreating" | "PodInitializing");
            let message = waiting.message.clone().unwrap_or_else(|| format!("the container waits: {reason}"));
            (!usual).then(|| Note::new(reason, message))
        });
        waiting.or_else(|| {
            let unscheduled = status.conditions.iter().flatten();
            let unscheduled =
                unscheduled.into_iter().find(|one| one.type_ == "PodScheduled" && one.status == "False")?;
            let reason = unscheduled.reason.clone().unwrap_or_else(|| "Unschedulable".into());
            Some(Note::new(reason, unscheduled.message.clone().unwrap_or_default()))
        })
    })
}

/// Halts unless the server itself says that an object is gone: a cache may be behind, and a verdict is for good.
fn confirm_gone(
    resource: &str,
    checkup: &Checkup,
    name: &str,
    uid: Option<&str>,
    world: &World,
) -> Result<(), Halt> {
    let namespace = checkup.namespace().unwrap_or_default();
    let id = sight::id(resource, &namespace, name, uid.unwrap_or_default());
    match world.external::<Sight>(&id)? {
        Some(_) => Err(Halt::waiting("CacheBehind", format!("{resource} {name} is there, but not seen yet"))),
        None => Ok(()),
    }
}
