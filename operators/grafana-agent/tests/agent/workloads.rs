//! What is deployed: planned without a server.

use std::io::Read as _;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Container, PodSpec, Secret, Service};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass::test::{Cluster, Planned};
use windlass_grafana_agent::kinds::{
    GrafanaAgent, Integration, LogsInstance, MetricsInstance, PodLogs, ServiceMonitor,
};
use windlass_grafana_agent::manifests::{Manifests, Type};

fn object<K: DeserializeOwned>(name: &str, spec: Value) -> K {
    let metadata = json!({"name": name, "namespace": "n", "uid": name});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

fn agent(mut spec: Value) -> GrafanaAgent {
    spec["metrics"]["instanceSelector"] = json!({});
    spec["logs"]["instanceSelector"] = json!({});
    spec["integrations"]["selector"] = json!({});
    object("a", spec)
}

/// One instance of metrics.
fn cluster() -> Cluster {
    Cluster::new().with(&object::<MetricsInstance>("i", json!({"serviceMonitorSelector": {}})))
}

fn config(planned: &Planned, name: &str) -> String {
    let secret: Secret = planned.object(name).unwrap();
    String::from_utf8(secret.data.unwrap()["agent.yml"].0.clone()).unwrap()
}

fn pod(planned: &Planned, name: &str) -> PodSpec {
    let set: StatefulSet = planned.object(name).unwrap();
    set.spec.unwrap().template.spec.unwrap()
}

fn container<'a>(pod: &'a PodSpec, name: &str) -> &'a Container {
    pod.containers.iter().find(|container| container.name == name).unwrap()
}

#[test]
fn integrations_that_run_once_are_a_deployment_and_the_others_a_daemon_set() {
    let volumes = json!({"volumes": [{"name": "data", "emptyDir": {}}],
        "volumeMounts": [{"name": "data", "mountPath": "/x"}]});
    let mut once = json!({"name": "mysqld_exporter", "type": {}, "config": {"data_source_names": "x"},
        "secrets": [{"name": "s", "key": "password"}], "configMaps": [{"name": "c", "key": "ca.crt"}]});
    once["volumes"] = volumes["volumes"].clone();
    once["volumeMounts"] = volumes["volumeMounts"].clone();
    let mut twice = once.clone();
    twice["secrets"] = json!([]);
    let nodes = json!({"name": "node_exporter", "type": {"allNodes": true}, "config": {}});
    let secret: Secret = serde_json::from_value(
        json!({"metadata": {"name": "s", "namespace": "n"}, "data": {"password": "cHc="}}),
    )
    .unwrap();
    let map: ConfigMap = serde_json::from_value(
        json!({"metadata": {"name": "c", "namespace": "n"}, "data": {"ca.crt": "pem"}}),
    )
    .unwrap();
    let cluster = Cluster::new()
        .with(&object::<Integration>("db", once))
        .with(&object::<Integration>("db2", twice))
        .with(&object::<Integration>("nodes", nodes))
        .with(&secret)
        .with(&map);
    let planned = cluster.plan(&agent(json!({})));
    assert_eq!(
        planned.names(),
        [
            "Secret a-secrets",
            "Secret a-integrations-deploy-config",
            "Deployment a-integrations-deploy",
            "Secret a-integrations-ds-config",
            "DaemonSet a-integrations-ds",
        ]
    );
    let text = config(&planned, "a-integrations-deploy-config");
    assert!(text.contains("mysqld_exporter_configs") && !text.contains("node_exporter"));
    let text = config(&planned, "a-integrations-ds-config");
    assert!(text.contains("node_exporter_configs") && !text.contains("mysqld_exporter"));

    let deployment: Deployment = planned.object("a-integrations-deploy").unwrap();
    let spec = deployment.spec.unwrap();
    assert_eq!(spec.replicas, Some(1));
    let set: DaemonSet = planned.object("a-integrations-ds").unwrap();
    let theirs = set.spec.unwrap().template.metadata.unwrap().labels.unwrap();
    let mine = spec.selector.match_labels.unwrap();
    assert!(mine.iter().any(|(label, value)| theirs.get(label) != Some(value)), "each selects its own pods");

    let pod = spec.template.spec.unwrap();
    let names: Vec<&str> = pod.volumes.iter().flatten().map(|volume| volume.name.as_str()).collect();
    assert!(names.contains(&"n-db-data") && names.contains(&"n-db2-data"), "{names:?}");
    let mounts = container(&pod, "grafana-agent").volume_mounts.clone().unwrap();
    assert!(mounts.iter().any(|mount| mount.name == "n-db-data" && mount.mount_path == "/x"));
    let keys = pod.volumes.iter().flatten().find(|volume| volume.name == "integrations-secrets").unwrap();
    let items = keys.secret.clone().unwrap().items.unwrap();
    let items: Vec<(&str, &str)> = items.iter().map(|item| (item.key.as_str(), item.path.as_str())).collect();
    assert_eq!(
        items,
        [
            ("_configMaps_n_c_ca_crt", "configMaps/n/c/ca.crt"),
            ("_secrets_n_s_password", "secrets/n/s/password")
        ]
    );
    let copies: Secret = planned.object("a-secrets").unwrap();
    assert_eq!(copies.data.unwrap()["_secrets_n_s_password"].0, b"pw");
}

