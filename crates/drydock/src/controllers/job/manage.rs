//! Makes and deletes a job's pods, so that as many run as should.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use super::super::informer::ObjectKey;
use super::super::ownership::controller_ref;
use super::super::{Error, pods};
use super::failure_policy::only_failed;
use super::indexes::{Indexes, index_of, is_indexed, mark};
use super::{Controller, FINALIZER, Sync, backoff, is_terminating, spec_of};

/// At most this many pods are made or deleted in one go.
const BURST: usize = 500;

impl Controller {
    pub(super) async fn manage(&self, job: &Job, sync: &Sync, suspended: bool) -> Result<(), Error> {
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
        let surplus = self.surplus(job, &sync.active, active.saturating_sub(wanted));
        if !surplus.is_empty() {
            return self.delete_surplus(job, &surplus).await;
        }
        let terminating = match only_failed(job) {
            true => sync.pods.iter().filter(|pod| is_terminating(pod)).count(),
            false => 0,
        };
        let missing = wanted.saturating_sub(active + terminating).min(BURST);
        if missing == 0 {
            return Ok(());
        }
        match &sync.indexes {
            Some(_) => self.create_indexed(job, sync, missing).await,
            None if self.must_wait(job, sync) => Ok(()),
            None => {
                let pod = pod_of(job);
                for _ in 0..missing {
                    if !self.create(job, &pod).await? {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    async fn create_indexed(&self, job: &Job, sync: &Sync, missing: usize) -> Result<(), Error> {
        let (spec, Some(indexes)) = (spec_of(job), &sync.indexes) else {
            return Ok(());
        };
        let mut taken = indexes.succeeded.with(&sync.active.iter().filter_map(|pod| index_of(pod)).collect());
        if only_failed(job) {
            let ending = sync.pods.iter().filter(|pod| is_terminating(pod));
            taken = taken.with(&ending.filter_map(|pod| index_of(pod)).collect());
        }
        let per_index = indexes.failed.is_some();
        if let Some(failed) = &indexes.failed {
            taken = taken.with(failed);
        } else if self.must_wait(job, sync) {
            return Ok(());
        }
        let now = self.context.now();
        let mut soonest = None;
        let mut due = taken.missing(spec.completions.unwrap_or_default(), missing);
        due.retain(|index| {
            let wait = indexes.delayed.get(index).and_then(|failed| backoff::left_of_index(failed, now));
            soonest = soonest.into_iter().chain(wait).min();
            wait.is_none()
        });
        if let Some(wait) = soonest.filter(|_| due.is_empty()) {
            self.queue.add_after(ObjectKey::of(&job.metadata), wait);
        }
        for index in due {
            let mut pod = pod_of(job);
            mark(&mut pod, job, index);
            if per_index {
                backoff::note_failures(&mut pod, job, indexes.delayed.get(&index).map(|pod| &**pod));
            }
            if !self.create(job, &pod).await? {
                break;
            }
        }
        Ok(())
    }

    /// Whether the job has to wait because of its failures; then it is looked at again when that is over.
    fn must_wait(&self, job: &Job, sync: &Sync) -> bool {
        let left = sync.backoff.left(self.context.now());
        if let Some(left) = left {
            self.queue.add_after(ObjectKey::of(&job.metadata), left);
        }
        left.is_some()
    }

    /// Makes a pod. Tells whether more can be made.
    async fn create(&self, job: &Job, pod: &Pod) -> Result<bool, Error> {
        match self.pods.create(pod).await {
            Ok(made) => {
                let name = made.metadata.name.unwrap_or_default();
                self.recorder.normal(job, "SuccessfulCreate", format!("Created pod: {name}"));
                Ok(true)
            }
            Err(error) if error.namespace_terminating() => Ok(false),
            Err(error) => {
                let message = format!("Error creating: {}", error.message());
                self.recorder.warning(job, "FailedCreate", message);
                Err(error)
            }
        }
    }

    /// Pods that should not run: of indexes that are not there or that others run for, and as many more as there are
    /// too many.
    fn surplus(&self, job: &Job, active: &[Arc<Pod>], too_many: usize) -> Vec<Arc<Pod>> {
        let now = self.context.now();
        let mut ranked = active.to_vec();
        ranked.sort_by(|a, b| pods::deletion_order(a, b, now));
        let mut surplus = Vec::new();
        if is_indexed(spec_of(job)) {
            let completions = spec_of(job).completions.unwrap_or_default();
            let mut seen = Indexes::default();
            // From the last to be deleted on: that one of an index is to stay.
            let (kept, rest): (Vec<_>, Vec<_>) = ranked.into_iter().rev().partition(|pod| {
                let index = index_of(pod).filter(|index| *index < completions && !seen.has(*index));
                index.inspect(|index| seen.add(*index, *index)).is_some()
            });
            ranked = kept.into_iter().rev().collect();
            surplus = rest;
        }
        let more = too_many.saturating_sub(surplus.len());
        surplus.extend(ranked.into_iter().take(more));
        surplus.truncate(BURST);
        surplus
    }

    /// Deletes pods that are not needed. Those are no failures: they are not waited for.
    async fn delete_surplus(&self, job: &Job, doomed: &[Arc<Pod>]) -> Result<(), Error> {
        for pod in doomed {
            self.release(pod).await?;
            self.delete(job, pod).await?;
        }
        Ok(())
    }

    /// Deletes pods of a job that is at its end; they keep the finalizer until they are counted.
    pub(super) async fn delete_active(&self, job: &Job, doomed: &[Arc<Pod>]) -> Result<(), Error> {
        for pod in doomed {
            self.delete(job, pod).await?;
        }
        Ok(())
    }

    async fn delete(&self, job: &Job, pod: &Pod) -> Result<(), Error> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        if let Err(error) = self.pods.delete(pod).await {
            self.recorder.warning(job, "FailedDelete", format!("Error deleting: {}", error.message()));
            return Err(error);
        }
        self.recorder.normal(job, "SuccessfulDelete", format!("Deleted pod: {name}"));
        Ok(())
    }
}

fn pod_of(job: &Job) -> Pod {
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    let mut pod = pods::from_template(&spec_of(job).template, namespace, controller_ref(job));
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    pod
}
