//! The Deployment of the checkup controller.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, PodSecurityContext, PodSpec, PodTemplateSpec, SeccompProfile, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};

use super::{Installation, named};
use crate::CONTROLLER;

pub(super) fn build(installation: &Installation, owner: &OwnerReference) -> Deployment {
    let labels = Some([("app.kubernetes.io/name".to_owned(), CONTROLLER.to_owned())].into());
    let container = Container {
        name: "checkup-controller".into(),
        image: Some(installation.image.clone()),
        command: Some(vec!["checkup-controller".into()]),
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
            // One at a time: two would do no harm, but the work twice.
            strategy: Some(DeploymentStrategy {
                type_: Some("Recreate".into()),
                ..DeploymentStrategy::default()
            }),
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
