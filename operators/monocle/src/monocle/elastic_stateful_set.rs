//! Elasticsearch: one node with a volume of its own.

use k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec,
};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeMount,
    VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Monocle, Retention, pod};

/// The name of its volume, which begins that of the claim.
pub(super) const VOLUME: &str = "data";

/// The size of the volume that an observed set was made with.
pub(super) fn size_of(made: Option<&StatefulSet>) -> Option<String> {
    let claim = made?.spec.as_ref()?.volume_claim_templates.as_ref()?.first()?;
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    requests.get("storage").map(|size| size.0.clone())
}

/// `size` is that of the set as it was made, if it was.
pub(super) fn build(monocle: &Monocle, size: Option<String>) -> StatefulSet {
    let spec = &monocle.spec.elastic;
    let when_deleted = match spec.retention {
        Retention::Retain => "Retain",
        Retention::Delete => "Delete",
    };
    StatefulSet {
        metadata: pod::metadata(monocle, "elastic", "elastic"),
        spec: Some(StatefulSetSpec {
            service_name: Some(monocle.child("elastic")),
            replicas: Some(1),
            selector: pod::selector(monocle, "elastic"),
            template: pod::template(monocle, "elastic", &spec.component, container(monocle)),
            volume_claim_templates: Some(vec![claim(monocle, size)]),
            persistent_volume_claim_retention_policy: Some(StatefulSetPersistentVolumeClaimRetentionPolicy {
                when_deleted: Some(when_deleted.into()),
                when_scaled: Some("Retain".into()),
            }),
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}

fn container(monocle: &Monocle) -> Container {
    Container {
        name: "elastic".into(),
        image: Some(monocle.spec.elastic.image.clone()),
        env: Some(vec![
            pod::variable("discovery.type", "single-node"),
            pod::variable("ES_JAVA_OPTS", "-Xms256m -Xmx256m"),
        ]),
        ports: Some(vec![ContainerPort {
            name: Some("http".into()),
            container_port: 9200,
            ..ContainerPort::default()
        }]),
        startup_probe: Some(pod::probe("/", 9200, 5, 60)),
        readiness_probe: Some(pod::probe("/", 9200, 10, 3)),
        volume_mounts: Some(vec![VolumeMount {
            name: VOLUME.into(),
            mount_path: "/usr/share/elasticsearch/data".into(),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    }
}

fn claim(monocle: &Monocle, size: Option<String>) -> PersistentVolumeClaim {
    let spec = &monocle.spec.elastic;
    let size = size.unwrap_or_else(|| spec.storage_size.clone());
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(VOLUME.into()),
            labels: Some(pod::labels(monocle, "elastic")),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".into()]),
            storage_class_name: spec.storage_class_name.clone(),
            resources: Some(VolumeResourceRequirements {
                requests: Some([("storage".to_owned(), Quantity(size))].into()),
                limits: None,
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}
