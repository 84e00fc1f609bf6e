//! `deployment-controller`: rolls a template out through ReplicaSets.
//!
//! This file decides what a sync does; the steps are in [`revisions`] (which ReplicaSet is the new one, and its
//! annotations), [`scaling`] (sizes), [`rollout`] (the two strategies) and [`status`] (conditions).

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use windlass_machinery::Context;

use super::events::Recorder;
use super::informer::ObjectKey;
use super::informers::Handle;
use super::ownership::{claim, controller_of, enqueue_controller, selector_of};
use super::queue::Queue;
use super::{Error, Reconciler, Setup, queue_of};

mod revisions;
mod rollout;
mod scaling;
mod status;

pub(crate) fn start(setup: &mut Setup<'_>) {
    let controller = Controller {
        deployments: setup.handle(),
        sets: setup.handle(),
        pods: setup.handle(),
        recorder: setup.recorder("deployment-controller", None),
        context: setup.context.clone(),
        queue: queue_of(&setup.informers.of::<Deployment>()),
    };
    let owners = controller.deployments.informer.clone();
    controller.sets.on_change(enqueue_controller::<Deployment, ReplicaSet>(owners, controller.queue.clone()));
    // A Recreate rollout goes on when the last old pod is gone.
    let (queue, sets, deployments) =
        (controller.queue.clone(), controller.sets.informer.clone(), controller.deployments.informer.clone());
    controller.pods.on_change(move |change| {
        let Some(pod) = change.old.as_ref().filter(|_| change.new.is_none()) else {
            return;
        };
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let set =
            controller_of(&pod.metadata).and_then(|owner| sets.get(&ObjectKey::new(&namespace, &owner.name)));
        let deployment = set.as_ref().and_then(|set| controller_of(&set.metadata));
        let Some(key) = deployment.map(|owner| ObjectKey::new(&namespace, &owner.name)) else {
            return;
        };
        if deployments.get(&key).is_some_and(|deployment| is_recreate(&deployment)) {
            queue.add(key);
        }
    });
    setup.work(&controller.queue.clone(), controller);
}

struct Controller {
    deployments: Handle<Deployment>,
    sets: Handle<ReplicaSet>,
    pods: Handle<Pod>,
    recorder: Recorder,
    context: Context,
    queue: Queue<ObjectKey>,
}

/// A Deployment's ReplicaSets: the one of its template, if there is one, and the others by age.
#[derive(Clone)]
struct Sets {
    new: Option<ReplicaSet>,
    old: Vec<ReplicaSet>,
}

impl Sets {
    fn all(&self) -> impl Iterator<Item = &ReplicaSet> {
        self.old.iter().chain(&self.new)
    }
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(deployment) = self.deployments.get(key) else {
            return Ok(());
        };
        let mut deployment = (*deployment).clone();
        let Some(selector) = selector_of(deployment.spec.as_ref().map(|spec| &spec.selector)) else {
            return Ok(());
        };
        let sets = claim(&deployment, &self.deployments, &self.sets, &selector, |_| true).await?;

        if deployment.metadata.deletion_timestamp.is_some() {
            let sets = self.sync_revisions(&mut deployment, &sets, false).await?;
            return self.sync_status(&deployment, &sets).await;
        }
        self.note_pause(&mut deployment).await?;
        if spec_of(&deployment).paused == Some(true) || self.was_scaled(&deployment, &sets) {
            return self.sync_scale(&mut deployment, &sets).await;
        }
        if is_recreate(&deployment) {
            self.recreate(&mut deployment, &sets).await
        } else {
            self.roll(&mut deployment, &sets).await
        }
    }
}

impl Controller {
    /// Sizes and status only: while paused, and after somebody changed `replicas`.
    async fn sync_scale(&self, deployment: &mut Deployment, sets: &[Arc<ReplicaSet>]) -> Result<(), Error> {
        let mut sets = self.sync_revisions(deployment, sets, false).await?;
        self.scale(deployment, &mut sets).await?;
        if spec_of(deployment).paused == Some(true) {
            self.clean_up(deployment, &sets.old).await?;
        }
        self.sync_status(deployment, &sets).await
    }

    /// Whether `replicas` changed since the ReplicaSets were last sized.
    fn was_scaled(&self, deployment: &Deployment, sets: &[Arc<ReplicaSet>]) -> bool {
        let wanted = replicas(deployment).to_string();
        let active = sets.iter().filter(|set| size(set) > 0);
        active.filter_map(|set| scaling::desired(set)).any(|desired| desired != wanted)
    }

    /// Deletes old, empty ReplicaSets beyond the history limit.
    async fn clean_up(&self, deployment: &Deployment, old: &[ReplicaSet]) -> Result<(), Error> {
        let limit = spec_of(deployment).revision_history_limit.unwrap_or(10);
        let mut old: Vec<_> = old.iter().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
        let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
        old.sort_by_key(|set| revisions::revision(&set.metadata));
        for set in old.into_iter().take(surplus) {
            let status = set.status.clone().unwrap_or_default();
            let seen = status.observed_generation >= set.metadata.generation;
            if status.replicas == 0 && size(set) == 0 && seen {
                self.sets.delete(set).await?;
            }
        }
        Ok(())
    }
}

fn spec_of(deployment: &Deployment) -> &DeploymentSpec {
    static NONE: std::sync::OnceLock<DeploymentSpec> = std::sync::OnceLock::new();
    deployment.spec.as_ref().unwrap_or_else(|| NONE.get_or_init(DeploymentSpec::default))
}

fn replicas(deployment: &Deployment) -> i32 {
    spec_of(deployment).replicas.unwrap_or(1)
}

fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

fn is_recreate(deployment: &Deployment) -> bool {
    let strategy = spec_of(deployment).strategy.as_ref();
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
}
