//! The claim of Elasticsearch's volume. The StatefulSet makes it; here it only grows.
//!
//! A claim template cannot change, so a StatefulSet keeps the size it was made with, and another size is asked of the
//! claim itself. Where its class does not let it grow, or it would have to shrink, the server's answer is the
//! condition.

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::same_quantity;

use super::{Monocle, elastic_stateful_set};

/// What is asked of the claim, if that is another size than it was made with.
pub(super) fn build(monocle: &Monocle, made: Option<&str>) -> Option<PersistentVolumeClaim> {
    let asked = monocle.spec.elastic.storage_size.as_str();
    made.filter(|made| !same_quantity(made, asked))?;
    Some(PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(format!("{}-{}-0", elastic_stateful_set::VOLUME, monocle.child("elastic"))),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            resources: Some(VolumeResourceRequirements {
                requests: Some([("storage".to_owned(), Quantity(asked.to_owned()))].into()),
                limits: None,
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    })
}
