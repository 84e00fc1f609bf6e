//! The words of a dependent's configuration, each with its effect.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass_testkit::Harbour;

use super::boat::{Boat, Marina, boat};

#[tokio::test(start_paused = true)]
async fn an_unowned_dependent_outlives_its_primary_and_is_found_again() {
    let mut harbour = Harbour::start(Marina::default().operator()).await;
    harbour.apply(&boat(json!({"logbook": "log"}))).await;
    harbour.ready().await;
    let log = harbour.api::<ConfigMap>().get("log").await.unwrap();
    assert!(log.metadata.owner_references.is_none());
    harbour.api::<Boat>().delete("ada", &DeleteParams::background()).await.unwrap();
    harbour.settle().await;
    assert_eq!(harbour.names::<ConfigMap>().await, ["kube-root-ca.crt", "log"]);
    // The next of this name goes on with it; one of another name does not.
    harbour.apply(&boat(json!({"logbook": "log"}))).await;
    harbour.ready().await;
    let other = boat(json!({"logbook": "log"})).replace("\"ada\"", "\"eve\"");
    harbour.apply(&other).await;
    harbour
        .until("the other to be refused", async || {
            let eve = harbour.api::<Boat>().get("eve").await.unwrap().status.unwrap_or_default();
            eve.conditions.iter().any(|one| one.message.contains("belongs to Boat default/ada"))
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_dependent_that_others_make_is_waited_for_and_changed() {
    let mut harbour = Harbour::start(Marina::default().operator()).await;
    harbour.apply(&boat(json!({"pier": "pier"}))).await;
    harbour.condition("Progressing", "True").await;
    assert_eq!(harbour.names::<Service>().await, ["kubernetes"]);
    let pier: Service =
        serde_json::from_value(json!({"metadata": {"name": "pier"}, "spec": {"ports": [{"port": 80}]}}))
            .unwrap();
    harbour.api::<Service>().create(&PostParams::default(), &pier).await.unwrap();
    harbour.ready().await;
    let pier = harbour.api::<Service>().get("pier").await.unwrap();
    assert!(pier.metadata.owner_references.is_none() && pier.metadata.labels.is_none());
    assert_eq!(pier.spec.unwrap().session_affinity.as_deref(), Some("ClientIP"));
    harbour.api::<Boat>().delete("ada", &DeleteParams::background()).await.unwrap();
    harbour.settle().await;
    assert_eq!(harbour.names::<Service>().await, ["kubernetes", "pier"]);
}

#[tokio::test(start_paused = true)]
async fn an_unwatched_dependent_is_put_back_only_when_something_else_plans() {
    let mut harbour = Harbour::start(Marina::default().operator()).await;
    harbour.apply(&boat(json!({"text": "one", "unwatched": true}))).await;
    harbour.ready().await;
    let edit = json!({"data": {"text": "edited"}});
    let maps = harbour.api::<ConfigMap>();
    maps.patch("ada", &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(maps.get("ada").await.unwrap().data.unwrap()["text"], "edited");
    harbour.apply(&boat(json!({"text": "one", "unwatched": true, "length": 1}))).await;
    harbour.settle().await;
    assert_eq!(maps.get("ada").await.unwrap().data.unwrap()["text"], "one");
}
