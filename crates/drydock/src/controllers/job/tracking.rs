//! Counts finished pods exactly once, and writes a job's status.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::Patch;
use serde_json::json;

use super::super::informer::ObjectKey;
use super::super::{Error, nonzero, pods};
use super::failure_policy::{action, has_failed};
use super::indexes::{Indexes, index_of, is_indexed, is_valid};
use super::{
    Controller, FINALIZER, Sync, Verdict, condition, has_finalizer, is_terminating, spec_of, uid_of,
};

/// At most so many pods are counted in one go.
const MOST_UNCOUNTED: usize = 500;

impl Controller {
    /// Brings the status up to date: at most one write before finalizers are taken off, and one after.
    pub(super) async fn track(
        &self,
        old: &Job,
        mut job: Job,
        sync: &Sync,
        verdict: Option<Verdict>,
    ) -> Result<(), Error> {
        let now = self.context.now();
        // Pods just made or deleted are in the cache already, so one write tells of them.
        let mine = self.pods.controlled_by(&uid_of(&job));
        let count = |wanted: &dyn Fn(&Pod) -> bool| {
            i32::try_from(mine.iter().filter(|pod| wanted(pod)).count()).unwrap_or(i32::MAX)
        };
        let terminating = count(&is_terminating);
        let mut unreleased: BTreeSet<String> =
            sync.pods.iter().filter(|pod| has_finalizer(pod)).map(uid).collect();
        let status = job.status.get_or_insert_default();
        status.active = nonzero(count(&pods::is_active));
        status.ready = Some(count(&|pod| pods::is_active(pod) && pods::is_ready(pod)));
        status.terminating = Some(terminating);
        move_counted(status, &unreleased);
        let (ended, all) = note_ended(&mut job, sync, verdict.as_ref());
        let status = job.status.get_or_insert_default();
        if let Some(verdict) = &verdict {
            let conditions = status.conditions.get_or_insert_default();
            if !conditions.iter().any(|known| known.type_ == verdict.target() && known.status == "True") {
                conditions.push(condition(verdict.target(), "True", &verdict.reason, &verdict.message, now));
            }
        }
        status.conditions = status.conditions.take().filter(|conditions| !conditions.is_empty());
        if job.status != old.status {
            job = self.jobs.update_status(&job).await?;
            self.backoffs().insert(uid_of(&job), sync.backoff);
        }

        let written = job.status.clone();
        for pod in ended {
            self.release(&pod).await?;
            unreleased.remove(&uid(&pod));
        }
        let status = job.status.get_or_insert_default();
        move_counted(status, &unreleased);
        let counted = status.uncounted_terminated_pods.as_ref().is_none_or(|left| {
            left.succeeded.as_ref().is_none_or(Vec::is_empty)
                && left.failed.as_ref().is_none_or(Vec::is_empty)
        });
        let end = verdict.filter(|_| all && counted && terminating == 0);
        if let Some(verdict) = &end {
            let last = condition(verdict.end(), "True", &verdict.reason, &verdict.message, now);
            status.conditions.get_or_insert_default().push(last);
            if verdict.succeeded {
                status.completion_time = Some(Time(now));
            }
        }
        if job.status != written {
            job = self.jobs.update_status(&job).await?;
        }
        if let Some(end) = end {
            self.announce(&job, end);
        }
        Ok(())
    }

    fn announce(&self, job: &Job, end: Verdict) {
        if !end.succeeded {
            self.recorder.warning(job, end.reason, end.message);
            return;
        }
        let succeeded = job.status.as_ref().and_then(|status| status.succeeded).unwrap_or_default();
        if spec_of(job).completions.is_some_and(|wanted| succeeded > wanted) {
            let message = "Too many succeeded pods running after completion count reached";
            self.recorder.warning(job, "TooManySucceededPods", message.to_owned());
        }
        self.recorder.normal(job, "Completed", "Job completed".to_owned());
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

/// Notes pods that have ended as not yet counted, and indexes as done. Gives the pods that can go once that is written,
/// and whether those are all.
fn note_ended(job: &mut Job, sync: &Sync, verdict: Option<&Verdict>) -> (Vec<Arc<Pod>>, bool) {
    let mut status = job.status.take().unwrap_or_default();
    let uncounted = status.uncounted_terminated_pods.get_or_insert_default();
    let (indexed, deleted) = (is_indexed(spec_of(job)), job.metadata.deletion_timestamp.is_some());
    let mut all: Vec<_> = sync.pods.iter().filter(|pod| has_finalizer(pod)).collect();
    if indexed {
        all.sort_by_key(|pod| index_of(pod));
    }
    let mut succeeded_indexes = Indexes::default();
    let mut ended = Vec::new();
    let mut complete = true;
    for pod in all {
        let (phase, failed) = (pods::phase(pod), has_failed(job, pod));
        let waits = sync.indexes.as_ref().is_some_and(|indexes| {
            let last = index_of(pod).and_then(|index| indexes.delayed.get(&index));
            last.is_some_and(|last| last.metadata.uid == pod.metadata.uid)
        });
        if !(deleted || verdict.is_some() || phase == "Succeeded" || (failed && !waits)) {
            continue;
        }
        if ended.len() >= MOST_UNCOUNTED {
            complete = false;
            break;
        }
        ended.push(Arc::clone(pod));
        let known = |uids: &Option<Vec<String>>| uids.iter().flatten().any(|known| *known == uid(pod));
        if phase == "Succeeded" && !known(&uncounted.failed) {
            if let Some(index) = index_of(pod).filter(|_| indexed && is_valid(spec_of(job), pod)) {
                succeeded_indexes.add(index, index);
            } else if !indexed && !known(&uncounted.succeeded) {
                uncounted.succeeded.get_or_insert_default().push(uid(pod));
            }
        } else if (failed || verdict.is_some_and(|verdict| !verdict.succeeded))
            && !known(&uncounted.failed)
            && is_valid(spec_of(job), pod)
            && action(job, pod).counts()
        {
            uncounted.failed.get_or_insert_default().push(uid(pod));
        }
    }
    if let Some(indexes) = &sync.indexes {
        let succeeded = indexes.before.with(&succeeded_indexes);
        status.succeeded = nonzero(succeeded.len());
        status.completed_indexes = Some(succeeded.to_string()).filter(|text| !text.is_empty());
        status.failed_indexes = indexes.failed.as_ref().map(ToString::to_string);
    }
    job.status = Some(status);
    (ended, complete)
}

/// Moves pods that have lost their finalizer from the uncounted into the counts.
fn move_counted(status: &mut JobStatus, unreleased: &BTreeSet<String>) {
    let uncounted = status.uncounted_terminated_pods.get_or_insert_default();
    for (uids, count) in
        [(&mut uncounted.succeeded, &mut status.succeeded), (&mut uncounted.failed, &mut status.failed)]
    {
        let Some(known) = uids else { continue };
        let before = known.len();
        known.retain(|uid| unreleased.contains(uid));
        let moved = i32::try_from(before - known.len()).unwrap_or(i32::MAX);
        *count = nonzero(count.unwrap_or_default() + moved);
        if known.is_empty() {
            *uids = None;
        }
    }
}

fn uid(pod: &Arc<Pod>) -> String {
    pod.metadata.uid.clone().unwrap_or_default()
}
