//! Checkups by the clock.

use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windlass_kiagnose::{Checkup, CheckupSchedule, Phase};
use windlass_testkit::Harbour;

use super::play::{ENDS_WELL, play, start};

fn schedule(change: Value) -> String {
    let mut spec = json!({"schedule": "*/5 * * * *", "checkupTemplate": {"spec": {
        "image": "sim/ok", "serviceAccountName": "checker", "timeout": "20m"}}});
    for (field, value) in change.as_object().unwrap() {
        spec[field] = value.clone();
    }
    json!({"apiVersion": "kiagnose.io/v1alpha1", "kind": "CheckupSchedule", "metadata": {"name": "s"}, "spec": spec})
        .to_string()
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

async fn status(harbour: &Harbour) -> windlass_kiagnose::CheckupScheduleStatus {
    harbour.api::<CheckupSchedule>().get("s").await.unwrap().status.unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn it_makes_checkups_on_time_and_keeps_the_last() {
    let mut harbour = start().await;
    play(&harbour, ENDS_WELL);
    harbour.apply(&schedule(json!({}))).await;
    tokio::time::sleep(minutes(6)).await;
    let runs = harbour.list::<Checkup>().await;
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].status.clone().unwrap().phase, Some(Phase::Succeeded));
    tokio::time::sleep(minutes(60)).await;
    assert_eq!(harbour.names::<Checkup>().await.len(), 3, "the history's limit");
    let now = status(&harbour).await;
    let (last, next) = (now.last_schedule_time.unwrap().0, now.next_schedule_time.unwrap().0);
    assert_eq!(next.duration_since(last).as_secs(), 300);
    assert_eq!(now.last_phase.as_deref(), Some("Succeeded"));
    assert!(now.last_successful_time.is_some());
}

#[tokio::test(start_paused = true)]
async fn what_was_missed_is_run_once_or_not_at_all() {
    for (deadline, wanted) in [(Value::Null, 1), (json!(30), 0)] {
        let mut harbour = start().await;
        play(&harbour, ENDS_WELL);
        harbour.apply(&schedule(json!({"startingDeadlineSeconds": deadline}))).await;
        harbour.settle().await;
        harbour.stop().await;
        tokio::time::sleep(minutes(30)).await;
        let into = 60 - harbour.drydock().context().now().as_second().rem_euclid(300);
        tokio::time::sleep(Duration::from_secs(into.rem_euclid(300) as u64)).await;
        harbour.run();
        tokio::time::sleep(minutes(2)).await;
        assert_eq!(harbour.names::<Checkup>().await.len(), wanted, "deadline {deadline}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_policy_decides_when_one_still_runs() {
    for (policy, wanted) in [("Allow", 3), ("Forbid", 1), ("Replace", 1)] {
        let mut harbour = start().await;
        let template =
            json!({"spec": {"image": "sim/hang", "serviceAccountName": "checker", "timeout": "2h"}});
        harbour.apply(&schedule(json!({"concurrencyPolicy": policy, "checkupTemplate": template}))).await;
        tokio::time::sleep(minutes(6)).await;
        let first = harbour.names::<Checkup>().await;
        tokio::time::sleep(minutes(10)).await;
        let now = harbour.names::<Checkup>().await;
        assert_eq!(now.len(), wanted, "{policy}: {now:?}");
        assert_eq!(now.contains(&first[0]), policy != "Replace", "{policy}");
        assert_eq!(status(&harbour).await.active.len(), wanted);
    }
}

#[tokio::test(start_paused = true)]
async fn it_can_be_suspended_and_says_what_is_wrong_with_it() {
    let mut harbour = start().await;
    harbour.apply(&schedule(json!({"suspend": true}))).await;
    tokio::time::sleep(minutes(20)).await;
    assert!(harbour.names::<Checkup>().await.is_empty());
    harbour.apply(&schedule(json!({"schedule": "every day"}))).await;
    let degraded = harbour.condition("Degraded", "True").await;
    assert!(degraded["message"].as_str().unwrap().contains("expected exactly 5 fields"), "{degraded}");
    let wrong = json!({"spec": {"schedule": "TZ=UTC * * * * *"}});
    let api = harbour.api::<CheckupSchedule>();
    assert!(api.patch("s", &PatchParams::default(), &Patch::Merge(wrong)).await.is_err());
    assert_eq!(api.get("s").await.unwrap().name_any(), "s");
}

#[tokio::test(start_paused = true)]
async fn its_time_zone_counts() {
    let mut harbour = start().await;
    harbour.apply(&schedule(json!({"schedule": "0 3 * * *", "timeZone": "Asia/Tokyo"}))).await;
    harbour.settle().await;
    let next = status(&harbour).await.next_schedule_time.unwrap().0;
    assert_eq!(next.as_second().rem_euclid(24 * 3600), 18 * 3600, "three in the morning there: {next}");
    harbour.apply(&schedule(json!({"timeZone": "Moon/Crater"}))).await;
    let degraded = harbour.condition("Degraded", "True").await;
    assert!(degraded["message"].as_str().unwrap().contains("unknown time zone Moon/Crater"), "{degraded}");
}

#[tokio::test(start_paused = true)]
async fn several_in_one_minute_have_names_of_their_own_and_failures_a_limit_of_their_own() {
    let mut harbour = start().await;
    let template = json!({"spec": {"image": "sim/bad", "serviceAccountName": "checker", "timeout": "20m"}});
    harbour
        .apply(&schedule(
            json!({"schedule": "@every 10s", "checkupTemplate": template, "failedCheckupsHistoryLimit": 2}),
        ))
        .await;
    tokio::time::sleep(Duration::from_secs(65)).await;
    let all = harbour.list::<Checkup>().await;
    let over = |one: &&Checkup| one.status.as_ref().is_some_and(|now| now.phase == Some(Phase::Failed));
    // Each takes twenty seconds.
    let (failed, active) = (all.iter().filter(over).count(), all.iter().filter(|one| !over(one)).count());
    assert!(failed == 2 && (2..=3).contains(&active), "{failed} are kept, {active} run");
    harbour
        .apply(&schedule(
            json!({"suspend": true, "checkupTemplate": template, "failedCheckupsHistoryLimit": 0}),
        ))
        .await;
    tokio::time::sleep(minutes(2)).await;
    assert!(harbour.names::<Checkup>().await.is_empty(), "what runs goes on, and nothing is kept");
}
