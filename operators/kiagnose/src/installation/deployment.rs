//! The Deployment of the checkup controller.
//!
//! While one version takes over from another there are two: the Lease decides which of them works.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, ObjectFieldSelector,
    PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile,
    SecurityContext,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use windlass::manifests::PORT;

use super::{Installation, named};
use crate::CONTROLLER;

pub(super) fn build(installation: &Installation, owner: &OwnerReference) -> Deployment {
    let labels = Some([("app.kubernetes.io/name".to_owned(), CONTROLLER.to_owned())].into());
    let lease = installation.lease();
    let container = Container {
        name: "checkup-controller".into(),
        image: Some(installation.image.clone()),
        command: Some(vec!["checkup-controller".into()]),
        args: Some(vec![
            "--leader-elect".into(),
            format!("--lease-namespace={}", lease.namespace),
            format!("--lease-name={}", lease.name),
            format!("--listen=$(POD_IP):{PORT}"),
        ]),
        env: Some(vec![field("POD_NAME", "metadata.name"), field("POD_IP", "status.podIP")]),
        ports: Some(vec![ContainerPort {
            name: Some("http".into()),
            container_port: PORT.into(),
            ..ContainerPort::default()
        }]),
        // A watch that fails does not get better by a restart: that is what readiness says.
        liveness_probe: Some(probe("/healthz", 20)),
        readiness_probe: Some(probe("/readyz", 5)),
        resources: Some(ResourceRequirements {
            requests: Some(amounts(&[("cpu", "10m"), ("memory", "64Mi")])),
            limits: Some(amounts(&[("memory", "512Mi")])),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), ..Capabilities::default() }),
            read_only_root_filesystem: Some(true),
            ..SecurityContext::default()
        }),
        ..Container::default()
    };
    let pod = PodSpec {
        service_account_name: Some(CONTROLLER.into()),
        containers: vec![container],
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".into(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        ..PodSpec::default()
    };
    Deployment {
        metadata: named(Some(&installation.namespace), owner),
        spec: Some(DeploymentSpec {
            replicas: Some(1),
            selector: LabelSelector { match_labels: labels.clone(), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels, ..ObjectMeta::default() }),
                spec: Some(pod),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn field(name: &str, path: &str) -> EnvVar {
    let field_ref = Some(ObjectFieldSelector { field_path: path.into(), ..ObjectFieldSelector::default() });
    EnvVar {
        name: name.into(),
        value_from: Some(EnvVarSource { field_ref, ..EnvVarSource::default() }),
        ..EnvVar::default()
    }
}

fn probe(path: &str, period: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.into()),
            port: IntOrString::String("http".into()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        ..Probe::default()
    }
}

fn amounts(pairs: &[(&str, &str)]) -> BTreeMap<String, Quantity> {
    pairs.iter().map(|(name, amount)| ((*name).to_owned(), Quantity((*amount).to_owned()))).collect()
}
