//! Checkups on the drydock, in virtual time: pods are simulated, and the test plays the checkup.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "life/faults.rs"]
mod faults;
#[path = "life/going.rs"]
mod going;
#[path = "life/many.rs"]
mod many;
#[path = "life/play.rs"]
mod play;
#[path = "life/schedules.rs"]
mod schedules;
#[path = "life/security.rs"]
mod security;
#[path = "life/verdicts.rs"]
mod verdicts;

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use windlass_kiagnose::{Phase, controller};
use windlass_testkit::Matrix;

use play::{ACCOUNT, ENDS_WELL, checkup, ended, patch, play, reason, running, start};

const SAMPLE: &str = r#"{"apiVersion": "kiagnose.io/v1alpha1", "kind": "Checkup", "metadata": {"name": "one"},
    "spec": {"image": "sim/ok", "serviceAccountName": "checker", "timeout": "1m", "params": {"a": "b"}}}"#;

#[tokio::test(start_paused = true)]
async fn a_run_is_made_judged_and_then_silent() {
    let mut harbour = start().await;
    play(&harbour, ENDS_WELL);
    harbour.apply(SAMPLE).await;
    running(&harbour, "one").await;
    let map = harbour.api::<ConfigMap>().get("one-results").await.unwrap();
    let data = map.data.clone().unwrap();
    assert_eq!((data["spec.timeout"].as_str(), data["spec.param.a"].as_str()), ("1m0s", "b"));
    let job = harbour.api::<Job>().get("one").await.unwrap().spec.unwrap();
    assert_eq!((job.backoff_limit, job.active_deadline_seconds), (Some(0), Some(70)));
    let pod = job.template.spec.unwrap();
    assert_eq!(pod.restart_policy.as_deref(), Some("Never"));
    let names: Vec<_> = pod.containers[0].env.iter().flatten().map(|one| one.name.as_str()).collect();
    for wanted in [
        "RESULT_CONFIGMAP_NAMESPACE",
        "RESULT_CONFIGMAP_NAME",
        "CHECKUP_UID",
        "CONFIGMAP_NAMESPACE",
        "CONFIGMAP_NAME",
        "POD_UID",
        "A",
    ] {
        assert!(names.contains(&wanted), "{wanted} in {names:?}");
    }

    let done = ended(&harbour, "one").await;
    let status = done.status.clone().unwrap();
    assert_eq!(status.phase, Some(Phase::Succeeded), "{status:?}");
    assert_eq!(status.results["answer"], "42");
    assert!(status.start_time.is_some() && status.completion_time.is_some() && status.duration.is_some());
    assert_eq!(reason(&done, "Succeeded"), ("True".into(), "Succeeded".into()));
    assert_eq!(reason(&done, "Failed").0, "False");
    harbour.ready().await;
    assert_eq!(harbour.names::<Job>().await, ["one"], "everything stays");
    assert_eq!(harbour.names::<RoleBinding>().await, ["one-results-writer"]);
    let role = harbour.api::<Role>().get("one-results-writer").await.unwrap();
    assert_eq!(role.rules.unwrap()[0].verbs, ["get"]);
    assert_eq!(harbour.api::<ConfigMap>().get("one-results").await.unwrap().immutable, Some(true));

    let work = harbour.requests();
    let total: u64 = work.values().sum();
    assert!(total <= 10, "{total} requests: {work:?}");
    harbour.settle().await;
    let before = harbour.revision();
    harbour.restart().await;
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert_eq!(harbour.revision(), before, "nothing is written at rest, nor by a restart");
}

#[tokio::test(start_paused = true)]
async fn the_config_map_is_the_checkups_alone_while_it_runs() {
    let mut harbour = start().await;
    harbour.apply(SAMPLE).await;
    running(&harbour, "one").await;
    let before = harbour.api::<ConfigMap>().get("one-results").await.unwrap();
    // Everything that could tempt the controller to put it right.
    let spoil = json!({"metadata": {"labels": null, "ownerReferences": null}, "data": {"spec.param.a": "spoiled",
        "status.succeeded": "true", "status.result.x": "y"}});
    let spoilt =
        play::as_checkup(&harbour).patch("one-results", &PatchParams::default(), &Patch::Merge(spoil)).await;
    let spoilt = spoilt.unwrap();
    harbour.restart().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let now = harbour.api::<ConfigMap>().get("one-results").await.unwrap();
    assert_eq!(now.resource_version(), spoilt.resource_version(), "it was touched");
    let done = ended(&harbour, "one").await;
    assert_eq!(done.status.unwrap().results["x"], "y");
    let now = harbour.api::<ConfigMap>().get("one-results").await.unwrap();
    assert_eq!((now.uid(), now.immutable), (before.uid(), Some(true)));
    assert_eq!(now.owner_references().len(), 1, "what the checkup did to its owner is put right");
}

#[tokio::test(start_paused = true)]
async fn another_run_by_annotation() {
    let mut harbour = start().await;
    play(&harbour, ENDS_WELL);
    harbour.apply(SAMPLE).await;
    ended(&harbour, "one").await;
    let before = harbour.api::<Job>().get("one").await.unwrap().uid();
    patch(&harbour, "one", json!({"metadata": {"annotations": {"kiagnose.io/rerun": "1"}}})).await.unwrap();
    harbour
        .until("the other run to be over", async || {
            let now = harbour.api::<windlass_kiagnose::Checkup>().get("one").await.unwrap();
            let run = now.status.clone().unwrap();
            run.phase == Some(Phase::Succeeded) && run.run.unwrap().rerun.as_deref() == Some("1")
        })
        .await;
    assert_ne!(harbour.api::<Job>().get("one").await.unwrap().uid(), before, "another Job");
    harbour.settle().await;
    let revision = harbour.revision();
    patch(&harbour, "one", json!({"metadata": {"labels": {"x": "y"}}})).await.unwrap();
    harbour.settle().await;
    assert_eq!(harbour.revision(), revision + 1, "the same value starts no other run");
}

#[tokio::test(start_paused = true)]
async fn no_crash_stale_read_or_broken_watch_leaves_another_world() {
    let matrix = Matrix::new(controller, &[SAMPLE]).beside(ACCOUNT);
    matrix.companion(|harbour| play(harbour, ENDS_WELL)).run().await;
}

#[tokio::test(start_paused = true)]
async fn both_forms_of_params_and_of_timeouts() {
    let mut harbour = start().await;
    let text = json!({"params": "{\"message\": \"$(POD_UID) costs $5\"}", "timeout": 90});
    harbour.apply(&checkup("one", text)).await;
    running(&harbour, "one").await;
    let data = harbour.api::<ConfigMap>().get("one-results").await.unwrap().data.unwrap();
    assert_eq!(data["spec.param.message"], "$(POD_UID) costs $5");
    assert_eq!(data["spec.timeout"], "1m30s");
    let pods = harbour.list::<Pod>().await;
    let env = pods[0].spec.clone().unwrap().containers[0].env.clone().unwrap();
    let message = env.iter().find(|one| one.name == "MESSAGE").unwrap();
    assert_eq!(message.value.as_deref(), Some("$$(POD_UID) costs $$5"), "nothing is expanded in it");
    for wrong in [
        json!({"timeout": 5, "timeoutSeconds": 5}),
        json!({"timeout": null}),
        json!({"timeout": "soon"}),
        json!({"timeout": 0}),
        json!({"timeout": "10ms"}),
        json!({"serviceAccountName": "default"}),
    ] {
        let refused = play::try_apply(&harbour, &checkup("two", wrong.clone())).await;
        assert!(refused.is_err(), "{wrong}");
    }
}
