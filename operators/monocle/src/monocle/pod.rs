//! What all objects and pods of a Monocle have in common: labels, security, the mounted config.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapVolumeSource, Container, EnvFromSource, EnvVar, HTTPGetAction, PodSecurityContext,
    PodSpec, PodTemplateSpec, Probe, SeccompProfile, SecretEnvSource, SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use windlass::{MANAGED_BY, Query};

use super::{Component, Monocle};
use crate::OPERATOR;

/// The user and group that everything runs as.
const USER: i64 = 1000;
/// The annotation that makes a new pod template of a new Secret.
const TOKENS: &str = "monocle.change-metrics.io/tokens-hash";
const CONFIG_DIRECTORY: &str = "/etc/monocle";

/// Where the config is mounted.
pub(super) const CONFIG_FILE: &str = "/etc/monocle/config.yaml";

/// The labels of a component's objects. The framework adds who manages them.
pub(super) fn labels(monocle: &Monocle, component: &str) -> BTreeMap<String, String> {
    [("name", "monocle"), ("instance", &monocle.name_any()), ("component", component), ("part-of", "monocle")]
        .map(|(label, value)| (format!("app.kubernetes.io/{label}"), value.to_owned()))
        .into()
}

/// All that this operator has made for a component of this one Monocle.
pub(super) fn made_for(monocle: &Monocle, component: &str) -> Query {
    let ours = (MANAGED_BY.to_owned(), OPERATOR.to_owned());
    Query::labels(labels(monocle, component).into_iter().chain([ours]))
}

/// Name and labels of a child.
pub(super) fn metadata(monocle: &Monocle, suffix: &str, component: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(monocle.child(suffix)),
        labels: Some(labels(monocle, component)),
        ..ObjectMeta::default()
    }
}

/// Selects the pods of one component of this one Monocle.
pub(super) fn selector(monocle: &Monocle, component: &str) -> LabelSelector {
    LabelSelector { match_labels: Some(selection(monocle, component)), ..LabelSelector::default() }
}

/// The labels that select the pods of one component of this one Monocle.
pub(super) fn selection(monocle: &Monocle, component: &str) -> BTreeMap<String, String> {
    let mut labels = labels(monocle, component);
    labels.retain(|label, _| !label.ends_with("/part-of"));
    labels
}

/// A pod of one container, placed as the component says, and fit for a namespace that is `restricted`.
pub(super) fn template(
    monocle: &Monocle,
    component: &str,
    placement: &Component,
    container: Container,
) -> PodTemplateSpec {
    let container = Container {
        resources: placement.resources.clone(),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), add: None }),
            ..SecurityContext::default()
        }),
        ..container
    };
    let mut labels = labels(monocle, component);
    // By this the framework keeps these pods and no others, once it has to look at pods.
    labels.insert(MANAGED_BY.into(), OPERATOR.into());
    PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
        spec: Some(PodSpec {
            containers: vec![container],
            node_selector: placement.node_selector.clone(),
            tolerations: placement.tolerations.clone(),
            affinity: placement.affinity.clone(),
            automount_service_account_token: Some(false),
            security_context: Some(PodSecurityContext {
                run_as_non_root: Some(true),
                run_as_user: Some(USER),
                fs_group: Some(USER),
                seccomp_profile: Some(SeccompProfile {
                    type_: "RuntimeDefault".into(),
                    localhost_profile: None,
                }),
                ..PodSecurityContext::default()
            }),
            ..PodSpec::default()
        }),
    }
}

/// A container of the Monocle image, with the Secret as environment and the config mounted.
pub(super) fn container(monocle: &Monocle, name: &str, command: &[&str], env: Vec<EnvVar>) -> Container {
    Container {
        name: name.into(),
        image: Some(monocle.spec.image.clone()),
        command: Some(command.iter().map(|word| (*word).to_owned()).collect()),
        env: Some([env, vec![variable("MONOCLE_CONFIG", CONFIG_FILE)]].concat()),
        env_from: Some(vec![EnvFromSource {
            secret_ref: Some(SecretEnvSource { name: monocle.secret_name(), optional: None }),
            ..EnvFromSource::default()
        }]),
        volume_mounts: Some(vec![VolumeMount {
            name: "config".into(),
            mount_path: CONFIG_DIRECTORY.into(),
            read_only: Some(true),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    }
}

/// Adds the volume that [`container`] mounts. The whole directory is mounted, so that edits reach running pods.
pub(super) fn with_config(monocle: &Monocle, mut template: PodTemplateSpec) -> PodTemplateSpec {
    let config = ConfigMapVolumeSource { name: monocle.config_name(), ..ConfigMapVolumeSource::default() };
    let volume = Volume { name: "config".into(), config_map: Some(config), ..Volume::default() };
    template.spec.get_or_insert_default().volumes = Some(vec![volume]);
    template
}

/// Marks the template with the tokens its pods start with, so that new tokens make new pods.
pub(super) fn with_tokens(mut template: PodTemplateSpec, tokens: &str) -> PodTemplateSpec {
    let annotations = template.metadata.get_or_insert_default().annotations.get_or_insert_default();
    annotations.insert(TOKENS.into(), tokens.into());
    template
}

pub(super) fn variable(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar { name: name.into(), value: Some(value.into()), value_from: None }
}

/// Asks `path` on a port every `period` seconds; gives up after `failures` in a row.
pub(super) fn probe(path: &str, port: i32, period: i32, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.into()),
            port: IntOrString::Int(port),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        failure_threshold: Some(failures),
        ..Probe::default()
    }
}
