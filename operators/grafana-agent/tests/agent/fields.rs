//! Every field of every kind has an effect: on a configuration, on a Secret or on a workload.
//!
//! The list of fields is that of the CRDs. Each is set by itself in a small cluster, and the plan must be another one than
//! without it, without complaints, and with configurations that keep to the agent's grammar.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use serde_json::{Value, json};
use windlass::test::{Cluster, Planned};
use windlass_grafana_agent::kinds::{
    GrafanaAgent, Integration, LogsInstance, MetricsInstance, PodLogs, PodMonitor, Probe, ServiceMonitor,
};

use crate::grammar;

/// Kind, path, type and whether it is required, of every field that is not of a type of Kubernetes' own.
const FIELDS: &str = include_str!("../../fixtures/fields.txt");

/// Fields that have no effect, and why.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("GrafanaAgent spec.podMetadata.name", "a pod's name comes from what makes it"),
    ("GrafanaAgent spec.storage.disableMountSubPath", "the volume is always mounted as a whole"),
];

/// Fields whose effect is that something is left out.
const LEAVES_OUT: &[&str] =
    &["GrafanaAgent spec.metrics.arbitraryFSAccessThroughSMs.deny", "Integration spec.type.unique"];

struct Field {
    kind: &'static str,
    path: &'static str,
    of_type: &'static str,
    required: bool,
}

fn fields() -> Vec<Field> {
    let fields = FIELDS.lines().map(|line| {
        let [kind, path, of_type, required] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        Field { kind, path, of_type, required: required == "required" }
    });
    fields.collect()
}

#[test]
fn every_field_has_an_effect() {
    let fields = fields();
    let cluster = cluster();
    let mut known = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut tried = 0;
    for field in &fields {
        let inner = |other: &Field| {
            let rest = other.path.strip_prefix(field.path).unwrap_or_default();
            other.kind == field.kind && rest.starts_with(['.', '[', '{'])
        };
        if fields.iter().any(inner) {
            continue;
        }
        tried += 1;
        let name = format!("{} {}", field.kind, field.path);
        let (before, after) = specs(&fields, field);
        let without = known
            .entry((field.kind, before.to_string()))
            .or_insert_with(|| plan(cluster.clone(), field.kind, &before));
        let with = plan(cluster.clone(), field.kind, &after);
        // Of something optional that is missing, nobody complains.
        let quiet =
            field.path.ends_with(".optional") && with.problems().is_empty() && !without.problems().is_empty();
        let effect = quiet || without.objects() != with.objects();
        if effect == WITHOUT_EFFECT.iter().any(|(known, _)| *known == name) {
            let what = if effect { "has an effect after all" } else { "has no effect" };
            wrong.push(format!("{name} {what}: {before} {after}"));
        }
        let complaints: Vec<_> = with.problems().iter().map(|problem| problem.message.clone()).collect();
        if !complaints.is_empty() && !LEAVES_OUT.contains(&name.as_str()) {
            wrong.push(format!("{name}: {complaints:?}"));
        }
        if let Some(halt) = with.halt() {
            wrong.push(format!("{name}: {halt}"));
        }
        check_grammar(&with, &name);
    }
    assert!(tried > 600, "{tried} fields");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}

