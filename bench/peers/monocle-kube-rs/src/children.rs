//! The children of a Monocle.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use rand::RngExt as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Monocle, OPERATOR};

const CONFIG: &str = "workspaces:\n  - name: demo\n    crawlers: []\n";

pub(super) fn secret(monocle: &Monocle) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata(monocle, "api"),
        "stringData": {"CRAWLERS_API_KEY": random(24), "MONOCLE_JWK_GEN_KEY": random(64)},
    })
}

pub(super) fn config(monocle: &Monocle) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(monocle, "api"),
        "data": {"config.yaml": CONFIG},
    })
}

pub(super) fn service(monocle: &Monocle, component: &str, port: i32) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata(monocle, component),
        "spec": {
            "selector": selection(monocle, component),
            "ports": [{"name": "http", "port": port, "targetPort": "http"}],
        },
    })
}

pub(super) fn elastic(monocle: &Monocle) -> Value {
    let container = json!({
        "name": "elastic", "image": monocle.spec.elastic.image,
        "env": [
            {"name": "discovery.type", "value": "single-node"},
            {"name": "ES_JAVA_OPTS", "value": "-Xms256m -Xmx256m"},
        ],
        "ports": [{"name": "http", "containerPort": 9200}],
        "startupProbe": probe("/", 9200, 5, 60), "readinessProbe": probe("/", 9200, 10, 3),
        "volumeMounts": [{"name": "data", "mountPath": "/usr/share/elasticsearch/data"}],
    });
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata(monocle, "elastic"),
        "spec": {
            "serviceName": format!("{}-elastic", monocle.name_any()), "replicas": 1,
            "selector": {"matchLabels": selection(monocle, "elastic")},
            "template": template(monocle, "elastic", container),
            "volumeClaimTemplates": [{
                "metadata": {"name": "data", "labels": labels(monocle, "elastic")},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": monocle.spec.elastic.storage_size}},
                },
            }],
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        },
    })
}

pub(super) fn api(monocle: &Monocle, tokens: &str) -> Value {
    let elastic = format!("http://{}-elastic:9200", monocle.name_any());
    let env = json!([
        {"name": "MONOCLE_ELASTIC_URL", "value": elastic},
        {"name": "MONOCLE_PUBLIC_URL", "value": public_url(monocle)},
        {"name": "MONOCLE_CONFIG", "value": "/etc/monocle/config.yaml"},
    ]);
    deployment(monocle, "api", 8080, "http", tokens, env)
}

pub(super) fn crawler(monocle: &Monocle, tokens: &str) -> Value {
    let api = format!("http://{}-api:8080", monocle.name_any());
    let env = json!([
        {"name": "MONOCLE_PUBLIC_URL", "value": api},
        {"name": "MONOCLE_CONFIG", "value": "/etc/monocle/config.yaml"},
    ]);
    let mut deployment = deployment(monocle, "crawler", 9001, "health", tokens, env);
    // Two crawlers at once would double the data.
    deployment["spec"]["strategy"] = json!({"type": "Recreate"});
    deployment
}

fn deployment(monocle: &Monocle, component: &str, port: i32, name: &str, tokens: &str, env: Value) -> Value {
    let own = format!("{}-api", monocle.name_any());
    let container = json!({
        "name": component, "image": monocle.spec.image, "command": ["monocle", component], "env": env,
        "envFrom": [{"secretRef": {"name": own}}],
        "ports": [{"name": name, "containerPort": port}],
        "startupProbe": probe("/health", port, 5, 60), "readinessProbe": probe("/health", port, 10, 3),
        "livenessProbe": probe("/health", port, 20, 6),
        "volumeMounts": [{"name": "config", "mountPath": "/etc/monocle", "readOnly": true}],
    });
    let mut template = template(monocle, component, container);
    template["metadata"]["annotations"] = json!({"monocle.change-metrics.io/tokens-hash": tokens});
    template["spec"]["volumes"] = json!([{"name": "config", "configMap": {"name": own}}]);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(monocle, component),
        "spec": {
            "replicas": 1, "selector": {"matchLabels": selection(monocle, component)}, "template": template,
        },
    })
}

fn template(monocle: &Monocle, component: &str, mut container: Value) -> Value {
    container["securityContext"] =
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    json!({
        "metadata": {"labels": labels(monocle, component)},
        "spec": {
            "containers": [container], "automountServiceAccountToken": false,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    })
}

fn probe(path: &str, port: i32, period: i32, failures: i32) -> Value {
    json!({"httpGet": {"path": path, "port": port}, "periodSeconds": period, "failureThreshold": failures})
}

fn metadata(monocle: &Monocle, component: &str) -> Value {
    json!({"name": format!("{}-{component}", monocle.name_any()), "labels": labels(monocle, component)})
}

fn labels(monocle: &Monocle, component: &str) -> Value {
    let mut labels = selection(monocle, component);
    labels["app.kubernetes.io/part-of"] = "monocle".into();
    labels["app.kubernetes.io/managed-by"] = OPERATOR.into();
    labels
}

fn selection(monocle: &Monocle, component: &str) -> Value {
    json!({
        "app.kubernetes.io/name": "monocle", "app.kubernetes.io/instance": monocle.name_any(),
        "app.kubernetes.io/component": component,
    })
}

pub(super) fn public_url(monocle: &Monocle) -> &str {
    monocle.spec.public_url.as_deref().unwrap_or("http://localhost:8090")
}

fn random(length: usize) -> String {
    rand::rng().sample_iter(rand::distr::Alphanumeric).take(length).map(char::from).collect()
}

/// Over the values alone: labels and resourceVersion do not matter.
pub(super) fn content_hash(secret: &Secret) -> String {
    let text = serde_json::to_vec(&secret.data).unwrap_or_default();
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The time, as the API wants it.
#[allow(clippy::disallowed_methods, reason = "a program of its own, which no test drives")]
pub(super) fn now() -> Time {
    Time(k8s_openapi::jiff::Timestamp::now())
}
