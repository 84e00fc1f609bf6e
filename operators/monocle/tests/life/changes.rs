//! Changes of the spec reach the children.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_drydock::node::Behaviour;
use windlass_monocle::{Monocle, SAMPLE, operator};
use windlass_testkit::Harbour;

use super::rollouts;

/// A manifest of a Monocle named `m`.
pub(super) fn monocle(spec: Value) -> String {
    let metadata = json!({"name": "m"});
    json!({"apiVersion": "monocle.monocle.change-metrics.io/v1alpha1", "kind": "Monocle", "metadata": metadata, "spec": spec})
        .to_string()
}

pub(super) async fn image(harbour: &Harbour, name: &str) -> String {
    let deployment = harbour.api::<Deployment>().get(name).await.unwrap();
    deployment.spec.unwrap().template.spec.unwrap().containers[0].image.clone().unwrap()
}

async fn variable(harbour: &Harbour, deployment: &str, name: &str) -> Option<String> {
    let deployment = harbour.api::<Deployment>().get(deployment).await.unwrap();
    let container = deployment.spec.unwrap().template.spec.unwrap().containers.remove(0);
    container.env.unwrap().into_iter().find(|one| one.name == name)?.value
}

#[tokio::test(start_paused = true)]
async fn a_new_image_reaches_the_api_first_and_the_crawler_once_that_is_ready() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&monocle(json!({}))).await;
    harbour.ready().await;
    let slow = Behaviour::Serve { ready_after: std::time::Duration::from_secs(30) };
    harbour.behaviours().set("*monocle:2*", slow);
    harbour.apply(&monocle(json!({"image": "quay.io/change-metrics/monocle:2.0.0"}))).await;
    harbour.until("the API to change", async || image(&harbour, "m-api").await.ends_with(":2.0.0")).await;
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    assert!(image(&harbour, "m-crawler").await.ends_with(":1.9.0"), "the crawler waits for the API");
    harbour.ready().await;
    assert!(image(&harbour, "m-crawler").await.ends_with(":2.0.0"));
    assert_eq!(rollouts(&harbour).await.into_values().collect::<Vec<_>>(), [2, 2]);
}

#[tokio::test(start_paused = true)]
async fn the_public_url_and_resources_reach_the_pods() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&monocle(json!({"monoclePublicURL": "http://older"}))).await;
    harbour.ready().await;
    assert_eq!(variable(&harbour, "m-api", "MONOCLE_PUBLIC_URL").await.as_deref(), Some("http://older"));
    let resources = json!({"resources": {"requests": {"cpu": "100m"}}});
    harbour.apply(&monocle(json!({"publicURL": "https://newer", "api": resources}))).await;
    harbour.ready().await;
    assert_eq!(variable(&harbour, "m-api", "MONOCLE_PUBLIC_URL").await.as_deref(), Some("https://newer"));
    let api = harbour.api::<Deployment>().get("m-api").await.unwrap();
    let container = api.spec.unwrap().template.spec.unwrap().containers.remove(0);
    assert_eq!(container.resources.unwrap().requests.unwrap()["cpu"].0, "100m");
    let status = harbour.api::<Monocle>().get("m").await.unwrap().status.unwrap();
    assert_eq!(status.url.as_deref(), Some("https://newer"));
}

#[tokio::test(start_paused = true)]
async fn the_claim_grows_and_what_cannot_shrink_says_why() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&monocle(json!({}))).await;
    harbour.ready().await;
    harbour.apply(&monocle(json!({"elastic": {"storageSize": "5Gi"}}))).await;
    harbour.ready().await;
    let claims = harbour.api::<PersistentVolumeClaim>();
    let size = async || {
        let claim = claims.get("data-m-elastic-0").await.unwrap();
        claim.spec.unwrap().resources.unwrap().requests.unwrap()["storage"].0.clone()
    };
    assert_eq!(size().await, "5Gi");
    harbour
        .until("the volume to grow", async || {
            let status = claims.get("data-m-elastic-0").await.unwrap().status.unwrap();
            status.capacity.unwrap()["storage"].0 == "5Gi"
        })
        .await;
    let set = harbour.api::<StatefulSet>().get("m-elastic").await.unwrap();
    assert_eq!(set.metadata.generation, Some(1), "the set is not touched");

    harbour.apply(&monocle(json!({"elastic": {"storageSize": "500Mi"}}))).await;
    let degraded = harbour.condition("Degraded", "True").await;
    assert!(degraded["message"].as_str().unwrap().contains("less than status.capacity"), "{degraded}");
    assert_eq!(size().await, "5Gi");
}

