//! `persistentvolumeclaim-protection-controller` and `persistentvolume-protection-controller`.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::informer::{Informer, ObjectKey};
use super::super::informers::Handle;
use super::super::{Error, Reconciler, Setup, pods, queue_of};
use super::claims_of;

const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";

/// `persistentvolumeclaim-protection-controller`: a deleted claim stays as long as a pod uses it.
pub(crate) fn start_for_claims(setup: &mut Setup<'_>) {
    let protection = ClaimProtection { claims: setup.handle(), pods: setup.informers.of() };
    let queue = queue_of(&protection.claims);
    let adds = queue.clone();
    protection.pods.on_change(move |change| claims_of(change.latest()).for_each(|key| adds.add(key)));
    setup.work(&queue, protection);
}

struct ClaimProtection {
    claims: Handle<PersistentVolumeClaim>,
    pods: Arc<Informer<Pod>>,
}

impl Reconciler for ClaimProtection {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(claim) = self.claims.get(key).filter(|claim| claim.metadata.deletion_timestamp.is_some())
        else {
            return Ok(());
        };
        let pods = self.pods.in_namespace(&key.namespace);
        let used = pods.iter().any(|pod| !pods::is_finished(pod) && claims_of(pod).any(|used| used == *key));
        match without(&claim.metadata, CLAIM_FINALIZER).filter(|_| !used) {
            Some(metadata) => {
                self.claims.update(&PersistentVolumeClaim { metadata, ..(*claim).clone() }).await.map(|_| ())
            }
            None => Ok(()),
        }
    }
}

/// `persistentvolume-protection-controller`: a deleted volume stays as long as it is bound.
pub(crate) fn start_for_volumes(setup: &mut Setup<'_>) {
    let protection = VolumeProtection { volumes: setup.handle() };
    let queue = queue_of(&protection.volumes);
    setup.work(&queue, protection);
}

struct VolumeProtection {
    volumes: Handle<PersistentVolume>,
}

impl Reconciler for VolumeProtection {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(volume) =
            self.volumes.get(key).filter(|volume| volume.metadata.deletion_timestamp.is_some())
        else {
            return Ok(());
        };
        let bound = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
        match without(&volume.metadata, VOLUME_FINALIZER).filter(|_| !bound) {
            Some(metadata) => {
                self.volumes.update(&PersistentVolume { metadata, ..(*volume).clone() }).await.map(|_| ())
            }
            None => Ok(()),
        }
    }
}

/// Metadata without a finalizer. `None` if it has none such.
fn without(meta: &ObjectMeta, finalizer: &str) -> Option<ObjectMeta> {
    let mut meta = meta.clone();
    let finalizers = meta.finalizers.as_mut()?;
    let before = finalizers.len();
    finalizers.retain(|have| have != finalizer);
    (finalizers.len() < before).then_some(meta)
}
