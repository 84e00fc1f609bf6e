//! Counts finished pods exactly once, and writes a job's status.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::Patch;
use serde_json::json;

use super::super::informer::ObjectKey;
use super::super::{Error, nonzero, pods};
use super::{Controller, FINALIZER, Sync, Verdict, condition, is_terminating, spec_of, uid_of};

/// Uids of pods that ended and are not in the counts: written as uncounted before, or new.
#[derive(Default)]
pub(super) struct Ended {
    pub(super) succeeded: Vec<String>,
    pub(super) failed: Vec<String>,
    pub(super) new_succeeded: Vec<String>,
    pub(super) new_failed: Vec<String>,
}

impl Ended {
    pub(super) fn of(job: &Job, pods: &[Arc<Pod>]) -> Self {
        let status = job.status.clone().unwrap_or_default();
        let uncounted = status.uncounted_terminated_pods.unwrap_or_default();
        let mut ended = Self {
            succeeded: uncounted.succeeded.unwrap_or_default(),
            failed: uncounted.failed.unwrap_or_default(),
            ..Self::default()
        };
        let failed_only = spec_of(job).pod_replacement_policy.as_deref() == Some("Failed");
        for pod in pods.iter().filter(|pod| has_finalizer(pod)) {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            if ended.succeeded.contains(&uid) || ended.failed.contains(&uid) {
                continue;
            }
            let phase = pods::phase(pod);
            if phase == "Succeeded" {
                ended.new_succeeded.push(uid.clone());
                ended.succeeded.push(uid);
            } else if phase == "Failed" || (!failed_only && pods::is_terminating(pod)) {
                ended.new_failed.push(uid.clone());
                ended.failed.push(uid);
            }
        }
        ended
    }

    /// Once a job's end is decided, every pod that still runs counts as failed.
    fn fail_rest(&mut self, pods: &[Arc<Pod>]) -> i32 {
        let mut added = 0;
        for pod in pods.iter().filter(|pod| has_finalizer(pod)) {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            if !self.succeeded.contains(&uid) && !self.failed.contains(&uid) {
                self.new_failed.push(uid.clone());
                self.failed.push(uid);
                added += 1;
            }
        }
        added
    }

    fn is_empty(&self) -> bool {
        self.succeeded.is_empty() && self.failed.is_empty()
    }

    fn has_new(&self) -> bool {
        !self.new_succeeded.is_empty() || !self.new_failed.is_empty()
    }
}

impl Controller {
    /// Brings the status up to date: at most one write before finalizers are taken off, and one after.
    pub(super) async fn track(
        &self,
        old: &Job,
        mut job: Job,
        mut sync: Sync,
        verdict: Option<Verdict>,
    ) -> Result<(), Error> {
        let now = self.context.now();
        let mine = self.pods.controlled_by(&uid_of(&job));
        if verdict.is_some() {
            sync.failed += sync.ended.fail_rest(&mine);
        }
        let count = |wanted: &dyn Fn(&Pod) -> bool| {
            i32::try_from(mine.iter().filter(|pod| wanted(pod)).count()).unwrap_or(i32::MAX)
        };
        let (active, terminating) = (count(&pods::is_active), count(&is_terminating));
        let ready = count(&|pod| pods::is_active(pod) && pods::is_ready(pod));
        let status = job.status.get_or_insert_default();
        (status.active, status.ready, status.terminating) = (nonzero(active), Some(ready), Some(terminating));
        status.conditions = status.conditions.take().filter(|conditions| !conditions.is_empty());

        if sync.ended.has_new() {
            status.uncounted_terminated_pods = Some(UncountedTerminatedPods {
                succeeded: Some(sync.ended.succeeded.clone()).filter(|uids| !uids.is_empty()),
                failed: Some(sync.ended.failed.clone()).filter(|uids| !uids.is_empty()),
            });
            job = self.jobs.update_status(&job).await?;
        }
        for pod in &mine {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            let ended = sync.ended.succeeded.contains(&uid) || sync.ended.failed.contains(&uid);
            if ended || verdict.is_some() || job.metadata.deletion_timestamp.is_some() {
                self.release(pod).await?;
            }
        }
        let status = job.status.get_or_insert_default();
        if !sync.ended.is_empty() {
            status.succeeded = nonzero(sync.succeeded);
            status.failed = nonzero(sync.failed);
            status.uncounted_terminated_pods = Some(UncountedTerminatedPods::default());
        }
        let announced = verdict.is_some_and(|verdict| self.conclude(status, &verdict, terminating, now));
        if job.status != old.status {
            job = self.jobs.update_status(&job).await?;
            if announced {
                self.announce(&job);
            }
        }
        Ok(())
    }

    /// Sets the conditions of a job's end: the first at once, the second when no pod runs any more. Returns whether
    /// the second was set.
    fn conclude(
        &self,
        status: &mut JobStatus,
        verdict: &Verdict,
        terminating: i32,
        now: jiff::Timestamp,
    ) -> bool {
        let conditions = status.conditions.get_or_insert_default();
        if !conditions.iter().any(|known| known.type_ == verdict.kind) {
            conditions.push(condition(verdict.kind, "True", &verdict.reason, &verdict.message, now));
        }
        if terminating > 0 {
            return false;
        }
        let last = if verdict.kind == "FailureTarget" { "Failed" } else { "Complete" };
        conditions.push(condition(last, "True", &verdict.reason, &verdict.message, now));
        if last == "Complete" {
            status.completion_time = Some(Time(now));
        }
        true
    }

    fn announce(&self, job: &Job) {
        let Some(end) = super::finished_condition(job) else {
            return;
        };
        if end.type_ == "Complete" {
            self.recorder.normal(job, "Completed", "Job completed".to_owned());
            return;
        }
        let reason = match end.reason.as_deref() {
            Some("DeadlineExceeded") => "DeadlineExceeded",
            _ => "BackoffLimitExceeded",
        };
        self.recorder.warning(job, reason, end.message.clone().unwrap_or_default());
    }

    /// Takes the job's finalizer off a pod.
    pub(super) async fn release(&self, pod: &Pod) -> Result<(), Error> {
        if !has_finalizer(pod) {
            return Ok(());
        }
        let patch = json!({"metadata": {"uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}});
        match self.pods.patch(&ObjectKey::of(&pod.metadata), &Patch::Strategic(patch)).await {
            Err(error) if !error.has_reason("NotFound") && !error.has_reason("Conflict") => Err(error),
            _ => Ok(()),
        }
    }
}

fn has_finalizer(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}
