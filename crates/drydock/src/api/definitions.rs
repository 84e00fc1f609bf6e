//! CustomResourceDefinitions: what a change of one means for the server.
//!
//! The real server does this in controllers of its own process, moments later; here it happens within the write,
//! so that a definition is served as soon as its client has the answer.

pub mod conversion;
mod names;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_machinery::schema::{NodeId, Schemas};
use windlass_machinery::{Context, structural};

use conversion::Conversion;

use super::auth::User;
use super::discovery;
use super::options::{DeleteOptions, WriteOptions};
use super::registry::{Column, CustomParts, CustomResource, Names, Registry, Resource, ScalePaths};
use super::server::Server;
use super::status::Outcome;
use super::write::{Edit, Write, decoded, metadata_mut, metadata_of, name_of};
use crate::store::{Key, Scope, TableId};

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";
/// The name of the table of definitions.
pub const TABLE: &str = "apiextensions.k8s.io/customresourcedefinitions";
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Whether the resource is CustomResourceDefinitions themselves.
#[must_use]
pub fn is_definition(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural == PLURAL
}

/// The status of a new definition: nothing is accepted yet.
pub(super) fn prepare_create(_: &Write<'_>, object: &mut Value) -> Outcome<()> {
    let versions = object["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let stored: Vec<&Value> = versions
        .iter()
        .filter(|version| version["storage"] == true)
        .map(|version| &version["name"])
        .collect();
    let stored = if stored.is_empty() { Value::Null } else { json!(stored) };
    object["status"] =
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored});
    Ok(())
}

