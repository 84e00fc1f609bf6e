//! A Website's life on the drydock, in virtual time.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use website_operator::{SAMPLE, Website, operator};
use windlass_testkit::{Harbour, Matrix};

#[tokio::test(start_paused = true)]
async fn a_new_page_reaches_the_servers() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(SAMPLE).await;
    harbour.ready().await;
    let before = harbour.names::<Pod>().await;

    harbour.apply(&SAMPLE.replace("Hello", "Good evening")).await;
    harbour.ready().await;
    let page = harbour.api::<ConfigMap>().get("hello").await.unwrap();
    assert_eq!(page.data.unwrap()["index.html"], "<h1>Good evening</h1>");
    assert_ne!(harbour.names::<Pod>().await, before, "the servers were not replaced");
}

#[tokio::test(start_paused = true)]
async fn a_new_value_of_the_secret_restarts_the_servers_and_a_new_label_does_not() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&format!("{SAMPLE}  secret: tokens\n")).await;
    harbour.condition("Ready", "False").await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tokens"}});
    let secrets = harbour.api::<Secret>();
    secrets.create(&Default::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    harbour.ready().await;
    let before = harbour.names::<Pod>().await;

    let label = json!({"metadata": {"labels": {"team": "web"}}});
    secrets.patch("tokens", &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    harbour.settle().await;
    assert_eq!(harbour.names::<Pod>().await, before);

    let value = json!({"stringData": {"TOKEN": "new"}});
    secrets.patch("tokens", &PatchParams::default(), &Patch::Merge(value)).await.unwrap();
    harbour.settle().await;
    assert_ne!(harbour.names::<Pod>().await, before);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_wanted_goes() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(SAMPLE).await;
    harbour.ready().await;
    assert_eq!(harbour.names::<Ingress>().await, ["hello"]);

    harbour.apply(&SAMPLE.replace("  host: hello.example.org\n", "")).await;
    harbour.until("the Ingress to go", async || harbour.names::<Ingress>().await.is_empty()).await;

    harbour.api::<Website>().delete("hello", &DeleteParams::default()).await.unwrap();
    harbour.until("the servers to go", async || harbour.names::<Pod>().await.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_not_one_is_reported() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&SAMPLE.replace("<h1>Hello</h1>", "Hello")).await;
    let ready = harbour.condition("Ready", "False").await;
    assert_eq!(ready["message"], "spec.page: is not HTML; begin with <h1>");
}

#[tokio::test(start_paused = true)]
async fn no_fault_leaves_another_world() {
    Matrix::new(operator, &[SAMPLE]).run().await;
}
