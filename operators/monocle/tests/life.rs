//! A Monocle's life on the drydock, in virtual time: it comes up, is edited, restarted and deleted.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "life/changes.rs"]
mod changes;
#[path = "life/neighbours.rs"]
mod neighbours;
#[path = "life/permissions.rs"]
mod permissions;
#[path = "life/trouble.rs"]
mod trouble;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use windlass_monocle::{Monocle, SAMPLE, operator};
use windlass_testkit::{Harbour, Matrix};

const CHILDREN: u64 = 7;

#[tokio::test(start_paused = true)]
async fn it_comes_up_with_few_requests_and_is_then_silent() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(SAMPLE).await;
    harbour.ready().await;
    assert_eq!(harbour.names::<StatefulSet>().await, ["monocle-sample-elastic"]);
    assert_eq!(harbour.names::<Deployment>().await, ["monocle-sample-api", "monocle-sample-crawler"]);
    assert_eq!(
        harbour.names::<Service>().await,
        ["kubernetes", "monocle-sample-api", "monocle-sample-elastic"]
    );
    assert_eq!(harbour.names::<Secret>().await, ["monocle-sample-api"]);
    assert_eq!(harbour.names::<ConfigMap>().await, ["kube-root-ca.crt", "monocle-sample-api"]);
    assert!(harbour.names::<Job>().await.is_empty(), "the first content needs no update of identities");

    let work = harbour.requests();
    let total: u64 = work.values().sum();
    assert!(total <= CHILDREN + 2, "{total} requests for {CHILDREN} children: {work:?}");
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert_eq!(harbour.requests(), work, "a day later it has asked for something");
}

#[tokio::test(start_paused = true)]
async fn two_runs_with_one_seed_ask_for_the_same_in_the_same_order() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let mut harbour = Harbour::seeded(operator, 7).await;
        harbour.apply(SAMPLE).await;
        harbour.ready().await;
        harbour.settle().await;
        let uids = harbour.list::<Deployment>().await.iter().map(|one| one.uid()).collect::<Vec<_>>();
        runs.push((harbour.drydock().record().entries(""), uids, harbour.revision()));
    }
    for (at, (one, other)) in runs[0].0.iter().zip(&runs[1].0).enumerate() {
        assert_eq!(one, other, "request {at}");
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn a_restart_writes_nothing() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(SAMPLE).await;
    harbour.ready().await;
    let before = harbour.revision();
    harbour.restart().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(harbour.revision(), before);
}

#[tokio::test(start_paused = true)]
async fn a_new_secret_value_rolls_out_api_and_crawler_once() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(SAMPLE).await;
    harbour.ready().await;
    let secrets = harbour.api::<Secret>();
    let merge = PatchParams::default();

    let label = json!({"metadata": {"labels": {"x": "y"}, "annotations": {"x": "y"}}});
    secrets.patch("monocle-sample-api", &merge, &Patch::Merge(label)).await.unwrap();
    harbour.settle().await;
    assert_eq!(
        rollouts(&harbour).await,
        BTreeMap::from([("monocle-sample-api".into(), 1), ("monocle-sample-crawler".into(), 1)])
    );

    let value = json!({"stringData": {"CRAWLERS_API_KEY": "another"}});
    secrets.patch("monocle-sample-api", &merge, &Patch::Merge(value)).await.unwrap();
    harbour.settle().await;
    harbour.ready().await;
    assert_eq!(
        rollouts(&harbour).await,
        BTreeMap::from([("monocle-sample-api".into(), 2), ("monocle-sample-crawler".into(), 2)])
    );
}

