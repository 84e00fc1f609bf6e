//! What goes wrong, each with what is to be seen of it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt as _};
use serde_json::json;
use windlass::Runtime;
use windlass_kiagnose::{Phase, controller};
use windlass_testkit::{Harbour, OPERATOR};

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

/// The uids of all Jobs that ever had a pod.
fn watch_runs(harbour: &Harbour) -> Arc<Mutex<BTreeSet<String>>> {
    let runs = Arc::<Mutex<BTreeSet<String>>>::default();
    let (seen, pods) = (Arc::clone(&runs), Api::<Pod>::all(harbour.client()));
    tokio::spawn(async move {
        let mut events =
            watcher::watcher(pods, watcher::Config::default().labels("kiagnose.io/checkup")).boxed();
        while let Some(event) = events.next().await {
            let Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) = event else { continue };
            let job = pod.labels()["batch.kubernetes.io/controller-uid"].clone();
            seen.lock().unwrap().insert(job);
        }
    });
    runs
}

#[tokio::test(start_paused = true)]
async fn a_job_deleted_after_a_crash_at_any_write_is_never_run_twice() {
    let (mut failed, mut well) = (0, 0);
    for point in 1.. {
        let mut harbour = start().await;
        harbour.settle().await;
        let runs = watch_runs(&harbour);
        play(&harbour, ENDS_WELL);
        harbour.drydock().faults().crash_after(OPERATOR, point);
        harbour.apply(&checkup("one", json!({}))).await;
        // Long enough for a pod to run, too short for it to end.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let crashed = harbour.drydock().faults().crashed();
        harbour.kill();
        let jobs = harbour.api::<Job>();
        let gone = jobs.delete("one", &DeleteParams::background()).await.is_ok();
        tokio::time::sleep(Duration::from_secs(60)).await;
        harbour.drydock().faults().clear();
        harbour.run();
        let done = ended(&harbour, "one").await;
        let said = reason(&done, "Succeeded").1;
        assert!(runs.lock().unwrap().len() <= 1, "crash after write {point}: {said}, two Jobs have run");
        match said.as_str() {
            "JobDeleted" => failed += usize::from(gone),
            "Succeeded" => well += 1,
            other => panic!("crash after write {point}: {other}"),
        }
        if !crashed {
            break;
        }
    }
    assert!(failed > 1 && well > 3, "{failed} lost their Job in time, {well} had not started");
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_sees_an_old_state_takes_no_other_job_for_the_recorded_one() {
    let mut harbour = start().await;
    harbour.apply(&checkup("one", json!({}))).await;
    running(&harbour, "one").await;
    let before = harbour.api::<windlass_kiagnose::Checkup>().get("one").await.unwrap();
    for job in [json!("another"), json!(null)] {
        let change = json!({"status": {"run": {"jobUid": job}}});
        let checkups = harbour.api::<windlass_kiagnose::Checkup>();
        let refused = checkups.patch_status("one", &PatchParams::default(), &Patch::Merge(change)).await;
        assert!(refused.unwrap_err().to_string().contains("a Job that was recorded"));
    }
    let now = harbour.api::<windlass_kiagnose::Checkup>().get("one").await.unwrap();
    assert_eq!(now.status, before.status);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_somebody_suspends_is_not_resumed() {
    let mut harbour = start().await;
    let runs = watch_runs(&harbour);
    harbour.apply(&checkup("one", json!({"image": "sim/hang"}))).await;
    running(&harbour, "one").await;
    let stop = json!({"spec": {"suspend": true}});
    harbour.api::<Job>().patch("one", &PatchParams::default(), &Patch::Merge(stop)).await.unwrap();
    assert_eq!(reason(&ended(&harbour, "one").await, "Failed"), ("True".into(), "JobSuspended".into()));
    harbour.settle().await;
    assert!(harbour.names::<Pod>().await.is_empty() && runs.lock().unwrap().len() == 1);
}

#[tokio::test(start_paused = true)]
async fn a_spec_changed_at_the_last_moment_is_the_one_that_runs() {
    // Whatever write it comes after, what runs is what the spec says.
    for point in 1..8 {
        let mut harbour = start().await;
        let runs = watch_runs(&harbour);
        play(&harbour, ENDS_WELL);
        harbour.drydock().faults().crash_after(OPERATOR, point);
        harbour.apply(&checkup("one", json!({}))).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        harbour.kill();
        let changed = patch(&harbour, "one", json!({"spec": {"params": {"late": "yes"}}})).await.is_ok();
        harbour.drydock().faults().clear();
        harbour.run();
        assert_eq!(ended(&harbour, "one").await.status.unwrap().phase, Some(Phase::Succeeded));
        let job = harbour.api::<Job>().get("one").await.unwrap();
        let env = job.spec.unwrap().template.spec.unwrap().containers[0].env.clone().unwrap();
        assert_eq!(env.iter().any(|one| one.name == "LATE"), changed, "changed after write {point}");
        assert_eq!(runs.lock().unwrap().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_of_somebody_else_is_in_the_way_and_said() {
    let mut harbour = start().await;
    play(&harbour, ENDS_WELL);
    harbour
        .put(
            r#"{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, "spec": {"suspend": true,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "sim/hang"}]}}}}"#,
        )
        .await;
    harbour.apply(&checkup("one", json!({}))).await;
    until_reason(&harbour, "one", &["NotOurs"]).await;
    harbour.api::<Job>().delete("one", &DeleteParams::background()).await.unwrap();
    assert_eq!(ended(&harbour, "one").await.status.unwrap().phase, Some(Phase::Succeeded));
}
