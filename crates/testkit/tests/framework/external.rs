//! External dependents, finalizers and cleanup.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use windlass_testkit::Harbour;

use super::boat::{Boat, Marina, boat};

#[tokio::test(start_paused = true)]
async fn an_external_thing_is_made_read_kept_and_removed() {
    let marina = Marina::default();
    let mut harbour = Harbour::start(marina.operator()).await;
    harbour.apply(&boat(json!({"berth": "b1", "length": 12}))).await;
    harbour.ready().await;
    assert_eq!(marina.berth("b1"), Some(12));
    let fact = harbour.api::<ConfigMap>().get("ada-berth").await.unwrap();
    assert_eq!(fact.data.unwrap()["text"], "12", "the plan reads what is there");

    let status = harbour.api::<Boat>().get("ada").await.unwrap().status.unwrap();
    let berth = status.dependents.iter().find(|one| one.dependent_type == "Berth").unwrap();
    assert_eq!((berth.dependent_name.as_str(), berth.attributes["length"].as_str()), ("b1", "12"));

    // Drift is put back at the next look.
    marina.berths.lock().unwrap().insert("b1".into(), 3);
    harbour.until("the berth to be put back", async || marina.berth("b1") == Some(12)).await;

    // Another id: the new one is made, the old one removed.
    harbour.apply(&boat(json!({"berth": "b2", "length": 12}))).await;
    harbour.settle().await;
    assert_eq!((marina.berth("b1"), marina.berth("b2")), (None, Some(12)));

    // None: the finalizer is gone with the last.
    harbour.apply(&boat(json!({"text": "x"}))).await;
    harbour.settle().await;
    assert_eq!(marina.berth("b2"), None);
    let ada = harbour.api::<Boat>().get("ada").await.unwrap();
    assert!(ada.metadata.finalizers.is_none() && ada.metadata.annotations.is_none(), "{:?}", ada.metadata);
}

#[tokio::test(start_paused = true)]
async fn a_notified_thing_needs_no_polling() {
    let marina = Marina { polled: false, ..Marina::default() };
    let mut harbour = Harbour::start(marina.operator()).await;
    harbour.apply(&boat(json!({"berth": "b1", "length": 12}))).await;
    harbour.ready().await;
    marina.berths.lock().unwrap().remove("b1");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(marina.berth("b1"), None, "nobody has looked");
    marina.told.send("b1".into()).unwrap();
    harbour.until("the berth to be made again", async || marina.berth("b1") == Some(12)).await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_external_is_a_condition_and_is_tried_again() {
    let marina = Marina::default();
    let mut harbour = Harbour::start(marina.operator()).await;
    *marina.closed.lock().unwrap() = Some("the marina is closed".into());
    harbour.apply(&boat(json!({"berth": "b1", "length": 12}))).await;
    let degraded = harbour.condition("Degraded", "True").await;
    assert_eq!(degraded["message"], "Berth b1: failed to apply Berth b1: the marina is closed");
    *marina.closed.lock().unwrap() = None;
    harbour.ready().await;
}

#[tokio::test(start_paused = true)]
async fn deletion_waits_for_the_cleanup_and_says_so() {
    let marina = Marina::default();
    let mut harbour = Harbour::start(marina.operator()).await;
    harbour.apply(&boat(json!({"berth": "b1", "length": 12}))).await;
    harbour.ready().await;
    *marina.closed.lock().unwrap() = Some("the marina is closed".into());
    harbour.api::<Boat>().delete("ada", &DeleteParams::default()).await.unwrap();
    harbour
        .until("the failure to be reported", async || {
            let ada = harbour.api::<Boat>().get("ada").await.unwrap();
            ada.status.unwrap().conditions.iter().any(|one| one.message.contains("failed to remove Berth b1"))
        })
        .await;
    *marina.closed.lock().unwrap() = None;
    harbour.until("it to be gone", async || harbour.names::<Boat>().await.is_empty()).await;
    assert_eq!(marina.berth("b1"), None);
}

#[tokio::test(start_paused = true)]
async fn no_crash_leaves_an_external_thing_behind() {
    for point in 1..12 {
        let marina = Marina::default();
        let mut harbour = Harbour::start(marina.operator()).await;
        harbour.drydock().faults().crash_after(windlass_testkit::OPERATOR, point);
        harbour.apply(&boat(json!({"berth": "b1", "length": 12}))).await;
        harbour.settle().await;
        harbour.kill();
        harbour.drydock().faults().clear();
        // It goes, and its id changes, while no operator runs.
        harbour.apply(&boat(json!({"berth": "b2", "length": 12}))).await;
        harbour.api::<Boat>().delete("ada", &DeleteParams::default()).await.unwrap();
        harbour.run();
        harbour.until("it to be gone", async || harbour.names::<Boat>().await.is_empty()).await;
        assert_eq!(marina.berths.lock().unwrap().len(), 0, "left behind after a crash at write {point}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_garbage_collection_cannot_reach_is_cleaned_up() {
    let mut harbour = Harbour::start(Marina::default().operator()).await;
    harbour.apply(r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}}"#).await;
    let mut harbour = forget(harbour, json!({"elsewhere": "far", "text": "hello"})).await;
    let far: kube::Api<ConfigMap> = kube::Api::namespaced(harbour.client(), "far");
    harbour.until("the ConfigMap over there", async || far.get_opt("ada").await.unwrap().is_some()).await;
    // Drift over there is seen.
    let edit = json!({"data": {"text": "edited"}});
    far.patch("ada", &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
    harbour
        .until("the ConfigMap to be put back", async || {
            far.get("ada").await.unwrap().data.unwrap()["text"] == "hello"
        })
        .await;
    harbour.restart().await;
    harbour.api::<Boat>().delete("ada", &DeleteParams::default()).await.unwrap();
    harbour.until("it to be gone", async || harbour.names::<Boat>().await.is_empty()).await;
    assert!(far.get_opt("ada").await.unwrap().is_none());
}

async fn forget(mut harbour: Harbour, spec: serde_json::Value) -> Harbour {
    harbour.apply(&boat(spec)).await;
    harbour
}