#[tokio::test(start_paused = true)]
async fn an_ingress_comes_and_goes() {
    let mut harbour = Harbour::start(operator).await;
    let ingress = json!({"ingress": {"host": "monocle.example.org", "tlsSecret": "cert"}});
    harbour.apply(&monocle(ingress)).await;
    harbour.ready().await;
    let made = harbour.api::<Ingress>().get("m-api").await.unwrap().spec.unwrap();
    assert_eq!(made.rules.unwrap()[0].host.as_deref(), Some("monocle.example.org"));
    assert_eq!(made.tls.unwrap()[0].secret_name.as_deref(), Some("cert"));
    harbour.apply(&monocle(json!({}))).await;
    harbour.until("the Ingress to be gone", async || harbour.names::<Ingress>().await.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_config_and_a_secret_of_the_users_own_are_used() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&monocle(json!({"configRef": {"name": "mine"}, "secretRef": {"name": "mine"}}))).await;
    harbour.settle().await;
    let waiting = harbour.condition("Ready", "False").await;
    assert_eq!(waiting["message"], "Secret mine is not there");
    let config: ConfigMap = serde_json::from_value(
        json!({"metadata": {"name": "mine"}, "data": {"config.yaml": "workspaces: []\n"}}),
    )
    .unwrap();
    harbour.api::<ConfigMap>().create(&PostParams::default(), &config).await.unwrap();
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "mine"}, "data": {}})).unwrap();
    harbour.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    harbour.ready().await;
    assert_eq!(harbour.names::<Secret>().await, ["mine"], "none is made");
    assert_eq!(harbour.names::<ConfigMap>().await, ["kube-root-ca.crt", "mine"]);
    harbour.api::<Monocle>().delete("m", &DeleteParams::background()).await.unwrap();
    harbour.settle().await;
    assert_eq!(harbour.names::<Secret>().await, ["mine"], "it is the user's");
}

#[tokio::test(start_paused = true)]
async fn data_stays_or_goes_as_the_retention_says() {
    for (retention, left) in [("Retain", 1), ("Delete", 0)] {
        let mut harbour = Harbour::start(operator).await;
        harbour.apply(&monocle(json!({"elastic": {"retention": retention}}))).await;
        harbour.ready().await;
        harbour.api::<Monocle>().delete("m", &DeleteParams::background()).await.unwrap();
        harbour.settle().await;
        let claims = harbour.names::<PersistentVolumeClaim>().await;
        assert_eq!(claims.len(), left, "{retention}: {claims:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_external_elastic_needs_no_own() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&monocle(json!({}))).await;
    harbour.ready().await;
    harbour.apply(&monocle(json!({"elastic": {"url": "http://elsewhere:9200"}}))).await;
    harbour.ready().await;
    harbour.settle().await;
    assert!(harbour.names::<StatefulSet>().await.is_empty());
    let url = variable(&harbour, "m-api", "MONOCLE_ELASTIC_URL").await;
    assert_eq!(url.as_deref(), Some("http://elsewhere:9200"));
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_writes_into_the_status_is_put_right() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(SAMPLE).await;
    harbour.ready().await;
    harbour.settle().await;
    let monocles = harbour.api::<Monocle>();
    let lie = json!({"status": {"url": "http://elsewhere"}});
    monocles.patch_status("monocle-sample", &PatchParams::default(), &Patch::Merge(lie)).await.unwrap();
    harbour.settle().await;
    let status = monocles.get("monocle-sample").await.unwrap().status.unwrap();
    assert_ne!(status.url.as_deref(), Some("http://elsewhere"));
}
