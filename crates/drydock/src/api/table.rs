//! Tables for people: what `kubectl get` shows.
//!
//! The columns of built-in kinds come from the table of resources, those of custom ones from their definition.
//! The cells of a built-in kind are one function per kind; a kind without one shows its name and age.

mod cells;
pub mod jsonpath;

use serde_json::{Value, json};

use super::registry::{Column, Resource};
use super::request::Query;
use super::server::Server;
use super::status::{Failure, Outcome};
use super::view;

pub use cells::age;
pub(super) use cells::{adds_metadata, without_added};

/// The table of some objects.
#[must_use]
pub fn of(
    server: &Server,
    resource: &Resource,
    objects: &[Value],
    metadata: Value,
    version: &str,
    query: &Query,
) -> Value {
    let include = query.get("includeObject").unwrap_or("Metadata");
    let plain = plain_columns();
    let columns = if resource.columns.is_empty() { &plain } else { &resource.columns };
    let mut objects: Vec<&Value> = objects.iter().collect();
    cells::sort(resource, &mut objects);
    let rows = objects
        .into_iter()
        .map(|object| {
            let mut row = json!({"cells": row_cells(server, resource, columns, object), "object": null});
            match include {
                // What only tells how far a watch has come is shown all the same.
                "None" if !object["metadata"]["name"].is_string() => {
                    row["object"] = partial(resource, object, version);
                }
                "None" => {}
                "Object" => row["object"] = super::write::body::with_type(object, resource),
                _ => row["object"] = partial(resource, object, version),
            }
            if let Some(condition) = cells::condition(resource, object) {
                row["conditions"] = json!([condition]);
            }
            row
        })
        .collect::<Vec<_>>();
    // Where a kind has no printer of its own, a table without rows has no list of them either.
    let printed =
        resource.custom.is_none() && columns.get(1).is_none_or(|column| column.name != "Created At");
    let rows = if rows.is_empty() && !printed { Value::Null } else { rows.into() };
    json!({
        "kind": "Table", "apiVersion": version, "metadata": metadata,
        "columnDefinitions": columns.iter().map(definition).collect::<Vec<_>>(), "rows": rows,
    })
}

fn partial(resource: &Resource, object: &Value, version: &str) -> Value {
    let mut metadata = object["metadata"].clone();
    cells::without_added(resource, &mut metadata);
    json!({"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": metadata})
}

/// Whether a table can be as the client wants it.
///
/// # Errors
/// When it cannot.
pub fn check(query: &Query) -> Outcome<()> {
    match query.get("includeObject") {
        None | Some("None" | "Metadata" | "Object") => Ok(()),
        Some(other) => Err(Failure::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be \
             'Metadata', 'Object', 'None', or empty"
        ))),
    }
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.name, "type": column.kind, "format": column.format,
        "description": column.description, "priority": column.priority,
    })
}

fn plain_columns() -> Vec<Column> {
    let column = |name: &str, kind: &str, format: &str| Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: format.to_owned(),
        priority: 0,
        description: String::new(),
        json_path: None,
    };
    vec![column("Name", "string", "name"), column("Created At", "date", "")]
}

fn row_cells(server: &Server, resource: &Resource, columns: &[Column], object: &Value) -> Vec<Value> {
    let now = server.context.now();
    if resource.custom.is_some() {
        return columns
            .iter()
            .map(|column| match &column.json_path {
                None => object["metadata"]["name"].clone(),
                Some(path) => custom_cell(column, jsonpath::find(object, path).first().copied(), now),
            })
            .collect();
    }
    if columns.get(1).is_some_and(|column| column.name == "Created At") && columns.len() == 2 {
        return vec![object["metadata"]["name"].clone(), object["metadata"]["creationTimestamp"].clone()];
    }
    let mut row = cells::built_in(resource, &view::counted(resource, object), now);
    // Addresses have a cell more than they have columns.
    if resource.kind != "IPAddress" {
        row.truncate(columns.len());
        row.resize(columns.len(), Value::from("<none>"));
    }
    row
}

fn custom_cell(column: &Column, value: Option<&Value>, now: jiff::Timestamp) -> Value {
    match (column.kind.as_str(), value) {
        (_, None | Some(Value::Null)) => Value::Null,
        ("date", Some(Value::String(text))) => age(text, now).into(),
        ("integer", Some(value)) => value.as_i64().map_or(Value::Null, Value::from),
        ("number", Some(value)) => value.as_f64().map_or(Value::Null, Value::from),
        ("boolean", Some(value)) => value.as_bool().map_or(Value::Null, Value::from),
        (_, Some(Value::String(text))) => text.as_str().into(),
        (_, Some(other)) => other.to_string().into(),
    }
}
