//! The Service in front of the servers.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use kube::core::ObjectMeta;

use crate::{Website, servers};

pub(crate) fn build(website: &Website) -> Service {
    let port = ServicePort {
        name: Some("http".into()),
        port: 80,
        target_port: Some(IntOrString::Int(servers::PORT)),
        ..ServicePort::default()
    };
    Service {
        metadata: ObjectMeta { name: Some(website.name_any()), ..ObjectMeta::default() },
        spec: Some(ServiceSpec {
            selector: Some(servers::labels(website)),
            ports: Some(vec![port]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}
