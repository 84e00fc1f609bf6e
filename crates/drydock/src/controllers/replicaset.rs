//! `replicaset-controller`: as many pods of a template as asked for.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_machinery::Context;

use super::events::Recorder;
use super::informer::ObjectKey;
use super::informers::Handle;
use super::ownership::{claim, controller_ref, enqueue_controller, selector_of, selects};
use super::queue::Queue;
use super::{Error, Reconciler, Setup, nonzero, pods, queue_of};

/// At most this many pods are made or deleted in one go.
const BURST: usize = 500;

pub(crate) fn start(setup: &mut Setup<'_>) {
    let controller = Controller {
        sets: setup.handle(),
        pods: setup.handle(),
        recorder: setup.recorder("replicaset-controller", None),
        context: setup.context.clone(),
        queue: queue_of(&setup.informers.of::<ReplicaSet>()),
    };
    let owners = controller.sets.informer.clone();
    controller.pods.on_change(enqueue_controller::<ReplicaSet, Pod>(owners, controller.queue.clone()));
    setup.work(&controller.queue.clone(), controller);
}

struct Controller {
    sets: Handle<ReplicaSet>,
    pods: Handle<Pod>,
    recorder: Recorder,
    context: Context,
    queue: Queue<ObjectKey>,
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(set) = self.sets.get(key) else {
            return Ok(());
        };
        let Some(spec) = set.spec.as_ref() else {
            return Ok(());
        };
        let Some(selector) = selector_of(Some(&spec.selector)) else {
            return Ok(());
        };
        let active = claim(&*set, &self.sets, &self.pods, &selector, pods::is_active).await?;
        let managed = match set.metadata.deletion_timestamp {
            Some(_) => Ok(()),
            None => self.manage(&set, &active).await,
        };

        // Pods just made or deleted are in the cache already, so one write tells of them.
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        let mine = self.pods.controlled_by(uid);
        let mine: Vec<_> = mine.into_iter().filter(|pod| selects(&selector, &pod.metadata)).collect();
        let now = self.context.now();
        let status = status_of(&set, &mine, managed.as_ref().err(), now);
        if set.status.as_ref() != Some(&status) {
            let mut changed = (*set).clone();
            changed.status = Some(status.clone());
            self.sets.update_status(&changed).await?;
        }
        managed?;
        let min_ready = spec.min_ready_seconds.unwrap_or_default();
        if min_ready > 0 && status.ready_replicas != status.available_replicas {
            let next = pods::next_available(mine.iter().map(|pod| &**pod), min_ready, now);
            let fallback = Duration::from_secs(u64::try_from(min_ready).unwrap_or_default());
            self.queue.add_after(key.clone(), next.unwrap_or(fallback));
        }
        Ok(())
    }
}

impl Controller {
    async fn manage(&self, set: &ReplicaSet, active: &[Arc<Pod>]) -> Result<(), Error> {
        let Some(spec) = set.spec.as_ref() else {
            return Ok(());
        };
        let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or_default();
        if active.len() < wanted {
            let Some(template) = spec.template.as_ref() else {
                return Ok(());
            };
            let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
            let pod = pods::from_template(template, namespace, controller_ref(set));
            for _ in 0..(wanted - active.len()).min(BURST) {
                match self.pods.create(&pod).await {
                    Ok(made) => {
                        let name = made.metadata.name.unwrap_or_default();
                        self.recorder.normal(set, "SuccessfulCreate", format!("Created pod: {name}"));
                    }
                    Err(error) if error.namespace_terminating() => return Ok(()),
                    Err(error) => {
                        let message = format!("Error creating: {}", error.message());
                        self.recorder.warning(set, "FailedCreate", message);
                        return Err(error);
                    }
                }
            }
        } else if active.len() > wanted {
            let now = self.context.now();
            let mut ranked = active.to_vec();
            ranked.sort_by(|a, b| pods::deletion_order(a, b, now));
            for pod in ranked.iter().take((active.len() - wanted).min(BURST)) {
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                if let Err(error) = self.pods.delete(pod).await {
                    self.recorder.warning(
                        set,
                        "FailedDelete",
                        format!("Error deleting: {}", error.message()),
                    );
                    return Err(error);
                }
                self.recorder.normal(set, "SuccessfulDelete", format!("Deleted pod: {name}"));
            }
        }
        Ok(())
    }
}

fn status_of(
    set: &ReplicaSet,
    mine: &[Arc<Pod>],
    failed: Option<&Error>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let spec = set.spec.clone().unwrap_or_default();
    let min_ready = spec.min_ready_seconds.unwrap_or_default();
    let active: Vec<_> = mine.iter().filter(|pod| pods::is_active(pod)).collect();
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let labels =
        spec.template.and_then(|template| template.metadata).and_then(|meta| meta.labels).unwrap_or_default();
    let labelled = active.iter().filter(|pod| {
        let have = pod.metadata.labels.as_ref();
        labels.iter().all(|(key, value)| have.and_then(|have| have.get(key)) == Some(value))
    });
    let ready = active.iter().filter(|pod| pods::is_ready(pod));
    let available = active.iter().filter(|pod| pods::is_available(pod, min_ready, now));
    let terminating = mine.iter().filter(|pod| pods::is_terminating(pod) && !pods::is_finished(pod));

    let old = set.status.clone().unwrap_or_default();
    let mut conditions = old.conditions.unwrap_or_default();
    let known = conditions.iter().any(|condition| condition.type_ == "ReplicaFailure");
    match failed {
        Some(error) if !known => conditions.push(ReplicaSetCondition {
            type_: "ReplicaFailure".into(),
            status: "True".into(),
            reason: Some(
                if count(active.len()) < spec.replicas.unwrap_or(1) {
                    "FailedCreate"
                } else {
                    "FailedDelete"
                }
                .into(),
            ),
            message: Some(error.message()),
            last_transition_time: Some(Time(now)),
        }),
        None if known => conditions.retain(|condition| condition.type_ != "ReplicaFailure"),
        _ => {}
    }
    ReplicaSetStatus {
        replicas: count(active.len()),
        fully_labeled_replicas: nonzero(count(labelled.count())),
        ready_replicas: nonzero(count(ready.count())),
        available_replicas: nonzero(count(available.count())),
        terminating_replicas: Some(count(terminating.count())),
        observed_generation: set.metadata.generation,
        conditions: Some(conditions).filter(|conditions| !conditions.is_empty()),
    }
}
