//! How Checkups go.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use windlass_kiagnose::Checkup;
use windlass_testkit::Harbour;

use super::play::{ENDS_WELL, checkup, ended, play, running, start};

async fn nothing_is_left(harbour: &Harbour) {
    harbour.settle().await;
    assert!(harbour.names::<Checkup>().await.is_empty());
    assert!(harbour.names::<Job>().await.is_empty() && harbour.names::<Pod>().await.is_empty());
    assert!(harbour.names::<Role>().await.is_empty() && harbour.names::<RoleBinding>().await.is_empty());
    assert_eq!(harbour.names::<ConfigMap>().await, ["kube-root-ca.crt"]);
}

#[tokio::test(start_paused = true)]
async fn deleted_while_it_runs_the_job_stops_first() {
    let mut harbour = start().await;
    harbour.apply(&checkup("one", json!({"image": "sim/hang"}))).await;
    running(&harbour, "one").await;
    harbour.drydock().record().keep_entries();
    harbour.api::<Checkup>().delete("one", &DeleteParams::background()).await.unwrap();
    // As long as something runs, it has its permissions and its ConfigMap.
    loop {
        let (runs, role) = (harbour.names::<Pod>().await, harbour.names::<Role>().await);
        assert!(runs.is_empty() || !role.is_empty(), "the pod has lost its permissions");
        if runs.is_empty() && harbour.names::<Checkup>().await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    nothing_is_left(&harbour).await;
}

#[tokio::test(start_paused = true)]
async fn deleted_after_its_end_or_with_objects_missing_nothing_is_left() {
    for missing in [false, true] {
        let mut harbour = start().await;
        play(&harbour, ENDS_WELL);
        harbour.apply(&checkup("one", json!({}))).await;
        ended(&harbour, "one").await;
        harbour.stop().await;
        if missing {
            harbour.api::<Job>().delete("one", &DeleteParams::background()).await.unwrap();
            harbour.api::<ConfigMap>().delete("one-results", &DeleteParams::default()).await.unwrap();
            harbour.api::<Role>().delete("one-results-writer", &DeleteParams::default()).await.unwrap();
        }
        harbour.api::<Checkup>().delete("one", &DeleteParams::background()).await.unwrap();
        harbour.run();
        nothing_is_left(&harbour).await;
    }
}

#[tokio::test(start_paused = true)]
async fn its_namespace_can_be_deleted_in_mid_run() {
    let harbour = start().await;
    let spaces: Api<Namespace> = Api::all(harbour.client());
    let space: Namespace = serde_json::from_value(json!({"metadata": {"name": "elsewhere"}})).unwrap();
    spaces.create(&PostParams::default(), &space).await.unwrap();
    harbour
        .put(r#"{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "checker", "namespace": "elsewhere"}}"#)
        .await;
    let manifest = checkup("one", json!({"image": "sim/hang"}));
    harbour.put(&manifest.replace("\"name\":\"one\"", "\"name\":\"one\",\"namespace\":\"elsewhere\"")).await;
    let pods: Api<Pod> = Api::namespaced(harbour.client(), "elsewhere");
    harbour.until("a pod", async || !pods.list(&ListParams::default()).await.unwrap().items.is_empty()).await;
    spaces.delete("elsewhere", &DeleteParams::default()).await.unwrap();
    harbour
        .until("the namespace to be gone", async || spaces.get_opt("elsewhere").await.unwrap().is_none())
        .await;
}

#[tokio::test(start_paused = true)]
async fn at_its_time_to_live_it_goes_unless_it_is_to_be_looked_at() {
    let mut harbour = start().await;
    play(&harbour, ENDS_WELL);
    harbour.apply(&checkup("one", json!({"ttlSecondsAfterFinished": 300}))).await;
    harbour.apply(&checkup("two", json!({"ttlSecondsAfterFinished": 300, "skipTeardown": true}))).await;
    ended(&harbour, "one").await;
    ended(&harbour, "two").await;
    tokio::time::sleep(Duration::from_secs(240)).await;
    assert_eq!(harbour.names::<Checkup>().await, ["one", "two"]);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(harbour.names::<Checkup>().await, ["two"]);
    let jobs: Vec<_> = harbour.list::<Job>().await.iter().map(|job| job.name_any()).collect();
    assert_eq!(jobs, ["two"]);
}
