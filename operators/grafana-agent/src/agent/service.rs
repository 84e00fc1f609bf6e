//! The headless Service that gives the pods of the shards their names.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{labels, pod};
use crate::kinds::GrafanaAgent;

pub(super) fn name(agent: &GrafanaAgent) -> String {
    labels::child(agent, "operated")
}

pub(super) fn build(agent: &GrafanaAgent) -> Service {
    let mut selector = labels::common(agent);
    selector.insert(labels::TYPE.into(), "metrics".into());
    Service {
        metadata: labels::metadata(agent, name(agent)),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".into()),
            ports: Some(vec![ServicePort {
                name: Some(pod::port_name(agent)),
                port: pod::PORT,
                target_port: Some(IntOrString::String(pod::port_name(agent))),
                ..ServicePort::default()
            }]),
            selector: Some(selector),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}
