//! What goes wrong, each with what is to be seen of it.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;
use windlass::Runtime;
use windlass_kiagnose::{Phase, controller};
use windlass_testkit::Harbour;

use super::play::{
    ACCOUNT, ENDS_WELL, checkup, ended, images, patch, play, reason, running, start, until_reason,
};

#[tokio::test(start_paused = true)]
async fn a_service_account_that_is_missing_is_waited_for() {
    let mut harbour = Harbour::start(controller).await;
    play(&harbour, ENDS_WELL);
    harbour.apply(&checkup("one", json!({}))).await;
    let waiting = until_reason(&harbour, "one", &["ServiceAccountMissing"]).await;
    assert_eq!(waiting.status.unwrap().phase, Some(Phase::Pending));
    assert!(harbour.names::<Job>().await.is_empty());
    tokio::time::sleep(Duration::from_secs(20)).await;
    harbour.put(ACCOUNT).await;
    assert_eq!(ended(&harbour, "one").await.status.unwrap().phase, Some(Phase::Succeeded));
}

#[tokio::test(start_paused = true)]
async fn a_service_account_that_never_comes_fails_at_the_timeout() {
    let mut harbour = Harbour::start(controller).await;
    let before = tokio::time::Instant::now();
    harbour.apply(&checkup("one", json!({}))).await;
    let done = ended(&harbour, "one").await;
    assert_eq!(reason(&done, "Failed"), ("True".into(), "ServiceAccountMissing".into()));
    assert!((59..75).contains(&before.elapsed().as_secs()), "{:?}", before.elapsed());
    harbour.put(ACCOUNT).await;
    harbour.settle().await;
    assert!(harbour.names::<Job>().await.is_empty(), "it is too late");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_pulled_is_said_before_the_timeout() {
    let mut harbour = start().await;
    harbour.apply(&checkup("one", json!({"image": "sim/nopull"}))).await;
    let now = until_reason(&harbour, "one", &["ErrImagePull", "ImagePullBackOff"]).await;
    let status = now.status.unwrap();
    assert_eq!(status.completion_time, None);
    let said = status.common.conditions.iter().find(|one| one.type_ == "Succeeded").unwrap();
    assert!(said.message.contains("sim/nopull"), "{}", said.message);
    assert_eq!(reason(&ended(&harbour, "one").await, "Succeeded").1, "Timeout");
}

#[tokio::test(start_paused = true)]
async fn a_job_deleted_in_mid_run_is_a_failure_and_not_run_again() {
    let mut harbour = start().await;
    play(&harbour, ENDS_WELL);
    harbour.apply(&checkup("one", json!({}))).await;
    running(&harbour, "one").await;
    harbour.api::<Job>().delete("one", &DeleteParams::background()).await.unwrap();
    assert_eq!(reason(&ended(&harbour, "one").await, "Failed"), ("True".into(), "JobDeleted".into()));
    harbour.restart().await;
    harbour.settle().await;
    assert!(harbour.names::<Job>().await.is_empty() && harbour.names::<Pod>().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_config_map_deleted_in_mid_run_is_a_failure_and_stops_the_job() {
    let mut harbour = start().await;
    harbour.apply(&checkup("one", json!({}))).await;
    running(&harbour, "one").await;
    harbour.api::<ConfigMap>().delete("one-results", &DeleteParams::default()).await.unwrap();
    assert_eq!(reason(&ended(&harbour, "one").await, "Failed"), ("True".into(), "ResultsDeleted".into()));
    harbour.settle().await;
    assert!(!harbour.names::<ConfigMap>().await.contains(&"one-results".to_owned()), "it is not made again");
    assert!(harbour.names::<Pod>().await.is_empty(), "what ran is stopped");
}

#[tokio::test(start_paused = true)]
async fn the_spec_cannot_change_once_it_runs() {
    let mut harbour = start().await;
    harbour.apply(&checkup("one", json!({"params": {"a": "b"}}))).await;
    running(&harbour, "one").await;
    for change in [json!({"image": "sim/other"}), json!({"params": {"a": "c"}}), json!({"timeout": "2m"})] {
        let refused = patch(&harbour, "one", json!({"spec": change})).await.err();
        let refused = refused.unwrap_or_else(|| panic!("{change} was taken"));
        assert!(
            refused.to_string().contains("cannot change once the run has started"),
            "{change}: {refused}"
        );
    }
    patch(&harbour, "one", json!({"metadata": {"labels": {"x": "y"}}})).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn params_that_are_wrong_are_said_and_can_be_put_right() {
    let mut harbour = start().await;
    play(&harbour, ENDS_WELL);
    for (params, wanted) in [
        (json!({"pod_uid": "x"}), "POD_UID is reserved"),
        (json!({"Kubernetes_Service_Host": "x"}), "is reserved"),
        (json!({"a b": "x"}), "is no name"),
        (json!({"a": "x", "A": "y"}), "differs from it in case only"),
        (json!({"a": 5}), "values must be strings"),
        (json!("[1, 2]"), "not a JSON object"),
    ] {
        patch_params(&mut harbour, params).await;
        let now = until_reason(&harbour, "one", &["InvalidParams"]).await;
        let message = |now: &windlass_kiagnose::Checkup| {
            let conditions = now.status.clone().unwrap().common.conditions;
            conditions.into_iter().find(|one| one.type_ == "Succeeded").unwrap().message
        };
        harbour
            .until(wanted, async || {
                message(&harbour.api::<windlass_kiagnose::Checkup>().get("one").await.unwrap())
                    .contains(wanted)
            })
            .await;
        assert_eq!(now.status.unwrap().phase, Some(Phase::Pending));
    }
    assert!(harbour.names::<Job>().await.is_empty());
    patch_params(&mut harbour, json!({"fine": "yes"})).await;
    assert_eq!(ended(&harbour, "one").await.status.unwrap().phase, Some(Phase::Succeeded));
}

async fn patch_params(harbour: &mut Harbour, params: serde_json::Value) {
    harbour.apply(&checkup("one", json!({"params": params}))).await;
}

#[tokio::test(start_paused = true)]
async fn two_controllers_at_once_make_one_run() {
    let mut harbour = start().await;
    play(&harbour, ENDS_WELL);
    let other = Runtime::new(harbour.drydock().client("another"), harbour.drydock().context().clone());
    tokio::spawn(other.host(controller()).run(std::future::pending()));
    harbour.apply(&checkup("one", json!({}))).await;
    assert_eq!(ended(&harbour, "one").await.status.unwrap().phase, Some(Phase::Succeeded));
    harbour.settle().await;
    let pods = harbour.list::<Pod>().await;
    assert_eq!(pods.len(), 1, "{:?}", pods.iter().map(|pod| pod.name_any()).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_objects_are_not_taken_over() {
    let mut harbour = start().await;
    images(&harbour);
    harbour
        .put(r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one-results"}, "data": {"mine": "yes"}}"#)
        .await;
    harbour.apply(&checkup("one", json!({}))).await;
    let degraded = harbour.condition("Degraded", "True").await;
    assert_eq!(degraded["reason"], "NotOurs");
    assert!(harbour.names::<Job>().await.is_empty());
    let map = harbour.api::<ConfigMap>().get("one-results").await.unwrap();
    assert_eq!(map.data.unwrap().len(), 1);
    harbour.api::<ConfigMap>().delete("one-results", &DeleteParams::default()).await.unwrap();
    running(&harbour, "one").await;
}
