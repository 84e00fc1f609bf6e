//! The crawler, which fetches changes and hands them to the API.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy};
use k8s_openapi::api::core::v1::{Container, ContainerPort};

use super::{Monocle, api_service, pod};

const PORT: i32 = 9001;

/// `tokens` is the hash of the Secret's values.
pub(super) fn build(monocle: &Monocle, tokens: &str) -> Deployment {
    let api = format!("http://{}:{}", monocle.child("api"), api_service::PORT);
    let container = Container {
        ports: Some(vec![ContainerPort {
            name: Some("health".into()),
            container_port: PORT,
            ..ContainerPort::default()
        }]),
        startup_probe: Some(pod::probe("/health", PORT, 5, 60)),
        readiness_probe: Some(pod::probe("/health", PORT, 10, 3)),
        liveness_probe: Some(pod::probe("/health", PORT, 20, 6)),
        ..pod::container(
            monocle,
            "crawler",
            &["monocle", "crawler"],
            vec![pod::variable("MONOCLE_PUBLIC_URL", api)],
        )
    };
    let template = pod::template(monocle, "crawler", &monocle.spec.crawler, container);
    Deployment {
        metadata: pod::metadata(monocle, "crawler", "crawler"),
        spec: Some(DeploymentSpec {
            replicas: Some(1),
            // Two crawlers at once would double the data.
            strategy: Some(DeploymentStrategy { type_: Some("Recreate".into()), rolling_update: None }),
            selector: pod::selector(monocle, "crawler"),
            template: pod::with_tokens(pod::with_config(monocle, template), tokens),
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}
