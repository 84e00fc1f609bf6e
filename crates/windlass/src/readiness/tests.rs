use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Service};
use serde_json::json;

use super::*;
use crate::cache::Shares;
use crate::{Object, State};

fn judge<K: Object>(object: Value) -> State {
    let mut object = object;
    object["metadata"]["name"] = "x".into();
    let stored = Stored::made(&object, &Shares::new(Default::default()));
    of(&Kind::of::<K>(), &stored).state
}

#[test]
fn a_deployment_is_ready_when_its_last_generation_is_rolled_out() {
    let with = |observed: i64, updated: i64, all: i64, available: i64| {
        judge::<Deployment>(json!({"metadata": {"generation": 2}, "spec": {"replicas": 1}, "status": {
            "observedGeneration": observed, "updatedReplicas": updated, "replicas": all,
            "availableReplicas": available}}))
    };
    assert_eq!(with(2, 1, 1, 1), State::Ready);
    assert_eq!(with(1, 1, 1, 1), State::Pending);
    assert_eq!(with(2, 0, 1, 1), State::Pending);
    assert_eq!(with(2, 1, 2, 2), State::Pending);
    assert_eq!(with(2, 1, 1, 0), State::Pending);
    let stuck = json!({"status": {"conditions": [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}});
    assert_eq!(judge::<Deployment>(stuck), State::Failed);
}

#[test]
fn a_stateful_set_is_ready_when_all_are_updated_and_ready() {
    let with = |updated: i64, ready: i64| {
        judge::<StatefulSet>(json!({"metadata": {"generation": 1}, "spec": {"replicas": 2}, "status": {
            "observedGeneration": 1, "updatedReplicas": updated, "readyReplicas": ready}}))
    };
    assert_eq!(with(2, 2), State::Ready);
    assert_eq!(with(1, 2), State::Pending);
    assert_eq!(with(2, 1), State::Pending);
}

#[test]
fn a_job_is_ready_when_complete_and_failed_when_it_says_so() {
    let with =
        |kind: &str| judge::<Job>(json!({"status": {"conditions": [{"type": kind, "status": "True"}]}}));
    assert_eq!(with("Complete"), State::Ready);
    assert_eq!(with("Failed"), State::Failed);
    assert_eq!(judge::<Job>(json!({"status": {"active": 1}})), State::Pending);
}

#[test]
fn the_other_usual_kinds() {
    assert_eq!(judge::<PersistentVolumeClaim>(json!({"status": {"phase": "Bound"}})), State::Ready);
    assert_eq!(judge::<PersistentVolumeClaim>(json!({"status": {"phase": "Pending"}})), State::Pending);
    assert_eq!(judge::<PersistentVolumeClaim>(json!({"status": {"phase": "Lost"}})), State::Failed);
    assert_eq!(judge::<Service>(json!({"spec": {"type": "ClusterIP"}})), State::Ready);
    assert_eq!(judge::<Service>(json!({"spec": {"type": "LoadBalancer"}})), State::Pending);
    assert_eq!(judge::<ConfigMap>(json!({})), State::Ready);
    // Anything with standard conditions.
    let ready = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
    assert_eq!(judge::<ConfigMap>(ready("True")), State::Ready);
    assert_eq!(judge::<ConfigMap>(ready("False")), State::Pending);
    let degraded = json!({"status": {"conditions": [{"type": "Degraded", "status": "True"}]}});
    assert_eq!(judge::<ConfigMap>(degraded), State::Failed);
}

#[test]
fn what_has_no_usual_spec_is_judged_by_its_conditions_nevertheless() {
    let conditions = json!([{"type": "Ready", "status": "False", "reason": "Slow", "message": "not yet"}]);
    for spec in [json!(null), json!("text"), json!([1])] {
        let object = json!({"metadata": {"name": "a"}, "spec": spec, "status": {"conditions": conditions}});
        let stored = Stored::made(&object, &Shares::new(Default::default()));
        assert!(!of(&Kind::external("Odd"), &stored).is_ready());
    }
}
