//! What every new pod gets: its service account's token, and patience with broken nodes.

use serde_json::{Value, json};

use super::super::status::{Failure, Outcome};
use super::super::write::{decoded, metadata_of, name_of};
use super::Admission;
use crate::store::Key;

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOKEN_VOLUME: &str = "kube-api-access-";
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCES: &str = "kubernetes.io/enforce-mountable-secrets";

/// ServiceAccount: a pod runs as one that exists, and gets its token.
pub(super) fn service_account(admission: &Admission<'_>, pod: &mut Value) -> Outcome<()> {
    if is_mirror(pod) {
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

/// What a pod may refer to: of a mirror pod nothing in the API, of others what their account lists, where it says so.
pub(super) fn references(admission: &Admission<'_>, pod: &Value) -> Outcome<()> {
    let refused = |why: String| Err(Failure::forbidden(admission.resource, name_of(pod), why));
    let spec = &pod["spec"];
    if is_mirror(pod) {
        let named = spec["serviceAccountName"].as_str().is_some_and(|name| !name.is_empty());
        let sources = list(spec, "volumes").flat_map(|volume| list(&volume["projected"], "sources"));
        let what = if named {
            "reference service accounts"
        } else if !secrets(spec).is_empty() {
            "reference secrets"
        } else if sources.into_iter().any(|source| source["serviceAccountToken"].is_object()) {
            "use service account token volume projections"
        } else {
            return Ok(());
        };
        return refused(format!("a mirror pod may not {what}"));
    }
    let name = spec["serviceAccountName"].as_str().unwrap_or_default();
    let registry = admission.server.registry();
    let Some(accounts) = registry.core("serviceaccounts") else { return Ok(()) };
    let key = Key::new(admission.namespace, name);
    let Some(stored) = admission.server.store.get(accounts.table, &key) else { return Ok(()) };
    let account = decoded(&stored)?;
    if account["metadata"]["annotations"][ENFORCES] != "true" {
        return Ok(());
    }
    let listed = |field: &str, name: &str| list(&account, field).any(|known| known["name"] == name);
    let because = format!("is not allowed because service account {name} does not reference that");
    for (place, secret) in secrets(spec) {
        let pull = place.is_empty();
        if pull && !listed("imagePullSecrets", &secret) {
            let index = list(spec, "imagePullSecrets").position(|own| own["name"] == secret.as_str());
            let index = index.unwrap_or_default();
            return refused(format!("imagePullSecrets[{index}].name={secret:?} {because} imagePullSecret"));
        }
        if !pull && !listed("secrets", &secret) {
            return refused(format!("{place} secret.secretName={secret:?} {because} secret"));
        }
    }
    Ok(())
}

/// The secrets of a pod with the way it refers to them; empty for those of registries.
fn secrets(spec: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut take = |place: String, name: &Value| {
        if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
            found.push((place, name.to_owned()));
        }
    };
    for volume in list(spec, "volumes") {
        take("volume with".to_owned(), &volume["secret"]["secretName"]);
    }
    for (field, what) in [("initContainers", "init container"), ("containers", "container")] {
        for container in list(spec, field) {
            let name = container["name"].as_str().unwrap_or_default();
            for source in list(container, "envFrom") {
                take(format!("{what} {name} with envFrom referencing"), &source["secretRef"]["name"]);
            }
            for variable in list(container, "env") {
                let own = variable["name"].as_str().unwrap_or_default();
                let place = format!("{what} {name} with envVar {own} referencing");
                take(place, &variable["valueFrom"]["secretKeyRef"]["name"]);
            }
        }
    }
    for secret in list(spec, "imagePullSecrets") {
        take(String::new(), &secret["name"]);
    }
    found
}

fn is_mirror(pod: &Value) -> bool {
    metadata_of(pod).get("annotations").is_some_and(|annotations| annotations.get(MIRROR).is_some())
}

fn list<'v>(object: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    object[field].as_array().into_iter().flatten()
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
