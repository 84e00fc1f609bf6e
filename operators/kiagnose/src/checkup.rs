//! A Checkup and what should exist for one.
//!
//! A run has stages ([`run`]), each found anew from the status and from what is observed: the results ConfigMap, the
//! Role, its RoleBinding and a suspended Job are made first; then the start is recorded, with the uids of ConfigMap and
//! Job; then the Job is released. When it is over, the ConfigMap is frozen and the Role shrinks to `get`; only then is
//! the verdict read, from what nobody can change any more. While the checkup runs, the ConfigMap is its alone.

mod env;
mod job;
mod log_tail;
mod params;
mod results;
mod results_map;
mod role;
mod role_binding;
mod run;
mod sight;
mod spec;
mod verdict;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::ResourceExt as _;
use windlass::{Halt, Handle, Kind, Plan, Primary, Status, World};

pub use self::log_tail::LogTail;
pub use self::params::Params;
pub use self::sight::Sight;
pub use self::spec::{Checkup, CheckupSpec, CheckupStatus, Phase, RunRecord};

use self::run::{Note, Prepared, Stage};
use self::verdict::Verdict;

/// On a Checkup: a value that has not been there before starts another run.
pub const RERUN: &str = "kiagnose.io/rerun";
/// On what is made for a Checkup: the Checkup's name.
pub const CHECKUP: &str = "kiagnose.io/checkup";

impl Primary for Checkup {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>(), Kind::of::<Role>(), Kind::of::<RoleBinding>(), Kind::of::<Job>()]
    }

    fn reads() -> Vec<Kind> {
        vec![Kind::of::<ServiceAccount>(), Kind::of::<Pod>()]
    }

    fn stops_first() -> Vec<Kind> {
        vec![Kind::of::<Job>()]
    }

    /// After its time to live.
    fn retires() -> bool {
        true
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let stage = run::look(self, world)?;
        if let Some(after) = stage.look_again(self, world.now()) {
            plan.look_again(after);
        }
        match stage {
            // Nothing is planned: what a former run left goes.
            Stage::Again | Stage::Clearing => plan.wait("Clearing", "the former run is being cleared away"),
            Stage::Outdated { job, map } => {
                // It goes once that is recorded; else it would look deleted.
                plan.keep(&job);
                plan.keep(&map);
                self.grant(plan, role::WRITE);
                plan.wait("Preparing", "the run is being prepared");
            }
            Stage::Waiting(why) => plan.wait(why.reason, why.message),
            Stage::Preparing { job, map } => {
                let results = plan.add(results_map::build(self));
                let (role, binding) = self.grant(plan, role::WRITE);
                let fresh = map.as_ref().and_then(results_map::written).is_none();
                // One that does not fit is not planned, and goes.
                if fresh && !matches!(job, Prepared::Unfit) {
                    plan.add(job::build(self)).once().after(&results).after(&role).after(&binding);
                }
                match job {
                    Prepared::Fit(_) if fresh => plan.wait(Note::running().reason, Note::running().message),
                    _ => plan.wait("Preparing", "the run is being prepared"),
                }
            }
            Stage::Releasing { map } => {
                plan.keep(&map);
                self.grant(plan, role::WRITE);
                plan.add(job::released(self)).existing();
                plan.wait(Note::running().reason, Note::running().message);
            }
            Stage::Running { map, note } => {
                // The checkup has no conflict retry: its ConfigMap is left alone.
                plan.keep(&map);
                // As in the plan that made it, so that its entry in the status is the same.
                plan.add(job::build(self)).once();
                self.grant(plan, role::WRITE);
                plan.wait(note.reason, note.message);
            }
            Stage::Ended { job, map, .. } => {
                self.grant(plan, role::READ);
                match map {
                    Some(map) if map.immutable == Some(true) && run::is_of(self, &map) => {
                        drop(plan.keep(&map))
                    }
                    Some(_) => drop(plan.add(results_map::frozen(self)).existing()),
                    None => {}
                }
                if let Some(job) = job {
                    self.stop(plan, &job);
                }
            }
            Stage::Judged { job, map } => {
                self.grant(plan, role::READ);
                map.iter().for_each(|map| drop(plan.keep(map)));
                if let Some(job) = job {
                    self.stop(plan, &job);
                }
                let status = self.status.clone().unwrap_or_default();
                if status.phase == Some(Phase::Failed) {
                    let (reason, message) = status.said();
                    plan.fail(reason, message);
                }
                if self.is_expired(world.now()) {
                    plan.retire();
                }
            }
        }
        Ok(())
    }

    fn own_status(&self, world: &World, report: &Status, status: &mut CheckupStatus) -> Result<(), Halt> {
        let now = whole_seconds(world.now());
        let stage = run::look(self, world)?;
        let record = status.run.get_or_insert_with(|| RunRecord::new(self.rerun(), now));
        match stage {
            Stage::Judged { .. } => {}
            Stage::Again | Stage::Outdated { .. } => {
                let former = [record.results_uid.take(), record.job_uid.take()];
                let record = RunRecord {
                    former: former.into_iter().flatten().collect(),
                    ..RunRecord::new(self.rerun(), now)
                };
                let common = std::mem::take(&mut status.common);
                *status = CheckupStatus { common, run: Some(record), ..CheckupStatus::default() };
                status.common.conditions.retain(|one| one.type_ != verdict::TRUNCATED);
                status.unknown(Phase::Pending, "Clearing", "the former run is being cleared away", now);
            }
            Stage::Clearing => {
                status.unknown(Phase::Pending, "Clearing", "the former run is being cleared away", now);
            }
            Stage::Waiting(why) => status.unknown(Phase::Pending, &why.reason, &why.message, now),
            Stage::Preparing { job, map } => {
                let made = |kind: Kind, name: &str| {
                    report.dependent(&kind, name).is_some_and(windlass::DependentStatus::is_ready)
                };
                let granted = made(Kind::of::<Role>(), &self.writer())
                    && made(Kind::of::<RoleBinding>(), &self.writer());
                status.unknown(Phase::Pending, "Preparing", "the run is being prepared", now);
                if let Some(key) = map.as_ref().and_then(results_map::written) {
                    let message = format!(
                        "ConfigMap {} has {key} before the checkup has run; delete it to go on",
                        self.results()
                    );
                    status.unknown(Phase::Pending, "NotFresh", &message, now);
                } else if let (Some(map), Prepared::Fit(uid), true) = (map, job, granted) {
                    // Recorded before the Job is released: from here on the spec cannot change, nor the Job.
                    status.start_time = Some(Time(now));
                    if let Some(record) = &mut status.run {
                        record.results_uid = map.uid();
                        record.job_uid = Some(uid);
                    }
                    let Note { reason, message } = Note::running();
                    status.unknown(Phase::Running, &reason, &message, now);
                }
            }
            Stage::Releasing { .. } => {
                let Note { reason, message } = Note::running();
                status.unknown(Phase::Running, &reason, &message, now);
            }
            Stage::Running { note, .. } => {
                status.unknown(Phase::Running, &note.reason, &note.message, now);
            }
            Stage::Ended { end, map, pods, .. } => {
                // What is not frozen yet could still change: the next pass reads it.
                let frozen = map.as_ref().is_none_or(|map| map.immutable == Some(true));
                if frozen {
                    let verdict = Verdict::of(&end, map.as_ref(), &pods);
                    let tail = if verdict.succeeded { None } else { log_tail::of(&pods, world)? };
                    verdict.write(status, tail, now);
                }
            }
        }
        Ok(())
    }
}

