//! An agent's whole life uses what its operator is allowed, and the operator is allowed no more.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_grafana_agent::kinds::{GrafanaAgent, Integration, MetricsInstance, ServiceMonitor};
use windlass_grafana_agent::{SAMPLE, operator};
use windlass_testkit::Harbour;

#[tokio::test(start_paused = true)]
async fn nothing_is_allowed_that_its_life_does_not_use() {
    let harbour = Harbour::start(operator).await;
    harbour.put(SAMPLE).await;
    harbour.settle().await;
    let merge = PatchParams::default();
    let spec = |spec: Value| Patch::Merge(json!({"spec": spec}));
    // One that runs once instead of on each node, and on each node again: a Deployment comes and goes.
    for on_nodes in [false, true] {
        let integrations: Api<Integration> = harbour.api();
        let change = spec(json!({"type": {"unique": true, "allNodes": on_nodes}}));
        integrations.patch("agent-sample-nodes", &merge, &change).await.unwrap();
        harbour.settle().await;
    }
    // Nothing is collected any more, hence nothing runs; then all of it again, and in namespaces by their labels.
    let agents: Api<GrafanaAgent> = harbour.api();
    let nobody = json!({"matchLabels": {"nobody": "yes"}});
    let none = spec(json!({"metrics": {"instanceSelector": nobody}, "logs": {"instanceSelector": nobody},
        "integrations": {"selector": nobody}}));
    agents.patch("agent-sample", &merge, &none).await.unwrap();
    harbour.settle().await;
    let again = json!({"matchLabels": {"nobody": null}});
    let again = spec(json!({"metrics": {"instanceSelector": again}, "logs": {"instanceSelector": again},
        "integrations": {"selector": again}}));
    agents.patch("agent-sample", &merge, &again).await.unwrap();
    harbour.settle().await;
    let instances: Api<MetricsInstance> = harbour.api();
    let wider = spec(json!({"serviceMonitorNamespaceSelector": {"matchLabels": {"scraped": "yes"}}}));
    instances.patch("agent-sample-metrics", &merge, &wider).await.unwrap();
    let spaces: Api<Namespace> = Api::all(harbour.client());
    spaces
        .patch("default", &merge, &Patch::Merge(json!({"metadata": {"labels": {"scraped": "yes"}}})))
        .await
        .unwrap();
    harbour.settle().await;
    // Twice the same trouble, for everybody.
    let secrets: Api<Secret> = harbour.api();
    for _ in 0..2 {
        let mut secret = secrets.get("agent-sample-shop").await.unwrap();
        secrets.delete("agent-sample-shop", &DeleteParams::default()).await.unwrap();
        harbour.settle().await;
        secret.metadata.resource_version = None;
        secret.metadata.uid = None;
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        harbour.settle().await;
    }
    // A ConfigMap that nobody has looked at before.
    let monitors: Api<ServiceMonitor> = harbour.api();
    let tls = json!({"ca": {"configMap": {"name": "kube-root-ca.crt", "key": "ca.crt"}}});
    let endpoints = json!([{"port": "web", "scheme": "https", "tlsConfig": tls}]);
    monitors.patch("agent-sample-shop", &merge, &spec(json!({"endpoints": endpoints}))).await.unwrap();
    harbour.settle().await;
    agents.delete("agent-sample", &DeleteParams::background()).await.unwrap();
    harbour.settle().await;

    // An object that is there before its event, or that a list did not keep: no more than `list` shows.
    let gets = [
        "get configmaps",
        "get daemonsets",
        "get deployments",
        "get integrations",
        "get logsinstances",
        "get metricsinstances",
        "get namespaces",
        "get podlogs",
        "get podmonitors",
        "get probes",
        "get servicemonitors",
        "get services",
        "get statefulsets",
    ];
    // These hear of the operator only when something is wrong with them, as here with a ServiceMonitor.
    let quiet = ["patch podmonitors/status", "patch probes/status"];
    let explained: BTreeSet<String> = gets.into_iter().chain(quiet).map(str::to_owned).collect();
    let unused = harbour.unused_permissions();
    assert_eq!(unused, explained, "allowed, and neither used nor explained");
}
