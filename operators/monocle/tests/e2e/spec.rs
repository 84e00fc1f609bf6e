//! Changes of the spec reach the children: behaviour 4.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams};
use serde_json::json;
use windlass_drydock::node::Behaviour;
use windlass_monocle::{Monocle, operator};
use windlass_testkit::{Stage, play};

use super::{IMAGE, image, monocle, revisions, rollouts};

async fn variable(stage: &Stage, deployment: &str, name: &str) -> Option<String> {
    let deployment = stage.api::<Deployment>().get(deployment).await.unwrap();
    let container = deployment.spec.unwrap().template.spec.unwrap().containers.remove(0);
    container.env.unwrap().into_iter().find(|one| one.name == name)?.value
}

#[tokio::test]
async fn a_new_image_reaches_the_api_first_and_the_crawler_once_that_is_ready() {
    play(operator, async |stage| {
        stage.apply(&monocle("m", json!({}))).await;
        stage.ready::<Monocle>("m").await;
        let next = format!("{IMAGE}:slow-{}", stage.namespace());
        let slow = Behaviour::Serve { ready_after: Duration::from_secs(5) };
        stage.cluster().behaviours().set(&next, slow);
        stage.apply(&monocle("m", json!({"image": next}))).await;
        let both = async || {
            let api = stage.api::<Deployment>().get("m-api").await.unwrap();
            let updated = api.status.unwrap_or_default().updated_replicas.unwrap_or(0);
            let crawler = image(stage, "m-crawler").await;
            assert!(crawler != next || updated > 0, "the crawler waits for the API");
            crawler == next
        };
        stage.until("the crawler to change", both).await;
        stage.ready::<Monocle>("m").await;
        assert_eq!((image(stage, "m-api").await, rollouts(stage).await), (next.clone(), revisions("2", "2")));
        stage.cluster().behaviours().remove(&next);
    })
    .await;
}

#[tokio::test]
async fn a_bad_image_is_degraded_soon_and_the_old_api_goes_on_serving() {
    play(operator, async |stage| {
        stage.apply(&monocle("m", json!({}))).await;
        stage.ready::<Monocle>("m").await;
        let bad = format!("{IMAGE}:bad-{}", stage.namespace());
        stage.cluster().behaviours().set(&bad, Behaviour::Unpullable);
        stage.apply(&monocle("m", json!({"image": bad}))).await;
        let degraded = stage.condition::<Monocle>("m", "Degraded", "True").await;
        assert!(degraded["message"].as_str().unwrap().contains(&bad), "{degraded}");
        let api = stage.api::<Deployment>().get("m-api").await.unwrap();
        assert_eq!(api.status.unwrap().available_replicas, Some(1), "the old API serves");
        assert!(image(stage, "m-crawler").await.ends_with(":1.9.0"), "the crawler is not touched");
        stage.apply(&monocle("m", json!({}))).await;
        stage.condition::<Monocle>("m", "Degraded", "False").await;
        stage.ready::<Monocle>("m").await;
        stage.cluster().behaviours().remove(&bad);
    })
    .await;
}

#[tokio::test]
async fn the_public_url_and_resources_reach_the_pods_and_an_ingress_comes_and_goes() {
    play(operator, async |stage| {
        let ingress = json!({"host": "monocle.example.org", "tlsSecret": "cert"});
        stage.apply(&monocle("m", json!({"monoclePublicURL": "http://older", "ingress": ingress}))).await;
        stage.ready::<Monocle>("m").await;
        assert_eq!(variable(stage, "m-api", "MONOCLE_PUBLIC_URL").await.as_deref(), Some("http://older"));
        let made = stage.api::<Ingress>().get("m-api").await.unwrap().spec.unwrap();
        assert_eq!(made.rules.unwrap()[0].host.as_deref(), Some("monocle.example.org"));

        let resources = json!({"resources": {"requests": {"cpu": "0.1", "memory": "1024Mi"}}});
        stage.apply(&monocle("m", json!({"publicURL": "https://newer", "api": resources}))).await;
        stage.ready::<Monocle>("m").await;
        assert_eq!(variable(stage, "m-api", "MONOCLE_PUBLIC_URL").await.as_deref(), Some("https://newer"));
        let api = stage.api::<Deployment>().get("m-api").await.unwrap();
        let container = api.spec.unwrap().template.spec.unwrap().containers.remove(0);
        assert_eq!(container.resources.unwrap().requests.unwrap()["cpu"].0, "100m");
        stage.until("the Ingress to be gone", async || stage.names::<Ingress>().await.is_empty()).await;
        // The server writes quantities its own way, which is no difference.
        let before = stage.settle().await;
        stage.holds("no object changes", async || stage.objects().await == before).await;
    })
    .await;
}

