//! `persistentvolume-binder-controller`, narrow; [`protection`] holds the two protection controllers.
//!
//! Every claim whose StorageClass exists gets a volume of its own, made on the simulated node; volumes made by hand
//! are bound only to claims that name them. Where no StorageClass exists at all, a default one is made. A claim that
//! asks for more than it has gets it ([`resizing`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, ObjectReference, PersistentVolume, PersistentVolumeClaim,
    PersistentVolumeClaimStatus, PersistentVolumeSpec, Pod,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_machinery::Context;

use super::events::Recorder;
use super::informer::{Informer, ObjectKey};
use super::informers::Handle;
use super::{Error, Reconciler, Setup, pods, queue_of};

pub(super) mod protection;
mod resizing;

const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
const PROVISIONER: &str = "windlass.dev/drydock";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

pub(crate) fn start(setup: &mut Setup<'_>) {
    let binder = Binder {
        claims: setup.handle(),
        volumes: setup.handle(),
        classes: setup.handle(),
        pods: setup.informers.of(),
        recorder: setup.recorder("persistentvolume-controller", None),
        resizer: setup.recorder("external-resizer windlass.dev/drydock", None),
        context: setup.context.clone(),
    };
    let queue = queue_of(&binder.claims);
    let adds = queue.clone();
    binder.volumes.on_change(move |change| {
        let claim = change.latest().spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
        if let Some(claim) = claim {
            let namespace = claim.namespace.as_deref().unwrap_or_default();
            adds.add(ObjectKey::new(namespace, claim.name.as_deref().unwrap_or_default()));
        }
    });
    let (adds, claims) = (queue.clone(), binder.claims.informer.clone());
    binder.classes.on_change(move |_| {
        for claim in claims.all().iter().filter(|claim| phase_of(claim) != Some("Bound")) {
            adds.add(ObjectKey::of(&claim.metadata));
        }
    });
    // A class may ask to wait for the first pod that uses the claim.
    let adds = queue.clone();
    binder.pods.on_change(move |change| {
        if let Some(pod) = change.new.as_ref().filter(|pod| pods::phase(pod) == "Pending") {
            claims_of(pod).for_each(|key| adds.add(key));
        }
    });
    let (classes, informers) = (binder.classes.clone(), setup.informers.clone());
    setup.tasks.spawn(async move {
        informers.synced().await;
        if classes.all().is_empty() {
            let _ = classes.create(&default_class()).await;
        }
    });
    setup.work(&queue, binder);
}

struct Binder {
    claims: Handle<PersistentVolumeClaim>,
    volumes: Handle<PersistentVolume>,
    classes: Handle<StorageClass>,
    pods: Arc<Informer<Pod>>,
    recorder: Recorder,
    resizer: Recorder,
    context: Context,
}

impl Reconciler for Binder {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(claim) = self.claims.get(key) else {
            return self.reclaim(key).await;
        };
        if claim.metadata.deletion_timestamp.is_some() || phase_of(&claim) == Some("Bound") {
            self.resize(&claim).await?;
            return self.reclaim(key).await;
        }
        let mut claim = (*claim).clone();
        let volume = match claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()) {
            Some(name) => self.volumes.get(&ObjectKey::new("", &name)),
            None => match self.provision(&mut claim).await? {
                Some(volume) => Some(volume),
                None => return Ok(()),
            },
        };
        match volume {
            Some(volume) => self.bind(claim, &volume).await,
            None => Ok(()),
        }
    }
}

