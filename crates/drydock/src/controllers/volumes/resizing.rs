//! Growing volumes, as a storage provider's resizer does it: the condition first, then the volume, then the claim.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimCondition};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Size;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_machinery::quantity::Quantity;

use super::super::Error;
use super::super::informer::ObjectKey;
use super::Binder;

const STORAGE: &str = "storage";

impl Binder {
    /// Gives a bound claim what it asks for, where that is more than it has. Whether it may ask was decided when it did.
    pub(super) async fn resize(&self, claim: &PersistentVolumeClaim) -> Result<(), Error> {
        let spec = claim.spec.clone().unwrap_or_default();
        let wanted = storage(spec.resources.and_then(|resources| resources.requests).as_ref());
        let had = storage(claim.status.as_ref().and_then(|status| status.capacity.as_ref()));
        let (Some(wanted), Some(had), None) = (wanted, had, &claim.metadata.deletion_timestamp) else {
            return Ok(());
        };
        if parsed(&wanted) <= parsed(&had) {
            return Ok(());
        }
        let Some(volume) =
            self.volumes.get(&ObjectKey::new("", spec.volume_name.as_deref().unwrap_or_default()))
        else {
            return Ok(());
        };
        let mut claim = claim.clone();
        let status = claim.status.get_or_insert_default();
        if !status.conditions.iter().flatten().any(|condition| condition.type_ == "Resizing") {
            status.conditions.get_or_insert_default().push(PersistentVolumeClaimCondition {
                type_: "Resizing".to_owned(),
                status: "True".to_owned(),
                last_transition_time: Some(Time(self.context.now())),
                ..PersistentVolumeClaimCondition::default()
            });
            status.allocated_resources.get_or_insert_default().insert(STORAGE.to_owned(), wanted.clone());
            let progress = "ControllerResizeInProgress".to_owned();
            status.allocated_resource_statuses.get_or_insert_default().insert(STORAGE.to_owned(), progress);
            let name = volume.metadata.name.as_deref().unwrap_or_default();
            self.resizer.normal(&claim, "Resizing", format!("External resizer is resizing volume {name}"));
            claim = self.claims.update_status(&claim).await?;
        }
        let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref());
        if storage(capacity).is_none_or(|capacity| parsed(&capacity) < parsed(&wanted)) {
            let mut larger = (*volume).clone();
            let spec = larger.spec.get_or_insert_default();
            spec.capacity.get_or_insert_default().insert(STORAGE.to_owned(), wanted.clone());
            self.volumes.update(&larger).await?;
        }
        let status = claim.status.get_or_insert_default();
        status.capacity.get_or_insert_default().insert(STORAGE.to_owned(), wanted);
        status.conditions = status.conditions.take().map(|mut conditions| {
            conditions.retain(|condition| condition.type_ != "Resizing");
            conditions
        });
        status.conditions = status.conditions.take().filter(|conditions| !conditions.is_empty());
        status.allocated_resource_statuses = None;
        self.claims.update_status(&claim).await?;
        self.resizer.normal(&claim, "VolumeResizeSuccessful", "Resize volume succeeded".to_owned());
        Ok(())
    }
}

fn storage(sizes: Option<&BTreeMap<String, Size>>) -> Option<Size> {
    sizes?.get(STORAGE).cloned()
}

fn parsed(size: &Size) -> Option<Quantity> {
    Quantity::parse(&size.0).ok()
}
