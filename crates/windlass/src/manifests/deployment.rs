//! The Deployment of an operator, fit for namespaces that enforce the restricted Pod Security level, and the Service of
//! its webhooks.

use serde_json::{Value, json};

use super::{NAME, PORT, SERVICE_PORT, Setup, WEBHOOKS_PORT, labels, metadata};
use crate::ObjectName;

pub(super) fn deployment(account: &ObjectName, setup: &Setup) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(account),
        "spec": spec(account, setup),
    })
}

/// The Deployment's spec alone, as bundles have it.
pub(crate) fn spec(account: &ObjectName, setup: &Setup) -> Value {
    let field =
        |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let mut env = vec![
        field("POD_NAME", "metadata.name"),
        field("POD_NAMESPACE", "metadata.namespace"),
        field("POD_IP", "status.podIP"),
    ];
    env.extend(setup.env.iter().map(|(name, value)| json!({"name": name, "value": value})));
    let mut container = json!({
        "name": "operator",
        "image": setup.image,
        "args": setup.args,
        "env": env,
        "ports": [{"name": "http", "containerPort": PORT}],
        // A watch that fails does not get better by a restart: that is what readiness says.
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 20},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
    });
    if !setup.command.is_empty() {
        container["command"] = json!(setup.command);
    }
    if setup.webhooks
        && let Some(ports) = container["ports"].as_array_mut()
    {
        ports.push(json!({"name": "webhooks", "containerPort": WEBHOOKS_PORT}));
    }
    let mut pod = json!({
        "serviceAccountName": account.name,
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    });
    if setup.replicas > 1 {
        pod["topologySpreadConstraints"] = json!([{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector(&account.name)},
        }]);
    }
    json!({
        "replicas": setup.replicas,
        "selector": {"matchLabels": selector(&account.name)},
        "template": {"metadata": {"labels": labels(&account.name)}, "spec": pod},
    })
}

pub(crate) fn service(name: &ObjectName) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata(name),
        "spec": {
            "selector": selector(&name.name),
            "ports": [{"name": "webhooks", "port": SERVICE_PORT, "targetPort": "webhooks"}],
            // To become ready, a replica may have to read what only its own conversion can show.
            "publishNotReadyAddresses": true,
        },
    })
}

fn selector(name: &str) -> Value {
    json!({NAME: name})
}