#[tokio::test]
async fn the_claim_grows_where_its_class_lets_it_and_else_a_condition_says_why() {
    play(operator, async |stage| {
        let class = |kind: &str| format!("{kind}-{}", stage.namespace());
        for (kind, grows) in [("growing", true), ("fixed", false)] {
            let class = json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": class(kind)},
                "provisioner": "windlass.dev/drydock", "allowVolumeExpansion": grows,
            });
            stage.apply(&class.to_string()).await;
        }
        let size = async |name: &str| {
            let claim = stage.api::<PersistentVolumeClaim>().get(name).await.unwrap();
            claim.spec.unwrap().resources.unwrap().requests.unwrap()["storage"].0.clone()
        };
        let of = |name: &str, kind: &str, size: &str| {
            monocle(name, json!({"elastic": {"storageSize": size, "storageClassName": class(kind)}}))
        };
        stage.apply(&of("m", "growing", "1Gi")).await;
        stage.ready::<Monocle>("m").await;
        stage.apply(&of("m", "growing", "5Gi")).await;
        stage.until("the claim to grow", async || size("data-m-elastic-0").await == "5Gi").await;
        let set = stage.api::<StatefulSet>().get("m-elastic").await.unwrap();
        assert_eq!(set.metadata.generation, Some(1), "the set is not touched");
        stage.apply(&of("m", "growing", "500Mi")).await;
        let degraded = stage.condition::<Monocle>("m", "Degraded", "True").await;
        assert!(degraded["message"].as_str().unwrap().contains("can not be less than"), "{degraded}");

        stage.apply(&of("n", "fixed", "1Gi")).await;
        stage.ready::<Monocle>("n").await;
        stage.apply(&of("n", "fixed", "5Gi")).await;
        let degraded = stage.condition::<Monocle>("n", "Degraded", "True").await;
        assert!(degraded["message"].as_str().unwrap().contains("must support resize"), "{degraded}");
        assert_eq!(size("data-n-elastic-0").await, "1Gi");
        for kind in ["growing", "fixed"] {
            let classes: Api<StorageClass> = Api::all(stage.client());
            classes.delete(&class(kind), &DeleteParams::default()).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_config_and_a_secret_of_the_users_own_are_used_and_stay() {
    play(operator, async |stage| {
        let mine = json!({"configRef": {"name": "mine"}, "secretRef": {"name": "mine"}});
        stage.apply(&monocle("m", mine)).await;
        let waiting = stage.condition::<Monocle>("m", "Ready", "False").await;
        assert!(waiting["message"].as_str().unwrap().contains("mine is not there"), "{waiting}");
        stage.apply(r#"{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}, data: {config.yaml: "workspaces: []"}}"#).await;
        stage.apply("{apiVersion: v1, kind: Secret, metadata: {name: mine}, stringData: {a: b}}").await;
        stage.ready::<Monocle>("m").await;
        assert_eq!(stage.names::<Secret>().await, ["mine"], "none is made");
        assert_eq!(stage.names::<ConfigMap>().await, ["kube-root-ca.crt", "mine"]);
        stage.api::<Monocle>().delete("m", &DeleteParams::background()).await.unwrap();
        stage.until("the children to be gone", async || stage.names::<Deployment>().await.is_empty()).await;
        assert_eq!(stage.names::<Secret>().await, ["mine"], "it is the user's");
    })
    .await;
}

#[tokio::test]
async fn wrong_fields_are_refused_and_named() {
    play(operator, async |stage| {
        let refused = stage.try_apply(&monocle("m", json!({"publicURL": "ftp://x"}))).await.unwrap_err();
        assert!(refused.to_string().contains("spec.publicURL"), "{refused}");
    })
    .await;
}
