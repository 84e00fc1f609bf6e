//! What must hold of every rendering: nothing bad spreads, nothing depends on order, every target has one shard.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass::Context;
use windlass_grafana_agent::manifests::{Manifests, Rendered, Type};

use crate::relabel::{self, Labels};

/// An agent and an instance that select everything.
fn base(metrics: Value) -> Vec<Value> {
    let mut metrics = metrics;
    metrics["instanceSelector"] = json!({});
    metrics["instanceNamespaceSelector"] = json!({});
    let everything = json!({"serviceMonitorSelector": {}, "serviceMonitorNamespaceSelector": {},
        "podMonitorSelector": {}, "probeSelector": {},
        "additionalScrapeConfigs": {"name": "more", "key": "more", "optional": true}});
    let logs = json!({"instanceSelector": {}, "enforcedNamespaceLabel": metrics["enforcedNamespaceLabel"]});
    vec![
        object(
            "monitoring.grafana.com/v1alpha1",
            "GrafanaAgent",
            "agent",
            json!({"metrics": metrics, "logs": logs}),
        ),
        object("monitoring.grafana.com/v1alpha1", "MetricsInstance", "i", everything),
        object("monitoring.grafana.com/v1alpha1", "LogsInstance", "l", json!({"podLogsSelector": {}})),
    ]
}

fn object(version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "space"}, "spec": spec})
}

fn monitor(name: &str, endpoint: Value) -> Value {
    let spec = json!({"selector": {}, "endpoints": [endpoint]});
    object("monitoring.coreos.com/v1", "ServiceMonitor", name, spec)
}

fn probe(name: &str, targets: Value) -> Value {
    object(
        "monitoring.coreos.com/v1",
        "Probe",
        name,
        json!({"prober": {"url": "prober"}, "targets": targets}),
    )
}

fn secret(name: &str, key: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "space"},
        "stringData": {key: value}})
}

fn render(objects: &[Value], which: Type) -> (Rendered, Value) {
    let mut manifests = Manifests::default();
    for object in objects {
        manifests.add(&object.to_string(), "test").unwrap();
    }
    let rendered = manifests.render(which).unwrap();
    let tree = serde_saphyr::from_str(&rendered.yaml).unwrap();
    (rendered, tree)
}

fn jobs(tree: &Value) -> BTreeMap<String, Value> {
    let scrapes = tree["metrics"]["configs"][0]["scrape_configs"].as_array().cloned().unwrap_or_default();
    scrapes.into_iter().map(|scrape| (scrape["job_name"].as_str().unwrap().to_owned(), scrape)).collect()
}

#[test]
fn what_is_bad_is_left_out_alone() {
    let bad = [
        (
            monitor("no-secret", json!({"basicAuth": {"username": {"name": "gone", "key": "k"}}})),
            "SecretMissing",
        ),
        (monitor("no-key", json!({"bearerTokenSecret": {"name": "s", "key": "gone"}})), "SecretKeyMissing"),
        (
            monitor("no-ca", json!({"tlsConfig": {"ca": {"configMap": {"name": "gone", "key": "k"}}}})),
            "ConfigMapMissing",
        ),
        (monitor("regex", json!({"relabelings": [{"targetLabel": "x", "regex": "("}]})), "BadRegex"),
        (
            monitor("metric-regex", json!({"metricRelabelings": [{"targetLabel": "x", "regex": "["}]})),
            "BadRegex",
        ),
        (monitor("timeout", json!({"interval": "10s", "scrapeTimeout": "11s"})), "TimeoutTooLong"),
        (monitor("global-timeout", json!({"scrapeTimeout": "2m"})), "TimeoutTooLong"),
        (
            monitor("hashmod", json!({"relabelings": [{"targetLabel": "x", "action": "hashmod"}]})),
            "BadRelabeling",
        ),
        (
            monitor("two", json!({"bearerTokenFile": "f", "authorization": {"type": "x"}})),
            "AmbiguousAuthentication",
        ),
        (
            monitor(
                "nobody",
                json!({"oauth2": {"clientId": {}, "clientSecret": {"name": "s", "key": "k"},
                "tokenUrl": "t"}}),
            ),
            "BadOAuth2",
        ),
        (monitor("basic", json!({"authorization": {"type": "basic"}})), "BadAuthorization"),
        (probe("no-targets", json!({})), "NoTargets"),
        (probe("no-hosts", json!({"staticConfig": {}})), "NoTargets"),
    ];
    let mut objects = base(json!({}));
    objects.push(secret("s", "k", "v"));
    objects.push(monitor("good", json!({"port": "web", "bearerTokenSecret": {"key": ""}})));
    objects.extend(bad.iter().map(|(object, _)| object.clone()));
    let (rendered, tree) = render(&objects, Type::Metrics);
    assert_eq!(jobs(&tree).keys().collect::<Vec<_>>(), ["serviceMonitor/space/good/0"]);
    for (object, reason) in bad {
        let name = object["metadata"]["name"].as_str().unwrap();
        let trouble = rendered.troubles.iter().find(|trouble| trouble.name == name);
        assert_eq!(trouble.map(|trouble| trouble.reason.as_str()), Some(reason), "{name}");
    }
}

