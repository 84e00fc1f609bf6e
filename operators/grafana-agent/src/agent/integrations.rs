//! The agents that run integrations: a Deployment for those that run once, a DaemonSet for those that run on every
//! node.

use k8s_openapi::api::apps::v1::{
    DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, Deployment, DeploymentSpec,
};
use k8s_openapi::api::core::v1::{KeyToPath, SecretVolumeSource, Volume};

use super::pod::Shape;
use super::{labels, pod};
use crate::assets::Reference;
use crate::config::Runs;
use crate::kinds::{GrafanaAgent, Integration, Named as _};
use crate::outcome::Outcome;

/// Where the keys that integrations name are mounted.
const DIRECTORY: &str = "/etc/grafana-agent/integrations";

pub(super) fn deployment(agent: &GrafanaAgent, outcome: &Outcome, runs: Runs) -> Deployment {
    let shape = shape(agent, outcome, runs, "integrations-deploy", false);
    Deployment {
        metadata: labels::workload(agent, labels::child(agent, "integrations-deploy"), shape.labels(agent)),
        spec: Some(DeploymentSpec {
            replicas: Some(1),
            selector: pod::selector(agent, &shape),
            template: pod::template(agent, shape),
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

pub(super) fn daemon_set(agent: &GrafanaAgent, outcome: &Outcome, runs: Runs) -> DaemonSet {
    let shape = shape(agent, outcome, runs, "integrations-ds", true);
    DaemonSet {
        metadata: labels::workload(agent, labels::child(agent, "integrations-ds"), shape.labels(agent)),
        spec: Some(DaemonSetSpec {
            selector: pod::selector(agent, &shape),
            template: pod::template(agent, shape),
            update_strategy: Some(DaemonSetUpdateStrategy {
                type_: Some("RollingUpdate".into()),
                ..DaemonSetUpdateStrategy::default()
            }),
            ..DaemonSetSpec::default()
        }),
        status: None,
    }
}

fn shape(agent: &GrafanaAgent, outcome: &Outcome, runs: Runs, name: &'static str, privileged: bool) -> Shape {
    let mut volumes = vec![pod::empty_dir("data")];
    let mut mounts = vec![pod::mount("data", pod::DATA, false)];
    let mut items = Vec::new();
    for integration in outcome.integrations.iter().filter(|integration| runs.include(integration)) {
        // Two integrations may call their volumes the same.
        let unique =
            |name: &str| pod::volume_name(&format!("{}-{}-{name}", integration.space(), integration.title()));
        volumes.extend(integration.spec.volumes.iter().map(|volume| {
            let mut volume = volume.clone();
            volume.name = unique(&volume.name);
            volume
        }));
        mounts.extend(integration.spec.volume_mounts.iter().map(|mount| {
            let mut mount = mount.clone();
            mount.name = unique(&mount.name);
            mount
        }));
        items.extend(keys(integration, outcome));
    }
    items.sort_by(|a, b| a.path.cmp(&b.path));
    items.dedup();
    if !items.is_empty() {
        volumes.push(Volume {
            name: "integrations-secrets".into(),
            secret: Some(SecretVolumeSource {
                secret_name: Some(labels::child(agent, "secrets")),
                items: Some(items),
                ..SecretVolumeSource::default()
            }),
            ..Volume::default()
        });
        mounts.push(pod::mount("integrations-secrets", DIRECTORY, true));
    }
    Shape {
        purpose: "integrations",
        config: labels::child(agent, &format!("{name}-config")),
        // Two kinds of pods for one purpose: each is selected by what runs it.
        more_labels: [("operator.agent.grafana.com/runs".to_owned(), name.to_owned())].into(),
        volumes,
        mounts,
        variables: vec![
            pod::field_variable("HOSTNAME", "spec.nodeName"),
            pod::variable("SHARD", "0"),
            pod::variable("SHARDS", "1"),
        ],
        privileged,
    }
}

/// The keys that an integration names, each at its path.
fn keys(integration: &Integration, outcome: &Outcome) -> Vec<KeyToPath> {
    let (space, spec) = (integration.space(), &integration.spec);
    let secrets = spec.secrets.iter().filter_map(|secret| Reference::secret(space, secret));
    let maps = spec.config_maps.iter().filter_map(|map| Reference::config_map(space, map));
    let copied = |reference: Reference| {
        let path = reference.path();
        let key = outcome.names.get(&path).filter(|name| outcome.copies.contains_key(*name))?;
        Some(KeyToPath { key: key.clone(), path: path.trim_start_matches('/').to_owned(), mode: None })
    };
    secrets.chain(maps).filter_map(copied).collect()
}
