//! Keeps only so many of the Jobs that have ended.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{CronJob, Job};

use super::super::job::finished_condition;
use super::Controller;

impl Controller {
    /// Deletes the oldest Jobs that have ended, beyond as many as are to be kept of each sort.
    pub(super) async fn clean_up(&self, cron: &mut CronJob, jobs: &[Arc<Job>]) {
        let spec = cron.spec.clone();
        let limits =
            [("Complete", spec.successful_jobs_history_limit), ("Failed", spec.failed_jobs_history_limit)];
        for (end, limit) in limits {
            let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else {
                continue;
            };
            let mut ended: Vec<_> = jobs
                .iter()
                .filter(|job| finished_condition(job).is_some_and(|one| one.type_ == end))
                .collect();
            ended.sort_by_key(|job| {
                let started =
                    job.status.as_ref().and_then(|status| status.start_time.as_ref()).map(|time| time.0);
                // Those that never started are the youngest.
                (started.is_none(), started, job.metadata.name.clone())
            });
            for job in ended.iter().take(ended.len().saturating_sub(limit)) {
                // It is told in an Event, and tried again with the next change.
                if let Err(error) = self.delete(cron, job).await {
                    tracing::debug!(%error, "failed to delete an old job");
                }
            }
        }
    }
}
