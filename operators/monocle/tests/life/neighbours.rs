//! More than one Monocle in a namespace, and namespaces with rules.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use windlass_monocle::{Monocle, operator};
use windlass_testkit::Harbour;

use super::changes::monocle;

#[tokio::test(start_paused = true)]
async fn two_in_a_namespace_share_nothing() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&monocle(json!({}))).await;
    harbour.apply(&monocle(json!({})).replace("\"m\"", "\"n\"")).await;
    harbour.ready().await;
    let claims = harbour.names::<PersistentVolumeClaim>().await;
    assert_eq!(claims, ["data-m-elastic-0", "data-n-elastic-0"]);
    for slice in harbour.list::<EndpointSlice>().await {
        let service = slice.labels().get("kubernetes.io/service-name").cloned().unwrap_or_default();
        if service == "kubernetes" {
            continue;
        }
        let pods: Vec<_> = slice
            .endpoints
            .unwrap_or_default()
            .iter()
            .filter_map(|endpoint| endpoint.target_ref.as_ref()?.name.clone())
            .collect();
        assert_eq!(pods.len(), 1, "{service}: {pods:?}");
        assert!(pods[0].starts_with(&service), "{service} leads to {pods:?}");
    }
    let data = json!({"data": {"config.yaml": "workspaces:\n  - name: one\n"}});
    let merge = PatchParams::default();
    harbour.api::<ConfigMap>().patch("m-api", &merge, &Patch::Merge(data)).await.unwrap();
    harbour.settle().await;
    let jobs = harbour.names::<Job>().await;
    assert!(jobs.len() == 1 && jobs[0].starts_with("m-update-idents-"), "{jobs:?}");

    harbour.api::<Monocle>().delete("m", &DeleteParams::background()).await.unwrap();
    harbour.settle().await;
    assert_eq!(harbour.names::<Service>().await, ["kubernetes", "n-api", "n-elastic"]);
    assert!(harbour.names::<Pod>().await.iter().all(|name| name.starts_with("n-")));
}

#[tokio::test(start_paused = true)]
async fn its_pods_are_admitted_where_only_restricted_ones_are() {
    let mut harbour = Harbour::start(operator).await;
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    harbour
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict", "labels": labels}}).to_string())
        .await;
    let strict = monocle(json!({})).replace("\"name\":\"m\"", "\"name\":\"m\",\"namespace\":\"strict\"");
    harbour.apply(&strict).await;
    let pods: Api<Pod> = Api::namespaced(harbour.client(), "strict");
    harbour
        .until("three pods", async || pods.list(&ListParams::default()).await.unwrap().items.len() == 3)
        .await;
}

#[tokio::test(start_paused = true)]
async fn its_plan_can_be_shown_without_a_write() {
    let mut harbour = Harbour::start(operator).await;
    harbour.stop().await;
    let object = serde_json::from_str(&monocle(json!({"ingress": {"host": "x.org"}}))).unwrap();
    let (client, context) = (harbour.drydock().client("preview"), harbour.drydock().context().clone());
    let shown = windlass::preview::preview(&client, &context, &operator(), Some(&[object])).await.unwrap();
    let objects: Vec<_> = shown[0].steps.iter().map(|step| step.object.as_str()).collect();
    assert_eq!(
        objects,
        [
            "Secret default/m-api",
            "ConfigMap default/m-api",
            "Service default/m-elastic",
            "StatefulSet default/m-elastic",
            "Service default/m-api",
            "Ingress default/m-api",
            "Deployment default/m-api",
            "Deployment default/m-crawler",
        ]
    );
    assert_eq!(shown[0].steps[6].note.as_deref(), Some("once StatefulSet default/m-elastic is ready"));
    let verbs = harbour.drydock().record().counts("preview");
    assert!(verbs.keys().all(|verb| matches!(*verb, "get" | "list")), "{verbs:?}");

    harbour.run();
    harbour.apply(&monocle(json!({}))).await;
    harbour.ready().await;
    let shown = windlass::preview::preview(&client, &context, &operator(), None).await.unwrap();
    assert!(!shown[0].changes_something(), "{shown:?}");
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_the_users_own_is_adopted_when_that_is_asked_for_later() {
    let mut harbour = Harbour::start(operator).await;
    let data = json!({"CRAWLERS_API_KEY": "a", "MONOCLE_JWK_GEN_KEY": "b"});
    let theirs = json!({"metadata": {"name": "m-api"}, "stringData": data});
    let secrets = harbour.api::<Secret>();
    secrets.create(&PostParams::default(), &serde_json::from_value(theirs).unwrap()).await.unwrap();
    harbour.apply(&monocle(json!({}))).await;
    harbour.ready().await;
    harbour.settle().await;
    assert_eq!(secrets.get("m-api").await.unwrap().owner_references().len(), 0, "it stays the user's");

    let adopt = json!({"metadata": {"annotations": {windlass::annotation::ADOPT: "Secret/m-api"}}});
    let monocles = harbour.api::<Monocle>();
    monocles.patch("m", &PatchParams::default(), &Patch::Merge(adopt)).await.unwrap();
    harbour.settle().await;
    assert_eq!(secrets.get("m-api").await.unwrap().owner_references().len(), 1);
}
