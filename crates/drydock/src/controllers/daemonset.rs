//! `daemonset-controller`, narrow: one pod on every node that fits, replaced when the template changes.
//!
//! Surge is not done: an old pod is deleted before its successor is made.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, DaemonSetSpec, DaemonSetStatus};
use k8s_openapi::api::core::v1::{
    Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;
use windlass_machinery::Context;

use super::events::Recorder;
use super::informer::{Informer, ObjectKey};
use super::informers::Handle;
use super::ownership::{claim, controller_ref, enqueue_controller, selector_of};
use super::queue::Queue;
use super::template_hash::template_hash;
use super::{Error, Reconciler, Setup, nonzero, pods, queue_of, scaled};

const REVISION_LABEL: &str = "controller-revision-hash";
const GENERATION_LABEL: &str = "pod-template-generation";
const GENERATION: &str = "deprecated.daemonset.template.generation";

pub(crate) fn start(setup: &mut Setup<'_>) {
    let controller = Controller {
        sets: setup.handle(),
        pods: setup.handle(),
        revisions: setup.handle(),
        nodes: setup.informers.of(),
        recorder: setup.recorder("daemonset-controller", None),
        context: setup.context.clone(),
        queue: queue_of(&setup.informers.of::<DaemonSet>()),
    };
    let owners = controller.sets.informer.clone();
    controller.pods.on_change(enqueue_controller::<DaemonSet, Pod>(owners, controller.queue.clone()));
    let (queue, sets) = (controller.queue.clone(), controller.sets.informer.clone());
    controller.nodes.on_change(move |_| {
        for set in sets.all() {
            queue.add(ObjectKey::of(&set.metadata));
        }
    });
    setup.work(&controller.queue.clone(), controller);
}

struct Controller {
    sets: Handle<DaemonSet>,
    pods: Handle<Pod>,
    revisions: Handle<ControllerRevision>,
    nodes: Arc<Informer<Node>>,
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
        let pods = claim(&*set, &self.sets, &self.pods, &selector, |_| true).await?;
        let hash = self.revision(&set, &selector).await?;
        if set.metadata.deletion_timestamp.is_none() {
            self.manage(&set, &pods, &hash).await?;
        }
        let status = self.status(&set, &hash);
        if set.status.as_ref() != Some(&status) {
            let mut changed = (*set).clone();
            changed.status = Some(status.clone());
            self.sets.update_status(&changed).await?;
        }
        let min_ready = spec_of(&set).min_ready_seconds.unwrap_or_default();
        if min_ready > 0 && status.number_ready != status.number_available.unwrap_or_default() {
            self.queue
                .add_after(key.clone(), Duration::from_secs(u64::try_from(min_ready).unwrap_or_default()));
        }
        Ok(())
    }
}

impl Controller {
    /// The hash of the template, kept with it in a ControllerRevision.
    async fn revision(&self, set: &DaemonSet, selector: &kube::core::Selector) -> Result<String, Error> {
        let collisions = set.status.as_ref().and_then(|status| status.collision_count);
        let mut template = serde_json::to_value(&spec_of(set).template)?;
        let hash = template_hash(&template, collisions);
        if let Some(object) = template.as_object_mut() {
            object.insert("$patch".to_owned(), json!("replace"));
        }
        let data = RawExtension(json!({"spec": {"template": template}}));
        let history = claim(set, &self.sets, &self.revisions, selector, |_| true).await?;
        if let Some(known) = history.iter().find(|revision| revision.data.as_ref() == Some(&data)) {
            let labels = known.metadata.labels.as_ref();
            return Ok(labels.and_then(|labels| labels.get(REVISION_LABEL)).cloned().unwrap_or(hash));
        }
        let meta = spec_of(set).template.metadata.clone().unwrap_or_default();
        let mut labels = meta.labels.unwrap_or_default();
        labels.insert(REVISION_LABEL.to_owned(), hash.clone());
        let revision = ControllerRevision {
            metadata: ObjectMeta {
                name: Some(format!("{}-{hash}", set.metadata.name.as_deref().unwrap_or_default())),
                namespace: set.metadata.namespace.clone(),
                labels: Some(labels),
                annotations: set.metadata.annotations.clone(),
                owner_references: Some(vec![controller_ref(set)]),
                ..ObjectMeta::default()
            },
            data: Some(data),
            revision: history.iter().map(|revision| revision.revision).max().unwrap_or_default() + 1,
        };
        self.revisions.create(&revision).await?;
        Ok(hash)
    }

