//! The Ingress to the API, if one is asked for.

use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule, IngressServiceBackend,
    IngressSpec, IngressTLS, ServiceBackendPort,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Monocle, pod};

pub(super) fn build(monocle: &Monocle) -> Option<Ingress> {
    let asked = monocle.spec.ingress.as_ref()?;
    let service = IngressServiceBackend {
        name: monocle.child("api"),
        port: Some(ServiceBackendPort { name: Some("http".into()), number: None }),
    };
    let everything = HTTPIngressPath {
        path: Some("/".into()),
        path_type: "Prefix".into(),
        backend: IngressBackend { service: Some(service), resource: None },
    };
    let tls = asked.tls_secret.as_ref().map(|secret| IngressTLS {
        hosts: Some(vec![asked.host.clone()]),
        secret_name: Some(secret.clone()),
    });
    Some(Ingress {
        metadata: ObjectMeta {
            annotations: Some(asked.annotations.clone()).filter(|annotations| !annotations.is_empty()),
            ..pod::metadata(monocle, "api", "api")
        },
        spec: Some(IngressSpec {
            ingress_class_name: asked.class_name.clone(),
            rules: Some(vec![IngressRule {
                host: Some(asked.host.clone()),
                http: Some(HTTPIngressRuleValue { paths: vec![everything] }),
            }]),
            tls: tls.map(|tls| vec![tls]),
            ..IngressSpec::default()
        }),
        ..Ingress::default()
    })
}
