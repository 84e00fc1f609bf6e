//! The scheduler: binds every pending pod to the node, unless its selector or its claims forbid it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Binding, Node, ObjectReference, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Client;
use kube::api::{Patch, PostParams};
use kube::core::Request;
use serde_json::json;
use tokio::time::Instant;
use windlass_machinery::Context;

use super::{NAME, NodeOptions};
use crate::controllers::events::Recorder;
use crate::controllers::informer::ObjectKey;
use crate::controllers::informers::Handle;
use crate::controllers::queue::Queue;
use crate::controllers::{Error, Reconciler, Setup, pods};

/// A pod that does not fit is given this long before it is said: its claims may be about to be bound.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) fn start(setup: &mut Setup<'_>, _: &NodeOptions) {
    let scheduler = Scheduler {
        pods: setup.handle(),
        nodes: setup.handle(),
        claims: setup.handle(),
        client: setup.client.clone(),
        recorder: setup.recorder("default-scheduler", Some(NAME)),
        context: setup.context.clone(),
        queue: Queue::new(),
        bound: Arc::default(),
        waiting: Arc::default(),
    };
    let (queue, bound, waiting) =
        (scheduler.queue.clone(), scheduler.bound.clone(), scheduler.waiting.clone());
    scheduler.pods.on_change(move |change| {
        if change.new.as_ref().is_some_and(|pod| is_pending(pod)) {
            queue.add(ObjectKey::of(&change.latest().metadata));
        } else if let Some(uid) = &change.latest().metadata.uid {
            bound.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
            waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
        }
    });
    let (queue, pods) = (scheduler.queue.clone(), scheduler.pods.informer.clone());
    scheduler.claims.on_change(move |change| {
        let namespace = change.latest().metadata.namespace.clone().unwrap_or_default();
        for pod in pods.in_namespace(&namespace).iter().filter(|pod| is_pending(pod)) {
            queue.add(ObjectKey::of(&pod.metadata));
        }
    });
    let (queue, pods) = (scheduler.queue.clone(), scheduler.pods.informer.clone());
    scheduler.nodes.on_change(move |_| {
        for pod in pods.all().iter().filter(|pod| is_pending(pod)) {
            queue.add(ObjectKey::of(&pod.metadata));
        }
    });
    setup.work(&scheduler.queue.clone(), scheduler);
}

struct Scheduler {
    pods: Handle<Pod>,
    nodes: Handle<Node>,
    claims: Handle<PersistentVolumeClaim>,
    client: Client,
    recorder: Recorder,
    context: Context,
    queue: Queue<ObjectKey>,
    /// Pods bound already whose news has not come back yet, by uid.
    bound: Arc<Mutex<BTreeSet<String>>>,
    /// Since when pods have not fitted, by uid.
    waiting: Arc<Mutex<BTreeMap<String, Instant>>>,
}

fn is_pending(pod: &Pod) -> bool {
    let Some(spec) = pod.spec.as_ref() else {
        return false;
    };
    spec.node_name.is_none()
        && !pods::is_terminating(pod)
        && !pods::is_finished(pod)
        && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
        && spec.scheduler_name.as_deref().unwrap_or("default-scheduler") == "default-scheduler"
}

impl Reconciler for Scheduler {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let pod = self.pods.get(key).filter(|pod| is_pending(pod));
        let Some(pod) = pod else { return Ok(()) };
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        // A test that runs without the node has nothing to bind to: pods stay Pending.
        let Some(node) = self.nodes.get(&ObjectKey::new("", NAME)) else {
            return Ok(());
        };
        if self.bound.lock().unwrap_or_else(PoisonError::into_inner).contains(&uid) {
            return Ok(());
        }
        if let Some(why) = self.misfit(&pod, &node) {
            let now = Instant::now();
            let since =
                *self.waiting.lock().unwrap_or_else(PoisonError::into_inner).entry(uid).or_insert(now);
            let left = PATIENCE.saturating_sub(now.duration_since(since));
            if !left.is_zero() {
                self.queue.add_after(key.clone(), left);
                return Ok(());
            }
            return self.refuse(&pod, why).await;
        }
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&uid);
        self.bind(key, &pod, uid).await
    }
}

impl Scheduler {
    async fn bind(&self, key: &ObjectKey, pod: &Pod, uid: String) -> Result<(), Error> {
        let binding = Binding {
            metadata: ObjectMeta {
                name: Some(key.name.clone()),
                namespace: Some(key.namespace.clone()),
                uid: Some(uid.clone()),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                kind: Some("Node".to_owned()),
                name: Some(NAME.to_owned()),
                ..ObjectReference::default()
            },
        };
        let request = Request::new(<Pod as kube::Resource>::url_path(&(), Some(&key.namespace)));
        let body = serde_json::to_vec(&binding)?;
        let request = request.create_subresource("binding", &key.name, &PostParams::default(), body);
        let request = request.map_err(|error| Error::Kube(kube::Error::BuildRequest(error)))?;
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).insert(uid.clone());
        match self.client.request::<serde_json::Value>(request).await {
            Ok(_) => {
                let message = format!("Successfully assigned {key} to {NAME}");
                self.recorder.action(pod, "Normal", "Scheduled", "Binding", message);
                Ok(())
            }
            Err(error) => {
                self.bound.lock().unwrap_or_else(PoisonError::into_inner).remove(&uid);
                let error = Error::from(error);
                if error.has_reason("NotFound") || error.has_reason("Conflict") { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Why a pod cannot be on the node.
    fn misfit(&self, pod: &Pod, node: &Node) -> Option<String> {
        const PREEMPTION: &str =
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
        let spec = pod.spec.as_ref()?;
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        for volume in spec.volumes.iter().flatten() {
            let Some(source) = &volume.persistent_volume_claim else {
                continue;
            };
            let Some(claim) = self.claims.get(&ObjectKey::new(namespace, &source.claim_name)) else {
                let missing = format!("persistentvolumeclaim {:?} not found", source.claim_name);
                return Some(format!("0/1 nodes are available: {missing}. {PREEMPTION}"));
            };
            let bound = claim.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Bound"));
            if !bound {
                let unbound = "pod has unbound immediate PersistentVolumeClaims";
                return Some(format!("0/1 nodes are available: {unbound}. {PREEMPTION}"));
            }
        }
        let labels = node.metadata.labels.as_ref();
        let fits = spec
            .node_selector
            .iter()
            .flatten()
            .all(|(k, v)| labels.and_then(|labels| labels.get(k)) == Some(v));
        let reason = "1 node(s) didn't match Pod's node affinity/selector";
        let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
        match (fits, cordoned) {
            (true, false) => None,
            (false, _) => Some(format!("0/1 nodes are available: {reason}. {PREEMPTION}")),
            (true, true) => {
                Some(format!("0/1 nodes are available: 1 node(s) were unschedulable. {PREEMPTION}"))
            }
        }
    }

    /// Says once that a pod does not fit.
    async fn refuse(&self, pod: &Pod, why: String) -> Result<(), Error> {
        let said = pods::condition(pod, "PodScheduled").and_then(|condition| condition.message.as_deref());
        if said == Some(why.as_str()) {
            return Ok(());
        }
        self.recorder.action(pod, "Warning", "FailedScheduling", "Scheduling", why.clone());
        let patch = json!({"status": {"conditions": [{
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": why,
            "observedGeneration": pod.metadata.generation,
            "lastProbeTime": null,
            "lastTransitionTime": Time(self.context.now()),
        }]}});
        self.pods.patch_status(&ObjectKey::of(&pod.metadata), &Patch::Strategic(patch)).await.map(|_| ())
    }
}
