//! What a Checkup promises, as seen from outside: on the drydock, and with `WINDLASS_E2E_KUBECONFIG` on a real cluster.
//!
//! `tests/real.sh` at the root of the project starts such a cluster. Pods are simulated, and the test plays the checkup.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_drydock::node::Behaviour;
use windlass_kiagnose::{Checkup, CheckupSchedule, Phase, controller};
use windlass_testkit::{Stage, play};

/// An image that ends well after a while, and one that runs on.
const ENDS: &str = "e2e/ends";
const STAYS: &str = "e2e/stays";

async fn prepare(stage: &Stage) {
    let behaviours = stage.cluster().behaviours();
    behaviours.set(ENDS, Behaviour::Exit { after: Duration::from_secs(3), code: 0 });
    behaviours.set(STAYS, Behaviour::Unready);
    stage.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: checker}}").await;
}

fn checkup(name: &str, change: Value) -> String {
    let mut spec =
        json!({"image": ENDS, "serviceAccountName": "checker", "timeout": "1m", "params": {"a": "b"}});
    for (field, value) in change.as_object().unwrap() {
        spec[field] = value.clone();
    }
    json!({"apiVersion": "kiagnose.io/v1alpha1", "kind": "Checkup", "metadata": {"name": name}, "spec": spec})
        .to_string()
}

async fn status(stage: &Stage, name: &str) -> windlass_kiagnose::CheckupStatus {
    stage.api::<Checkup>().get(name).await.unwrap().status.unwrap_or_default()
}

async fn running(stage: &Stage, name: &str) {
    let pods = stage.api::<Pod>();
    let selector = kube::api::ListParams::default().labels(&format!("kiagnose.io/checkup={name}"));
    stage
        .until("a pod that runs", async || {
            let all = pods.list(&selector).await.unwrap().items;
            all.iter().any(|pod| pod.status.as_ref().unwrap().phase.as_deref() == Some("Running"))
        })
        .await;
}

/// Writes a verdict into the results of a Checkup that runs.
async fn say(stage: &Stage, name: &str, data: Value) -> kube::Result<ConfigMap> {
    let body = Patch::Merge(json!({"data": data}));
    stage.api::<ConfigMap>().patch(&format!("{name}-results"), &PatchParams::default(), &body).await
}

async fn ended(stage: &Stage, name: &str) -> (Phase, String) {
    stage.until("a verdict", async || status(stage, name).await.completion_time.is_some()).await;
    let status = status(stage, name).await;
    let said = status.common.conditions.iter().find(|one| one.type_ == "Succeeded").unwrap();
    (status.phase.unwrap(), said.reason.clone())
}

#[tokio::test]
async fn a_checkup_runs_is_judged_runs_again_and_goes() {
    play(controller, async |stage| {
        prepare(stage).await;
        stage.apply(&checkup("one", json!({}))).await;
        running(stage, "one").await;
        say(stage, "one", json!({"status.succeeded": "true", "status.result.answer": "42"})).await.unwrap();
        assert_eq!(ended(stage, "one").await, (Phase::Succeeded, "Succeeded".into()));
        assert_eq!(status(stage, "one").await.results["answer"], "42");
        assert!(say(stage, "one", json!({"status.succeeded": "false"})).await.is_err(), "it is frozen");
        let role = stage.api::<Role>().get("one-results-writer").await.unwrap();
        assert_eq!(role.rules.unwrap()[0].verbs, ["get"]);
        let change = Patch::Merge(json!({"spec": {"image": STAYS}}));
        let refused = stage.api::<Checkup>().patch("one", &PatchParams::default(), &change).await;
        assert!(refused.unwrap_err().to_string().contains("cannot change once the run has started"));
        let at_rest = stage.settle().await;
        stage.holds("rest", async || stage.objects().await == at_rest).await;

        let before = stage.api::<Job>().get("one").await.unwrap().metadata.uid;
        stage
            .change::<Checkup>("one", json!({"metadata": {"annotations": {"kiagnose.io/rerun": "1"}}}))
            .await;
        let again = async || stage.api::<Job>().get("one").await.is_ok_and(|job| job.metadata.uid != before);
        stage.until("another Job", again).await;
        running(stage, "one").await;
        say(stage, "one", json!({"status.succeeded": "false", "status.failureReason": "no"})).await.unwrap();
        assert_eq!(ended(stage, "one").await, (Phase::Failed, "CheckupFailed".into()));

        stage.api::<Checkup>().delete("one", &DeleteParams::default()).await.unwrap();
        let gone = async || {
            stage.names::<Checkup>().await.is_empty()
                && stage.names::<Job>().await.is_empty()
                && stage.names::<Pod>().await.is_empty()
                && stage.names::<Role>().await.is_empty()
                && stage.names::<RoleBinding>().await.is_empty()
                && stage.names::<ConfigMap>().await == ["kube-root-ca.crt"]
        };
        stage.until("nothing to be left", gone).await;
    })
    .await;
}

