//! The pods of an agent: the agent itself, and beside it the config reloader, which substitutes environment variables
//! in the configuration and has the agent read it again when it changes.

use std::collections::BTreeMap;

use k8s_openapi::DeepMerge as _;
use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapVolumeSource, Container, ContainerPort, EmptyDirVolumeSource, EnvVar,
    EnvVarSource, HTTPGetAction, HostPathVolumeSource, ObjectFieldSelector, PodSpec, PodTemplateSpec, Probe,
    SecretVolumeSource, SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use sha2::{Digest as _, Sha256};

use super::labels;
use crate::assets;
use crate::kinds::GrafanaAgent;

/// The agent's port.
pub(super) const PORT: i32 = 8080;

const AGENT_IMAGE: &str = "docker.io/grafana/agent";
const AGENT_VERSION: &str = "v0.44.2";
const RELOADER_IMAGE: &str = "quay.io/prometheus-operator/prometheus-config-reloader";
const RELOADER_VERSION: &str = "v0.67.1";
/// The images that are deployed by default, as catalogs list them.
pub(crate) const IMAGES: &[(&str, &str)] = &[
    ("agent", "docker.io/grafana/agent:v0.44.2"),
    ("config-reloader", "quay.io/prometheus-operator/prometheus-config-reloader:v0.67.1"),
];

/// Where the agent keeps its data.
pub(super) const DATA: &str = "/var/lib/grafana-agent/data";
/// Long enough to send what is in the write-ahead log.
const GRACE: i64 = 4800;

/// What pods of one kind have beyond those of all kinds.
pub(super) struct Shape {
    /// What they are for.
    pub(super) purpose: &'static str,
    /// The Secret with their configuration.
    pub(super) config: String,
    /// More labels, also to select them by.
    pub(super) more_labels: BTreeMap<String, String>,
    pub(super) volumes: Vec<Volume>,
    pub(super) mounts: Vec<VolumeMount>,
    pub(super) variables: Vec<EnvVar>,
    /// Whether the agent may read what belongs to the node.
    pub(super) privileged: bool,
}

impl Shape {
    /// The labels that select the pods.
    pub(super) fn selector(&self, agent: &GrafanaAgent) -> BTreeMap<String, String> {
        let mut selector = labels::common(agent);
        selector.insert(labels::TYPE.into(), self.purpose.into());
        selector.extend(self.more_labels.clone());
        selector
    }

    /// The labels of the pods, and of what runs them: those that the user adds, and those that select them.
    pub(super) fn labels(&self, agent: &GrafanaAgent) -> BTreeMap<String, String> {
        let mut labels = agent.spec.pod_metadata.clone().unwrap_or_default().labels;
        labels.extend(self.selector(agent));
        labels
    }
}

pub(super) fn selector(agent: &GrafanaAgent, shape: &Shape) -> LabelSelector {
    LabelSelector { match_labels: Some(shape.selector(agent)), ..LabelSelector::default() }
}

pub(super) fn template(agent: &GrafanaAgent, shape: Shape) -> PodTemplateSpec {
    let spec = &agent.spec;
    let labels = shape.labels(agent);
    let mut annotations = spec.pod_metadata.clone().unwrap_or_default().annotations;
    annotations.insert("kubectl.kubernetes.io/default-container".into(), "grafana-agent".into());

    let (volumes, mounts) = volumes(agent, &shape);
    let mut variables = vec![field_variable("POD_NAME", "metadata.name")];
    variables.push(variable("AGENT_DEPLOY_MODE", "operator"));
    variables.extend(shape.variables);
    let own = vec![
        reloader(agent, mounts.clone(), variables.clone()),
        container(agent, mounts, variables, shape.privileged),
    ];
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
            containers: merged(own, &spec.containers),
            init_containers: listed(&spec.init_containers),
            image_pull_secrets: listed(&spec.image_pull_secrets),
            security_context: spec.security_context.clone(),
            service_account_name: spec.service_account_name.clone(),
            node_selector: (!spec.node_selector.is_empty()).then(|| spec.node_selector.clone()),
            priority_class_name: spec.priority_class_name.clone(),
            runtime_class_name: spec.runtime_class_name.clone(),
            termination_grace_period_seconds: Some(GRACE),
            volumes: Some(volumes),
            tolerations: listed(&spec.tolerations),
            affinity: spec.affinity.clone(),
            topology_spread_constraints: listed(&spec.topology_spread_constraints),
            ..PodSpec::default()
        }),
    }
}

/// The name of the agent's port.
pub(super) fn port_name(agent: &GrafanaAgent) -> String {
    agent.spec.port_name.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| "http-metrics".into())
}

pub(super) fn variable(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.into(), value: Some(value.into()), value_from: None }
}

pub(super) fn field_variable(name: &str, field: &str) -> EnvVar {
    let field = ObjectFieldSelector { field_path: field.into(), api_version: Some("v1".into()) };
    let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    EnvVar { name: name.into(), value: None, value_from: Some(source) }
}

