//! The annotations that work for every operator.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass::annotation;
use windlass_testkit::Harbour;

use super::boat::{Boat, Marina, boat};

async fn annotate(harbour: &Harbour, name: &str, value: Value) {
    let patch = json!({"metadata": {"annotations": {name: value}}});
    let merge = PatchParams::default();
    harbour.api::<Boat>().patch("ada", &merge, &Patch::Merge(patch)).await.unwrap();
}

async fn text(harbour: &Harbour, name: &str) -> Option<String> {
    let map = harbour.api::<ConfigMap>().get_opt(name).await.unwrap()?;
    map.data?.remove("text")
}

#[tokio::test(start_paused = true)]
async fn a_paused_primary_is_left_alone_and_says_so() {
    let mut harbour = Harbour::start(Marina::default().operator()).await;
    harbour.apply(&boat(json!({"text": "one"}))).await;
    harbour.ready().await;
    annotate(&harbour, annotation::PAUSED, "true".into()).await;
    harbour.condition("Paused", "True").await;
    harbour.apply(&boat(json!({"text": "two"}))).await;
    harbour.api::<ConfigMap>().delete("ada", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(text(&harbour, "ada").await, None);
    let before = harbour.revision();
    harbour.restart().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(harbour.revision(), before, "paused means no writes");
    annotate(&harbour, annotation::PAUSED, Value::Null).await;
    harbour.ready().await;
    assert_eq!(text(&harbour, "ada").await.as_deref(), Some("two"));
    let ada = harbour.api::<Boat>().get("ada").await.unwrap();
    assert!(ada.status.unwrap().conditions.iter().all(|one| one.type_ != "Paused"));
}

#[tokio::test(start_paused = true)]
async fn an_ignored_dependent_is_left_alone_and_the_others_are_not() {
    let mut harbour = Harbour::start(Marina::default().operator()).await;
    harbour.apply(&boat(json!({"text": "one", "logbook": "log"}))).await;
    harbour.ready().await;
    annotate(&harbour, annotation::IGNORE, "ConfigMap/ada".into()).await;
    harbour.apply(&boat(json!({"text": "two", "logbook": "log"}))).await;
    harbour.api::<ConfigMap>().delete("log", &DeleteParams::default()).await.unwrap();
    harbour.settle().await;
    assert_eq!(text(&harbour, "ada").await.as_deref(), Some("one"));
    assert_eq!(text(&harbour, "log").await.as_deref(), Some("log"));
    let ada = harbour.api::<Boat>().get("ada").await.unwrap().status.unwrap();
    let entry = ada.dependents.iter().find(|one| one.dependent_name == "ada").unwrap();
    assert_eq!(entry.reason, "Ignored");
    annotate(&harbour, annotation::IGNORE, Value::Null).await;
    harbour.settle().await;
    assert_eq!(text(&harbour, "ada").await.as_deref(), Some("two"));
}

#[tokio::test(start_paused = true)]
async fn what_exists_is_taken_over_only_when_asked() {
    let mut harbour = Harbour::start(Marina::default().operator()).await;
    let theirs: ConfigMap = serde_json::from_value(
        json!({"metadata": {"name": "ada"}, "data": {"text": "theirs", "own": "kept"}}),
    )
    .unwrap();
    harbour.api::<ConfigMap>().create(&PostParams::default(), &theirs).await.unwrap();
    harbour.apply(&boat(json!({"text": "ours"}))).await;
    let degraded = harbour.condition("Degraded", "True").await;
    let message = degraded["message"].as_str().unwrap();
    assert!(message.contains("windlass.dev/adopt: ConfigMap/ada"), "{message}");
    assert_eq!(text(&harbour, "ada").await.as_deref(), Some("theirs"));
    annotate(&harbour, annotation::ADOPT, "ConfigMap/ada".into()).await;
    harbour.ready().await;
    let map = harbour.api::<ConfigMap>().get("ada").await.unwrap();
    assert_eq!(map.data.unwrap()["own"], "kept", "fields that the plan does not name stay");
    assert_eq!(map.metadata.owner_references.unwrap().len(), 1);
    assert_eq!(text(&harbour, "ada").await.as_deref(), Some("ours"));
}

#[tokio::test(start_paused = true)]
async fn a_fight_with_somebody_who_only_removes_fields_ends_too() {
    let mut harbour = Harbour::start(Marina::default().operator()).await;
    harbour.apply(&boat(json!({"text": "ours"}))).await;
    harbour.ready().await;
    let gone = Patch::Merge(json!({"data": {"text": null}}));
    let rival = PatchParams { field_manager: Some("rival".into()), ..PatchParams::default() };
    for _ in 0..10 {
        harbour.api::<ConfigMap>().patch("ada", &rival, &gone).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let degraded = harbour.condition("Degraded", "True").await;
    let message = degraded["message"].as_str().unwrap();
    assert!(message.contains("is changed back again and again by somebody who removes fields"), "{message}");
    assert_eq!(text(&harbour, "ada").await, None, "it was not given up");
}

#[tokio::test(start_paused = true)]
async fn force_ends_a_fight_in_our_favour() {
    let mut harbour = Harbour::start(Marina::default().operator()).await;
    harbour.apply(&boat(json!({"text": "ours"}))).await;
    harbour.ready().await;
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ada"}, "data": {"text": "theirs"}});
    let rival = PatchParams::apply("rival").force();
    for _ in 0..10 {
        harbour.api::<ConfigMap>().patch("ada", &rival, &Patch::Apply(&theirs)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let degraded = harbour.condition("Degraded", "True").await;
    assert!(degraded["message"].as_str().unwrap().contains("rival"), "{degraded}");
    assert_eq!(text(&harbour, "ada").await.as_deref(), Some("theirs"));
    annotate(&harbour, annotation::FORCE, "2026-01-01".into()).await;
    harbour.ready().await;
    assert_eq!(text(&harbour, "ada").await.as_deref(), Some("ours"));
}
