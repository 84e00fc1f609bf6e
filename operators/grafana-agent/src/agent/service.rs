//! The headless Service that gives the pods of the shards their names, and by which all pods are found.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{labels, pod};
use crate::kinds::{GrafanaAgent, Named as _};

pub(super) fn name(agent: &GrafanaAgent) -> String {
    labels::child(agent, "operated")
}

pub(super) fn build(agent: &GrafanaAgent) -> Service {
    // All pods of the agent, as in the original: a monitor of this Service sees those of logs and integrations too.
    let selector = [("app.kubernetes.io/name", "grafana-agent"), (labels::NAME, agent.title())];
    let selector = selector.map(|(label, value)| (label.to_owned(), value.to_owned()));
    let mut metadata = labels::metadata(agent, name(agent));
    metadata.labels.get_or_insert_default().insert("operated-agent".into(), "true".into());
    Service {
        metadata,
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".into()),
            ports: Some(vec![ServicePort {
                name: Some(pod::port_name(agent)),
                port: pod::PORT,
                target_port: Some(IntOrString::String(pod::port_name(agent))),
                ..ServicePort::default()
            }]),
            selector: Some(selector.into()),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}