impl Binder {
    /// Makes the claim's volume. `None` if it has to wait.
    async fn provision(
        &self,
        claim: &mut PersistentVolumeClaim,
    ) -> Result<Option<Arc<PersistentVolume>>, Error> {
        let spec = claim.spec.get_or_insert_default();
        let Some(class) = self.class_of(spec.storage_class_name.as_deref()) else {
            let message = match spec.storage_class_name.as_deref().filter(|name| !name.is_empty()) {
                Some(name) => format!("storageclass.storage.k8s.io {name:?} not found"),
                None => {
                    "no persistent volumes available for this claim and no storage class is set".to_owned()
                }
            };
            let reason = if message.starts_with("no ") { "FailedBinding" } else { "ProvisioningFailed" };
            let kind = if reason == "FailedBinding" { "Normal" } else { "Warning" };
            self.recorder.note(super::events::reference(claim), kind, reason, message);
            return Ok(None);
        };
        let key = ObjectKey::of(&claim.metadata);
        let waits = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
        let in_namespace = self.pods.in_namespace(&key.namespace);
        if waits && !in_namespace.iter().any(|pod| claims_of(pod).any(|used| used == key)) {
            let message = "waiting for first consumer to be created before binding".to_owned();
            self.recorder.normal(claim, "WaitForFirstConsumer", message);
            return Ok(None);
        }
        let class_name = class.metadata.name.clone();
        if spec.storage_class_name.is_none() {
            spec.storage_class_name.clone_from(&class_name);
        }
        let uid = claim.metadata.uid.clone().unwrap_or_default();
        let name = format!("pvc-{uid}");
        if let Some(found) = self.volumes.get(&ObjectKey::new("", &name)) {
            return Ok(Some(found));
        }
        let spec = claim.spec.clone().unwrap_or_default();
        let mut reference = super::events::reference(claim);
        reference.field_path = None;
        let volume = PersistentVolume {
            metadata: ObjectMeta {
                annotations: Some(BTreeMap::from([(
                    "pv.kubernetes.io/provisioned-by".to_owned(),
                    class.provisioner.clone(),
                )])),
                name: Some(name.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(PersistentVolumeSpec {
                access_modes: spec.access_modes.clone(),
                capacity: spec.resources.as_ref().and_then(|resources| resources.requests.clone()),
                claim_ref: Some(reference),
                host_path: Some(HostPathVolumeSource {
                    path: format!("/var/lib/drydock/volumes/{name}"),
                    type_: Some(String::new()),
                }),
                persistent_volume_reclaim_policy: class.reclaim_policy.clone().or(Some("Delete".to_owned())),
                storage_class_name: class_name,
                volume_mode: spec.volume_mode.clone().or(Some("Filesystem".to_owned())),
                ..PersistentVolumeSpec::default()
            }),
            status: None,
        };
        let made = self.volumes.create(&volume).await?;
        self.recorder.normal(
            claim,
            "ProvisioningSucceeded",
            format!("Successfully provisioned volume {name}"),
        );
        let annotations = claim.metadata.annotations.get_or_insert_default();
        for key in
            ["volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"]
        {
            annotations.insert(key.to_owned(), class.provisioner.clone());
        }
        Ok(Some(Arc::new(made)))
    }

    /// Ties claim and volume to each other, and says so on both.
    async fn bind(&self, mut claim: PersistentVolumeClaim, volume: &PersistentVolume) -> Result<(), Error> {
        let of = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
        let other = of.is_some_and(|of| !refers_to(of, &claim));
        if other {
            return Ok(());
        }
        let mut bound = volume.clone();
        if of.is_none_or(|of| of.uid != claim.metadata.uid) {
            bound.spec.get_or_insert_default().claim_ref = Some(super::events::reference(&claim));
            bound = self.volumes.update(&bound).await?;
        }
        if bound.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Bound") {
            let status = bound.status.get_or_insert_default();
            status.phase = Some("Bound".to_owned());
            bound = self.volumes.update_status(&bound).await?;
        }
        let annotations = claim.metadata.annotations.get_or_insert_default();
        let unmarked = annotations.insert(BIND_COMPLETED.to_owned(), "yes".to_owned()).is_none();
        let spec = claim.spec.get_or_insert_default();
        if unmarked || spec.volume_name.is_none() {
            if spec.volume_name.is_none() {
                spec.volume_name.clone_from(&bound.metadata.name);
                annotations.insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
            }
            claim = self.claims.update(&claim).await?;
        }
        let spec = bound.spec.unwrap_or_default();
        claim.status = Some(PersistentVolumeClaimStatus {
            phase: Some("Bound".to_owned()),
            access_modes: spec.access_modes,
            capacity: spec.capacity,
            ..claim.status.unwrap_or_default()
        });
        self.claims.update_status(&claim).await.map(|_| ())
    }

    /// Lets go of volumes whose claim is gone.
    async fn reclaim(&self, key: &ObjectKey) -> Result<(), Error> {
        let claim = self.claims.get(key);
        for volume in self.volumes.all() {
            let spec = volume.spec.clone().unwrap_or_default();
            let Some(of) = spec.claim_ref.as_ref() else {
                continue;
            };
            let of_key = ObjectKey::new(
                of.namespace.as_deref().unwrap_or_default(),
                of.name.as_deref().unwrap_or_default(),
            );
            let alive = claim.as_ref().is_some_and(|claim| of.uid.is_none() || of.uid == claim.metadata.uid);
            if of_key != *key || alive || of.uid.is_none() || volume.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let mut released = (*volume).clone();
            let status = released.status.get_or_insert_default();
            if status.phase.as_deref() != Some("Released") {
                status.phase = Some("Released".to_owned());
                released = self.volumes.update_status(&released).await?;
            }
            if spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete") {
                self.volumes.delete(&released).await?;
            }
        }
        Ok(())
    }

    /// A claim's class: the one it names, or the newest default one.
    fn class_of(&self, name: Option<&str>) -> Option<Arc<StorageClass>> {
        match name {
            Some(name) => self.classes.get(&ObjectKey::new("", name)),
            None => {
                let marked = |class: &Arc<StorageClass>| {
                    let annotations = class.metadata.annotations.as_ref();
                    annotations.and_then(|all| all.get(DEFAULT_CLASS)).is_some_and(|value| value == "true")
                };
                let all = self.classes.all().into_iter();
                all.filter(marked).max_by_key(|class| class.metadata.creation_timestamp.clone())
            }
        }
    }
}

fn default_class() -> StorageClass {
    StorageClass {
        metadata: ObjectMeta {
            name: Some("standard".to_owned()),
            annotations: Some(BTreeMap::from([(DEFAULT_CLASS.to_owned(), "true".to_owned())])),
            ..ObjectMeta::default()
        },
        provisioner: PROVISIONER.to_owned(),
        allow_volume_expansion: Some(true),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some("Immediate".to_owned()),
        ..StorageClass::default()
    }
}

fn refers_to(reference: &ObjectReference, claim: &PersistentVolumeClaim) -> bool {
    reference.name == claim.metadata.name
        && reference.namespace == claim.metadata.namespace
        && (reference.uid.is_none() || reference.uid == claim.metadata.uid)
}

fn phase_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.status.as_ref()?.phase.as_deref()
}

/// The claims a pod uses.
fn claims_of(pod: &Pod) -> impl Iterator<Item = ObjectKey> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let volumes = pod.spec.iter().filter_map(|spec| spec.volumes.as_ref()).flatten();
    volumes
        .filter_map(|volume| volume.persistent_volume_claim.as_ref())
        .map(move |source| ObjectKey::new(namespace, &source.claim_name))
}
