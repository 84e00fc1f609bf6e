//! What a Monocle promises, as seen from outside: on the drydock, and with `WINDLASS_E2E_KUBECONFIG` on a real cluster.
//!
//! `tests/real.sh` at the root of the project starts such a cluster. Each test names the behaviour it shows.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "e2e/config.rs"]
mod config;
#[path = "e2e/life.rs"]
mod life;
#[path = "e2e/replicas.rs"]
mod replicas;
#[path = "e2e/spec.rs"]
mod spec;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use windlass_testkit::Stage;

/// Where Monocle's images come from.
const IMAGE: &str = "quay.io/change-metrics/monocle";

/// A manifest of a Monocle.
fn monocle(name: &str, spec: Value) -> String {
    let metadata = json!({"name": name});
    json!({"apiVersion": "monocle.monocle.change-metrics.io/v1alpha1", "kind": "Monocle", "metadata": metadata, "spec": spec})
        .to_string()
}

/// How often each Deployment was rolled out.
async fn rollouts(stage: &Stage) -> BTreeMap<String, String> {
    let revision = |one: &Deployment| {
        let revision = one.annotations().get("deployment.kubernetes.io/revision");
        (one.name_any(), revision.cloned().unwrap_or_default())
    };
    stage.list::<Deployment>().await.iter().map(revision).collect()
}

fn revisions(api: &str, crawler: &str) -> BTreeMap<String, String> {
    [("m-api".to_owned(), api.to_owned()), ("m-crawler".to_owned(), crawler.to_owned())].into()
}

async fn image(stage: &Stage, name: &str) -> String {
    let deployment = stage.api::<Deployment>().get(name).await.unwrap();
    deployment.spec.unwrap().template.spec.unwrap().containers[0].image.clone().unwrap()
}
