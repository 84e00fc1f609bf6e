//! The history of a StatefulSet's templates, as ControllerRevisions.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::core::Selector;
use serde_json::{Value, json};

use super::super::Error;
use super::super::informer::ObjectKey;
use super::super::ownership::{claim, controller_ref};
use super::super::template_hash::{go_json, revision_hash};
use super::{Controller, name_of, revision_label, spec_of};

const HASH_LABEL: &str = "controller.kubernetes.io/hash";

impl Controller {
    /// The revisions of a set, oldest first.
    pub(super) async fn history(
        &self,
        set: &StatefulSet,
        selector: &Selector,
    ) -> Result<Vec<Arc<ControllerRevision>>, Error> {
        let mut history = claim(set, &self.sets, &self.revisions, selector, |_| true).await?;
        history.sort_by_key(|r| (r.revision, r.metadata.creation_timestamp.clone(), r.metadata.name.clone()));
        Ok(history)
    }

    /// The revision that pods had, and the one that they shall have; the latter is made if it is new.
    pub(super) async fn current_and_update(
        &self,
        set: &StatefulSet,
        history: &mut Vec<Arc<ControllerRevision>>,
    ) -> Result<(Arc<ControllerRevision>, Arc<ControllerRevision>), Error> {
        let status = set.status.clone().unwrap_or_default();
        let next = history.last().map_or(1, |last| last.revision + 1);
        let wanted = new_revision(set, next, status.collision_count.unwrap_or_default())?;
        let equal = history.iter().rposition(|revision| revision.data == wanted.data);
        let update = match equal {
            Some(at) if at + 1 == history.len() => history[at].clone(),
            // Rolled back to: it becomes the newest again.
            Some(at) => {
                let mut revision = (*history[at]).clone();
                revision.revision = next;
                let revision = Arc::new(self.revisions.update(&revision).await?);
                history.remove(at);
                history.push(revision.clone());
                revision
            }
            None => {
                let made = Arc::new(self.create_revision(set, wanted).await?);
                history.push(made.clone());
                made
            }
        };
        let current = history.iter().find(|revision| revision.metadata.name == status.current_revision);
        let current = current.cloned().unwrap_or_else(|| update.clone());
        Ok((current, update))
    }

    /// Makes a revision; one of that name and other data is a collision, and counted in the status.
    async fn create_revision(
        &self,
        set: &StatefulSet,
        wanted: ControllerRevision,
    ) -> Result<ControllerRevision, Error> {
        match self.revisions.create(&wanted).await {
            Err(error) if error.has_reason("AlreadyExists") => {
                let found = self.revisions.read(&ObjectKey::of(&wanted.metadata)).await?;
                match found {
                    Some(found) if found.data == wanted.data => Ok(found),
                    _ => {
                        let mut changed = set.clone();
                        *changed.status.get_or_insert_default().collision_count.get_or_insert_default() += 1;
                        self.sets.update_status(&changed).await?;
                        Err(error)
                    }
                }
            }
            made => made,
        }
    }

    /// Deletes revisions beyond the limit that no pod has.
    pub(super) async fn truncate(
        &self,
        set: &StatefulSet,
        pods: &[Pod],
        history: &[Arc<ControllerRevision>],
        live: [&ControllerRevision; 2],
    ) -> Result<(), Error> {
        let limit = usize::try_from(spec_of(set).revision_history_limit.unwrap_or(10)).unwrap_or(usize::MAX);
        let is_live = |revision: &ControllerRevision| {
            let name = revision.metadata.name.as_deref().unwrap_or_default();
            live.iter().any(|live| live.metadata.name == revision.metadata.name)
                || pods.iter().any(|pod| revision_label(pod) == name)
        };
        let dead: Vec<_> = history.iter().filter(|revision| !is_live(revision)).collect();
        for revision in dead.iter().take(dead.len().saturating_sub(limit)) {
            self.revisions.delete(revision).await?;
        }
        Ok(())
    }
}

/// A set as it was at a revision.
pub(super) fn apply(set: &StatefulSet, revision: &ControllerRevision) -> Result<StatefulSet, Error> {
    let mut set = set.clone();
    let template = revision.data.as_ref().and_then(|data| data.0.pointer("/spec/template"));
    if let (Some(template), Some(spec)) = (template, set.spec.as_mut()) {
        let mut template = template.clone();
        if let Some(object) = template.as_object_mut() {
            object.remove("$patch");
        }
        spec.template = serde_json::from_value::<PodTemplateSpec>(template)?;
    }
    Ok(set)
}

fn new_revision(set: &StatefulSet, number: i64, collisions: i32) -> Result<ControllerRevision, Error> {
    let mut template = serde_json::to_value(&spec_of(set).template)?;
    // Go writes a container's resources also where there are none.
    for list in ["/spec/containers", "/spec/initContainers"] {
        for container in template.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                container.entry("resources").or_insert_with(|| json!({}));
            }
        }
    }
    if let Some(object) = template.as_object_mut() {
        object.insert("$patch".to_owned(), json!("replace"));
    }
    let data = json!({"spec": {"template": template}});
    let hash = revision_hash(go_json(&data).as_bytes(), Some(collisions));
    let meta = spec_of(set).template.metadata.clone().unwrap_or_default();
    let mut labels = meta.labels.unwrap_or_default();
    labels.insert(HASH_LABEL.to_owned(), hash.clone());
    let parent = name_of(set);
    Ok(ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", &parent[..parent.len().min(223)])),
            namespace: set.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: set.metadata.annotations.clone(),
            owner_references: Some(vec![controller_ref(set)]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data)),
        revision: number,
    })
}
