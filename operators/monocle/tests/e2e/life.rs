//! It comes up in order, keeps what it made, is silent, and leaves nothing: behaviours 1, 2, 5, 7 and 8.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use windlass_drydock::node::Behaviour;
use windlass_monocle::{Monocle, operator};
use windlass_testkit::play;

use super::{monocle, revisions, rollouts};

#[tokio::test]
async fn elastic_comes_first_then_the_api_then_the_crawler() {
    play(operator, async |stage| {
        let image = format!("elasticsearch:slow-{}", stage.namespace());
        let slow = Behaviour::Serve { ready_after: Duration::from_secs(4) };
        stage.cluster().behaviours().set(&image, slow);
        stage.apply(&monocle("m", json!({"elastic": {"image": image}}))).await;
        stage.until("elastic", async || !stage.names::<StatefulSet>().await.is_empty()).await;
        let secret = stage.api::<Secret>().get("m-api").await.unwrap();
        let data = secret.data.unwrap();
        let length = |key: &str| data[key].0.len();
        assert_eq!((length("CRAWLERS_API_KEY"), length("MONOCLE_JWK_GEN_KEY")), (24, 64));
        // As long as elastic is not ready, nothing that needs it is there; the crawler comes last.
        stage
            .until("the API", async || {
                let deployments = stage.names::<Deployment>().await;
                let elastic = stage.api::<StatefulSet>().get("m-elastic").await.unwrap();
                let ready = elastic.status.and_then(|status| status.ready_replicas).unwrap_or(0);
                assert!(ready > 0 || deployments.is_empty(), "{deployments:?} before elastic");
                !deployments.is_empty()
            })
            .await;
        stage.ready::<Monocle>("m").await;
        let made = |one: &str, other: &str| format!("{one} {other}");
        let objects = stage.objects().await;
        for (kind, name) in [
            ("Secret", "m-api"),
            ("ConfigMap", "m-api"),
            ("Service", "m-elastic"),
            ("Service", "m-api"),
            ("StatefulSet", "m-elastic"),
            ("Deployment", "m-api"),
            ("Deployment", "m-crawler"),
        ] {
            assert!(objects.contains_key(&made(kind, name)), "no {kind} {name} in {objects:?}");
        }
        assert!(stage.names::<Job>().await.is_empty(), "the first content needs no update of identities");
        let status = stage.api::<Monocle>().get("m").await.unwrap().status.unwrap();
        assert_eq!(status.url.as_deref(), Some("http://localhost:8090"));
        stage.cluster().behaviours().remove(&image);
    })
    .await;
}

#[tokio::test]
async fn only_new_values_of_the_secret_roll_out_and_once() {
    play(operator, async |stage| {
        stage.apply(&monocle("m", json!({}))).await;
        stage.ready::<Monocle>("m").await;
        let before = stage.api::<Secret>().get("m-api").await.unwrap();
        stage
            .change::<Secret>("m-api", json!({"metadata": {"labels": {"x": "y"}, "annotations": {"x": "y"}}}))
            .await;
        stage.settle().await;
        assert_eq!(rollouts(stage).await, revisions("1", "1"));

        stage.change::<Secret>("m-api", json!({"stringData": {"CRAWLERS_API_KEY": "another"}})).await;
        stage.until("the rollouts", async || rollouts(stage).await == revisions("2", "2")).await;
        stage.ready::<Monocle>("m").await;

        // Deleted and restored with the same content, as a backup would.
        let restored = Secret {
            metadata: kube::core::ObjectMeta {
                name: Some("m-api".into()),
                labels: before.metadata.labels.clone(),
                owner_references: before.metadata.owner_references.clone(),
                ..Default::default()
            },
            data: stage.api::<Secret>().get("m-api").await.unwrap().data,
            ..Secret::default()
        };
        stage.stop().await;
        stage.api::<Secret>().delete("m-api", &DeleteParams::default()).await.unwrap();
        stage.api::<Secret>().create(&Default::default(), &restored).await.unwrap();
        stage.run();
        stage.settle().await;
        assert_eq!(rollouts(stage).await, revisions("2", "2"));
    })
    .await;
}

#[tokio::test]
async fn what_is_edited_or_deleted_by_hand_is_put_back() {
    play(operator, async |stage| {
        stage.apply(&monocle("m", json!({}))).await;
        stage.ready::<Monocle>("m").await;
        stage.change::<Deployment>("m-api", json!({"spec": {"replicas": 3}})).await;
        stage.api::<Service>().delete("m-elastic", &DeleteParams::default()).await.unwrap();
        stage.api::<Deployment>().delete("m-crawler", &DeleteParams::background()).await.unwrap();
        stage
            .until("all to be as before", async || {
                let api = stage.api::<Deployment>().get("m-api").await.unwrap();
                api.spec.unwrap().replicas == Some(1)
                    && stage.names::<Service>().await == ["m-api", "m-elastic"]
                    && stage.names::<Deployment>().await == ["m-api", "m-crawler"]
            })
            .await;
        stage.ready::<Monocle>("m").await;
    })
    .await;
}

