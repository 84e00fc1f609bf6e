//! `config.yaml` and its Jobs: behaviours 3, 5 and 6.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, ResourceQuota};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use windlass_drydock::node::Behaviour;
use windlass_monocle::{Monocle, operator};
use windlass_testkit::{Stage, play};

use super::{IMAGE, monocle, revisions, rollouts};

async fn edit(stage: &Stage, text: &str) {
    stage.change::<ConfigMap>("m-api", json!({"data": {"config.yaml": text}})).await;
}

fn is_finished(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|c| matches!(c.type_.as_str(), "Complete" | "Failed") && c.status == "True")
}

async fn until_recorded(stage: &Stage, run: i64) {
    let recorded = async || {
        let status = stage.api::<Monocle>().get("m").await.unwrap().status.unwrap();
        status.identities.is_some_and(|identities| identities.run >= run)
    };
    stage.until("the Job to be recorded", recorded).await;
}

#[tokio::test]
async fn each_content_runs_one_job_and_never_two_at_once() {
    play(operator, async |stage| {
        stage.apply(&monocle("m", json!({}))).await;
        stage.ready::<Monocle>("m").await;
        edit(stage, "workspaces:\n  - name: one\n").await;
        edit(stage, "workspaces:\n  - name: two\n").await;
        let done = async || {
            let jobs = stage.list::<Job>().await;
            assert!(jobs.iter().filter(|job| !is_finished(job)).count() <= 1, "two Jobs at once");
            !jobs.is_empty() && jobs.iter().all(is_finished)
        };
        stage.until("the Jobs to be done", done).await;
        stage.settle().await;
        assert!(done().await);
        let jobs = stage.list::<Job>().await;
        assert!((1..=2).contains(&jobs.len()), "{} Jobs", jobs.len());
        // Such details of the status are written at leisure.
        let last = windlass::content_hash("workspaces:\n  - name: two\n");
        let recorded = async || {
            let status = stage.api::<Monocle>().get("m").await.unwrap().status.unwrap();
            status.identities.is_some_and(|identities| identities.content_hash == last)
        };
        stage.until("the last content to be recorded", recorded).await;
        assert_eq!(rollouts(stage).await, revisions("1", "1"), "pods are not restarted for a config");
        stage.ready::<Monocle>("m").await;
    })
    .await;
}

#[tokio::test]
async fn a_job_that_the_quota_denies_is_tried_again() {
    play(operator, async |stage| {
        stage.apply(&monocle("m", json!({}))).await;
        stage.ready::<Monocle>("m").await;
        let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"count/jobs.batch": "0"}}});
        stage.apply(&quota.to_string()).await;
        let known = async || {
            let quota = stage.api::<ResourceQuota>().get("none").await.unwrap();
            quota.status.and_then(|status| status.hard).is_some()
        };
        stage.until("the quota to be known", known).await;
        edit(stage, "workspaces:\n  - name: one\n").await;
        let degraded = stage.condition::<Monocle>("m", "Degraded", "True").await;
        assert!(degraded["message"].as_str().unwrap().contains("exceeded quota: none"), "{degraded}");
        stage.api::<ResourceQuota>().delete("none", &DeleteParams::default()).await.unwrap();
        stage.condition::<Monocle>("m", "Degraded", "False").await;
        until_recorded(stage, 1).await;
        stage.ready::<Monocle>("m").await;
        assert_eq!(stage.names::<Job>().await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_failed_job_shows_and_the_next_content_mends_it() {
    play(operator, async |stage| {
        let image = format!("{IMAGE}:fails-{}", stage.namespace());
        stage.apply(&monocle("m", json!({"image": image}))).await;
        stage.ready::<Monocle>("m").await;
        let behaviours = stage.cluster().behaviours();
        behaviours.set(&image, Behaviour::Exit { after: Duration::from_secs(1), code: 3 });
        edit(stage, "workspaces:\n  - name: one\n").await;
        let degraded = stage.condition::<Monocle>("m", "Degraded", "True").await;
        assert_eq!(degraded["reason"], "IdentitiesFailed");
        stage.settle().await;
        assert_eq!(stage.names::<Job>().await.len(), 1, "it is not run again");
        behaviours.remove(&image);
        edit(stage, "workspaces:\n  - name: two\n").await;
        stage.condition::<Monocle>("m", "Degraded", "False").await;
    })
    .await;
}

#[tokio::test]
async fn a_config_that_does_not_parse_is_reported_with_its_line_and_nothing_runs() {
    play(operator, async |stage| {
        stage.apply(&monocle("m", json!({}))).await;
        stage.ready::<Monocle>("m").await;
        edit(stage, "workspaces:\n  - name: [broken\n").await;
        let degraded = stage.condition::<Monocle>("m", "Degraded", "True").await;
        assert!(degraded["message"].as_str().unwrap().contains("line"), "{degraded}");
        stage.settle().await;
        assert!(stage.names::<Job>().await.is_empty());
        assert_eq!(rollouts(stage).await, revisions("1", "1"));
    })
    .await;
}

#[tokio::test]
async fn a_deleted_config_is_reported_and_not_reset() {
    play(operator, async |stage| {
        stage.apply(&monocle("m", json!({}))).await;
        stage.ready::<Monocle>("m").await;
        edit(stage, "workspaces:\n  - name: mine\n").await;
        until_recorded(stage, 1).await;
        stage.api::<ConfigMap>().delete("m-api", &DeleteParams::default()).await.unwrap();
        let degraded = stage.condition::<Monocle>("m", "Degraded", "True").await;
        assert_eq!(degraded["reason"], Value::from("Deleted"));
        stage.stop().await;
        stage.run();
        stage.settle().await;
        assert_eq!(stage.names::<ConfigMap>().await, ["kube-root-ca.crt"], "not silently made again");
    })
    .await;
}