/// The spec without the field, and with it; of a required one, with two different values.
fn specs(fields: &[Field], field: &Field) -> (Value, Value) {
    let mut before = base(field.kind);
    if field.path.starts_with("spec.targets.ingress") {
        before["targets"] = json!({});
    }
    let steps: Vec<&str> = field.path.split('.').skip(1).collect();
    let (last, parents) = steps.split_last().unwrap();
    let mut place = &mut before;
    let mut path = "spec".to_owned();
    for step in parents {
        path = format!("{path}.{step}");
        let name = step.trim_end_matches("[]").trim_end_matches("{}");
        if matches!(name, "configMap") {
            // The Secret would come first.
            place.as_object_mut().unwrap().remove("secret");
        }
        let inner = || context(fields, field.kind, &path, last);
        if place.get(name).is_none() {
            place[name] = match step {
                list if list.ends_with("[]") => json!([inner()]),
                map if map.ends_with("{}") => json!({"made": inner()}),
                _ => inner(),
            };
        }
        place = match step {
            list if list.ends_with("[]") => &mut place[name][0],
            map if map.ends_with("{}") => &mut place[name]["made"],
            _ => &mut place[name],
        };
        if let Some(given) = place.as_object_mut() {
            for (name, value) in inner().as_object().unwrap() {
                given.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    if *last == "configMap" {
        place.as_object_mut().unwrap().remove("secret");
    }
    let reference = is_reference(fields, field);
    if *last == "optional" {
        place["name"] = json!("missing");
    }
    let keep = field.required || reference || matches!(*last, "targetLabel" | "values");
    if !keep {
        place.as_object_mut().unwrap().remove(*last);
    }
    let now = place.get(*last).cloned();
    let value = match (*last, sample(field.path, last, field.of_type)) {
        ("name", _) if reference => json!("obj2"),
        ("key", _) if reference => json!("key2"),
        (_, value) if Some(&value) == now.as_ref() => other(last, &value),
        (_, value) => value,
    };
    let pointer = pointer(&steps);
    let mut after = before.clone();
    let (parent, _) = pointer.rsplit_once('/').unwrap();
    after.pointer_mut(parent).unwrap()[*last] = value;
    (before, after)
}

/// Whether a field is the name or key of a reference to a Secret or ConfigMap.
fn is_reference(fields: &[Field], field: &Field) -> bool {
    let (parent, last) = field.path.rsplit_once('.').unwrap();
    let optional = format!("{parent}.optional");
    matches!(last, "name" | "key")
        && fields.iter().any(|other| other.kind == field.kind && other.path == optional)
}

fn pointer(steps: &[&str]) -> String {
    let mut pointer = String::new();
    for step in steps {
        pointer.push('/');
        pointer.push_str(&step.replace("[]", "/0").replace("{}", "/made"));
    }
    pointer
}

/// The specs of the objects that are always there; the one under test is built on that of its kind.
fn base(kind: &str) -> Value {
    match kind {
        "GrafanaAgent" => json!({"metrics": {"instanceSelector": {}}, "logs": {"instanceSelector": {},
            "clients": [{"url": "logs"}]}, "integrations": {"selector": {}}}),
        "MetricsInstance" => {
            json!({"serviceMonitorSelector": {}, "podMonitorSelector": {}, "probeSelector": {}})
        }
        "LogsInstance" => json!({"podLogsSelector": {}}),
        "ServiceMonitor" => json!({"selector": {}, "endpoints": [{}]}),
        "PodMonitor" => json!({"selector": {}, "podMetricsEndpoints": [{}]}),
        "Probe" => json!({"prober": {"url": "prober"}, "targets": {"staticConfig": {"static": ["host"]}}}),
        "PodLogs" => json!({"selector": {}}),
        "Integration" => json!({"name": "x", "type": {}, "config": {}}),
        other => panic!("{other}"),
    }
}

/// What an object must hold for one of its fields to mean something.
fn context(fields: &[Field], kind: &str, path: &str, last: &str) -> Value {
    let name = path.rsplit('.').next().unwrap();
    let child = |field: &&Field| {
        field.kind == kind
            && field
                .path
                .strip_prefix(path)
                .is_some_and(|rest| rest.starts_with('.') && !rest[1..].contains('.'))
    };
    let children: Vec<&Field> = fields.iter().filter(child).collect();
    let has = |name: &str| children.iter().any(|child| child.path.ends_with(&format!(".{name}")));
    if has("key") && has("optional") {
        let source = if last == "optional" { "missing" } else { "obj" };
        return json!({"name": source, "key": "key"});
    }
    if has("sourceLabels") {
        return json!({"sourceLabels": ["s"], "targetLabel": "t"});
    }
    let mut context = json!({});
    for child in children.iter().filter(|child| child.required) {
        let name = child.path.rsplit('.').next().unwrap();
        context[name] = match name {
            "clientId" => json!({"secret": {"name": "obj", "key": "key"}}),
            "clientSecret" => json!({"name": "obj", "key": "key"}),
            _ => sample(child.path, name, child.of_type),
        };
    }
    match name {
        "matchExpressions[]" => json!({"key": "colour", "operator": "In", "values": ["red"]}),
        _ => context,
    }
}

fn sample(path: &str, name: &str, of_type: &str) -> Value {
    let selects = path.contains("matchExpressions") || path.ends_with("matchLabels");
    match (name, of_type) {
        ("key", _) if selects => json!("other"),
        ("operator", _) => json!("NotIn"),
        ("values", _) => json!(["blue"]),
        ("matchLabels", _) => json!({"colour": "blue"}),
        ("matchExpressions", _) => json!([{"key": "colour", "operator": "In", "values": ["blue"]}]),
        ("optional", _) => json!(true),
        ("interval" | "scrapeInterval" | "scrapeTimeout", _) => json!("10s"),
        ("action", _) if path.contains("abel") => json!("keep"),
        ("action", _) if path.contains("metrics{}") => json!("inc"),
        ("type", "string") if path.contains("metrics{}") => json!("counter"),
        ("selector", "string") => json!("{app=\"x\"}"),
        ("stages", _) => json!("[{docker: {}}]"),
        ("scheme", _) => json!("https"),
        ("enableHttp2", _) => json!(false),
        ("targetPort", _) => json!(8080),
        ("params", _) => json!({"a": ["b"]}),
        ("metrics", _) => json!({"made": {"type": "counter", "action": "inc"}}),
        ("config", _) => json!({"setting": 1}),
        ("buckets", _) => json!(["0.5", "1"]),
        ("static", _) => json!(["a"]),
        ("cri" | "docker", _) => json!({}),
        ("affinity", _) => json!({"nodeAffinity": {}}),
        ("containers" | "initContainers", _) => json!([{"name": "more", "image": "more"}]),
        ("imagePullSecrets", _) => json!([{"name": "pull"}]),
        ("resources", _) => json!({"limits": {"cpu": "1"}}),
        ("securityContext", _) => json!({"runAsUser": 5}),
        ("emptyDir", _) => json!({"medium": "Memory"}),
        ("ephemeral", _) => json!({"volumeClaimTemplate": {"spec": {}}}),
        ("volumeClaimTemplate", _) => json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}}),
        ("tolerations", _) => json!([{"key": "a"}]),
        ("topologySpreadConstraints", _) => {
            json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}])
        }
        ("volumes", _) => json!([{"name": "more", "emptyDir": {}}]),
        ("volumeMounts", _) => json!([{"name": "more", "mountPath": "/more"}]),
        (_, "string") => json!("text"),
        (_, "boolean") => json!(true),
        (_, "integer") => json!(5),
        (_, "array") => json!(["a"]),
        (_, "object") => json!({"a": "b"}),
        (_, other) => panic!("{path}: {other}"),
    }
}

