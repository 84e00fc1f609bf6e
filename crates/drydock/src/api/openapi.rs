//! OpenAPI v3: the types and paths of each group and version, for kubectl's validation and `explain`.

mod descriptions;
pub mod v2;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use windlass_machinery::schema::{ListKind, Scalar, Shape, Type};

use super::registry::{OBJECT_META, Registry, Resource};
use super::server::Server;

const REF: &str = "#/components/schemas/";

/// Where the document of a group and version is.
fn location(resource: &Resource) -> String {
    if resource.group.is_empty() {
        format!("api/{}", resource.version)
    } else {
        format!("apis/{}/{}", resource.group, resource.version)
    }
}

/// The list of documents.
#[must_use]
pub fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for resource in registry.all() {
        let place = location(resource);
        if paths.contains_key(&place) {
            continue;
        }
        let url = format!("/openapi/v3/{place}?hash={}", stamp(registry, &place));
        paths.insert(place, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

/// What changes when the document of a group and version does.
#[must_use]
pub fn stamp(registry: &Registry, place: &str) -> String {
    let mut digest = Sha256::new();
    for resource in registry.all().iter().filter(|resource| location(resource) == place) {
        digest.update(format!("{place} {} {:?}", resource.kind, resource.verbs));
        if let Some(custom) = &resource.custom {
            digest.update(custom.schema.to_string());
        }
    }
    digest.finalize().iter().map(|byte| format!("{byte:02X}")).collect()
}

/// The document of one group and version.
#[must_use]
pub fn document(server: &Server, registry: &Registry, place: &str) -> Option<Value> {
    let resources: Vec<_> = registry.all().iter().filter(|resource| location(resource) == place).collect();
    if resources.is_empty() {
        return None;
    }
    let mut schemas = Map::new();
    let mut paths = Map::new();
    let mut queue = BTreeSet::new();
    for resource in resources {
        let name = if resource.custom.is_some() {
            let reversed: Vec<&str> = resource.group.rsplit('.').collect();
            format!("{}.{}.{}", reversed.join("."), resource.version, resource.kind)
        } else {
            resource.definition.clone()
        };
        let gvk = json!({"group": resource.group, "kind": resource.kind, "version": resource.version});
        match &resource.custom {
            Some(custom) => {
                schemas.insert(name.clone(), custom_schema(&custom.schema, gvk.clone()));
                queue.insert(OBJECT_META.to_owned());
            }
            None => {
                let mut schema = structure(resource.ty(), &mut queue);
                schema["x-kubernetes-group-version-kind"] = json!([gvk]);
                schemas.insert(name.clone(), schema);
            }
        }
        for (path, item) in operations(resource, place, &name, &gvk) {
            paths.insert(path, item);
        }
    }
    while let Some(name) = queue.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        if let Some(ty) = server.built_in.definition(&name) {
            let schema = structure(ty, &mut queue);
            schemas.insert(name, schema);
        }
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.3"},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

fn custom_schema(schema: &Value, gvk: Value) -> Value {
    let mut schema = schema.clone();
    let text = json!({"type": "string"});
    schema["properties"]["apiVersion"] = text.clone();
    schema["properties"]["kind"] = text;
    schema["properties"]["metadata"] = json!({"allOf": [{"$ref": format!("{REF}{OBJECT_META}")}]});
    schema["x-kubernetes-group-version-kind"] = json!([gvk]);
    schema
}

fn structure(ty: Type<'_>, queue: &mut BTreeSet<String>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if let Some(structure) = ty.structure() {
        for (name, field) in &structure.fields {
            let mut property = property(ty.to(field.node), queue);
            if let Some(key) = &field.patch.key {
                property["x-kubernetes-patch-merge-key"] = (**key).into();
            }
            let mut strategy = Vec::new();
            if field.patch.merge {
                strategy.push("merge");
            }
            if field.patch.retain_keys {
                strategy.push("retainKeys");
            }
            if !strategy.is_empty() {
                property["x-kubernetes-patch-strategy"] = strategy.join(",").into();
            }
            if let Some(text) = descriptions::of_field(&structure.name, name) {
                property["description"] = text.into();
            }
            properties.insert(name.to_string(), property);
            if field.required {
                required.push(Value::from(&**name));
            }
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if let Some(text) = ty.structure().and_then(|structure| descriptions::of_type(&structure.name)) {
        schema["description"] = text.into();
    }
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    if ty.node().atomic {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    schema
}

fn property(ty: Type<'_>, queue: &mut BTreeSet<String>) -> Value {
    match ty.shape() {
        Shape::Any => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        Shape::Scalar(scalar, _) => match scalar {
            Scalar::Bool => json!({"type": "boolean"}),
            Scalar::Int32 => json!({"type": "integer", "format": "int32"}),
            Scalar::Int64 => json!({"type": "integer", "format": "int64"}),
            Scalar::Float => json!({"type": "number", "format": "double"}),
            Scalar::String | Scalar::Duration => json!({"type": "string"}),
            Scalar::Bytes => json!({"type": "string", "format": "byte"}),
            Scalar::Time | Scalar::MicroTime => json!({"type": "string", "format": "date-time"}),
            Scalar::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            Scalar::IntOrString => {
                json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
            }
        },
        Shape::List { items, kind } => {
            let mut schema = json!({"type": "array", "items": property(ty.to(*items), queue)});
            match kind {
                ListKind::Atomic => schema["x-kubernetes-list-type"] = "atomic".into(),
                ListKind::Set => schema["x-kubernetes-list-type"] = "set".into(),
                ListKind::Map(keys) => {
                    schema["x-kubernetes-list-type"] = "map".into();
                    schema["x-kubernetes-list-map-keys"] = json!(keys);
                }
            }
            schema
        }
        Shape::Map(values) => {
            json!({"type": "object", "additionalProperties": property(ty.to(*values), queue)})
        }
        Shape::Struct(_) => {
            let name = ty.structure().map(|structure| structure.name.to_string()).unwrap_or_default();
            let reference = json!({"allOf": [{"$ref": format!("{REF}{name}")}]});
            queue.insert(name);
            reference
        }
    }
}

/// The paths of a resource, as far as clients look at them: verbs, kinds and the parameters of writes.
fn operations(resource: &Resource, place: &str, name: &str, gvk: &Value) -> Vec<(String, Value)> {
    let base = if resource.namespaced {
        format!("/{place}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("/{place}/{}", resource.plural)
    };
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let writes: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation"].map(parameter).to_vec();
    let content = json!({"application/json": {"schema": {"$ref": format!("{REF}{name}")}}});
    let operation = |action: &str, parameters: &[Value]| {
        json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk, "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": content}},
        })
    };
    let mut collection = Map::new();
    let mut object = Map::new();
    for verb in &resource.verbs {
        match verb.as_str() {
            "list" => drop(collection.insert("get".into(), operation("list", &[]))),
            "create" => drop(collection.insert("post".into(), operation("post", &writes))),
            "deletecollection" => {
                drop(
                    collection.insert("delete".into(), operation("deletecollection", &[parameter("dryRun")])),
                );
            }
            "get" => drop(object.insert("get".into(), operation("get", &[]))),
            "update" => drop(object.insert("put".into(), operation("put", &writes))),
            "patch" => {
                let mut parameters = writes.clone();
                parameters.push(parameter("force"));
                object.insert("patch".into(), operation("patch", &parameters));
            }
            "delete" => drop(object.insert("delete".into(), operation("delete", &[parameter("dryRun")]))),
            _ => {}
        }
    }
    vec![(base.clone(), Value::Object(collection)), (format!("{base}/{{name}}"), Value::Object(object))]
}