#[tokio::test]
async fn what_is_deleted_or_stopped_in_mid_run_is_a_failure_and_never_run_again() {
    play(controller, async |stage| {
        prepare(stage).await;
        for name in ["job", "map", "stop"] {
            stage.apply(&checkup(name, json!({"image": STAYS}))).await;
            running(stage, name).await;
        }
        stage.api::<Job>().delete("job", &DeleteParams::background()).await.unwrap();
        stage.api::<ConfigMap>().delete("map-results", &DeleteParams::default()).await.unwrap();
        stage.change::<Job>("stop", json!({"spec": {"suspend": true}})).await;
        assert_eq!(ended(stage, "job").await, (Phase::Failed, "JobDeleted".into()));
        assert_eq!(ended(stage, "map").await, (Phase::Failed, "ResultsDeleted".into()));
        assert_eq!(ended(stage, "stop").await, (Phase::Failed, "JobSuspended".into()));
        stage.until("the pods to stop", async || stage.names::<Pod>().await.is_empty()).await;
        stage.holds("nothing runs", async || stage.names::<Pod>().await.is_empty()).await;
    })
    .await;
}

#[tokio::test]
async fn the_server_keeps_the_record_of_a_run() {
    play(controller, async |stage| {
        prepare(stage).await;
        stage.apply(&checkup("one", json!({"image": STAYS}))).await;
        running(stage, "one").await;
        let before = status(stage, "one").await.run.unwrap();
        assert_eq!(before.job_uid, stage.api::<Job>().get("one").await.unwrap().metadata.uid);
        let change = Patch::Merge(json!({"status": {"run": {"jobUid": "another"}}}));
        let refused = stage.api::<Checkup>().patch_status("one", &PatchParams::default(), &change).await;
        assert!(refused.unwrap_err().to_string().contains("a Job that was recorded"));
    })
    .await;
}

#[tokio::test]
async fn a_service_account_is_waited_for_and_a_deadline_holds() {
    play(controller, async |stage| {
        prepare(stage).await;
        stage.api::<ServiceAccount>().delete("checker", &DeleteParams::default()).await.unwrap();
        stage.apply(&checkup("one", json!({"image": STAYS, "timeout": 8}))).await;
        let reason = async || {
            let conditions = status(stage, "one").await.common.conditions;
            conditions.into_iter().find(|one| one.type_ == "Succeeded").map(|one| one.reason)
        };
        stage.until("the reason", async || reason().await.as_deref() == Some("ServiceAccountMissing")).await;
        stage.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: checker}}").await;
        running(stage, "one").await;
        assert_eq!(ended(stage, "one").await, (Phase::Failed, "Timeout".into()));
    })
    .await;
}

#[tokio::test]
async fn a_schedule_makes_checkups() {
    play(controller, async |stage| {
        prepare(stage).await;
        let spec = json!({"schedule": "@every 5s", "concurrencyPolicy": "Forbid", "checkupTemplate": {"spec": {
            "image": ENDS, "serviceAccountName": "checker", "timeout": "1m"}}});
        let schedule = json!({"apiVersion": "kiagnose.io/v1alpha1", "kind": "CheckupSchedule",
            "metadata": {"name": "often"}, "spec": spec});
        stage.apply(&schedule.to_string()).await;
        stage.until("a Checkup", async || !stage.names::<Checkup>().await.is_empty()).await;
        let name = stage.names::<Checkup>().await.remove(0);
        assert_eq!(ended(stage, &name).await, (Phase::Failed, "NoResults".into()));
        stage.api::<CheckupSchedule>().delete("often", &DeleteParams::default()).await.unwrap();
        stage.until("them to go", async || stage.names::<Checkup>().await.is_empty()).await;
    })
    .await;
}
