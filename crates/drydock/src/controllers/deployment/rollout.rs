//! The two strategies: rolling, within surge and unavailability, and recreate, old ones first.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use super::super::{Error, pods};
use super::scaling::{max_unavailable, new_size};
use super::status::is_complete;
use super::{Controller, Sets, replicas, size};

impl Controller {
    pub(super) async fn roll(
        &self,
        deployment: &mut Deployment,
        sets: &[Arc<ReplicaSet>],
    ) -> Result<(), Error> {
        let mut sets = self.sync_revisions(deployment, sets, true).await?;
        let moved =
            self.grow_new(deployment, &mut sets).await? || self.shrink_old(deployment, &mut sets).await?;
        if !moved && is_complete(deployment, deployment.status.as_ref()) {
            self.clean_up(deployment, &sets.old).await?;
        }
        self.sync_rollout_status(deployment, &sets).await
    }

    pub(super) async fn recreate(
        &self,
        deployment: &mut Deployment,
        sets: &[Arc<ReplicaSet>],
    ) -> Result<(), Error> {
        let mut found = self.sync_revisions(deployment, sets, false).await?;
        let mut scaled_down = false;
        for set in found.old.iter_mut().filter(|set| size(set) > 0) {
            scaled_down |= self.resize(deployment, set, 0, false).await?;
        }
        if scaled_down || self.old_pods_run(&found) {
            return self.sync_rollout_status(deployment, &found).await;
        }
        if found.new.is_none() {
            found = self.sync_revisions(deployment, sets, true).await?;
        }
        if let Some(new) = found.new.as_mut() {
            self.resize(deployment, new, replicas(deployment), false).await?;
        }
        if is_complete(deployment, deployment.status.as_ref()) {
            self.clean_up(deployment, &found.old).await?;
        }
        self.sync_rollout_status(deployment, &found).await
    }

    fn old_pods_run(&self, sets: &Sets) -> bool {
        sets.old.iter().any(|set| {
            let counted = set.status.as_ref().is_some_and(|status| status.replicas > 0);
            let uid = set.metadata.uid.as_deref().unwrap_or_default();
            counted || self.pods.controlled_by(uid).iter().any(|pod| !pods::is_finished(pod))
        })
    }

    async fn grow_new(&self, deployment: &Deployment, sets: &mut Sets) -> Result<bool, Error> {
        let Some(new) = sets.new.as_mut() else {
            return Ok(false);
        };
        let (has, wanted) = (size(new), replicas(deployment));
        if has == wanted {
            return Ok(false);
        }
        let to = if has > wanted { wanted } else { new_size(deployment, sets.old.iter(), has) };
        self.resize(deployment, new, to, false).await
    }

    async fn shrink_old(&self, deployment: &Deployment, sets: &mut Sets) -> Result<bool, Error> {
        let Some(new) = sets.new.as_ref() else {
            return Ok(false);
        };
        let old_total: i32 = sets.old.iter().map(size).sum();
        if old_total == 0 {
            return Ok(false);
        }
        let floor = replicas(deployment) - max_unavailable(deployment);
        let missing = size(new) - available(new);
        let may_remove = old_total + size(new) - floor - missing;
        if may_remove <= 0 {
            return Ok(false);
        }
        // Pods that are not available go first: they hold up the rollout and nobody misses them.
        let mut removed = 0;
        for set in sets.old.iter_mut().filter(|set| size(set) > 0) {
            let unhealthy = size(set) - available(set);
            let count = unhealthy.min(may_remove - removed);
            if count > 0 {
                self.resize(deployment, set, size(set) - count, false).await?;
                removed += count;
            }
        }
        let mut surplus = sets.all().map(available).sum::<i32>() - floor;
        for set in sets.old.iter_mut().filter(|set| size(set) > 0) {
            let count = size(set).min(surplus);
            if count > 0 {
                self.resize(deployment, set, size(set) - count, false).await?;
                removed += count;
                surplus -= count;
            }
        }
        Ok(removed > 0)
    }
}

fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default()
}
