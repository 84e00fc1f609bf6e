//! An agent's life on the drydock, in virtual time: it comes up, what it selects comes and goes, it is healed and
//! deleted.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use windlass_grafana_agent::kinds::{GrafanaAgent, ServiceMonitor};
use windlass_grafana_agent::{SAMPLE, operator};
use windlass_testkit::{Harbour, Matrix};

#[tokio::test(start_paused = true)]
async fn it_comes_up_and_is_then_silent_also_after_a_restart() {
    let mut harbour = up().await;
    assert_eq!(harbour.names::<StatefulSet>().await, ["agent-sample", "agent-sample-shard-1"]);
    assert_eq!(harbour.names::<DaemonSet>().await, ["agent-sample-integrations-ds", "agent-sample-logs"]);
    assert!(harbour.names::<Deployment>().await.is_empty());
    assert_eq!(harbour.names::<Service>().await, ["agent-sample-operated", "kubernetes"]);
    let copies = harbour.api::<Secret>().get("agent-sample-secrets").await.unwrap().data.unwrap();
    assert_eq!(copies["_secrets_default_agent_sample_credentials_password"].0, b"not-a-secret");
    let before = harbour.revision();
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert_eq!(harbour.revision(), before, "something was written at rest");
    harbour.restart().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(harbour.revision(), before, "something was written after a restart");
}

#[tokio::test(start_paused = true)]
async fn what_is_selected_comes_and_goes_by_labels_of_objects_and_of_namespaces() {
    let harbour = up().await;
    let monitors = harbour.api::<ServiceMonitor>();
    let merge = PatchParams::default();
    let label = |value: Value| Patch::Merge(json!({"metadata": {"labels": {"agent": value}}}));

    monitors.patch("agent-sample-shop", &merge, &label(json!("other"))).await.unwrap();
    harbour.settle().await;
    assert!(!config(&harbour).await.contains("serviceMonitor/"), "it left the selector");
    monitors.patch("agent-sample-shop", &merge, &label(json!("sample"))).await.unwrap();
    harbour.settle().await;
    assert!(config(&harbour).await.contains("serviceMonitor/default/agent-sample-shop/0"));

    // Another namespace, and then its label.
    let spaces: Api<Namespace> = Api::all(harbour.client());
    let space = serde_json::from_value(json!({"metadata": {"name": "team"}})).unwrap();
    spaces.create(&PostParams::default(), &space).await.unwrap();
    let theirs: Api<ServiceMonitor> = Api::namespaced(harbour.client(), "team");
    let monitor = json!({"metadata": {"name": "theirs", "labels": {"agent": "sample"}},
        "spec": {"selector": {}, "endpoints": [{"port": "web"}]}});
    theirs.create(&PostParams::default(), &serde_json::from_value(monitor).unwrap()).await.unwrap();
    let wider = json!({"spec": {"serviceMonitorNamespaceSelector": {"matchExpressions":
        [{"key": "scraped", "operator": "In", "values": ["yes"]}]}}});
    let instances: Api<windlass_grafana_agent::kinds::MetricsInstance> = harbour.api();
    instances.patch("agent-sample-metrics", &merge, &Patch::Merge(wider)).await.unwrap();
    harbour.settle().await;
    assert!(!config(&harbour).await.contains("serviceMonitor/"));
    let scraped = |value: Value| Patch::Merge(json!({"metadata": {"labels": {"scraped": value}}}));
    spaces.patch("team", &merge, &scraped(json!("yes"))).await.unwrap();
    harbour.settle().await;
    assert!(config(&harbour).await.contains("serviceMonitor/team/theirs/0"));
    spaces.patch("team", &merge, &scraped(Value::Null)).await.unwrap();
    harbour.settle().await;
    assert!(!config(&harbour).await.contains("serviceMonitor/"));
}

