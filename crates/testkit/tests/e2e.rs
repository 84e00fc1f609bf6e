//! What the framework promises, as seen from outside: on the drydock, and with `WINDLASS_E2E_KUBECONFIG` on a real
//! cluster. `tests/real.sh` at the root of the project starts such a cluster.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

// It has more fields than are needed here.
#[allow(dead_code)]
#[path = "framework/boat.rs"]
mod boat;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_testkit::{Stage, play};

use boat::{Boat, Marina, boat};

async fn text(stage: &Stage, name: &str) -> Option<String> {
    let map = stage.api::<ConfigMap>().get_opt(name).await.unwrap()?;
    map.data?.get("text").cloned()
}

async fn until_text(stage: &Stage, name: &str, wanted: &str) {
    let what = format!("ConfigMap {name} to be {wanted}");
    stage.until(&what, async || text(stage, name).await.as_deref() == Some(wanted)).await;
}

async fn annotate(stage: &Stage, annotations: Value) {
    stage.change::<Boat>("ada", json!({"metadata": {"annotations": annotations}})).await;
}

/// A ConfigMap that somebody else has made.
async fn somebody_elses(stage: &Stage, name: &str) {
    let map = json!({"metadata": {"name": name}, "data": {"text": "theirs"}});
    let map: ConfigMap = serde_json::from_value(map).unwrap();
    stage.api::<ConfigMap>().create(&PostParams::default(), &map).await.unwrap();
}

#[tokio::test]
async fn what_is_somebody_elses_is_left_alone_until_adoption_is_asked_for() {
    play(Marina::default().operator(), async |stage| {
        somebody_elses(stage, "ada").await;
        stage.apply(&boat(json!({"text": "ours"}))).await;
        let degraded = stage.condition::<Boat>("ada", "Degraded", "True").await;
        assert!(degraded["message"].as_str().unwrap().contains("ConfigMap"), "{degraded}");
        stage.holds("it is left alone", async || text(stage, "ada").await.as_deref() == Some("theirs")).await;
        let said = async || {
            let events = stage.list::<Event>().await;
            events.iter().any(|event| {
                event.regarding.as_ref().is_some_and(|about| about.kind.as_deref() == Some("Boat"))
            })
        };
        stage.until("an Event about it", said).await;

        annotate(stage, json!({windlass::annotation::ADOPT: "ConfigMap/ada"})).await;
        until_text(stage, "ada", "ours").await;
        stage.ready::<Boat>("ada").await;
        let map = stage.api::<ConfigMap>().get("ada").await.unwrap();
        assert_eq!(map.owner_references()[0].kind, "Boat");
    })
    .await;
}

#[tokio::test]
async fn what_is_no_longer_planned_is_pruned_also_after_a_restart() {
    play(Marina::default().operator(), async |stage| {
        stage.apply("{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {a: b}}").await;
        stage.apply(&boat(json!({"text": "one", "secret": "key"}))).await;
        stage.ready::<Boat>("ada").await;
        assert!(text(stage, "ada-secret").await.is_some());
        // What a plan read is watched, and a new value reaches what was made of it.
        let before = text(stage, "ada-secret").await;
        stage.change::<Secret>("key", json!({"stringData": {"a": "c"}})).await;
        stage.until("the new value to arrive", async || text(stage, "ada-secret").await != before).await;
        stage.stop().await;
        stage.apply(&boat(json!({"text": "one"}))).await;
        stage.run();
        stage.until("it to be pruned", async || text(stage, "ada-secret").await.is_none()).await;
        assert_eq!(stage.api::<Secret>().get("key").await.unwrap().name_any(), "key", "not ours to prune");
    })
    .await;
}

#[tokio::test]
async fn a_fight_is_named_and_given_up() {
    play(Marina::default().operator(), async |stage| {
        stage.apply(&boat(json!({"text": "ours"}))).await;
        stage.ready::<Boat>("ada").await;
        let opponent = Api::<ConfigMap>::namespaced(stage.cluster().client("opponent"), stage.namespace());
        let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ada"}, "data": {"text": "theirs"}});
        let named = async || {
            let status = stage.api::<Boat>().get("ada").await.unwrap().status.unwrap_or_default();
            status.conditions.iter().any(|one| one.status == "True" && one.message.contains("opponent"))
        };
        let fights = async || {
            if text(stage, "ada").await.as_deref() == Some("ours") {
                let params = PatchParams::apply("opponent").force();
                opponent.patch("ada", &params, &Patch::Apply(&theirs)).await.unwrap();
            }
            named().await
        };
        stage.until("the opponent to be named", fights).await;
        stage.settle().await;
        let before = stage.objects().await;
        stage.holds("nobody writes", async || stage.objects().await == before).await;
    })
    .await;
}

#[tokio::test]
async fn a_finalizer_holds_it_until_what_is_outside_is_gone() {
    let marina = Marina::default();
    play(marina.operator(), async |stage| {
        let elsewhere = format!("{}-elsewhere", stage.namespace());
        let body = serde_json::from_value(json!({"metadata": {"name": elsewhere}})).unwrap();
        let namespaces: Api<Namespace> = Api::all(stage.client());
        namespaces.create(&PostParams::default(), &body).await.unwrap();
        stage.apply(&boat(json!({"text": "one", "berth": "b", "length": 3, "elsewhere": elsewhere}))).await;
        stage.ready::<Boat>("ada").await;
        assert_eq!(marina.berth("b"), Some(3));
        let maps: Api<ConfigMap> = Api::namespaced(stage.client(), &elsewhere);
        assert!(maps.get_opt("ada").await.unwrap().is_some());
        assert!(!stage.api::<Boat>().get("ada").await.unwrap().finalizers().is_empty());

        *marina.closed.lock().unwrap() = Some("closed on Sundays".into());
        stage.api::<Boat>().delete("ada", &DeleteParams::default()).await.unwrap();
        let said = async || {
            let boat = stage.api::<Boat>().get("ada").await.unwrap();
            let status = serde_json::to_string(&boat.status).unwrap();
            status.contains("closed on Sundays")
        };
        stage.until("the reason to be told", said).await;
        *marina.closed.lock().unwrap() = None;
        stage.until("it to be gone", async || stage.names::<Boat>().await.is_empty()).await;
        assert_eq!(marina.berth("b"), None);
        assert!(maps.get_opt("ada").await.unwrap().is_none(), "no reference reaches into another namespace");
        namespaces.delete(&elsewhere, &DeleteParams::default()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn of_two_replicas_one_works_and_the_other_takes_over() {
    play(Marina::default().operator(), async |stage| {
        stage.stop().await;
        let held_by = async |stage: &Stage, name: &str| {
            let held = async || {
                let lease = stage.api::<Lease>().get_opt("operator").await.unwrap();
                let holder = lease.and_then(|lease| lease.spec?.holder_identity);
                holder.is_some_and(|holder| holder.starts_with(name))
            };
            stage.until(&format!("{name} to lead"), held).await;
        };
        stage.replica("replica-a");
        held_by(stage, "replica-a").await;
        stage.replica("replica-b");
        stage.apply(&boat(json!({"text": "one"}))).await;
        until_text(stage, "ada", "one").await;
        stage.kill_replica("replica-a");
        stage.apply(&boat(json!({"text": "two"}))).await;
        until_text(stage, "ada", "two").await;
        held_by(stage, "replica-b").await;
        stage.replica("replica-c");
        stage.stop_replica("replica-b").await;
        stage.apply(&boat(json!({"text": "three"}))).await;
        until_text(stage, "ada", "three").await;
        held_by(stage, "replica-c").await;
    })
    .await;
}
