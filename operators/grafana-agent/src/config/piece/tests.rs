//! How often pieces are written, in an operator that runs.

use std::cell::Cell;
use std::fmt::Write as _;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use windlass_testkit::Harbour;

use crate::kinds::ServiceMonitor;

thread_local! {
    // A test and the operator in it run on one thread, which no other test has.
    static WRITTEN: Cell<usize> = const { Cell::new(0) };
}

pub(super) fn count() {
    WRITTEN.set(WRITTEN.get() + 1);
}

const MONITORS: usize = 60;

async fn up() -> Harbour {
    let mut manifest = "
apiVersion: monitoring.grafana.com/v1alpha1
kind: MetricsInstance
metadata: {name: metrics}
spec: {serviceMonitorSelector: {}}
---
apiVersion: monitoring.grafana.com/v1alpha1
kind: GrafanaAgent
metadata: {name: one}
spec: {metrics: {replicas: 0, instanceSelector: {}}}
---
apiVersion: monitoring.grafana.com/v1alpha1
kind: GrafanaAgent
metadata: {name: two}
spec: {metrics: {replicas: 0, instanceSelector: {}}}
---
apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {token: x}
"
    .to_owned();
    for index in 0..MONITORS {
        let _ = write!(
            manifest,
            "---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {{name: m{index}}}
spec: {{selector: {{}}, endpoints: [{{port: web}}{}]}}
",
            if index == 5 { ", {bearerTokenSecret: {name: token, key: token}}" } else { "" }
        );
    }
    let harbour = Harbour::start(crate::operator).await;
    harbour.put(&manifest).await;
    harbour.settle().await;
    harbour
}

async fn edit(monitors: &Api<ServiceMonitor>, index: usize, path: &str) {
    let change = json!({"spec": {"endpoints": [{"port": "web", "path": path}]}});
    monitors.patch(&format!("m{index}"), &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
}

async fn configuration(harbour: &Harbour, agent: &str) -> (String, u64) {
    let secret = harbour.api::<Secret>().get(&format!("{agent}-config")).await.unwrap();
    let version = secret.resource_version().unwrap().parse().unwrap();
    (String::from_utf8(secret.data.unwrap()["agent.yml"].0.clone()).unwrap(), version)
}

#[tokio::test(start_paused = true)]
async fn editing_one_writes_that_one_again_and_agents_share_it() {
    let harbour = up().await;
    let monitors = harbour.api::<ServiceMonitor>();
    let written = WRITTEN.replace(0);
    assert!((MONITORS..2 * MONITORS).contains(&written), "{written} for two agents that do not differ");

    edit(&monitors, 7, "/edited").await;
    harbour.settle().await;
    assert_eq!(WRITTEN.replace(0), 1, "one monitor, two agents");
    for agent in ["one", "two"] {
        assert!(configuration(&harbour, agent).await.0.contains("metrics_path: /edited"));
    }

    let secret = json!({"stringData": {"token": "y"}});
    let secrets = harbour.api::<Secret>();
    secrets.patch("token", &PatchParams::default(), &Patch::Merge(secret)).await.unwrap();
    harbour.settle().await;
    assert_eq!(WRITTEN.replace(0), 1, "the one that names the Secret");
    assert!(configuration(&harbour, "one").await.0.contains("bearer_token: \"y\""));

    monitors.delete("m8", &DeleteParams::default()).await.unwrap();
    harbour.settle().await;
    assert_eq!(WRITTEN.replace(0), 0, "none has to be written again because one is gone");
    assert!(!configuration(&harbour, "one").await.0.contains("serviceMonitor/default/m8/"));
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_edits_becomes_a_few_writes() {
    let harbour = up().await;
    let monitors = harbour.api::<ServiceMonitor>();
    let writes = || harbour.requests().get("patch secrets").copied().unwrap_or_default();
    let before = writes();
    WRITTEN.set(0);
    for round in 0..2 {
        for index in 0..50 {
            edit(&monitors, index, &format!("/edit-{round}")).await;
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
    harbour.settle().await;
    let text = configuration(&harbour, "one").await.0;
    assert_eq!(text.matches("metrics_path: /edit-1").count(), 50);
    let writes = writes() - before;
    assert!((4..=8).contains(&writes), "{writes} writes of two Secrets");
    assert!(WRITTEN.get() <= 150, "{} pieces", WRITTEN.get());
}
