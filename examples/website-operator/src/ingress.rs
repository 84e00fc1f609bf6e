//! The Ingress, where the spec names a host.

use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule, IngressServiceBackend,
    IngressSpec, ServiceBackendPort,
};
use kube::ResourceExt as _;
use kube::core::ObjectMeta;

use crate::Website;

pub(crate) fn build(website: &Website) -> Option<Ingress> {
    let host = website.spec.host.clone()?;
    let backend = IngressServiceBackend {
        name: website.name_any(),
        port: Some(ServiceBackendPort { name: Some("http".into()), ..ServiceBackendPort::default() }),
    };
    let path = HTTPIngressPath {
        path: Some("/".into()),
        path_type: "Prefix".into(),
        backend: IngressBackend { service: Some(backend), ..IngressBackend::default() },
    };
    let rule = IngressRule { host: Some(host), http: Some(HTTPIngressRuleValue { paths: vec![path] }) };
    Some(Ingress {
        metadata: ObjectMeta { name: Some(website.name_any()), ..ObjectMeta::default() },
        spec: Some(IngressSpec { rules: Some(vec![rule]), ..IngressSpec::default() }),
        ..Ingress::default()
    })
}