    async fn manage(&self, set: &DaemonSet, all: &[Arc<Pod>], hash: &str) -> Result<(), Error> {
        let mut unavailable = 0;
        let mut outdated = Vec::new();
        let nodes = self.nodes.all();
        for node in &nodes {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            let here: Vec<_> = all.iter().filter(|pod| target(pod) == Some(name)).collect();
            if !fits(set, node) {
                for pod in here.iter().filter(|pod| pods::is_active(pod)) {
                    self.delete(set, pod).await?;
                }
                continue;
            }
            for pod in here.iter().filter(|pod| pods::is_finished(pod) && !pods::is_terminating(pod)) {
                let (namespace, pod_name) = (&pod.metadata.namespace, &pod.metadata.name);
                let message = format!(
                    "Found failed daemon pod {}/{} on node {name}, will try to kill it",
                    namespace.as_deref().unwrap_or_default(),
                    pod_name.as_deref().unwrap_or_default()
                );
                self.recorder.warning(set, "FailedDaemonPod", message);
                self.delete(set, pod).await?;
            }
            match here.iter().find(|pod| pods::is_active(pod)) {
                None if here.is_empty() => {
                    self.create(set, name, hash).await?;
                    unavailable += 1;
                }
                None => unavailable += 1,
                Some(pod) => {
                    let available = pods::is_available(
                        pod,
                        spec_of(set).min_ready_seconds.unwrap_or_default(),
                        self.context.now(),
                    );
                    unavailable += i32::from(!available);
                    if label(pod, REVISION_LABEL) != Some(hash) {
                        outdated.push(((*pod).clone(), available));
                    }
                }
            }
        }
        let strategy = spec_of(set).update_strategy.clone().unwrap_or_default();
        if strategy.type_.as_deref() == Some("OnDelete") {
            return Ok(());
        }
        let one = IntOrString::Int(1);
        let rolling = strategy.rolling_update.unwrap_or_default();
        let total = i32::try_from(nodes.len()).unwrap_or(i32::MAX);
        let most = scaled(Some(rolling.max_unavailable.as_ref().unwrap_or(&one)), total, true).max(1);
        // Replacing one that is not available costs nothing.
        for (pod, available) in outdated {
            if !available || unavailable < most {
                self.delete(set, &pod).await?;
                unavailable += i32::from(available);
            }
        }
        Ok(())
    }

    async fn create(&self, set: &DaemonSet, node: &str, hash: &str) -> Result<(), Error> {
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let mut pod = pods::from_template(&spec_of(set).template, namespace, controller_ref(set));
        let labels = pod.metadata.labels.get_or_insert_default();
        labels.insert(REVISION_LABEL.to_owned(), hash.to_owned());
        if let Some(generation) = set.metadata.annotations.as_ref().and_then(|all| all.get(GENERATION)) {
            labels.insert(GENERATION_LABEL.to_owned(), generation.clone());
        }
        pin(pod.spec.get_or_insert_default(), node);
        match self.pods.create(&pod).await {
            Ok(made) => {
                let name = made.metadata.name.unwrap_or_default();
                self.recorder.normal(set, "SuccessfulCreate", format!("Created pod: {name}"));
                Ok(())
            }
            Err(error) if error.namespace_terminating() => Ok(()),
            Err(error) => {
                self.recorder.warning(set, "FailedCreate", format!("Error creating: {}", error.message()));
                Err(error)
            }
        }
    }