#[tokio::test(start_paused = true)]
async fn a_change_touches_exactly_the_agents_that_it_concerns() {
    const AGENTS: &str = "
apiVersion: monitoring.grafana.com/v1alpha1
kind: MetricsInstance
metadata: {name: red, labels: {colour: red}}
spec: {serviceMonitorSelector: {matchLabels: {colour: red}}}
---
apiVersion: monitoring.grafana.com/v1alpha1
kind: MetricsInstance
metadata: {name: blue, labels: {colour: blue}}
spec: {serviceMonitorSelector: {matchLabels: {colour: blue}}}
---
apiVersion: monitoring.grafana.com/v1alpha1
kind: GrafanaAgent
metadata: {name: red-a}
spec: {metrics: {instanceSelector: {matchLabels: {colour: red}}}}
---
apiVersion: monitoring.grafana.com/v1alpha1
kind: GrafanaAgent
metadata: {name: red-b}
spec: {metrics: {instanceSelector: {matchLabels: {colour: red}}, shards: 2}}
---
apiVersion: monitoring.grafana.com/v1alpha1
kind: GrafanaAgent
metadata: {name: blue}
spec: {metrics: {instanceSelector: {matchLabels: {colour: blue}}}}
";
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(AGENTS).await;
    harbour.ready().await;
    harbour.settle().await;
    let secrets = harbour.api::<Secret>();
    let versions = async || {
        let mut versions = Vec::new();
        for agent in ["red-a-config", "red-b-config", "blue-config"] {
            versions.push(secrets.get(agent).await.unwrap().resource_version().unwrap());
        }
        versions
    };
    let touched = async |before: &[String]| {
        let after = versions().await;
        before.iter().zip(&after).map(|(before, after)| before != after).collect::<Vec<_>>()
    };
    let monitors = harbour.api::<ServiceMonitor>();
    let monitor = json!({"metadata": {"name": "m", "labels": {"colour": "red"}},
        "spec": {"selector": {}, "endpoints": [{"port": "web"}]}});
    let before = versions().await;
    monitors.create(&PostParams::default(), &serde_json::from_value(monitor).unwrap()).await.unwrap();
    harbour.settle().await;
    assert_eq!(touched(&before).await, [true, true, false], "it entered the selector of two");

    let before = versions().await;
    let blue = Patch::Merge(json!({"metadata": {"labels": {"colour": "blue"}}}));
    monitors.patch("m", &PatchParams::default(), &blue).await.unwrap();
    harbour.settle().await;
    assert_eq!(touched(&before).await, [true, true, true], "it left two, and entered that of the third");

    let before = versions().await;
    monitors.delete("m", &DeleteParams::default()).await.unwrap();
    harbour.settle().await;
    assert_eq!(touched(&before).await, [false, false, true], "it is gone");
}

#[tokio::test(start_paused = true)]
async fn a_monitor_that_is_well_is_never_written_to() {
    let harbour = up().await;
    let monitors = harbour.api::<ServiceMonitor>();
    let change = |endpoint: Value| Patch::Merge(json!({"spec": {"endpoints": [endpoint]}}));
    let monitor = monitors.get("agent-sample-shop").await.unwrap();
    assert!(monitor.status.is_none());

    let bad = change(json!({"port": "web", "interval": "10s", "scrapeTimeout": "20s"}));
    let after = monitors.patch("agent-sample-shop", &PatchParams::default(), &bad).await.unwrap();
    harbour.settle().await;
    let monitor = monitors.get("agent-sample-shop").await.unwrap();
    assert_ne!(monitor.resource_version(), after.resource_version(), "it is told what is wrong");
    let status = serde_json::to_value(monitor.status.unwrap()).unwrap();
    assert!(message(&status, "Degraded").contains("scrapeTimeout 20s is longer"), "{status:#}");

    let good = change(json!({"port": "web"}));
    monitors.patch("agent-sample-shop", &PatchParams::default(), &good).await.unwrap();
    harbour.settle().await;
    let monitor = monitors.get("agent-sample-shop").await.unwrap();
    let left = serde_json::to_value(&monitor.status).unwrap();
    assert!(left.is_null() || left == json!({}), "what was wrong is taken back: {left}");

    let edit = change(json!({"port": "admin"}));
    let after = monitors.patch("agent-sample-shop", &PatchParams::default(), &edit).await.unwrap();
    harbour.settle().await;
    let monitor = monitors.get("agent-sample-shop").await.unwrap();
    assert_eq!(monitor.resource_version(), after.resource_version());

    monitors.patch("agent-sample-shop", &PatchParams::default(), &bad).await.unwrap();
    harbour.settle().await;
    let monitor = monitors.get("agent-sample-shop").await.unwrap();
    let status = serde_json::to_value(monitor.status.unwrap()).unwrap();
    assert!(message(&status, "Degraded").contains("scrapeTimeout 20s is longer"), "once more: {status:#}");
}

#[tokio::test(start_paused = true)]
async fn one_bad_monitor_is_left_out_alone_and_comes_back() {
    let harbour = up().await;
    harbour.api::<Secret>().delete("agent-sample-shop", &DeleteParams::default()).await.unwrap();
    harbour.settle().await;
    let text = config(&harbour).await;
    assert!(!text.contains("serviceMonitor/") && text.contains("podMonitor/") && text.contains("probe/"));
    let missing = "Secret default/agent-sample-shop is not there";
    let agent = harbour.api::<GrafanaAgent>().get("agent-sample").await.unwrap();
    let status = serde_json::to_value(agent.status.unwrap()).unwrap();
    assert_eq!(status["metrics"]["summary"], "2 in, 1 left out");
    assert_eq!(status["leftOut"][0]["name"], "agent-sample-shop");
    assert!(message(&status, "Degraded").contains(missing), "{status:#}");
    let monitor = harbour.api::<ServiceMonitor>().get("agent-sample-shop").await.unwrap();
    let status = serde_json::to_value(monitor.status.unwrap()).unwrap();
    assert!(message(&status, "Degraded").contains(missing), "{status:#}");
    let events = harbour.api::<Event>().list(&ListParams::default()).await.unwrap();
    let told = |event: &Event| event.note.as_deref().is_some_and(|note| note.contains(missing));
    assert!(events.items.iter().filter(|event| told(event)).count() >= 2, "one for each");

    let secret = json!({"metadata": {"name": "agent-sample-shop"},
        "stringData": {"username": "scraper", "password": "${HOME}$(SHARD)"}});
    let secret = serde_json::from_value(secret).unwrap();
    harbour.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    harbour.settle().await;
    let text = config(&harbour).await;
    assert!(text.contains("serviceMonitor/"));
    assert!(!text.contains("${HOME}"), "nothing substitutes it on the way");
    let parsed: Value = serde_saphyr::from_str(&text).unwrap();
    let password = &parsed["metrics"]["configs"][0]["scrape_configs"][0]["basic_auth"]["password"];
    assert_eq!(password, "${HOME}$(SHARD)");
}

