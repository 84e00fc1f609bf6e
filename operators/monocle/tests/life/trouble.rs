//! What goes wrong is said soon, and is over when its cause is.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, ResourceQuota};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use windlass_drydock::node::Behaviour;
use windlass_monocle::operator;
use windlass_testkit::Harbour;

use super::changes::{image, monocle};

async fn edit_config(harbour: &Harbour, text: &str) {
    let data = json!({"data": {"config.yaml": text}});
    let merge = PatchParams::default();
    harbour.api::<ConfigMap>().patch("m-api", &merge, &Patch::Merge(data)).await.unwrap();
}

/// Lets a quota allow so many Jobs, and waits until it is in force.
async fn allow_jobs(harbour: &Harbour, number: &str) {
    let spec = json!({"hard": {"count/jobs.batch": number}});
    let quota =
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "jobs"}, "spec": spec});
    harbour.put(&quota.to_string()).await;
    harbour
        .until("the quota to be in force", async || {
            let status = harbour.api::<ResourceQuota>().get("jobs").await.unwrap().status.unwrap_or_default();
            status.hard.is_some_and(|hard| hard["count/jobs.batch"].0 == number)
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_bad_image_is_degraded_soon_and_the_old_api_goes_on_serving() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&monocle(json!({}))).await;
    harbour.ready().await;
    harbour.behaviours().set("*monocle:bad", Behaviour::Unpullable);
    let start = tokio::time::Instant::now();
    harbour.apply(&monocle(json!({"image": "quay.io/change-metrics/monocle:bad"}))).await;
    let degraded = harbour.condition("Degraded", "True").await;
    assert!(start.elapsed() < Duration::from_secs(120), "said only after {:?}", start.elapsed());
    let message = degraded["message"].as_str().unwrap();
    assert!(message.contains("monocle:bad"), "{message}");
    let api = harbour.api::<Deployment>().get("m-api").await.unwrap();
    assert_eq!(api.status.unwrap().available_replicas, Some(1), "the old API serves");
    assert!(image(&harbour, "m-crawler").await.ends_with(":1.9.0"), "the crawler is not touched");

    harbour.apply(&monocle(json!({}))).await;
    harbour.condition("Degraded", "False").await;
    harbour.ready().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_denied_is_tried_again() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&monocle(json!({}))).await;
    harbour.ready().await;
    allow_jobs(&harbour, "0").await;
    edit_config(&harbour, "workspaces:\n  - name: one\n").await;
    let degraded = harbour.condition("Degraded", "True").await;
    let message = degraded["message"].as_str().unwrap();
    assert!(message.contains("exceeded quota: jobs, requested: count/jobs.batch=1"), "{message}");
    allow_jobs(&harbour, "5").await;
    harbour
        .until("the Job to be done", async || {
            let jobs = harbour.list::<Job>().await;
            jobs.len() == 1 && super::is_finished(&jobs[0])
        })
        .await;
    harbour.ready().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_shows_and_the_next_content_mends_it() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&monocle(json!({}))).await;
    harbour.ready().await;
    harbour.behaviours().set("*monocle*", Behaviour::Exit { after: Duration::from_secs(1), code: 3 });
    edit_config(&harbour, "workspaces:\n  - name: one\n").await;
    let degraded = harbour.condition("Degraded", "True").await;
    assert_eq!(degraded["reason"], "IdentitiesFailed");
    harbour.settle().await;
    assert_eq!(harbour.names::<Job>().await.len(), 1, "it is not run again");
    harbour.behaviours().remove("*monocle*");
    edit_config(&harbour, "workspaces:\n  - name: two\n").await;
    harbour.condition("Degraded", "False").await;
    harbour.ready().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_config_is_reported_and_not_reset() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&monocle(json!({}))).await;
    harbour.ready().await;
    edit_config(&harbour, "workspaces:\n  - name: mine\n").await;
    harbour.settle().await;
    harbour.api::<ConfigMap>().delete("m-api", &DeleteParams::default()).await.unwrap();
    let degraded = harbour.condition("Degraded", "True").await;
    assert_eq!(degraded["reason"], "Deleted");
    harbour.restart().await;
    harbour.settle().await;
    assert_eq!(harbour.names::<ConfigMap>().await, ["kube-root-ca.crt"], "not silently made again");
}
