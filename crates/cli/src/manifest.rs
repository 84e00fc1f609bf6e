//! Manifests: YAML or JSON documents that name what they are.

use anyhow::{Context as _, Result, bail};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;

/// The name that this program's own changes go by.
pub(crate) const MANAGER: &str = "windlass";

/// The objects of a file, in order. `source` names the file in errors.
pub(crate) fn read(text: &str, source: &str) -> Result<Vec<DynamicObject>> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).with_context(|| format!("{source} is neither YAML nor JSON"))?;
    let mut objects = Vec::new();
    for (index, document) in documents.into_iter().filter(|document| !document.is_null()).enumerate() {
        let place = format!("document {} of {source}", index + 1);
        for field in ["apiVersion", "kind"] {
            if !document[field].is_string() {
                bail!(
                    "{place} has no {field}: it names the type of the object, such as `{field}: {}`",
                    if field == "kind" { "ConfigMap" } else { "v1" }
                );
            }
        }
        if !document["metadata"]["name"].is_string() {
            bail!("{place} has no metadata.name");
        }
        objects.push(serde_json::from_value(document).with_context(|| format!("{place} is no object"))?);
    }
    Ok(objects)
}

/// What an object is called in messages: `monocle/sample`.
pub(crate) fn title(object: &DynamicObject) -> String {
    let kind = object.types.as_ref().map(|types| types.kind.to_lowercase()).unwrap_or_default();
    format!("{kind}/{}", object.name_any())
}

/// The API of an object's kind, in its own namespace or the given one.
pub(crate) async fn api(
    client: &Client,
    object: &DynamicObject,
    namespace: &str,
) -> Result<(Api<DynamicObject>, ApiResource)> {
    let types = object.types.clone().context("an object without a type")?;
    let gvk =
        GroupVersionKind::try_from(&types).map_err(|error| anyhow::anyhow!("{}: {error}", title(object)))?;
    let (resource, capabilities) = kube::discovery::pinned_kind(client, &gvk).await.with_context(|| {
        format!(
            "{}: the cluster knows no {} in {}; is its operator installed?",
            title(object),
            types.kind,
            types.api_version
        )
    })?;
    let api = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = object.namespace().unwrap_or_else(|| namespace.to_owned());
            Api::namespaced_with(client.clone(), &namespace, &resource)
        }
    };
    Ok((api, resource))
}

/// Applies an object by server-side apply; the answer tells whether anything changed.
pub(crate) async fn apply(client: &Client, object: &DynamicObject, namespace: &str) -> Result<&'static str> {
    let (api, _) = api(client, object, namespace).await?;
    let name = object.name_any();
    let before = api.get_metadata_opt(&name).await?;
    let parameters = PatchParams::apply(MANAGER);
    let after = api
        .patch(&name, &parameters, &Patch::Apply(object))
        .await
        .with_context(|| format!("failed to apply {}", title(object)))?;
    Ok(match before {
        None => "created",
        Some(before) if before.metadata.resource_version == after.metadata.resource_version => "unchanged",
        Some(_) => "configured",
    })
}