#[tokio::test(start_paused = true)]
async fn new_configs_run_one_job_each_and_never_two_at_once() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(SAMPLE).await;
    harbour.ready().await;
    let revisions = rollouts(&harbour).await;
    let configs = harbour.api::<ConfigMap>();
    for name in ["one", "two"] {
        let config = format!("workspaces:\n  - name: {name}\n    crawlers: []\n");
        let data = json!({"data": {"config.yaml": config}});
        configs.patch("monocle-sample-api", &PatchParams::default(), &Patch::Merge(data)).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut most = 0;
    for _ in 0..200 {
        let jobs = harbour.list::<Job>().await;
        let running = jobs.iter().filter(|job| !is_finished(job)).count();
        most = most.max(running);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(most, 1, "never two Jobs at once");
    let jobs = harbour.list::<Job>().await;
    assert!(jobs.iter().all(is_finished) && (1..=2).contains(&jobs.len()), "{} Jobs", jobs.len());
    assert_eq!(rollouts(&harbour).await, revisions, "pods are not restarted for a config");
    // The Jobs go by their time to live, and do not come back.
    tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
    assert!(harbour.names::<Job>().await.is_empty());
    harbour.ready().await;
}

#[tokio::test(start_paused = true)]
async fn a_config_that_does_not_parse_is_reported_and_nothing_runs() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(SAMPLE).await;
    harbour.ready().await;
    let data = json!({"data": {"config.yaml": "workspaces:\n  - name: [broken\n"}});
    let merge = PatchParams::default();
    harbour.api::<ConfigMap>().patch("monocle-sample-api", &merge, &Patch::Merge(data)).await.unwrap();
    let degraded = harbour.condition("Degraded", "True").await;
    assert!(degraded["message"].as_str().unwrap().contains("line"), "{degraded}");
    assert!(harbour.names::<Job>().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_edited_or_deleted_by_hand_is_put_back() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(SAMPLE).await;
    harbour.ready().await;
    let deployments = harbour.api::<Deployment>();
    let edit = json!({"spec": {"replicas": 3}});
    deployments.patch("monocle-sample-api", &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
    harbour.api::<Service>().delete("monocle-sample-elastic", &DeleteParams::default()).await.unwrap();
    harbour.settle().await;
    harbour.ready().await;
    let api = deployments.get("monocle-sample-api").await.unwrap();
    assert_eq!(api.spec.unwrap().replicas, Some(1));
    assert!(harbour.names::<Service>().await.contains(&"monocle-sample-elastic".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn deletion_leaves_nothing() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(SAMPLE).await;
    harbour.ready().await;
    harbour.api::<Monocle>().delete("monocle-sample", &DeleteParams::background()).await.unwrap();
    harbour.settle().await;
    assert_eq!(harbour.names::<Service>().await, ["kubernetes"]);
    assert_eq!(harbour.names::<ConfigMap>().await, ["kube-root-ca.crt"]);
    assert!(harbour.names::<Secret>().await.is_empty());
    assert!(harbour.names::<StatefulSet>().await.is_empty());
    assert!(harbour.names::<Deployment>().await.is_empty());
    assert!(harbour.names::<ReplicaSet>().await.is_empty());
    assert!(harbour.names::<k8s_openapi::api::core::v1::Pod>().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_second_apply_of_the_same_file_changes_nothing() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(SAMPLE).await;
    harbour.ready().await;
    let before = harbour.revision();
    harbour.apply(SAMPLE).await;
    harbour.settle().await;
    assert_eq!(harbour.revision(), before);
}

#[tokio::test(start_paused = true)]
async fn wrong_fields_are_refused_by_the_api_and_the_operator_goes_on() {
    let mut harbour = Harbour::start(operator).await;
    let wrong = json!({
        "apiVersion": "monocle.monocle.change-metrics.io/v1alpha1", "kind": "Monocle",
        "metadata": {"name": "wrong"}, "spec": {"publicURL": "ftp://x"},
    });
    let params = PatchParams::apply("test");
    let refused = harbour.api::<Monocle>().patch("wrong", &params, &Patch::Apply(wrong)).await.unwrap_err();
    assert!(refused.to_string().contains("spec.publicURL"), "{refused}");
    harbour.apply(SAMPLE).await;
    harbour.ready().await;
}

/// How often each Deployment was rolled out.
async fn rollouts(harbour: &Harbour) -> BTreeMap<String, u64> {
    let deployments = harbour.list::<Deployment>().await;
    deployments
        .iter()
        .map(|deployment| {
            let revision = &deployment.annotations()["deployment.kubernetes.io/revision"];
            (deployment.name_any(), revision.parse().unwrap())
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn no_crash_stale_read_or_broken_watch_leaves_another_world() {
    Matrix::new(operator, &[SAMPLE]).run().await;
}

fn is_finished(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|c| matches!(c.type_.as_str(), "Complete" | "Failed") && c.status == "True")
}