/// A version that becomes the stored one is remembered as such.
pub(super) fn prepare_update(write: &Write<'_>, new: &mut Value, _: &Value) -> Outcome<()> {
    if write.subresource == Some("status") {
        return Ok(());
    }
    let versions = new["spec"]["versions"].as_array().cloned().unwrap_or_default();
    for version in versions.iter().filter(|version| version["storage"] == true) {
        let stored = new["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
        if !stored.contains(&version["name"]) {
            let mut stored = stored;
            stored.push(version["name"].clone());
            new["status"]["storedVersions"] = stored.into();
        }
    }
    Ok(())
}

/// Says which formats of its schemas mean nothing to the server.
pub(super) fn unknown_formats(out: &mut Vec<String>, definition: &Value) {
    let versions = definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    for version in versions {
        structural::unknown_formats(&version["schema"]["openAPIV3Schema"], &mut |format| {
            let warning = format!("unrecognized format {format:?}");
            if !out.contains(&warning) {
                out.push(warning);
            }
        });
    }
}

/// A definition that is being deleted says so, and stays until its objects are gone.
pub(super) fn mark_terminating(object: &mut Value, context: &Context) {
    let finalizers = metadata_mut(object).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = finalizers.as_array_mut().filter(|list| list.iter().all(|one| one != FINALIZER)) {
        list.push(FINALIZER.into());
    }
    set_condition(
        object,
        &context.now_text(),
        "Terminating",
        true,
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
}

fn set_condition(object: &mut Value, now: &str, kind: &str, holds: bool, reason: &str, message: &str) {
    let status = if holds { "True" } else { "False" };
    let condition = json!({"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message});
    match object["status"]["conditions"].as_array_mut() {
        Some(list) => match list.iter_mut().find(|known| known["type"] == kind) {
            Some(known)
                if known["status"] == status && known["reason"] == reason && known["message"] == message => {}
            Some(known) => *known = condition,
            None => list.push(condition),
        },
        None => object["status"]["conditions"] = json!([condition]),
    }
}

/// The custom resources of all definitions that are accepted.
#[must_use]
pub fn registry(server: &Server, table: TableId) -> Registry {
    let (_, stored) = server.store.list(table, &Scope::All);
    let custom = stored
        .iter()
        .filter_map(|stored| decoded(stored).ok())
        .filter(is_established)
        .flat_map(|definition| resources(server, &definition))
        .collect();
    Registry::new(&server.built_in, custom)
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

fn resources(server: &Server, definition: &Value) -> Vec<Arc<Resource>> {
    let spec = &definition["spec"];
    let names: Names =
        serde_json::from_value(definition["status"]["acceptedNames"].clone()).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let types: BTreeMap<String, (Arc<Schemas>, NodeId)> = versions
        .iter()
        .map(|version| {
            let schema = &version["schema"]["openAPIV3Schema"];
            let compiled = structural::compile(schema, server.built_in.metadata());
            (text(&version["name"]), (Arc::new(compiled.types), compiled.root))
        })
        .collect();
    let conversion = Conversion::of(definition, &types).map(Arc::new);
    versions
        .iter()
        .filter(|version| version["served"] == true)
        .filter_map(|version| {
            let (schemas, root) = types.get(&text(&version["name"]))?.clone();
            let scale = &version["subresources"]["scale"];
            let scale = scale.is_object().then(|| ScalePaths {
                spec: text(&scale["specReplicasPath"]),
                status: text(&scale["statusReplicasPath"]),
                selector: scale["labelSelectorPath"].as_str().map(ToOwned::to_owned),
            });
            let selectable = version["selectableFields"].as_array().map(Vec::as_slice).unwrap_or_default();
            let parts = CustomParts {
                group: text(&spec["group"]),
                version: text(&version["name"]),
                names: names.clone(),
                namespaced: spec["scope"] == "Namespaced",
                schemas,
                root,
                status: version["subresources"]["status"].is_object(),
                columns: columns(&version["additionalPrinterColumns"]),
                custom: CustomResource {
                    definition: name_of(definition).to_owned(),
                    scale,
                    selectable: selectable
                        .iter()
                        .map(|field| text(&field["jsonPath"]).trim_start_matches('.').to_owned())
                        .collect(),
                    schema: Arc::new(version["schema"]["openAPIV3Schema"].clone()),
                    deprecation: deprecation(spec, version),
                    terminating: metadata_of(definition).contains_key("deletionTimestamp"),
                    conversion: conversion.clone(),
                },
            };
            Some(Arc::new(Resource::custom(parts, &server.store)))
        })
        .collect()
}

/// What clients of a version are told, where it is on its way out.
fn deprecation(spec: &Value, version: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if version["deprecated"] != true {
        return None;
    }
    let (group, name, kind) = (text(&spec["group"]), text(&version["name"]), text(&spec["names"]["kind"]));
    let instead = || {
        let all = spec["versions"].as_array().into_iter().flatten();
        let stays = all.filter(|one| one["served"] == true && one["deprecated"] != true);
        let newer = stays.filter_map(|one| one["name"].as_str());
        let newer = newer.filter(|one| discovery::priority(one) > discovery::priority(&name));
        newer
            .max_by_key(|one| discovery::priority(one))
            .map(|newest| format!("; use {group}/{newest} {kind}"))
    };
    Some(
        version["deprecationWarning"].as_str().map(ToOwned::to_owned).unwrap_or_else(|| {
            format!("{group}/{name} {kind} is deprecated{}", instead().unwrap_or_default())
        }),
    )
}

fn columns(printer: &Value) -> Vec<Column> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let column = |name: &str, kind: &str, format: &str, path: Option<&str>| Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: format.to_owned(),
        priority: 0,
        description: String::new(),
        json_path: path.map(ToOwned::to_owned),
    };
    let mut columns = vec![column("Name", "string", "name", None)];
    match printer.as_array() {
        Some(printer) => columns.extend(printer.iter().map(|one| Column {
            priority: one["priority"].as_i64().unwrap_or(0),
            description: text(&one["description"]),
            ..column(
                &text(&one["name"]),
                &text(&one["type"]),
                &text(&one["format"]),
                one["jsonPath"].as_str(),
            )
        })),
        None => columns.push(column("Age", "date", "", Some(".metadata.creationTimestamp"))),
    }
    columns
}

/// Acts on a definition that was written or removed.
pub async fn changed(server: &Server, resource: &Arc<Resource>, new: Option<&Value>) {
    if let Some(new) = new {
        let user = User::master("system:apiserver");
        let name = name_of(new).to_owned();
        let deleting = metadata_of(new).contains_key("deletionTimestamp");
        if deleting {
            remove_instances(server, resource, new).await;
        } else if names::wants_names(new) || !is_established(new) {
            accept(server, resource, &user, new).await;
        }
        // Names that were taken may have become free.
        for other in names::of_group(server, resource.table, &new["spec"]["group"]) {
            let waits = names::wants_names(&other) && !metadata_of(&other).contains_key("deletionTimestamp");
            if waits && name_of(&other) != name {
                accept(server, resource, &user, &other).await;
            }
        }
    }
}

/// Accepts the names of a definition, as far as they are free.
async fn accept(server: &Server, resource: &Arc<Resource>, user: &User, definition: &Value) {
    let name = name_of(definition).to_owned();
    let now = server.context.now_text();
    let taken = names::Taken::by_others(server, resource.table, definition);
    let mut accepted = definition.clone();
    names::accept(&mut accepted, &taken, &now);
    if accepted["status"] == definition["status"] {
        return;
    }
    let edit = Edit(move |definition: &mut Value| {
        names::accept(definition, &taken, &now);
        Ok(())
    });
    let mut write = own_write(server, resource, user, Some("status"));
    if let Err(failure) = Box::pin(write.update(&name, &edit)).await {
        tracing::warn!(%name, message = %failure.message, "failed to accept a definition's names");
    }
}

/// A write of the server's own.
pub(super) fn own_write<'a>(
    server: &'a Server,
    resource: &'a Arc<Resource>,
    user: &'a User,
    subresource: Option<&'a str>,
) -> Write<'a> {
    Write {
        server,
        resource,
        subresource,
        namespace: "",
        user,
        options: WriteOptions::internal(),
        warnings: Vec::new(),
    }
}

/// Deletes the objects of a definition that is going away, and lets it go once there are none.
async fn remove_instances(server: &Server, definitions: &Arc<Resource>, definition: &Value) {
    let name = name_of(definition).to_owned();
    let table = server.store.table(&format!(
        "{}/{}",
        definition["spec"]["group"].as_str().unwrap_or_default(),
        definition["spec"]["names"]["plural"].as_str().unwrap_or_default()
    ));
    let user = User::master("system:apiserver");
    // In the version that they are stored in, so that no webhook need be there.
    let all = resources(server, definition);
    let stored = all.iter().find(|resource| conversion::is_stored(resource)).or_else(|| all.first());
    let Some(resource) = stored.cloned() else { return };
    let (_, instances) = server.store.list(table, &Scope::All);
    for instance in &instances {
        let mut write = own_write(server, &resource, &user, None);
        write.namespace = &instance.key.namespace;
        let deletion = Box::pin(write.delete(&instance.key.name, &DeleteOptions::default())).await;
        if let Err(failure) = deletion
            && failure.reason != "NotFound"
        {
            tracing::warn!(%name, message = %failure.message, "failed to delete an object of a definition");
        }
    }
    let (_, left) = server.store.list(table, &Scope::All);
    if left.is_empty() {
        release(server, definitions, &user, &name).await;
    }
}

async fn release(server: &Server, definitions: &Arc<Resource>, user: &User, name: &str) {
    let release = |_: &Write<'_>, definition: &mut Value| {
        if let Some(finalizers) = metadata_mut(definition).get_mut("finalizers").and_then(Value::as_array_mut)
        {
            finalizers.retain(|finalizer| finalizer != FINALIZER);
        }
        Ok(())
    };
    let mut write = own_write(server, definitions, user, None);
    if let Err(failure) = Box::pin(write.touch(name, release)).await
        && failure.reason != "NotFound"
    {
        tracing::warn!(%name, message = %failure.message, "failed to release a definition");
    }
}

/// Lets a definition that is going away go, once its last object is gone.
pub async fn instance_removed(server: &Server, resource: &Resource) {
    let Some(custom) = &resource.custom else { return };
    let registry = server.registry();
    let Some(definitions) = registry.find(GROUP, "v1", PLURAL) else { return };
    let stored = server.store.get(definitions.table, &Key::new("", &custom.definition));
    let Some(definition) = stored.and_then(|stored| decoded(&stored).ok()) else { return };
    let deleting = metadata_of(&definition).contains_key("deletionTimestamp");
    if deleting && server.store.list(resource.table, &Scope::All).1.is_empty() {
        release(server, definitions, &User::master("system:apiserver"), &custom.definition).await;
    }
}
