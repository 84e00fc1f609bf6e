//! Which ReplicaSet carries the Deployment's template, its making, and the revision annotations.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::ownership::{controller_of, controller_ref};
use super::super::template_hash::template_hash;
use super::super::{Error, ObjectKey};
use super::status::{has_deadline, progressing, set_condition};
use super::{Controller, Sets, scaling, spec_of};

const HASH_LABEL: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
const LONGEST_NAME: usize = 253;
const LONGEST_HISTORY: usize = 2000;

impl Controller {
    /// Finds the new and the old ReplicaSets and brings their annotations up to date; makes the new one if asked.
    pub(super) async fn sync_revisions(
        &self,
        deployment: &mut Deployment,
        sets: &[Arc<ReplicaSet>],
        create: bool,
    ) -> Result<Sets, Error> {
        let mut all: Vec<ReplicaSet> = sets.iter().map(|set| (**set).clone()).collect();
        all.sort_by(|a, b| {
            let key = |set: &ReplicaSet| (set.metadata.creation_timestamp.clone(), set.metadata.name.clone());
            key(a).cmp(&key(b))
        });
        let template = spec_of(deployment).template.clone();
        let new = all.iter().position(|set| same_template(set, &template)).map(|at| all.remove(at));
        let latest = all.iter().map(|set| revision(&set.metadata)).max().unwrap_or_default();
        let next = latest + 1;
        let new = match new {
            Some(set) => Some(self.update_new(deployment, set, next).await?),
            None if create => Some(self.create_new(deployment, &all, next).await?),
            None => None,
        };
        Ok(Sets { new, old: all })
    }

    async fn update_new(
        &self,
        deployment: &mut Deployment,
        mut set: ReplicaSet,
        next: i64,
    ) -> Result<ReplicaSet, Error> {
        let annotated = annotate(deployment, &mut set, next);
        let min_ready = spec_of(deployment).min_ready_seconds;
        let outdated = set.spec.as_ref().map(|spec| spec.min_ready_seconds.unwrap_or_default())
            != Some(min_ready.unwrap_or_default());
        if annotated || outdated {
            if let Some(spec) = set.spec.as_mut() {
                spec.min_ready_seconds = min_ready;
            }
            return self.sets.update(&set).await;
        }
        let mut write = set_revision(deployment, annotation(&set.metadata, REVISION).unwrap_or_default());
        if has_deadline(deployment) && progressing(deployment).is_none() {
            let message =
                format!("Found new replica set {:?}", set.metadata.name.as_deref().unwrap_or_default());
            let now = self.context.now();
            set_condition(
                deployment.status.get_or_insert_default(),
                now,
                "Progressing",
                "True",
                "FoundNewReplicaSet",
                message,
            );
            write = true;
        }
        if write {
            *deployment = self.deployments.update_status(deployment).await?;
        }
        Ok(set)
    }

    async fn create_new(
        &self,
        deployment: &mut Deployment,
        old: &[ReplicaSet],
        next: i64,
    ) -> Result<ReplicaSet, Error> {
        let spec = spec_of(deployment).clone();
        let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
        let hash = template_hash(&serde_json::to_value(&spec.template)?, collisions);
        let mut template = spec.template.clone();
        let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
        labels.insert(HASH_LABEL.to_owned(), hash.clone());
        let labels = labels.clone();
        let mut selector = spec.selector.clone();
        selector.match_labels.get_or_insert_default().insert(HASH_LABEL.to_owned(), hash.clone());
        let name = set_name(deployment.metadata.name.as_deref().unwrap_or_default(), &hash);
        let mut set = ReplicaSet {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: deployment.metadata.namespace.clone(),
                owner_references: Some(vec![controller_ref(deployment)]),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            spec: Some(ReplicaSetSpec {
                replicas: Some(scaling::new_size(deployment, old.iter(), 0)),
                min_ready_seconds: spec.min_ready_seconds,
                selector,
                template: Some(template),
            }),
            status: None,
        };
        annotate(deployment, &mut set, next);
        scaling::annotate_sizes(deployment, &mut set);
        let size = super::size(&set);
        let (made, fresh) = match self.sets.create(&set).await {
            Ok(made) => (made, true),
            Err(error) if error.has_reason("AlreadyExists") => {
                (self.existing(deployment, &name, error).await?, false)
            }
            Err(error) if error.namespace_terminating() => return Err(error),
            Err(error) => return Err(self.creation_failed(deployment, &name, error).await),
        };
        if fresh && size > 0 {
            let message = format!("Scaled up replica set {name} from 0 to {size}");
            self.recorder.normal(deployment, "ScalingReplicaSet", message);
        }
        let mut write = set_revision(deployment, &next.to_string());
        if fresh && has_deadline(deployment) {
            let message = format!("Created new replica set {name:?}");
            let now = self.context.now();
            set_condition(
                deployment.status.get_or_insert_default(),
                now,
                "Progressing",
                "True",
                "NewReplicaSetCreated",
                message,
            );
            write = true;
        }
        if write {
            *deployment = self.deployments.update_status(deployment).await?;
        }
        Ok(made)
    }

