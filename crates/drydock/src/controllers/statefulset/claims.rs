//! The claims of a StatefulSet's pods: their making from templates, and whom they are deleted with.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::super::Error;
use super::super::informer::ObjectKey;
use super::super::ownership::controller_ref;
use super::replicas::start;
use super::{Controller, name_of, ordinal, spec_of};

impl Controller {
    /// Makes the claims of a pod that do not exist.
    pub(super) async fn make_claims(&self, set: &StatefulSet, pod: &Pod) -> Result<(), Error> {
        let pod_name = pod.metadata.name.as_deref().unwrap_or_default();
        for (_, mut claim) in claims(set, ordinal(pod)) {
            let name = claim.metadata.name.clone().unwrap_or_default();
            claim.metadata.owner_references = Some(owners(set, pod, &[])).filter(|owners| !owners.is_empty());
            if let Some(found) = self.claims.get(&ObjectKey::of(&claim.metadata)) {
                if found.metadata.deletion_timestamp.is_some() {
                    return Err(Error::Other(format!("pvc {name} is being deleted")));
                }
                continue;
            }
            match self.claims.create(&claim).await {
                Ok(_) => {
                    let message =
                        format!("Create Claim {name} Pod {pod_name} in StatefulSet {} success", name_of(set));
                    self.recorder.normal(set, "SuccessfulCreate", message);
                }
                Err(error) if error.has_reason("AlreadyExists") => return Err(error),
                Err(error) => {
                    let set_name = name_of(set);
                    let message = format!(
                        "Create Claim {name} for Pod {pod_name} in StatefulSet {set_name} failed error: {}",
                        error.message()
                    );
                    self.recorder.warning(set, "FailedCreate", message);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Gives the claims of a pod the owners that the retention policy asks for.
    pub(super) async fn keep_claims(&self, set: &StatefulSet, pod: &Pod) -> Result<(), Error> {
        for (_, claim) in claims(set, ordinal(pod)) {
            let Some(claim) = self.claims.get(&ObjectKey::of(&claim.metadata)) else {
                continue;
            };
            let had = claim.metadata.owner_references.clone().unwrap_or_default();
            let wanted = owners(set, pod, &had);
            if wanted != had {
                let mut changed = (*claim).clone();
                changed.metadata.owner_references = Some(wanted);
                self.claims.update(&changed).await?;
            }
        }
        Ok(())
    }
}

/// The owners a claim should have: the set or the pod where the policy is to delete, and those of others.
fn owners(set: &StatefulSet, pod: &Pod, had: &[OwnerReference]) -> Vec<OwnerReference> {
    let (set_ref, pod_ref) = (controller_ref(set), controller_ref(pod));
    let same = |a: &OwnerReference, b: &OwnerReference| {
        a.kind == b.kind && a.name == b.name && a.api_version == b.api_version
    };
    let stale = |reference: &OwnerReference| {
        had.iter().any(|owner| same(owner, reference) && owner.uid != reference.uid)
    };
    let foreign = |owner: &&OwnerReference| !same(owner, &set_ref) && !same(owner, &pod_ref);
    // A claim of an earlier set or pod of the same name goes with that one.
    if stale(&set_ref) || stale(&pod_ref) {
        return had.to_vec();
    }
    let mut wanted: Vec<OwnerReference> = had.iter().filter(foreign).cloned().collect();
    let policy = spec_of(set).persistent_volume_claim_retention_policy.clone().unwrap_or_default();
    let deletes = |when: &Option<String>| when.as_deref() == Some("Delete");
    if wanted.iter().any(|owner| owner.controller == Some(true)) {
        return wanted;
    }
    let end = start(set) + spec_of(set).replicas.unwrap_or(1);
    let scaled_down = !(start(set)..end).contains(&ordinal(pod));
    if deletes(&policy.when_scaled) && scaled_down {
        wanted.push(pod_ref);
    } else if deletes(&policy.when_deleted) {
        wanted.push(set_ref);
    }
    if wanted.len() == had.len() && wanted.iter().all(|owner| had.iter().any(|old| old.uid == owner.uid)) {
        return had.to_vec();
    }
    wanted
}

/// A pod's claims, by the name of their volume.
fn claims(set: &StatefulSet, number: i32) -> Vec<(String, PersistentVolumeClaim)> {
    let templates = spec_of(set).volume_claim_templates.iter().flatten();
    templates
        .map(|template| {
            let volume = template.metadata.name.clone().unwrap_or_default();
            let mut claim = template.clone();
            claim.metadata.name = Some(format!("{volume}-{}-{number}", name_of(set)));
            claim.metadata.namespace = set.metadata.namespace.clone();
            claim.metadata.creation_timestamp = None;
            claim.status = None;
            let labels = claim.metadata.labels.get_or_insert_default();
            labels.extend(spec_of(set).selector.match_labels.clone().unwrap_or_default());
            (volume, claim)
        })
        .collect()
}

/// Puts a pod's claims among its volumes, before the others.
pub(super) fn mount(set: &StatefulSet, pod: &mut Pod, number: i32) {
    let claims = claims(set, number);
    let spec = pod.spec.get_or_insert_default();
    let others = spec.volumes.take().unwrap_or_default();
    let others = others.into_iter().filter(|volume| !claims.iter().any(|(name, _)| *name == volume.name));
    let others: Vec<Volume> = others.collect();
    let mut volumes: Vec<Volume> = claims
        .iter()
        .map(|(name, claim)| Volume {
            name: name.clone(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim.metadata.name.clone().unwrap_or_default(),
                read_only: None,
            }),
            ..Volume::default()
        })
        .collect();
    volumes.extend(others);
    spec.volumes = Some(volumes).filter(|volumes| !volumes.is_empty());
}