#[test]
fn containers_of_the_users_are_merged_by_name() {
    let containers = json!([
        {"name": "grafana-agent", "image": "mine:1", "env": [{"name": "SHARD", "value": "7"}, {"name": "MORE", "value": "x"}],
            "volumeMounts": [{"name": "more", "mountPath": "/more"}], "resources": {"limits": {"cpu": "2"}}},
        {"name": "config-reloader", "args": ["--mine"]},
        {"name": "sidecar", "image": "side:1"},
    ]);
    let spec = json!({"containers": containers, "logLevel": "$(MORE)", "logFormat": "$(LESS)",
        "resources": {"limits": {"memory": "1Gi"}},
        "initContainers": [{"name": "first", "image": "first:1"}]});
    let planned = cluster().plan(&agent(spec));
    let pod = pod(&planned, "a");
    let names: Vec<&str> = pod.containers.iter().map(|container| container.name.as_str()).collect();
    assert_eq!(names, ["config-reloader", "grafana-agent", "sidecar"]);
    assert_eq!(pod.init_containers.as_ref().unwrap()[0].name, "first");

    let agent = container(&pod, "grafana-agent");
    assert_eq!(agent.image.as_deref(), Some("mine:1"));
    let variables = agent.env.as_ref().unwrap();
    let of = |name: &str| {
        variables.iter().filter(|one| one.name == name).map(|one| one.value.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("SHARD"), [Some("7".to_owned())], "merged, not doubled");
    assert_eq!((of("MORE").len(), of("POD_NAME").len()), (1, 1));
    let limits = agent.resources.as_ref().unwrap().limits.as_ref().unwrap();
    assert_eq!(limits.keys().collect::<Vec<_>>(), ["cpu", "memory"]);
    let mounts = agent.volume_mounts.as_ref().unwrap();
    assert!(mounts.iter().any(|mount| mount.mount_path == "/more") && mounts.len() > 3);
    assert!(agent.readiness_probe.is_some() && agent.args.as_ref().unwrap().len() > 3, "the rest stays");
    assert_eq!(container(&pod, "config-reloader").args.as_deref(), Some(&["--mine".to_owned()][..]));

    // A variable of the user's is substituted, an unknown one is not.
    let text = config(&planned, "a-config");
    assert!(text.contains("log_level: $(MORE)") && text.contains(r#"log_format: "\x24(LESS)""#), "{text}");
}

#[test]
fn storage_is_claimed_and_what_kubernetes_cannot_change_is_said() {
    let storage = |size: &str| json!({"storage": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": size}}}}}});
    let planned = cluster().plan(&agent(storage("1Gi")));
    let set: StatefulSet = planned.object("a").unwrap();
    let claims = set.spec.clone().unwrap().volume_claim_templates.unwrap();
    assert_eq!(claims[0].metadata.name.as_deref(), Some("a-wal"));
    let pod = pod(&planned, "a");
    assert!(pod.volumes.iter().flatten().all(|volume| volume.name != "a-wal"), "the claim is the volume");
    let mounts = container(&pod, "grafana-agent").volume_mounts.clone().unwrap();
    assert!(
        mounts.iter().any(|mount| mount.name == "a-wal" && mount.mount_path == "/var/lib/grafana-agent/data")
    );

    let mut made = set.clone();
    made.metadata.namespace = Some("n".into());
    let there = cluster().with(&made);
    assert!(there.plan(&agent(storage("1024Mi"))).problems().is_empty(), "the same size, written otherwise");
    for other in [storage("2Gi"), json!({"storage": {"emptyDir": {}}}), json!({})] {
        let planned = there.plan(&agent(other.clone()));
        let problems = planned.problems();
        assert_eq!((problems.len(), problems[0].reason.as_str()), (1, "StorageFixed"), "{other}");
        let kept: StatefulSet = planned.object("a").unwrap();
        assert_eq!(kept.spec.unwrap().volume_claim_templates, Some(claims.clone()), "{other}");
    }
    let planned = there.plan(&agent(
        json!({"storage": {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, "metrics": {"shards": 2}}),
    ));
    let fresh: StatefulSet = planned.object("a-shard-1").unwrap();
    let volumes = fresh.spec.unwrap().template.spec.unwrap().volumes.unwrap();
    assert!(volumes.iter().any(|volume| volume.name == "a-shard-1-wal" && volume.ephemeral.is_some()));
}

#[test]
fn what_is_wrong_with_metrics_does_not_hold_back_logs_nor_integrations() {
    let missing = json!({"username": {"name": "gone", "key": "k"}});
    let cluster = cluster()
        .with(&object::<LogsInstance>("l", json!({"podLogsSelector": {}})))
        .with(&object::<PodLogs>("p", json!({"selector": {}})))
        .with(&object::<Integration>("x", json!({"name": "x", "type": {}, "config": {}})));
    let good = agent(json!({"metrics": {"remoteWrite": [{"url": "u"}]}}));
    let bad = agent(json!({"metrics": {"remoteWrite": [{"url": "u", "basicAuth": missing}],
        "scrapeInterval": "10s", "scrapeTimeout": "1m", "instanceNamespaceSelector":
        {"matchExpressions": [{"key": "k", "operator": "Odd"}]}}}));
    let (good, bad) = (cluster.plan(&good), cluster.plan(&bad));
    assert!(!bad.problems().is_empty() && bad.halt().is_none());
    for name in ["a-logs-config", "a-integrations-deploy-config"] {
        assert!(bad.object::<Secret>(name).is_some(), "{name}");
    }
    assert_eq!(config(&bad, "a-logs-config"), config(&good, "a-logs-config"));
    assert_eq!(bad.object::<DaemonSet>("a-logs"), good.object::<DaemonSet>("a-logs"));
    assert_eq!(
        bad.object::<Deployment>("a-integrations-deploy"),
        good.object::<Deployment>("a-integrations-deploy")
    );
}

#[test]
fn a_long_configuration_is_compressed_in_pieces_that_make_up_the_same_text() {
    let many = |edited: usize| {
        let mut cluster = cluster();
        let mut manifests = Manifests::default();
        let mut add = |kind: &str, object: Value| {
            let mut object = object;
            let group = if kind == "ServiceMonitor" {
                "monitoring.coreos.com/v1"
            } else {
                "monitoring.grafana.com/v1alpha1"
            };
            object["apiVersion"] = json!(group);
            object["kind"] = json!(kind);
            manifests.add(&object.to_string(), "test").unwrap();
        };
        for index in 0..300 {
            let path = if index == edited { "/edited" } else { "/metrics" };
            let monitor: ServiceMonitor = object(
                &format!("m{index}"),
                json!({"selector": {"matchLabels": {"app": format!("app-{index}")}}, "endpoints": [{"path": path}]}),
            );
            cluster = cluster.with(&monitor);
            add("ServiceMonitor", serde_json::to_value(&monitor).unwrap());
        }
        let agent = agent(json!({}));
        add("GrafanaAgent", serde_json::to_value(&agent).unwrap());
        let instance = object::<MetricsInstance>("i", json!({"serviceMonitorSelector": {}}));
        add("MetricsInstance", serde_json::to_value(instance).unwrap());
        let secret: Secret = cluster.plan(&agent).object("a-config").unwrap();
        let packed = secret.data.unwrap()["agent.yml"].0.clone();
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
        assert!(
            text.len() > 200 * 1024 && packed.len() < text.len() / 10,
            "{} of {}",
            packed.len(),
            text.len()
        );
        assert_eq!(text, manifests.render(Type::Metrics).unwrap().yaml);
        packed
    };
    let (first, again, edited) = (many(1000), many(1000), many(150));
    assert_eq!(first, again);
    // What is before the edited piece, and what is after it, is the same.
    let same = first.iter().zip(&edited).take_while(|(a, b)| a == b).count();
    let same_end = first.iter().rev().zip(edited.iter().rev()).take_while(|(a, b)| a == b).count();
    assert!(same + same_end > first.len() * 2 / 3, "{same} and {same_end} of {}", first.len());
}

#[test]
fn pods_and_what_runs_them_have_the_labels_of_the_original() {
    let spec = json!({"podMetadata": {"labels": {"team": "x", "grafana-agent": "mine"}}});
    let planned = cluster().plan(&agent(spec));
    let set: StatefulSet = planned.object("a").unwrap();
    let template = set.spec.unwrap().template.metadata.unwrap().labels.unwrap();
    assert!(set.metadata.labels.unwrap().keys().eq(template.keys()));
    assert_eq!((template["team"].as_str(), template["grafana-agent"].as_str()), ("x", "a"));

    // All pods of the agent, those of logs and integrations as well.
    let service: Service = planned.object("a-operated").unwrap();
    assert_eq!(service.metadata.labels.unwrap()["operated-agent"], "true");
    let selector: Value = serde_json::to_value(service.spec.unwrap().selector).unwrap();
    let name = json!({"app.kubernetes.io/name": "grafana-agent", "operator.agent.grafana.com/name": "a"});
    assert_eq!(selector, name);
}