#[tokio::test(start_paused = true)]
async fn secrets_that_are_edited_or_deleted_are_healed() {
    let harbour = up().await;
    let before = config(&harbour).await;
    let secrets = harbour.api::<Secret>();
    let edit = json!({"stringData": {"agent.yml": "server: {}", "other": "x"}});
    secrets.patch("agent-sample-config", &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
    secrets.delete("agent-sample-secrets", &DeleteParams::default()).await.unwrap();
    harbour.settle().await;
    assert_eq!(config(&harbour).await, before);
    assert_eq!(secrets.get("agent-sample-secrets").await.unwrap().data.unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn agents_of_one_name_in_two_namespaces_do_not_touch_each_other() {
    let harbour = up().await;
    let spaces: Api<Namespace> = Api::all(harbour.client());
    let space = serde_json::from_value(json!({"metadata": {"name": "team"}})).unwrap();
    spaces.create(&PostParams::default(), &space).await.unwrap();
    let agents: Api<GrafanaAgent> = Api::namespaced(harbour.client(), "team");
    let agent = json!({"metadata": {"name": "agent-sample"}, "spec": {"metrics": {"instanceSelector": {},
        "instanceNamespaceSelector": {}}}});
    agents.create(&PostParams::default(), &serde_json::from_value(agent).unwrap()).await.unwrap();
    harbour.settle().await;
    let theirs: Api<StatefulSet> = Api::namespaced(harbour.client(), "team");
    let names = async || {
        let sets = theirs.list(&ListParams::default()).await.unwrap();
        sets.items.iter().map(|set| set.name_any()).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["agent-sample"]);
    assert_eq!(harbour.names::<StatefulSet>().await, ["agent-sample", "agent-sample-shard-1"]);

    let paused = Patch::Merge(json!({"spec": {"paused": true, "metrics": {"shards": 1}}}));
    let mine = harbour.api::<GrafanaAgent>();
    mine.patch("agent-sample", &PatchParams::default(), &paused).await.unwrap();
    harbour.settle().await;
    assert_eq!(
        harbour.names::<StatefulSet>().await,
        ["agent-sample", "agent-sample-shard-1"],
        "it is paused"
    );
    let on = Patch::Merge(json!({"spec": {"paused": false}}));
    mine.patch("agent-sample", &PatchParams::default(), &on).await.unwrap();
    harbour.settle().await;
    assert_eq!(harbour.names::<StatefulSet>().await, ["agent-sample"], "one shard is too many");

    mine.delete("agent-sample", &DeleteParams::default()).await.unwrap();
    harbour.settle().await;
    assert!(harbour.names::<StatefulSet>().await.is_empty() && harbour.names::<DaemonSet>().await.is_empty());
    assert_eq!(names().await, ["agent-sample"]);
}

#[tokio::test(start_paused = true)]
async fn no_fault_changes_where_it_ends() {
    const MANIFEST: &str = "
apiVersion: monitoring.grafana.com/v1alpha1
kind: MetricsInstance
metadata: {name: metrics}
spec: {serviceMonitorSelector: {}, remoteWrite: [{url: http://x}]}
---
apiVersion: monitoring.grafana.com/v1alpha1
kind: GrafanaAgent
metadata: {name: agent}
spec: {metrics: {shards: 2, instanceSelector: {}}}
";
    // One good monitor, and one that is told of its fault.
    const MONITORS: &str = "
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: shop}
spec: {selector: {}, endpoints: [{port: web}]}
---
apiVersion: monitoring.coreos.com/v1
kind: Probe
metadata: {name: front}
spec: {prober: {url: x}}
";
    Matrix::new(operator, &[MANIFEST]).beside(MONITORS).run().await;
}

/// The sample, ready.
async fn up() -> Harbour {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(SAMPLE).await;
    let agents = harbour.api::<GrafanaAgent>();
    harbour
        .until("the agent to be ready", async || {
            let agent = agents.get("agent-sample").await.unwrap();
            agent.status.is_some_and(|status| status.common.is_ready() && status.integrations.is_some())
        })
        .await;
    harbour.settle().await;
    harbour
}

async fn config(harbour: &Harbour) -> String {
    let secret = harbour.api::<Secret>().get("agent-sample-config").await.unwrap();
    String::from_utf8(secret.data.unwrap()["agent.yml"].0.clone()).unwrap()
}

fn message(status: &Value, kind: &str) -> String {
    let conditions = status["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == kind).unwrap();
    assert_eq!(found["status"], "True", "{found}");
    found["message"].as_str().unwrap().to_owned()
}
