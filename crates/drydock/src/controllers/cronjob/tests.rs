//! CronJobs in virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Event, ServiceAccount};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::node::{Behaviour, NodeOptions};
use crate::{Drydock, Options};

const HOUR: Duration = Duration::from_secs(3600);

/// A drydock with one CronJob, whose Jobs run for a second, or for ever where the image is `hang`.
async fn with(spec: Value, image: &str) -> Drydock {
    let node = NodeOptions::default();
    node.behaviours.set("hang", Behaviour::Hang);
    node.behaviours.set("bad", Behaviour::Exit { after: Duration::ZERO, code: 1 });
    let drydock = Drydock::start(Options { node, ..Options::seeded(1) }).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::default_namespaced(drydock.client("test"));
    while accounts.get_opt("default").await.unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": image}]}});
    let mut cron = json!({
        "metadata": {"name": "tick"},
        "spec": {"jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"backoffLimit": 0, "template": template}}},
    });
    for (key, value) in spec.as_object().unwrap() {
        cron["spec"][key] = value.clone();
    }
    crons(&drydock).create(&PostParams::default(), &serde_json::from_value(cron).unwrap()).await.unwrap();
    drydock
}

fn crons(drydock: &Drydock) -> Api<CronJob> {
    Api::default_namespaced(drydock.client("test"))
}

async fn jobs(drydock: &Drydock) -> Vec<Job> {
    let jobs: Api<Job> = Api::default_namespaced(drydock.client("test"));
    jobs.list(&ListParams::default()).await.unwrap().items
}

/// How often each reason was given for the CronJob.
async fn events(drydock: &Drydock) -> BTreeMap<String, i32> {
    let events: Api<Event> = Api::default_namespaced(drydock.client("test"));
    let mut counts = BTreeMap::new();
    for event in events.list(&ListParams::default()).await.unwrap().items {
        if event.involved_object.kind.as_deref() == Some("CronJob") {
            *counts.entry(event.reason.unwrap()).or_default() += event.count.unwrap();
        }
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn a_day_has_as_many_jobs_as_its_schedule_and_leaves_its_history() {
    let drydock = with(json!({"schedule": "*/20 * * * *"}), "good").await;
    let made = drydock.record().counts(&super::super::user_agent("cronjob-controller"));
    assert_eq!(made.get("create"), None);
    tokio::time::sleep(24 * HOUR + Duration::from_secs(30)).await;
    let client = super::super::user_agent("cronjob-controller");
    let deleted = drydock.record().counts(&client)["delete"];
    let left = jobs(&drydock).await;
    assert_eq!((deleted, left.len()), (72 - 3, 3));
    let last = &left[2].metadata;
    assert_eq!(last.name.as_deref(), Some("tick-29455200"));
    assert_eq!(last.annotations.as_ref().unwrap()[super::SCHEDULED], "2026-01-02T00:00:00Z");
    assert_eq!(last.labels.as_ref().unwrap()["a"], "b");
    let status = crons(&drydock).get("tick").await.unwrap().status.unwrap();
    assert_eq!(status.active, None);
    assert_eq!(status.last_schedule_time.unwrap().0.to_string(), "2026-01-02T00:00:00Z");
    assert!(status.last_successful_time.unwrap().0.to_string().starts_with("2026-01-02T00:00:0"));
    drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_counts_in_its_time_zone() {
    let drydock = with(json!({"schedule": "30 6 * * *", "timeZone": "Asia/Kolkata"}), "good").await;
    tokio::time::sleep(2 * HOUR).await;
    let made = jobs(&drydock).await;
    assert_eq!(made[0].metadata.annotations.as_ref().unwrap()[super::SCHEDULED], "2026-01-01T06:30:00+05:30");
    assert_eq!(made[0].metadata.name.as_deref(), Some("tick-29453820"));
    drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_still_runs_is_left_alone_replaced_or_joined() {
    for (policy, left, event) in [
        ("Allow", 3, "SuccessfulCreate"),
        ("Forbid", 1, "JobAlreadyActive"),
        ("Replace", 1, "SuccessfulDelete"),
    ] {
        let spec = json!({"schedule": "0 * * * *", "concurrencyPolicy": policy});
        let drydock = with(spec, "hang").await;
        tokio::time::sleep(3 * HOUR + Duration::from_secs(60)).await;
        assert_eq!(jobs(&drydock).await.len(), left, "{policy}");
        let status = crons(&drydock).get("tick").await.unwrap().status.unwrap();
        assert_eq!(status.active.unwrap().len(), left, "{policy}");
        let events = events(&drydock).await;
        assert!(events.contains_key(event), "{policy}: {events:?}");
        drydock.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspended_schedule_makes_nothing_and_starts_the_last_missed_time_once() {
    let drydock = with(json!({"schedule": "0 * * * *", "suspend": true}), "good").await;
    tokio::time::sleep(5 * HOUR + Duration::from_secs(60)).await;
    assert!(jobs(&drydock).await.is_empty());
    let go = json!({"spec": {"suspend": false}});
    crons(&drydock).patch("tick", &PatchParams::default(), &Patch::Merge(go)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let made = jobs(&drydock).await;
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].metadata.annotations.as_ref().unwrap()[super::SCHEDULED], "2026-01-01T05:00:00Z");
    drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_time_whose_deadline_is_over_is_missed() {
    let spec = json!({"schedule": "0 * * * *", "suspend": true, "startingDeadlineSeconds": 30});
    let drydock = with(spec, "good").await;
    tokio::time::sleep(5 * HOUR + Duration::from_secs(60)).await;
    let go = json!({"spec": {"suspend": false}});
    crons(&drydock).patch("tick", &PatchParams::default(), &Patch::Merge(go)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(jobs(&drydock).await.is_empty());
    tokio::time::sleep(HOUR).await;
    assert_eq!(jobs(&drydock).await.len(), 1);
    drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failed_jobs_have_a_history_of_their_own() {
    let drydock = with(json!({"schedule": "0 * * * *", "failedJobsHistoryLimit": 2}), "bad").await;
    tokio::time::sleep(6 * HOUR + Duration::from_secs(60)).await;
    assert_eq!(jobs(&drydock).await.len(), 2);
    assert_eq!(events(&drydock).await["SawCompletedJob"], 6);
    assert_eq!(crons(&drydock).get("tick").await.unwrap().status.unwrap().last_successful_time, None);
    drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_history_the_last_success_is_still_known() {
    let drydock = with(json!({"schedule": "0 * * * *", "successfulJobsHistoryLimit": 0}), "good").await;
    tokio::time::sleep(HOUR + Duration::from_secs(60)).await;
    assert!(jobs(&drydock).await.is_empty());
    let status = crons(&drydock).get("tick").await.unwrap().status.unwrap();
    assert!(status.active.is_none() && status.last_successful_time.is_some(), "{status:?}");
    assert!(!events(&drydock).await.contains_key("SawCompletedJob"));
    drydock.stop().await;
}