#[test]
fn files_can_be_denied_to_monitors() {
    let mut objects = base(json!({"arbitraryFSAccessThroughSMs": {"deny": true}}));
    objects.push(monitor("token", json!({"bearerTokenFile": "/etc/token"})));
    objects.push(monitor("ca", json!({"tlsConfig": {"caFile": "/etc/ca"}})));
    objects.push(monitor("good", json!({"port": "web"})));
    let (_, tree) = render(&objects, Type::Metrics);
    assert_eq!(jobs(&tree).len(), 1);
}

#[test]
fn references_that_would_share_a_name_are_told_apart() {
    let mut objects = base(json!({}));
    for name in ["a-b", "a.b", "c"] {
        objects.push(secret(name, "k", name));
        objects.push(monitor(name, json!({"authorization": {"credentials": {"name": name, "key": "k"}}})));
    }
    let (_, tree) = render(&objects, Type::Metrics);
    let file = |name: &str| {
        let job = &jobs(&tree)[&format!("serviceMonitor/space/{name}/0")];
        job["authorization"]["credentials_file"].as_str().unwrap().to_owned()
    };
    assert_eq!(file("a-b"), "/var/lib/grafana-agent/secrets/_secrets_space_a_b_k");
    assert_eq!(file("c"), "/var/lib/grafana-agent/secrets/_secrets_space_c_k");
    assert!(file("a.b").starts_with("/var/lib/grafana-agent/secrets/_secrets_space_a_b_k_"));
}

#[test]
fn an_empty_replacement_empties_a_label() {
    let rule = json!({"sourceLabels": ["a", "b"], "separator": "", "targetLabel": "t", "replacement": ""});
    let mut objects = base(json!({}));
    objects.push(monitor("m", json!({"relabelings": [rule], "metricRelabelings": [rule]})));
    let (_, tree) = render(&objects, Type::Metrics);
    let scrape = &jobs(&tree)["serviceMonitor/space/m/0"];
    let rules = scrape["relabel_configs"].as_array().unwrap();
    let expected =
        json!({"source_labels": ["a", "b"], "separator": "", "target_label": "t", "replacement": ""});
    assert!(rules.contains(&expected) && scrape["metric_relabel_configs"] == json!([expected]), "{scrape:#}");
}

/// A rule as somebody who means no good might write it.
fn any_rule(context: &Context) -> Value {
    const LABELS: [&str; 6] = ["ns", "__address__", "__param_target", "instance", "__tmp_hash", "other"];
    const EXPRESSIONS: [&str; 5] = ["(.*)", "ns", "__.*", "(a)|(b)", ".+"];
    const TEXTS: [&str; 5] = ["$1", "", "ns", "mine", "${1}x"];
    let of = |list: &[&str]| list[context.below(list.len() as u64) as usize].to_owned();
    let mut rule =
        json!({"sourceLabels": [of(&LABELS)], "regex": of(&EXPRESSIONS), "replacement": of(&TEXTS)});
    let action = of(&["replace", "replace", "labeldrop", "labelkeep", "labelmap", "uppercase"]);
    if matches!(action.as_str(), "replace" | "uppercase") {
        rule["targetLabel"] = json!(of(&LABELS));
    }
    rule["action"] = json!(action);
    rule
}

