//! `statefulset-controller`: pods with a stable name and claims, one after the other.
//!
//! [`revisions`] keeps the history of templates, [`replicas`] makes and deletes pods in order, [`claims`] cares for
//! their volumes.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use windlass_machinery::Context;

use super::events::Recorder;
use super::informer::ObjectKey;
use super::informers::Handle;
use super::ownership::{claim, enqueue_controller, selector_of};
use super::queue::Queue;
use super::{Error, Reconciler, Setup, pods, queue_of};

mod claims;
mod replicas;
mod revisions;

const REVISION_LABEL: &str = "controller-revision-hash";
const NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

pub(crate) fn start(setup: &mut Setup<'_>) {
    let controller = Controller {
        sets: setup.handle(),
        pods: setup.handle(),
        claims: setup.handle(),
        revisions: setup.handle(),
        recorder: setup.recorder("statefulset-controller", None),
        context: setup.context.clone(),
        queue: queue_of(&setup.informers.of::<StatefulSet>()),
    };
    let owners = controller.sets.informer.clone();
    controller.pods.on_change(enqueue_controller::<StatefulSet, Pod>(owners, controller.queue.clone()));
    setup.work(&controller.queue.clone(), controller);
}

struct Controller {
    sets: Handle<StatefulSet>,
    pods: Handle<Pod>,
    claims: Handle<PersistentVolumeClaim>,
    revisions: Handle<ControllerRevision>,
    recorder: Recorder,
    context: Context,
    queue: Queue<ObjectKey>,
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(set) = self.sets.get(key) else {
            return Ok(());
        };
        let Some(selector) = selector_of(set.spec.as_ref().map(|spec| &spec.selector)) else {
            return Ok(());
        };
        let member = |pod: &Pod| parent_and_ordinal(pod).is_some_and(|(parent, _)| parent == key.name);
        let pods = claim(&*set, &self.sets, &self.pods, &selector, member).await?;
        let pods: Vec<Pod> = pods.iter().map(|pod| (**pod).clone()).collect();

        let mut history = self.history(&set, &selector).await?;
        let (current, update) = self.current_and_update(&set, &mut history).await?;
        let (mut status, outcome) = self.replicate(&set, &current, &update, pods.clone()).await;
        complete(&set, &mut status);
        if is_inconsistent(&set, &status) {
            let mut changed = (*set).clone();
            changed.status = Some(status.clone());
            self.sets.update_status(&changed).await?;
        }
        outcome?;
        self.truncate(&set, &pods, &history, [&current, &update]).await?;

        let min_ready = spec_of(&set).min_ready_seconds.unwrap_or_default();
        if min_ready > 0
            && status.ready_replicas.unwrap_or_default() != status.available_replicas.unwrap_or_default()
        {
            let next = pods::next_available(pods.iter(), min_ready, self.context.now());
            let fallback = Duration::from_secs(u64::try_from(min_ready).unwrap_or_default());
            self.queue.add_after(key.clone(), next.unwrap_or(fallback));
        }
        Ok(())
    }
}

fn spec_of(set: &StatefulSet) -> &StatefulSetSpec {
    static NONE: std::sync::OnceLock<StatefulSetSpec> = std::sync::OnceLock::new();
    set.spec.as_ref().unwrap_or_else(|| NONE.get_or_init(StatefulSetSpec::default))
}

fn name_of(set: &StatefulSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

/// A finished rolling update makes the update revision the current one.
fn complete(set: &StatefulSet, status: &mut StatefulSetStatus) {
    let strategy = spec_of(set).update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
    let wanted = spec_of(set).replicas.unwrap_or(1);
    if strategy != Some("OnDelete")
        && status.updated_replicas.unwrap_or_default() == wanted
        && status.ready_replicas.unwrap_or_default() == wanted
        && status.replicas == wanted
    {
        status.current_replicas = status.updated_replicas;
        status.current_revision = status.update_revision.clone();
    }
}

fn is_inconsistent(set: &StatefulSet, status: &StatefulSetStatus) -> bool {
    let old = set.status.clone().unwrap_or_default();
    let number = |value: Option<i32>| value.unwrap_or_default();
    status.observed_generation > old.observed_generation
        || status.replicas != old.replicas
        || number(status.current_replicas) != number(old.current_replicas)
        || number(status.ready_replicas) != number(old.ready_replicas)
        || number(status.updated_replicas) != number(old.updated_replicas)
        || number(status.available_replicas) != number(old.available_replicas)
        || status.current_revision != old.current_revision
        || status.update_revision != old.update_revision
}

/// `web` and 3 of `web-3`.
fn parent_and_ordinal(pod: &Pod) -> Option<(&str, i32)> {
    let (parent, ordinal) = pod.metadata.name.as_deref()?.rsplit_once('-')?;
    let number = ordinal.parse().ok().filter(|_| ordinal.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some((parent, number))
}

fn ordinal(pod: &Pod) -> i32 {
    parent_and_ordinal(pod).map_or(-1, |(_, ordinal)| ordinal)
}

fn revision_label(pod: &Pod) -> &str {
    pod.metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(REVISION_LABEL))
        .map(String::as_str)
        .unwrap_or_default()
}