impl Checkup {
    fn grant(&self, plan: &mut Plan, verbs: &[&str]) -> (Handle<Role>, Handle<RoleBinding>) {
        (plan.add(role::build(self, verbs)), plan.add(role_binding::build(self)))
    }

    /// Leaves a Job as it is if it has ended; what still runs after the verdict is stopped.
    fn stop(&self, plan: &mut Plan, job: &Job) {
        if run::is_finished(job) {
            plan.keep(job);
        } else {
            plan.add(job::suspended(self)).existing();
        }
    }

    fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at().is_some_and(|time| time <= now)
    }

    fn expires_at(&self) -> Option<Timestamp> {
        let ttl = self.spec.ttl_seconds_after_finished.filter(|_| !self.spec.skip_teardown)?;
        let ended = self.status.as_ref()?.completion_time.as_ref()?.0;
        ended.checked_add(Duration::from_secs(u64::try_from(ttl).unwrap_or_default())).ok()
    }

    /// What the annotation says.
    fn rerun(&self) -> Option<String> {
        self.annotations().get(RERUN).cloned()
    }

    fn results(&self) -> String {
        format!("{}-results", self.name_any())
    }

    fn writer(&self) -> String {
        format!("{}-results-writer", self.name_any())
    }

    fn named(&self, name: String) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: self.namespace(),
            labels: Some([(CHECKUP.to_owned(), self.name_any())].into()),
            ..ObjectMeta::default()
        }
    }
}

/// A time as the API keeps it.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