#[tokio::test]
async fn whatever_rules_say_the_label_holds_and_a_target_has_one_shard_at_most() {
    for seed in 0..150 {
        let context = Context::seeded(seed);
        let rules = |most: u64| (0..context.below(most)).map(|_| any_rule(&context)).collect::<Vec<_>>();
        let honor = context.below(2) == 0;
        let shards = 1 + context.below(4) as usize;
        let mut objects = base(json!({"enforcedNamespaceLabel": "ns", "shards": shards}));
        objects.push(monitor(
            "m",
            json!({"honorLabels": honor, "relabelings": rules(5), "metricRelabelings": rules(5)}),
        ));
        let targets = json!({"staticConfig": {"static": ["x"], "relabelingConfigs": rules(5)}});
        objects.push(probe("p", targets));
        let (_, tree) = render(&objects, Type::Metrics);
        for (job, scrape) in jobs(&tree) {
            for target in 0..10 {
                let labels = Labels::from([
                    ("__address__".into(), format!("10.0.0.{target}:80")),
                    ("ns".into(), "theirs".into()),
                ]);
                let kept: Vec<Labels> = (0..shards)
                    .filter_map(|shard| relabel::run(&scrape["relabel_configs"], labels.clone(), shard))
                    .collect();
                assert!(kept.len() <= 1, "seed {seed}, {job}: on {} of {shards} shards", kept.len());
                let Some(target) = kept.first() else { continue };
                assert_eq!(target["ns"], "space", "seed {seed}, {job}");
                // A sample that claims the label itself.
                let honored = honor && job.starts_with("serviceMonitor/");
                let claims = if honored { "claimed" } else { "space" };
                let sample = Labels::from([("__name__".into(), "up".into()), ("ns".into(), claims.into())]);
                if let Some(sample) = relabel::run(&scrape["metric_relabel_configs"], sample, 0) {
                    assert_eq!(sample["ns"], "space", "seed {seed}, {job}, honorLabels {honor}");
                }
            }
        }
    }
}

#[test]
fn the_order_of_objects_does_not_matter() {
    let mut objects = base(json!({"shards": 2}));
    for index in 0..20 {
        let index = (index * 7) % 20;
        objects.push(monitor(&format!("m{index}"), json!({"port": "web"})));
        objects.push(probe(&format!("p{index}"), json!({"staticConfig": {"static": ["a"]}})));
    }
    let (first, _) = render(&objects, Type::Metrics);
    objects.reverse();
    assert_eq!(render(&objects, Type::Metrics).0.yaml, first.yaml);
    objects.rotate_left(13);
    assert_eq!(render(&objects, Type::Metrics).0.yaml, first.yaml);
}

#[test]
fn every_target_lands_on_exactly_one_shard() {
    for shards in [1, 2, 5] {
        let mut objects = base(json!({"shards": shards}));
        objects.push(monitor("m", json!({})));
        objects.push(probe("p", json!({"staticConfig": {"static": ["x"]}})));
        objects.push(probe("i", json!({"ingress": {}})));
        objects.push(secret("more", "more", "[{job_name: extra, static_configs: []}]"));
        let (_, tree) = render(&objects, Type::Metrics);
        let jobs = jobs(&tree);
        assert_eq!(jobs.len(), 4);
        for (job, scrape) in &jobs {
            let mut hit = vec![0; shards];
            for target in 0..50 {
                let labels = Labels::from([
                    ("__address__".into(), format!("10.0.0.{target}:80")),
                    ("__meta_kubernetes_ingress_scheme".into(), "https".into()),
                    ("__meta_kubernetes_ingress_path".into(), "/".into()),
                ]);
                let kept: Vec<usize> = (0..shards)
                    .filter(|shard| {
                        relabel::run(&scrape["relabel_configs"], labels.clone(), *shard).is_some()
                    })
                    .collect();
                assert_eq!(kept.len(), 1, "{job}: target {target} is on {kept:?} of {shards}");
                hit[kept[0]] += 1;
            }
            assert!(hit.iter().all(|count| *count > 0), "{job}: {hit:?}");
        }
    }
}

