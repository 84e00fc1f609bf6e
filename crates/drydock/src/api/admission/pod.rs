//! What every new pod gets: its service account's token, and patience with broken nodes.

use serde_json::{Value, json};

use super::super::status::{Failure, Outcome};
use super::super::write::{decoded, metadata_of, name_of};
use super::Admission;
use crate::store::Key;

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOKEN_VOLUME: &str = "kube-api-access-";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// ServiceAccount: a pod runs as one that exists, and gets its token.
pub(super) fn service_account(admission: &Admission<'_>, pod: &mut Value) -> Outcome<()> {
    if metadata_of(pod).get("annotations").is_some_and(|annotations| annotations.get(MIRROR).is_some()) {
        return Ok(());
    }
    let name = match pod["spec"]["serviceAccountName"].as_str() {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => "default".to_owned(),
    };
    pod["spec"]["serviceAccountName"] = name.clone().into();
    pod["spec"]["serviceAccount"] = name.clone().into();
    let registry = admission.server.registry();
    let Some(accounts) = registry.core("serviceaccounts") else { return Ok(()) };
    let key = Key::new(admission.namespace, &name);
    let stored = admission.server.store.get(accounts.table, &key).ok_or_else(|| {
        let why = format!(
            "error looking up service account {}/{name}: serviceaccount {name:?} not found",
            admission.namespace
        );
        Failure::forbidden(admission.resource, name_of(pod), why)
    })?;
    let account = decoded(&stored)?;
    let wanted = pod["spec"]["automountServiceAccountToken"]
        .as_bool()
        .or_else(|| account["automountServiceAccountToken"].as_bool())
        .unwrap_or(true);
    if wanted {
        mount_token(admission, pod);
    }
    let secrets = &account["imagePullSecrets"];
    if pod["spec"].get("imagePullSecrets").is_none()
        && secrets.as_array().is_some_and(|list| !list.is_empty())
    {
        pod["spec"]["imagePullSecrets"] = secrets.clone();
    }
    Ok(())
}

fn mount_token(admission: &Admission<'_>, pod: &mut Value) {
    let spec = &mut pod["spec"];
    let volumes = spec["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let known = volumes.iter().filter_map(|volume| volume["name"].as_str());
    let known = known.filter(|name| name.starts_with(TOKEN_VOLUME)).map(ToOwned::to_owned).next();
    let there = known.is_some();
    let volume = known.unwrap_or_else(|| format!("{TOKEN_VOLUME}{}", admission.server.context.name_suffix()));
    let mut used = false;
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            let mounts = container["volumeMounts"].as_array().map(Vec::as_slice).unwrap_or_default();
            if mounts.iter().any(|mount| mount["mountPath"] == TOKEN_PATH) {
                continue;
            }
            push(
                container,
                "volumeMounts",
                json!({"name": volume, "readOnly": true, "mountPath": TOKEN_PATH}),
            );
            used = true;
        }
    }
    // An absent list was made null by looking at it.
    if let Some(map) = spec.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
    if !used || there {
        return;
    }
    let field = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
    let source = json!({"name": volume, "projected": {"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
    ]}});
    push(spec, "volumes", source);
}

/// DefaultTolerationSeconds: five minutes on a node that is not ready or not reachable.
pub(super) fn tolerations(pod: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let have = pod["spec"]["tolerations"].as_array().map(Vec::as_slice).unwrap_or_default();
        let tolerated = have.iter().any(|toleration| {
            let own = toleration["key"].as_str().unwrap_or_default();
            let effect = toleration["effect"].as_str().unwrap_or_default();
            (own == key || own.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if !tolerated {
            push(
                &mut pod["spec"],
                "tolerations",
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
}

fn push(object: &mut Value, list: &str, item: Value) {
    match object[list].as_array_mut() {
        Some(items) => items.push(item),
        None => object[list] = json!([item]),
    }
}