pub(super) fn mount(name: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: name.into(),
        mount_path: path.into(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

pub(super) fn empty_dir(name: &str) -> Volume {
    Volume { name: name.into(), empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() }
}

pub(super) fn host_path(name: &str, path: &str) -> Volume {
    Volume {
        name: name.into(),
        host_path: Some(HostPathVolumeSource { path: path.into(), type_: None }),
        ..Volume::default()
    }
}

pub(super) fn secret(name: &str, secret: &str) -> Volume {
    Volume {
        name: name.into(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.into()),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// A text as the name of a volume. One that has to be cut is told apart by its hash.
pub(super) fn volume_name(text: &str) -> String {
    let name: String = text
        .to_ascii_lowercase()
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
        .collect();
    if name.len() <= 63 && name == text {
        return name;
    }
    let hash: String =
        Sha256::digest(text.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{hash}", &name[..name.len().min(54)])
}

fn volumes(agent: &GrafanaAgent, shape: &Shape) -> (Vec<Volume>, Vec<VolumeMount>) {
    let spec = &agent.spec;
    let mut volumes = vec![
        secret("config", &shape.config),
        empty_dir("config-out"),
        secret("secrets", &labels::child(agent, "secrets")),
    ];
    let mut mounts = vec![
        mount("config", "/var/lib/grafana-agent/config-in", true),
        mount("config-out", "/var/lib/grafana-agent/config", false),
        mount("secrets", assets::DIRECTORY, true),
    ];
    volumes.extend(shape.volumes.clone());
    mounts.extend(shape.mounts.clone());
    volumes.extend(spec.volumes.clone());
    mounts.extend(spec.volume_mounts.clone());
    for name in &spec.secrets {
        let volume = volume_name(&format!("secret-{name}"));
        mounts.push(mount(&volume, &format!("/var/lib/grafana-agent/extra-secrets/{name}"), true));
        volumes.push(secret(&volume, name));
    }
    for name in &spec.config_maps {
        let volume = volume_name(&format!("configmap-{name}"));
        mounts.push(mount(&volume, &format!("/var/lib/grafana-agent/extra-configmaps/{name}"), true));
        let source = ConfigMapVolumeSource { name: name.clone(), ..ConfigMapVolumeSource::default() };
        volumes.push(Volume { name: volume, config_map: Some(source), ..Volume::default() });
    }
    (volumes, mounts)
}

fn container(
    agent: &GrafanaAgent,
    mounts: Vec<VolumeMount>,
    variables: Vec<EnvVar>,
    privileged: bool,
) -> Container {
    let spec = &agent.spec;
    let flag = |on: Option<bool>, text: &str| (on == Some(true)).then(|| text.to_owned());
    let mut args = vec![
        "-config.file=/var/lib/grafana-agent/config/agent.yml".to_owned(),
        "-config.expand-env=true".to_owned(),
        format!("-server.http.address=0.0.0.0:{PORT}"),
        "-enable-features=integrations-next".to_owned(),
    ];
    args.extend(flag(spec.enable_config_read_api, "-config.enable-read-api"));
    args.extend(flag(spec.disable_reporting, "-disable-reporting"));
    args.extend(flag(spec.disable_support_bundle, "-disable-support-bundle"));
    Container {
        name: "grafana-agent".into(),
        image: Some(image(&spec.image, AGENT_IMAGE, &spec.version, AGENT_VERSION)),
        args: Some(args),
        ports: Some(vec![ContainerPort {
            name: Some(port_name(agent)),
            container_port: PORT,
            protocol: Some("TCP".into()),
            ..ContainerPort::default()
        }]),
        env: Some(variables),
        volume_mounts: Some(mounts),
        resources: spec.resources.clone(),
        // Up to ten minutes to read the write-ahead log.
        readiness_probe: Some(Probe {
            http_get: Some(HTTPGetAction {
                path: Some("/-/ready".into()),
                port: IntOrString::String(port_name(agent)),
                ..HTTPGetAction::default()
            }),
            timeout_seconds: Some(3),
            period_seconds: Some(5),
            failure_threshold: Some(120),
            ..Probe::default()
        }),
        security_context: Some(SecurityContext {
            privileged: Some(privileged),
            ..SecurityContext::default()
        }),
        termination_message_policy: Some("FallbackToLogsOnError".into()),
        ..Container::default()
    }
}

fn reloader(agent: &GrafanaAgent, mounts: Vec<VolumeMount>, variables: Vec<EnvVar>) -> Container {
    let spec = &agent.spec;
    let args = [
        "--config-file=/var/lib/grafana-agent/config-in/agent.yml".to_owned(),
        "--config-envsubst-file=/var/lib/grafana-agent/config/agent.yml".to_owned(),
        "--watch-interval=1m".to_owned(),
        "--statefulset-ordinal-from-envvar=POD_NAME".to_owned(),
        format!("--reload-url=http://127.0.0.1:{PORT}/-/reload"),
    ];
    Container {
        name: "config-reloader".into(),
        image: Some(image(
            &spec.config_reloader_image,
            RELOADER_IMAGE,
            &spec.config_reloader_version,
            RELOADER_VERSION,
        )),
        args: Some(args.into()),
        env: Some(variables),
        volume_mounts: Some(mounts),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), add: None }),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

fn image(whole: &Option<String>, base: &str, version: &Option<String>, default: &str) -> String {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    given(whole).unwrap_or_else(|| format!("{base}:{}", given(version).unwrap_or_else(|| default.into())))
}

/// The operator's containers, each merged with the user's of its name, then the user's others.
fn merged(own: Vec<Container>, users: &[Container]) -> Vec<Container> {
    let mut containers = own;
    for user in users {
        match containers.iter_mut().find(|container| container.name == user.name) {
            Some(container) => container.merge_from(user.clone()),
            None => containers.push(user.clone()),
        }
    }
    containers
}

fn listed<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (!list.is_empty()).then(|| list.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogs_list_the_images_that_are_deployed() {
        let images = IMAGES.iter().map(|(_, image)| (*image).to_owned());
        let deployed = [(AGENT_IMAGE, AGENT_VERSION), (RELOADER_IMAGE, RELOADER_VERSION)];
        assert!(images.eq(deployed.map(|(image, version)| format!("{image}:{version}"))));
    }
}