/// Another value than a sample.
fn other(name: &str, value: &Value) -> Value {
    match (name, value) {
        ("type", _) => json!("gauge"),
        ("static" | "labels", _) => json!(["b"]),
        (_, Value::String(text)) => json!(format!("{text}2")),
        _ => panic!("{name}: {value}"),
    }
}

/// A small cluster.
fn cluster() -> Cluster {
    let mut cluster = Cluster::new();
    for name in ["obj", "obj2"] {
        // Good for a password as well as for scrape configurations.
        let data =
            json!({"key": format!("[{{job_name: {name}-1}}]"), "key2": format!("[{{job_name: {name}-2}}]")});
        let metadata = json!({"name": name, "namespace": "n"});
        let map: ConfigMap = serde_json::from_value(json!({"metadata": metadata, "data": data})).unwrap();
        let bytes = map.data.clone().unwrap().into_iter();
        let data = bytes.map(|(key, text)| (key, k8s_openapi::ByteString(text.into_bytes()))).collect();
        let secret = Secret { metadata: map.metadata.clone(), data: Some(data), ..Secret::default() };
        cluster = cluster.with(&map).with(&secret);
    }
    for (name, colour) in [("n", "red"), ("m", "green")] {
        let space: Namespace =
            serde_json::from_value(json!({"metadata": {"name": name, "labels": {"colour": colour}}}))
                .unwrap();
        cluster = cluster.with(&space);
    }
    // What is there besides gives the settings of agents and instances something to work on.
    let wide = json!({"any": true});
    let beside = [
        (
            "ServiceMonitor",
            json!({"selector": {}, "namespaceSelector": wide, "sampleLimit": 9, "targetLimit": 9,
            "endpoints": [{"honorLabels": true, "honorTimestamps": true, "bearerTokenFile": "/file"}]}),
        ),
        ("PodLogs", json!({"selector": {}, "namespaceSelector": wide})),
        ("Integration", json!({"name": "x", "type": {"unique": true}, "config": {}})),
    ];
    for (kind, spec) in &beside {
        cluster = with(cluster, kind, "z-beside", spec);
    }
    for kind in
        ["MetricsInstance", "LogsInstance", "ServiceMonitor", "PodMonitor", "Probe", "PodLogs", "Integration"]
    {
        cluster = with(cluster, kind, "tested", &base(kind));
    }
    cluster
}

/// Plans the agent of a small cluster in which one object has this spec.
fn plan(mut cluster: Cluster, kind: &str, spec: &Value) -> Planned {
    let agent = if kind == "GrafanaAgent" { spec.clone() } else { base("GrafanaAgent") };
    if kind != "GrafanaAgent" {
        cluster = with(cluster, kind, "tested", spec);
    }
    let agent: GrafanaAgent = object("agent", &agent);
    cluster.plan(&agent)
}

fn object<K: serde::de::DeserializeOwned>(name: &str, spec: &Value) -> K {
    let metadata = json!({"name": name, "namespace": "n", "uid": name, "labels": {"colour": "red"}});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec}))
        .unwrap_or_else(|error| panic!("{error}: {spec}"))
}

fn with(cluster: Cluster, kind: &str, name: &str, spec: &Value) -> Cluster {
    match kind {
        "MetricsInstance" => cluster.with(&object::<MetricsInstance>(name, spec)),
        "LogsInstance" => cluster.with(&object::<LogsInstance>(name, spec)),
        "ServiceMonitor" => cluster.with(&object::<ServiceMonitor>(name, spec)),
        "PodMonitor" => cluster.with(&object::<PodMonitor>(name, spec)),
        "Probe" => cluster.with(&object::<Probe>(name, spec)),
        "PodLogs" => cluster.with(&object::<PodLogs>(name, spec)),
        "Integration" => cluster.with(&object::<Integration>(name, spec)),
        other => panic!("{other}"),
    }
}

fn check_grammar(planned: &Planned, name: &str) {
    for suffix in ["config", "logs-config", "integrations-deploy-config", "integrations-ds-config"] {
        if let Some(secret) = planned.object::<Secret>(&format!("agent-{suffix}")) {
            let text = String::from_utf8(secret.data.unwrap()["agent.yml"].0.clone()).unwrap();
            grammar::check(&serde_saphyr::from_str(&text).unwrap(), "root", &format!("{name} {suffix}"));
        }
    }
}
