//! The agents that scrape: one StatefulSet for each shard.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::same_quantity;

use super::pod::Shape;
use super::{labels, pod, service};
use crate::kinds::{GrafanaAgent, Named as _, VolumeClaim};

/// How many shards there are.
pub(super) fn shards(agent: &GrafanaAgent) -> i32 {
    agent.spec.metrics.shards.unwrap_or(1).max(1)
}

/// The first is named like the agent.
pub(super) fn name(agent: &GrafanaAgent, shard: i32) -> String {
    match shard {
        0 => agent.title().to_owned(),
        shard => labels::child(agent, &format!("shard-{shard}")),
    }
}

/// The set of a shard. Kubernetes does not change the claims of a set: one that is made already keeps its own, and
/// what is then wrong is said.
pub(super) fn build(
    agent: &GrafanaAgent,
    shard: i32,
    made: Option<&StatefulSet>,
) -> (StatefulSet, Option<String>) {
    let name = name(agent, shard);
    let wanted = claim(agent, &name);
    let kept = made.and_then(|made| made.spec.as_ref()).map(|spec| {
        let claims = spec.volume_claim_templates.clone().unwrap_or_default();
        claims.into_iter().next()
    });
    let problem = kept.as_ref().filter(|kept| !same_claim(kept.as_ref(), wanted.as_ref())).map(|_| {
        format!(
            "spec.storage: Kubernetes does not change the claims of StatefulSet {name}, which keeps its storage; \
             delete it (with --cascade=orphan, then its pods) to have it made anew"
        )
    });
    let claim = match problem {
        Some(_) => kept.flatten(),
        None => wanted,
    };

    let data = claim.as_ref().and_then(|claim| claim.metadata.name.clone());
    let data = data.unwrap_or_else(|| format!("{name}-wal"));
    let shape = Shape {
        purpose: "metrics",
        config: labels::child(agent, "config"),
        more_labels: [(labels::SHARD.to_owned(), shard.to_string())].into(),
        volumes: if claim.is_some() { Vec::new() } else { vec![volume(agent, &data)] },
        mounts: vec![pod::mount(&data, pod::DATA, false)],
        variables: vec![
            pod::variable("SHARD", &shard.to_string()),
            pod::variable("SHARDS", &shards(agent).to_string()),
        ],
        privileged: false,
    };
    let set = StatefulSet {
        metadata: labels::workload(agent, name, shape.labels(agent)),
        spec: Some(StatefulSetSpec {
            service_name: Some(service::name(agent)),
            replicas: Some(agent.spec.metrics.replicas.unwrap_or(1).max(0)),
            pod_management_policy: Some("Parallel".into()),
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("RollingUpdate".into()),
                ..StatefulSetUpdateStrategy::default()
            }),
            selector: pod::selector(agent, &shape),
            template: pod::template(agent, shape),
            volume_claim_templates: claim.map(|claim| vec![claim]),
            ..StatefulSetSpec::default()
        }),
        status: None,
    };
    (set, problem)
}

/// The volume of the write-ahead log where it is not claimed.
fn volume(agent: &GrafanaAgent, name: &str) -> Volume {
    let storage = agent.spec.storage.clone().unwrap_or_default();
    match (storage.empty_dir, storage.ephemeral) {
        (Some(empty_dir), _) => Volume { name: name.into(), empty_dir: Some(empty_dir), ..Volume::default() },
        (None, Some(ephemeral)) => {
            Volume { name: name.into(), ephemeral: Some(ephemeral), ..Volume::default() }
        }
        (None, None) => pod::empty_dir(name),
    }
}

/// The claim for the write-ahead log, where it is claimed.
fn claim(agent: &GrafanaAgent, name: &str) -> Option<PersistentVolumeClaim> {
    let storage = agent.spec.storage.as_ref()?;
    if storage.empty_dir.is_some() || storage.ephemeral.is_some() {
        return None;
    }
    let VolumeClaim { metadata, spec, .. } = storage.volume_claim_template.clone()?;
    let metadata = metadata.unwrap_or_default();
    let mut spec = spec.unwrap_or_default();
    spec.access_modes.get_or_insert_with(|| vec!["ReadWriteOnce".into()]);
    Some(PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(
                metadata.name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("{name}-wal")),
            ),
            labels: (!metadata.labels.is_empty()).then_some(metadata.labels),
            annotations: (!metadata.annotations.is_empty()).then_some(metadata.annotations),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    })
}

fn same_claim(kept: Option<&PersistentVolumeClaim>, wanted: Option<&PersistentVolumeClaim>) -> bool {
    let (Some(kept), Some(wanted)) = (kept, wanted) else { return kept.is_none() && wanted.is_none() };
    let empty = PersistentVolumeClaimSpec::default();
    let (a, b) = (kept.spec.as_ref().unwrap_or(&empty), wanted.spec.as_ref().unwrap_or(&empty));
    let size = |spec: &PersistentVolumeClaimSpec| {
        let requests = spec.resources.as_ref().and_then(|resources| resources.requests.clone());
        requests.and_then(|requests| requests.get("storage").map(|size| size.0.clone()))
    };
    let same_size = match (size(a), size(b)) {
        (Some(a), Some(b)) => same_quantity(&a, &b),
        (a, b) => a == b,
    };
    // A class that is not asked for is filled in.
    let same_class = b.storage_class_name.is_none() || a.storage_class_name == b.storage_class_name;
    kept.metadata.name == wanted.metadata.name
        && same_size
        && same_class
        && a.access_modes == b.access_modes
        && a.selector == b.selector
}
