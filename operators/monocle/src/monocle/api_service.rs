//! The Service of the API, which the crawler and the Ingress use.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Monocle, pod};

/// Its port.
pub(super) const PORT: i32 = 8080;

pub(super) fn build(monocle: &Monocle) -> Service {
    Service {
        metadata: pod::metadata(monocle, "api", "api"),
        spec: Some(ServiceSpec {
            selector: Some(pod::selection(monocle, "api")),
            ports: Some(vec![ServicePort {
                name: Some("http".into()),
                port: PORT,
                target_port: Some(IntOrString::String("http".into())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}