    /// The ReplicaSet that already has the name: ours after all, or one of another template with an equal hash.
    async fn existing(
        &self,
        deployment: &mut Deployment,
        name: &str,
        error: Error,
    ) -> Result<ReplicaSet, Error> {
        let namespace = deployment.metadata.namespace.clone().unwrap_or_default();
        let Some(set) = self.sets.read(&ObjectKey::new(&namespace, name)).await? else {
            return Err(error);
        };
        let ours = controller_of(&set.metadata).map(|owner| &owner.uid) == deployment.metadata.uid.as_ref();
        if ours && same_template(&set, &spec_of(deployment).template) {
            return Ok(set);
        }
        *deployment.status.get_or_insert_default().collision_count.get_or_insert_default() += 1;
        self.deployments.update_status(deployment).await?;
        Err(error)
    }

    async fn creation_failed(&self, deployment: &mut Deployment, name: &str, error: Error) -> Error {
        let message = format!("Failed to create new replica set {name:?}: {}", error.message());
        if has_deadline(deployment) {
            let (now, status) = (self.context.now(), deployment.status.get_or_insert_default());
            set_condition(status, now, "Progressing", "False", "ReplicaSetCreateError", message.clone());
            // There is a bigger problem to report than a status that could not be written.
            let _ = self.deployments.update_status(deployment).await;
        }
        self.recorder.warning(deployment, "ReplicaSetCreateError", message);
        error
    }
}

pub(super) fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The revision that an object's annotation names; 0 without one.
pub(super) fn revision(meta: &ObjectMeta) -> i64 {
    annotation(meta, REVISION).and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Whether a ReplicaSet's template is the Deployment's, its hash label aside.
fn same_template(set: &ReplicaSet, template: &PodTemplateSpec) -> bool {
    let Some(theirs) = set.spec.as_ref().and_then(|spec| spec.template.as_ref()) else {
        return false;
    };
    without_hash(theirs) == without_hash(template)
}

fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    if let Some(meta) = template.metadata.as_mut() {
        if let Some(labels) = meta.labels.as_mut() {
            labels.remove(HASH_LABEL);
        }
        meta.labels = meta.labels.take().filter(|labels| !labels.is_empty());
        meta.annotations = meta.annotations.take().filter(|annotations| !annotations.is_empty());
    }
    template.metadata = template.metadata.filter(|meta| *meta != ObjectMeta::default());
    template
}

/// Copies the Deployment's annotations and raises the revision. Returns whether anything changed.
fn annotate(deployment: &Deployment, set: &mut ReplicaSet, next: i64) -> bool {
    let skipped = [LAST_APPLIED, REVISION, REVISION_HISTORY, scaling::DESIRED, scaling::MAX, ROLLBACK_TO];
    let annotations: &mut BTreeMap<String, String> = set.metadata.annotations.get_or_insert_default();
    let mut changed = false;
    for (key, value) in deployment.metadata.annotations.iter().flatten() {
        if !skipped.contains(&key.as_str()) && annotations.get(key) != Some(value) {
            annotations.insert(key.clone(), value.clone());
            changed = true;
        }
    }
    let old = annotations.get(REVISION).cloned();
    let old_number = match old.as_deref() {
        None | Some("") => 0,
        Some(text) => match text.parse::<i64>() {
            Ok(number) => number,
            Err(_) => return false,
        },
    };
    if old_number < next {
        annotations.insert(REVISION.to_owned(), next.to_string());
        changed = true;
        // A ReplicaSet that had a revision is rolled back to: its earlier ones are kept for the record.
        if let Some(old) = old {
            remember(annotations, &old);
        }
    }
    changed
}

fn remember(annotations: &mut BTreeMap<String, String>, old: &str) {
    let history = annotations.get(REVISION_HISTORY).cloned().unwrap_or_default();
    if history.is_empty() {
        annotations.insert(REVISION_HISTORY.to_owned(), old.to_owned());
        return;
    }
    let mut kept: Vec<&str> = history.split(',').collect();
    kept.push(old);
    while kept.len() > 1 && kept.join(",").len() > LONGEST_HISTORY {
        kept.remove(0);
    }
    annotations.insert(REVISION_HISTORY.to_owned(), kept.join(","));
}

fn set_revision(deployment: &mut Deployment, revision: &str) -> bool {
    let annotations = deployment.metadata.annotations.get_or_insert_default();
    if annotations.get(REVISION).map(String::as_str) == Some(revision) {
        return false;
    }
    annotations.insert(REVISION.to_owned(), revision.to_owned());
    true
}

fn set_name(deployment: &str, hash: &str) -> String {
    let longest = LONGEST_NAME - 1 - hash.len();
    format!("{}-{hash}", &deployment[..deployment.len().min(longest)])
}
