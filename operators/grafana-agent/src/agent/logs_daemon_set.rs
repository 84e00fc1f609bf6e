//! The agents that follow logs: one on each node, for the logs are there.

use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy};

use super::pod::Shape;
use super::{labels, pod};
use crate::kinds::GrafanaAgent;

pub(super) fn build(agent: &GrafanaAgent) -> DaemonSet {
    let shape = Shape {
        purpose: "logs",
        config: labels::child(agent, "logs-config"),
        more_labels: [].into(),
        volumes: vec![
            pod::host_path("varlog", "/var/log"),
            // With Docker, what is in /var/log points here.
            pod::host_path("dockerlogs", "/var/lib/docker/containers"),
            // How far each file was read outlives the pod.
            pod::host_path("data", pod::DATA),
        ],
        mounts: vec![
            pod::mount("varlog", "/var/log", true),
            pod::mount("dockerlogs", "/var/lib/docker/containers", true),
            pod::mount("data", pod::DATA, false),
        ],
        variables: vec![pod::field_variable("HOSTNAME", "spec.nodeName"), pod::variable("SHARD", "0")],
        privileged: true,
    };
    DaemonSet {
        metadata: labels::workload(agent, labels::child(agent, "logs"), shape.labels(agent)),
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
