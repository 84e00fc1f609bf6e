//! The servers that show the page.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, EnvFromSource, PodSpec, PodTemplateSpec, SecretEnvSource, Volume,
    VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt as _;
use kube::core::ObjectMeta;

use crate::Website;

pub(crate) const PORT: i32 = 8080;

pub(crate) fn labels(website: &Website) -> BTreeMap<String, String> {
    BTreeMap::from([("example.org/website".to_owned(), website.name_any())])
}

/// `content` is a hash of what the servers have to be restarted for.
pub(crate) fn build(website: &Website, content: &str) -> Deployment {
    let environment = website.spec.secret.iter().map(|name| EnvFromSource {
        secret_ref: Some(SecretEnvSource { name: name.clone(), ..SecretEnvSource::default() }),
        ..EnvFromSource::default()
    });
    let server = Container {
        name: "server".into(),
        image: Some("docker.io/nginxinc/nginx-unprivileged:1.29".into()),
        env_from: Some(environment.collect()),
        volume_mounts: Some(vec![VolumeMount {
            name: "page".into(),
            mount_path: "/usr/share/nginx/html".into(),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    };
    let page = Volume {
        name: "page".into(),
        config_map: Some(ConfigMapVolumeSource {
            name: website.name_any(),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels(website)),
            annotations: Some(BTreeMap::from([("example.org/content".to_owned(), content.to_owned())])),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec { containers: vec![server], volumes: Some(vec![page]), ..PodSpec::default() }),
    };
    Deployment {
        metadata: ObjectMeta { name: Some(website.name_any()), ..ObjectMeta::default() },
        spec: Some(DeploymentSpec {
            replicas: Some(website.spec.replicas),
            selector: LabelSelector { match_labels: Some(labels(website)), ..LabelSelector::default() },
            template,
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}
