//! `ttl-after-finished-controller`: deletes jobs some time after their end.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::batch::v1::Job;
use kube::api::DeleteParams;
use windlass_machinery::Context;

use super::informer::ObjectKey;
use super::informers::Handle;
use super::job::finished_condition;
use super::queue::Queue;
use super::{Error, Reconciler, Setup, queue_of};

pub(crate) fn start(setup: &mut Setup<'_>) {
    let queue = queue_of(&setup.informers.of::<Job>());
    let controller =
        Controller { jobs: setup.handle(), context: setup.context.clone(), queue: queue.clone() };
    setup.work(&queue, controller);
}

struct Controller {
    jobs: Handle<Job>,
    context: Context,
    queue: Queue<ObjectKey>,
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(job) = self.jobs.get(key) else {
            return Ok(());
        };
        match self.left(&job) {
            None => Ok(()),
            Some(left) if !left.is_zero() => {
                self.queue.add_after(key.clone(), left);
                Ok(())
            }
            // The time to live may have been changed meanwhile.
            Some(_) => match self.jobs.read(key).await? {
                Some(fresh) if self.left(&fresh).is_some_and(|left| left.is_zero()) => {
                    self.jobs.delete_with(&fresh, DeleteParams::foreground()).await
                }
                _ => Ok(()),
            },
        }
    }
}

impl Controller {
    /// How long a finished job has left. `None` for one that is not to go.
    fn left(&self, job: &Job) -> Option<Duration> {
        if job.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let seconds = i64::from(job.spec.as_ref()?.ttl_seconds_after_finished?);
        let end = finished_condition(job)?.last_transition_time.as_ref()?.0;
        let expires = end.checked_add(SignedDuration::from_secs(seconds)).ok()?;
        Some(Duration::try_from(expires.duration_since(self.context.now())).unwrap_or_default())
    }
}
