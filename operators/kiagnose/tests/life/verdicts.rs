//! The rules by which a run is judged.

use serde_json::{Value, json};
use windlass_kiagnose::Phase;

use super::play::{Script, checkup, ended, play, reason, start};

async fn verdict(image: &str, script: Script) -> (Phase, String, windlass_kiagnose::CheckupStatus) {
    let mut harbour = start().await;
    play(&harbour, script);
    harbour.apply(&checkup("one", json!({"image": image}))).await;
    let done = ended(&harbour, "one").await;
    let status = done.status.clone().unwrap();
    (status.phase.unwrap(), reason(&done, "Succeeded").1, status)
}

#[tokio::test(start_paused = true)]
async fn the_config_map_decides() {
    let cases: [(&str, Script, Phase, &str); 6] = [
        ("sim/ok", |_| json!({"status.succeeded": "true"}), Phase::Succeeded, "Succeeded"),
        (
            "sim/ok",
            |_| json!({"status.succeeded": "false", "status.failureReason": "no"}),
            Phase::Failed,
            "CheckupFailed",
        ),
        ("sim/bad", |_| json!({"status.succeeded": "false"}), Phase::Failed, "CheckupFailed"),
        ("sim/ok", |_| json!({"status.result.x": "y"}), Phase::Failed, "NoResults"),
        ("sim/bad", |_| json!({"status.succeeded": "true"}), Phase::Failed, "ExitCode"),
        ("sim/ok", |_| json!({"status.succeeded": "yes"}), Phase::Failed, "MalformedResults"),
    ];
    for (image, script, phase, wanted) in cases {
        let (found, reason, status) = verdict(image, script).await;
        assert_eq!((found, reason.as_str()), (phase, wanted), "{image}: {status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_carries_its_reason_exit_code_and_log() {
    let (_, _, status) = verdict(
        "sim/ok",
        |_| json!({"status.succeeded": "false", "status.failureReason": "the net is down"}),
    )
    .await;
    assert_eq!(status.failure_reason.as_deref(), Some("the net is down"));
    let (_, _, status) = verdict("sim/bad", |_| json!({"status.succeeded": "true"})).await;
    let said = status.common.conditions.iter().find(|one| one.type_ == "Failed").unwrap();
    assert!(said.message.contains("exit code 3"), "{}", said.message);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_it() {
    let mut harbour = start().await;
    let before = tokio::time::Instant::now();
    harbour.apply(&checkup("one", json!({"image": "sim/hang"}))).await;
    let done = ended(&harbour, "one").await;
    assert_eq!(reason(&done, "Succeeded").1, "Timeout");
    let took = before.elapsed().as_secs();
    assert!((70..100).contains(&took), "{took} s");
    let degraded = harbour.condition("Degraded", "True").await;
    assert_eq!(degraded["reason"], "Timeout");
}

#[tokio::test(start_paused = true)]
async fn oversized_results_are_cut_with_a_condition() {
    let huge: Script = |_| {
        let many = (0..400).map(|n| (format!("status.result.{n:04}"), Value::from("x".repeat(2000))));
        let mut data: serde_json::Map<String, Value> = many.collect();
        data.insert("status.succeeded".into(), "true".into());
        data.into()
    };
    let (phase, _, status) = verdict("sim/ok", huge).await;
    assert_eq!(phase, Phase::Succeeded);
    assert!(!status.results.is_empty() && status.results.len() < 400);
    assert!(
        status.common.conditions.iter().any(|one| one.type_ == "ResultsTruncated" && one.status == "True")
    );
}

#[tokio::test(start_paused = true)]
async fn hostile_results_stay_results() {
    let hostile: Script = |_| {
        json!({
            "status.succeeded": "true",
            "status.conditions": "[{\"type\": \"Ready\", \"status\": \"False\"}]",
            "status.phase": "Failed",
            "status.startTime": "2001-01-01T00:00:00Z",
            "status.result.conditions": "[]",
            "status.result.phase": "Failed",
            format!("status.result.{}", "k".repeat(239)): "long",
            "status.result.ansi": "\u{1b}[2J\u{1b}]0;owned\u{7}\u{0}",
            "status.failureReason": "not asked for",
        })
    };
    let (phase, reason, status) = verdict("sim/ok", hostile).await;
    assert_eq!((phase, reason.as_str()), (Phase::Succeeded, "Succeeded"));
    assert_eq!(status.results["phase"], "Failed");
    assert_eq!(status.results["conditions"], "[]");
    assert!(status.results.contains_key(&"k".repeat(239)));
    assert!(!status.results["ansi"].chars().any(char::is_control));
    assert_eq!(status.failure_reason, None);
    let types: Vec<_> = status.common.conditions.iter().map(|one| one.type_.as_str()).collect();
    assert_eq!(types, ["Ready", "Progressing", "Degraded", "Succeeded", "Failed"]);
}