    async fn delete(&self, set: &DaemonSet, pod: &Pod) -> Result<(), Error> {
        self.pods.delete(pod).await?;
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        self.recorder.normal(set, "SuccessfulDelete", format!("Deleted pod: {name}"));
        Ok(())
    }

    fn status(&self, set: &DaemonSet, hash: &str) -> DaemonSetStatus {
        let mine = self.pods.controlled_by(set.metadata.uid.as_deref().unwrap_or_default());
        let old = set.status.clone().unwrap_or_default();
        let mut status = DaemonSetStatus {
            observed_generation: set.metadata.generation,
            collision_count: old.collision_count,
            conditions: old.conditions,
            ..DaemonSetStatus::default()
        };
        let (mut updated, mut available) = (0, 0);
        for node in self.nodes.all() {
            let name = node.metadata.name.as_deref();
            let pod = mine.iter().find(|pod| target(pod) == name);
            match (fits(set, &node), pod) {
                (true, None) => status.desired_number_scheduled += 1,
                (true, Some(pod)) => {
                    status.desired_number_scheduled += 1;
                    status.current_number_scheduled += 1;
                    status.number_ready += i32::from(pods::is_ready(pod));
                    let min_ready = spec_of(set).min_ready_seconds.unwrap_or_default();
                    available += i32::from(pods::is_available(pod, min_ready, self.context.now()));
                    updated += i32::from(label(pod, REVISION_LABEL) == Some(hash));
                }
                (false, Some(_)) => status.number_misscheduled += 1,
                (false, None) => {}
            }
        }
        status.updated_number_scheduled = nonzero(updated);
        status.number_available = nonzero(available);
        status.number_unavailable = nonzero(status.desired_number_scheduled - available);
        status
    }
}

fn spec_of(set: &DaemonSet) -> &DaemonSetSpec {
    static NONE: std::sync::OnceLock<DaemonSetSpec> = std::sync::OnceLock::new();
    set.spec.as_ref().unwrap_or_else(|| NONE.get_or_init(DaemonSetSpec::default))
}

fn label<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

fn fits(set: &DaemonSet, node: &Node) -> bool {
    let wanted = spec_of(set).template.spec.as_ref().and_then(|spec| spec.node_selector.as_ref());
    let labels = node.metadata.labels.as_ref();
    wanted.into_iter().flatten().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}

/// The node a daemon's pod is on or meant for.
fn target(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    if let Some(name) = spec.node_name.as_deref() {
        return Some(name);
    }
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let fields = required.node_selector_terms.iter().filter_map(|term| term.match_fields.as_ref()).flatten();
    let mut names =
        fields.filter(|field| field.key == "metadata.name").filter_map(|field| field.values.as_ref());
    names.next()?.first().map(String::as_str)
}

/// Means a pod for one node, whatever state that is in.
fn pin(spec: &mut PodSpec, node: &str) {
    let term = NodeSelectorTerm {
        match_fields: Some(vec![NodeSelectorRequirement {
            key: "metadata.name".to_owned(),
            operator: "In".to_owned(),
            values: Some(vec![node.to_owned()]),
        }]),
        match_expressions: None,
    };
    let affinity =
        spec.affinity.get_or_insert_default().node_affinity.get_or_insert_with(NodeAffinity::default);
    affinity.required_during_scheduling_ignored_during_execution =
        Some(NodeSelector { node_selector_terms: vec![term] });
    let tolerated = [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ];
    spec.tolerations.get_or_insert_default().extend(tolerated.into_iter().map(|(name, effect)| Toleration {
        key: Some(format!("node.kubernetes.io/{name}")),
        operator: Some("Exists".to_owned()),
        effect: Some(effect.to_owned()),
        ..Toleration::default()
    }));
}
