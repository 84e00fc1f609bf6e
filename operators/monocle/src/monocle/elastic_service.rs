//! The Service of Elasticsearch.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Monocle, pod};

pub(super) fn build(monocle: &Monocle) -> Service {
    Service {
        metadata: pod::metadata(monocle, "elastic", "elastic"),
        spec: Some(ServiceSpec {
            selector: Some(pod::selection(monocle, "elastic")),
            ports: Some(vec![ServicePort {
                name: Some("http".into()),
                port: 9200,
                target_port: Some(IntOrString::String("http".into())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}