#[tokio::test]
async fn two_in_a_namespace_share_nothing() {
    play(operator, async |stage| {
        stage.apply(&monocle("m", json!({}))).await;
        stage.apply(&monocle("n", json!({}))).await;
        stage.ready::<Monocle>("m").await;
        stage.ready::<Monocle>("n").await;
        let leads_to_its_own = async || {
            let slices = stage.list::<EndpointSlice>().await;
            slices.len() == 4
                && slices.iter().all(|slice| {
                    let service = &slice.labels()["kubernetes.io/service-name"];
                    let endpoints = slice.endpoints.as_deref().unwrap_or_default();
                    let pods = endpoints.iter().filter_map(|one| one.target_ref.as_ref()?.name.clone());
                    let pods: Vec<_> = pods.collect();
                    pods.len() == 1 && pods[0].starts_with(service)
                })
        };
        stage.until("each Service to lead to one pod of its own", leads_to_its_own).await;
        stage
            .change::<ConfigMap>("m-api", json!({"data": {"config.yaml": "workspaces:\n  - name: one\n"}}))
            .await;
        stage.settle().await;
        let jobs = stage.names::<Job>().await;
        assert!(jobs.len() == 1 && jobs[0].starts_with("m-update-idents-"), "{jobs:?}");

        stage.api::<Monocle>().delete("m", &DeleteParams::background()).await.unwrap();
        let only_n = async || stage.names::<Pod>().await.iter().all(|name| name.starts_with("n-"));
        stage.until("the pods of m to be gone", only_n).await;
        assert_eq!(stage.names::<Service>().await, ["n-api", "n-elastic"]);
        stage.ready::<Monocle>("n").await;
    })
    .await;
}

#[tokio::test]
async fn at_rest_and_after_a_restart_nothing_is_written() {
    play(operator, async |stage| {
        stage.apply(&monocle("m", json!({"ingress": {"host": "m.example.org"}}))).await;
        stage.ready::<Monocle>("m").await;
        let before = stage.settle().await;
        stage.holds("no object changes", async || stage.objects().await == before).await;
        stage.stop().await;
        stage.run();
        stage.holds("no object changes after a restart", async || stage.objects().await == before).await;
        // The same manifest once more changes nothing either.
        stage.apply(&monocle("m", json!({"ingress": {"host": "m.example.org"}}))).await;
        stage.holds("no object changes after an apply", async || stage.objects().await == before).await;
    })
    .await;
}

#[tokio::test]
async fn deletion_leaves_nothing_but_the_data() {
    play(operator, async |stage| {
        for (name, retention) in [("m", "Retain"), ("n", "Delete")] {
            stage.apply(&monocle(name, json!({"elastic": {"retention": retention}}))).await;
            stage.ready::<Monocle>(name).await;
            stage.api::<Monocle>().delete(name, &DeleteParams::background()).await.unwrap();
        }
        let gone = async || {
            stage.names::<Service>().await.is_empty()
                && stage.names::<Secret>().await.is_empty()
                && stage.names::<ConfigMap>().await == ["kube-root-ca.crt"]
                && stage.names::<StatefulSet>().await.is_empty()
                && stage.names::<Deployment>().await.is_empty()
                && stage.names::<ReplicaSet>().await.is_empty()
                && stage.names::<Pod>().await.is_empty()
                && stage.names::<PersistentVolumeClaim>().await == ["data-m-elastic-0"]
        };
        stage.until("all but the data to be gone", gone).await;
    })
    .await;
}

#[tokio::test]
async fn its_pods_are_admitted_where_only_restricted_ones_are() {
    play(operator, async |stage| {
        let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
        let namespaces: Api<Namespace> = Api::all(stage.client());
        namespaces.patch(stage.namespace(), &PatchParams::default(), &Patch::Merge(labels)).await.unwrap();
        stage.apply(&monocle("m", json!({}))).await;
        stage.ready::<Monocle>("m").await;
        stage
            .change::<ConfigMap>("m-api", json!({"data": {"config.yaml": "workspaces:\n  - name: one\n"}}))
            .await;
        stage.until("the Job's pod", async || stage.names::<Pod>().await.len() == 4).await;
    })
    .await;
}
