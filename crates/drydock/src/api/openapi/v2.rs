//! OpenAPI v2: all groups in one document, made from the documents of version 3.
//!
//! Only as JSON: the protocol buffers that old clients prefer are theirs to fall back from.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::super::registry::Registry;
use super::super::server::Server;
use super::{REF, document, location};

/// What version 2 cannot say of a type.
const UNKNOWN: [&str; 5] = ["oneOf", "anyOf", "not", "nullable", "x-kubernetes-validations"];

/// The whole document.
#[must_use]
pub fn whole(server: &Server, registry: &Registry) -> Value {
    let places: BTreeSet<String> = registry.all().iter().map(|resource| location(resource)).collect();
    let (mut definitions, mut paths) = (Map::new(), Map::new());
    for mut part in places.iter().filter_map(|place| document(server, registry, place)) {
        if let Value::Object(schemas) = part["components"]["schemas"].take() {
            definitions.extend(schemas.into_iter().map(|(name, schema)| (name, schema_of(schema))));
        }
        if let Value::Object(items) = part["paths"].take() {
            paths.extend(items.into_iter().map(|(path, item)| (path, item_of(item))));
        }
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.36.3"},
        "paths": paths,
        "definitions": definitions,
    })
}

fn schema_of(schema: Value) -> Value {
    match schema {
        Value::Object(mut map) => {
            // A reference stands alone in version 3, and beside a description in version 2.
            if let Some(Value::Array(all)) = map.get("allOf")
                && let [Value::Object(one)] = all.as_slice()
                && let Some(target) = one.get("$ref").cloned()
            {
                map.remove("allOf");
                map.insert("$ref".into(), target);
            }
            let fields = map.into_iter().filter(|(name, _)| !UNKNOWN.contains(&name.as_str()));
            Value::Object(
                fields
                    .map(|(name, value)| {
                        let value = match (name.as_str(), value) {
                            ("$ref", Value::String(target)) => target.replace(REF, "#/definitions/").into(),
                            ("properties", Value::Object(all)) => {
                                all.into_iter().map(|(name, value)| (name, schema_of(value))).collect()
                            }
                            ("default" | "enum" | "example", value) => value,
                            (_, value) => schema_of(value),
                        };
                        (name, value)
                    })
                    .collect(),
            )
        }
        Value::Array(list) => list.into_iter().map(schema_of).collect(),
        other => other,
    }
}

fn item_of(item: Value) -> Value {
    let Value::Object(map) = item else { return item };
    let converted = map.into_iter().map(|(name, value)| match value {
        Value::Object(operation) => (name, operation_of(operation)),
        Value::Array(parameters) => (name, parameters.into_iter().map(parameter_of).collect()),
        other => (name, other),
    });
    converted.collect()
}

fn operation_of(mut operation: Map<String, Value>) -> Value {
    let body = operation.remove("requestBody").and_then(|body| first_schema(&body));
    let mut parameters: Vec<Value> = match operation.remove("parameters") {
        Some(Value::Array(list)) => list.into_iter().map(parameter_of).collect(),
        _ => Vec::new(),
    };
    if let Some(schema) = body {
        parameters.push(json!({"name": "body", "in": "body", "required": true, "schema": schema}));
    }
    if !parameters.is_empty() {
        operation.insert("parameters".into(), parameters.into());
    }
    for answer in operation.get_mut("responses").and_then(Value::as_object_mut).into_iter().flatten() {
        let schema = first_schema(answer.1);
        if let Some(map) = answer.1.as_object_mut() {
            map.remove("content");
            map.extend(schema.map(|schema| ("schema".to_owned(), schema)));
        }
    }
    Value::Object(operation)
}

fn first_schema(body: &Value) -> Option<Value> {
    let content = body["content"].as_object()?;
    Some(schema_of(content.values().next()?.get("schema")?.clone()))
}

fn parameter_of(parameter: Value) -> Value {
    let Value::Object(mut map) = parameter else { return parameter };
    if let Some(Value::Object(schema)) = map.remove("schema") {
        map.extend(schema);
    }
    Value::Object(map)
}
