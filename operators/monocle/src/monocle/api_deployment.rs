//! The API, which also serves the web page.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, ContainerPort};

use super::{Monocle, pod};

const PORT: i32 = 8080;

/// `tokens` is the hash of the Secret's values.
pub(super) fn build(monocle: &Monocle, tokens: &str) -> Deployment {
    let env = vec![
        pod::variable("MONOCLE_ELASTIC_URL", monocle.elastic_url()),
        pod::variable("MONOCLE_PUBLIC_URL", monocle.public_url()),
    ];
    let container = Container {
        ports: Some(vec![ContainerPort {
            name: Some("http".into()),
            container_port: PORT,
            ..ContainerPort::default()
        }]),
        startup_probe: Some(pod::probe("/health", PORT, 5, 60)),
        readiness_probe: Some(pod::probe("/health", PORT, 10, 3)),
        liveness_probe: Some(pod::probe("/health", PORT, 20, 6)),
        ..pod::container(monocle, "api", &["monocle", "api"], env)
    };
    let template = pod::template(monocle, "api", &monocle.spec.api, container);
    Deployment {
        metadata: pod::metadata(monocle, "api", "api"),
        spec: Some(DeploymentSpec {
            replicas: Some(1),
            selector: pod::selector(monocle, "api"),
            template: pod::with_tokens(pod::with_config(monocle, template), tokens),
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}