#[test]
fn the_enforced_label_survives_whatever_the_user_does() {
    let hostile = json!([
        {"targetLabel": "ns", "replacement": "mine"},
        {"regex": "ns", "action": "labeldrop"},
        {"regex": "none", "action": "labelkeep"},
        {"regex": "(.*)", "replacement": "ns", "action": "labelmap"},
        {"sourceLabels": ["ns"], "targetLabel": "ns", "action": "uppercase"},
    ]);
    for (index, rule) in hostile.as_array().unwrap().iter().enumerate() {
        for honor in [false, true] {
            let mut objects = base(json!({"enforcedNamespaceLabel": "ns"}));
            objects.push(monitor(
                "m",
                json!({"honorLabels": honor, "relabelings": [rule], "metricRelabelings": [rule]}),
            ));
            let (_, tree) = render(&objects, Type::Metrics);
            let scrape = &jobs(&tree)["serviceMonitor/space/m/0"];
            let target = Labels::from([("__address__".into(), "a".into()), ("ns".into(), "theirs".into())]);
            let target = relabel::run(&scrape["relabel_configs"], target, 0).unwrap();
            assert_eq!(target["ns"], "space", "rule {index}");
            // A sample that claims the label itself.
            let mut sample =
                Labels::from([("__name__".into(), "up".into()), ("ns".into(), "claimed".into())]);
            if !honor {
                sample.insert("exported_ns".into(), "claimed".into());
                sample.insert("ns".into(), target["ns"].clone());
            }
            let sample = relabel::run(&scrape["metric_relabel_configs"], sample, 0).unwrap();
            assert_eq!(sample["ns"], "space", "rule {index}, honorLabels {honor}");
        }
    }
    let mut objects = base(json!({"enforcedNamespaceLabel": "ns"}));
    let stages = json!([{"labelDrop": ["ns"]}, {"labels": {"ns": ""}}]);
    let spec = json!({"selector": {}, "pipelineStages": stages});
    objects.push(object("monitoring.grafana.com/v1alpha1", "PodLogs", "p", spec));
    let (_, tree) = render(&objects, Type::Logs);
    let stages =
        tree["logs"]["configs"][0]["scrape_configs"][0]["pipeline_stages"].as_array().unwrap().clone();
    assert_eq!(stages.last().unwrap(), &json!({"static_labels": {"ns": "space"}}));
}

#[test]
fn the_lower_limit_counts() {
    for (user, enforced, limit) in
        [(5, 9, json!(5)), (9, 5, json!(5)), (0, 5, json!(5)), (5, 0, json!(5)), (0, 0, Value::Null)]
    {
        let mut objects = base(json!({"enforcedSampleLimit": enforced, "enforcedTargetLimit": enforced}));
        let mut one = monitor("m", json!({}));
        one["spec"]["sampleLimit"] = json!(user);
        one["spec"]["targetLimit"] = json!(user);
        objects.push(one);
        let (_, tree) = render(&objects, Type::Metrics);
        let scrape = &jobs(&tree)["serviceMonitor/space/m/0"];
        assert_eq!((&scrape["sample_limit"], &scrape["target_limit"]), (&limit, &limit), "{user} {enforced}");
    }
}

#[test]
fn a_thousand_monitors_fit_into_a_secret() {
    let mut manifests = Manifests::default();
    for object in base(json!({"shards": 3})) {
        manifests.add(&object.to_string(), "test").unwrap();
    }
    for index in 0..1000 {
        let mut one = monitor(&format!("m{index}"), json!({"port": "web", "interval": "30s"}));
        one["metadata"]["namespace"] = json!(format!("space-{}", index % 50));
        one["spec"]["selector"] = json!({"matchLabels": {"app": format!("app-{index}")}});
        one["spec"]["endpoints"] = json!([{"port": "web"}, {"port": "admin", "relabelings":
            [{"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node", "regex": "(.+)-x"}]}]);
        manifests.add(&one.to_string(), "test").unwrap();
    }
    let rendered = manifests.render(Type::Metrics).unwrap();
    assert!(rendered.troubles.is_empty());
    assert_eq!(rendered.yaml.matches("job_name").count(), 2 * 2000);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, rendered.yaml.as_bytes()).unwrap();
    let packed = packed.finish().unwrap().len();
    assert!(packed < 1024 * 1024 * 3 / 4, "{packed} bytes, in base64 more than a Secret holds");
}
