//! The known faults of the framework that this one takes its words from, each with a test that it is not here.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass::Operator;
use windlass_drydock::faults::{Effect, Fault, Target};
use windlass_testkit::{Harbour, OPERATOR};

use super::boat::{Boat, Marina, boat};

fn operator() -> Operator {
    Marina::default().operator()()
}

fn refuse(harbour: &Harbour, verb: &str, times: u64) {
    let target = Target::any().client(OPERATOR).verb(verb).resource("configmaps");
    let effect = Effect::Refuse(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
    harbour.drydock().faults().add(Fault::new(target, effect).times(times));
}

#[tokio::test(start_paused = true)]
async fn an_error_is_not_lost() {
    let mut harbour = Harbour::start(operator).await;
    refuse(&harbour, "write", 3);
    harbour.apply(&boat(json!({"text": "one"}))).await;
    let degraded = harbour.condition("Degraded", "True").await;
    assert!(degraded["message"].as_str().unwrap().starts_with("ConfigMap ada"), "{degraded}");
    harbour.ready().await;
}

#[tokio::test(start_paused = true)]
async fn failed_and_pending_give_failed() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&boat(json!({"broken": true}))).await;
    let ready = harbour.condition("Ready", "False").await;
    let degraded = harbour.condition("Degraded", "True").await;
    assert_eq!(ready["reason"], degraded["reason"], "the worst decides: {ready}");
    assert_eq!(harbour.condition("Progressing", "True").await["reason"], "Held");
}

#[tokio::test(start_paused = true)]
async fn failed_does_not_stick_after_recovery() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&boat(json!({"broken": true}))).await;
    harbour.condition("Degraded", "True").await;
    harbour.apply(&boat(json!({"broken": false}))).await;
    harbour.condition("Degraded", "False").await;
    harbour.ready().await;
    let ada = harbour.api::<Boat>().get("ada").await.unwrap().status.unwrap();
    assert_eq!(ada.dependents.len(), 1, "stale entries are gone: {:?}", ada.dependents);
}

#[tokio::test(start_paused = true)]
async fn every_changed_dependent_is_recorded_in_one_pass() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&boat(json!({"text": "one", "logbook": "log", "broken": true}))).await;
    harbour.condition("Degraded", "True").await;
    let ada = harbour.api::<Boat>().get("ada").await.unwrap().status.unwrap();
    let names: Vec<_> = ada.dependents.iter().map(|one| one.dependent_name.as_str()).collect();
    assert_eq!(names, ["ada", "log", "ada-bad", "ada-held"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_owner_reference_is_set_again() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&boat(json!({"text": "one"}))).await;
    harbour.ready().await;
    let orphan = json!({"metadata": {"ownerReferences": null}});
    let maps = harbour.api::<ConfigMap>();
    maps.patch("ada", &PatchParams::default(), &Patch::Merge(orphan)).await.unwrap();
    harbour.settle().await;
    assert!(maps.get("ada").await.unwrap().metadata.owner_references.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_second_controller_on_the_same_kind_gets_its_events() {
    let both = || Operator::new("boatman").manages::<Boat>().manages::<second::Raft>();
    let mut harbour = Harbour::start(both).await;
    harbour.apply(&boat(json!({"text": "one"}))).await;
    harbour
        .apply(
            r#"{"apiVersion": "example.org/v1", "kind": "Raft", "metadata": {"name": "raft"}, "spec": {}}"#,
        )
        .await;
    harbour.ready().await;
    // Both own ConfigMaps; each hears of its own.
    for name in ["ada", "raft"] {
        harbour.api::<ConfigMap>().delete(name, &DeleteParams::default()).await.unwrap();
    }
    harbour.settle().await;
    assert_eq!(harbour.names::<ConfigMap>().await, ["ada", "kube-root-ca.crt", "raft"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_watched_and_not_owned_plans_again() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&boat(json!({"secret": "key"}))).await;
    harbour.condition("Progressing", "True").await;
    let mut secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "key"}, "data": {"a": "YQ=="}})).unwrap();
    harbour.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    harbour.ready().await;
    let maps = harbour.api::<ConfigMap>();
    let before = maps.get("ada-secret").await.unwrap().data;
    secret.data = serde_json::from_value(json!({"a": "Yg=="})).unwrap();
    harbour.api::<Secret>().replace("key", &PostParams::default(), &secret).await.unwrap();
    harbour.settle().await;
    assert_ne!(maps.get("ada-secret").await.unwrap().data, before);
}

#[tokio::test(start_paused = true)]
async fn there_are_finalizers_and_none_where_none_is_needed() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&boat(json!({"text": "one"}))).await;
    harbour.ready().await;
    let boats = harbour.api::<Boat>();
    assert_eq!(boats.get("ada").await.unwrap().metadata.finalizers, None);
    harbour.apply(&boat(json!({"berth": "b1", "length": 3}))).await;
    harbour.ready().await;
    let ada = boats.get("ada").await.unwrap();
    assert_eq!(ada.metadata.finalizers, Some(vec!["windlass.dev/boatman".to_owned()]));
    assert_eq!(ada.metadata.annotations.unwrap()["windlass.dev/holds"], r#"["Berth/b1"]"#);
}

#[tokio::test(start_paused = true)]
async fn a_status_write_does_not_retrigger_the_loop() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&boat(json!({"text": "one"}))).await;
    harbour.ready().await;
    let work = harbour.requests();
    assert_eq!(work.values().sum::<u64>(), 2, "one ConfigMap, one status: {work:?}");
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert_eq!(harbour.requests(), work);
}

/// A second kind with dependents of the same kind.
mod second {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use windlass::{Halt, Kind, Plan, Primary, Status, World};

    #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "example.org", version = "v1", kind = "Raft", namespaced, status = "Status")]
    pub(super) struct RaftSpec {}

    impl Primary for Raft {
        fn owns() -> Vec<Kind> {
            vec![Kind::of::<ConfigMap>()]
        }

        fn plan(&self, _: &World, plan: &mut Plan) -> Result<(), Halt> {
            let mut map = ConfigMap::default();
            map.metadata.name = self.metadata.name.clone();
            plan.add(map);
            Ok(())
        }
    }
}
