//! What is wrong with a schema: is it structural, and is all of it supported?

use super::props::{Additional, Props};
use super::{defaults, openapi, pattern, rules};
use crate::invalid::{FieldError, Path};

/// What is wrong with an `openAPIV3Schema` at a path, for a version with or without a status subresource.
#[must_use]
pub fn check(schema: &serde_json::Value, status: bool, path: &Path) -> Vec<FieldError> {
    let schema = Props(schema);
    let mut out = Vec::new();
    if status {
        out.extend(openapi::status_root(schema, path));
    }
    if schema.flag("nullable") {
        out.push(FieldError::forbidden(path.child("nullable"), "nullable cannot be true at the root"));
    }
    // What cannot be read as a structural schema is only told when nothing else is wrong.
    let unreadable = unsupported(schema);
    if unreadable.is_none() {
        let structural = structural(schema, path);
        if structural.is_empty() {
            out.extend(defaults::check(schema, path));
        } else {
            out.extend(structural);
        }
    }
    out.extend(openapi::check(schema, path));
    if out.is_empty() && unreadable.is_none() {
        out.extend(rules::check(schema, path));
    }
    if out.is_empty() {
        out.extend(unreadable.map(|why| FieldError::invalid(path, "", why)));
    }
    out
}

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What keeps a schema from being structural.
pub(super) fn structural(schema: Props<'_>, path: &Path) -> Vec<FieldError> {
    let mut out = Vec::new();
    invariants(schema, Level::Root, path, &mut out);
    completeness(schema, schema, path, path, &mut out);
    out.sort_by_cached_key(ToString::to_string);
    out
}

/// The first thing in a schema that has no structural form at all.
pub(super) fn unsupported(schema: Props<'_>) -> Option<String> {
    let words = |name: &str| Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    for (name, shown) in [("id", "id"), ("$schema", "schema"), ("$ref", "$ref")] {
        if !schema.text(name).is_empty() {
            return words(shown);
        }
    }
    for name in ["patternProperties", "dependencies"] {
        if schema.has_map(name) {
            return words(name);
        }
    }
    if schema.get("additionalItems").is_some() {
        return words("additionalItems");
    }
    if schema.has_map("definitions") {
        return words("definitions");
    }
    let inside = ["not"].into_iter().filter_map(|name| schema.schema(name));
    let combined = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|name| schema.schemas(name));
    if let Some(why) = inside.chain(combined).find_map(unsupported) {
        return Some(why);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields").is_some() && !schema.preserves() {
        let why = "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
        return Some(why.to_owned());
    }
    if let Some(super::props::Items::Many(all)) = schema.items()
        && !all.is_empty()
    {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    let additional = match schema.additional() {
        Some(Additional::Schema(one)) => Some(one),
        _ => None,
    };
    let children =
        schema.item().into_iter().chain(schema.map("properties").map(|(_, one)| one)).chain(additional);
    children.into_iter().find_map(unsupported)
}

fn invariants(schema: Props<'_>, level: Level, path: &Path, out: &mut Vec<FieldError>) {
    let kind = schema.kind();
    let items = schema.item();
    if kind == "array" && items.is_none() {
        out.push(FieldError::required(path.child("items"), "must be specified"));
    }
    if let Some(items) = items {
        invariants(items, Level::Item, &path.child("items"), out);
    }
    for (name, property) in schema.map("properties") {
        invariants(property, Level::Field, &path.child("properties").key(name), out);
    }
    let at = path.child("additionalProperties");
    if let Some(additional) = schema.additional() {
        if level == Level::Root {
            out.push(FieldError::forbidden(&at, "must not be used at the root"));
        }
        if let Additional::Schema(one) = additional {
            invariants(one, Level::Field, &at, out);
        }
    }
    if schema.int_or_string() {
        let why = "must be false if x-kubernetes-int-or-string is true";
        for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if schema.flag(name) {
                out.push(FieldError::invalid(path.child(name), true, why));
            }
        }
    }
    let skip_any = is_int_or_string(schema.list("anyOf"));
    let skip_first =
        schema.schemas("allOf").next().is_some_and(|first| is_int_or_string(first.list("anyOf")));
    value_validation(schema, skip_any, skip_first, path, out);
    whole_object(schema, level, path, out);
}

/// The rules about types, and about what whole objects have.
fn whole_object(schema: Props<'_>, level: Level, path: &Path, out: &mut Vec<FieldError>) {
    let kind = schema.kind();
    let whole = level == Level::Root || schema.embedded();
    let at = path.child("type");
    if schema.embedded() && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        out.push(if kind.is_empty() {
            FieldError::required(&at, why)
        } else {
            FieldError::invalid(&at, kind, why)
        });
    } else if kind.is_empty() && !schema.int_or_string() && !schema.preserves() {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        out.push(FieldError::required(&at, why));
    }
    if schema.embedded() && schema.additional().is_some() {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        out.push(FieldError::forbidden(path.child("additionalProperties"), why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        out.push(FieldError::invalid(&at, kind, "must be object at the root"));
    }
    let properties = path.child("properties");
    for name in ["kind", "apiVersion"] {
        if let Some(property) = schema.property(name).filter(|property| whole && property.kind() != "string")
        {
            let at = properties.key(name).child("type");
            out.push(FieldError::invalid(at, property.kind(), "must be string"));
        }
    }
    if let Some(metadata) = schema.property("metadata") {
        let at = properties.key("metadata");
        if whole && metadata.kind() != "object" {
            out.push(FieldError::invalid(at.child("type"), metadata.kind(), "must be object"));
        }
        if level == Level::Root && !only_names(metadata) {
            let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            out.push(FieldError::forbidden(at, why));
        }
    }
    if schema.embedded() && !schema.preserves() && !schema.has_map("properties") {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        out.push(FieldError::required(properties, why));
    }
}

/// Whether a schema of metadata says nothing but what names look like.
fn only_names(metadata: Props<'_>) -> bool {
    let names = metadata.map("properties").all(|(name, _)| matches!(name, "name" | "generateName"));
    let fields = metadata.0.as_object().into_iter().flatten();
    let nothing_else = fields
        .filter(|(_, value)| !is_zero(value))
        .all(|(field, _)| matches!(field.as_str(), "type" | "properties" | "default"));
    names && nothing_else
}

fn is_zero(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Null => true,
        serde_json::Value::Bool(flag) => !flag,
        serde_json::Value::String(text) => text.is_empty(),
        serde_json::Value::Array(all) => all.is_empty(),
        serde_json::Value::Object(all) => all.is_empty(),
        serde_json::Value::Number(_) => false,
    }
}

/// `anyOf: [{type: integer}, {type: string}]`, which int-or-string may have.
fn is_int_or_string(any_of: &[serde_json::Value]) -> bool {
    let is = |schema: &serde_json::Value, kind: &str| {
        let set = schema.as_object().into_iter().flatten().filter(|(_, value)| !is_zero(value));
        Props(schema).kind() == kind && set.count() == 1
    };
    matches!(any_of, [first, second] if is(first, "integer") && is(second, "string"))
}

fn value_validation(
    schema: Props<'_>,
    skip_any: bool,
    skip_first: bool,
    path: &Path,
    out: &mut Vec<FieldError>,
) {
    for name in ["anyOf", "allOf", "oneOf"] {
        for (index, one) in schema.schemas(name).enumerate() {
            if name == "anyOf" && skip_any {
                continue;
            }
            let skip_any = name == "allOf" && index == 0 && skip_first;
            nested(one, skip_any, &path.child(name).index(index), out);
        }
    }
    if let Some(not) = schema.schema("not") {
        nested(not, false, &path.child("not"), out);
    }
    let text = schema.text("pattern");
    if let Err(error) = pattern::compile(text) {
        let why = format!("must be a valid regular expression, but isn't: {error}");
        out.push(FieldError::invalid(path.child("pattern"), text, why));
    }
}

/// Inside `allOf` and its like, schemas only restrict values; they say nothing about structure.
fn nested(schema: Props<'_>, skip_any: bool, path: &Path, out: &mut Vec<FieldError>) {
    value_validation(schema, skip_any, false, path, out);
    if let Some(items) = schema.item() {
        nested(items, false, &path.child("items"), out);
    }
    for (name, property) in schema.map("properties") {
        nested(property, false, &path.child("properties").key(name), out);
    }
    let mut forbid = |set: bool, name: &str, why: &str| {
        if set {
            out.push(FieldError::forbidden(path.child(name), format!("must be {why} to be structural")));
        }
    };
    let additional = schema.additional().is_some_and(|one| !matches!(one, Additional::Flag(false)));
    forbid(!schema.kind().is_empty(), "type", "empty");
    forbid(additional, "additionalProperties", "undefined");
    forbid(schema.get("default").is_some(), "default", "undefined");
    forbid(!schema.text("title").is_empty(), "title", "empty");
    forbid(!schema.text("description").is_empty(), "description", "empty");
    for name in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        forbid(schema.flag(name), name, "false");
    }
    forbid(!schema.list("x-kubernetes-list-map-keys").is_empty(), "x-kubernetes-list-map-keys", "empty");
    forbid(schema.get("x-kubernetes-list-type").is_some(), "x-kubernetes-list-type", "undefined");
    forbid(schema.get("x-kubernetes-map-type").is_some(), "x-kubernetes-map-type", "undefined");
    forbid(!schema.list("x-kubernetes-validations").is_empty(), "x-kubernetes-validations", "empty");
    if schema.property("metadata").is_some() {
        let at = path.child("properties").key("metadata");
        out.push(FieldError::forbidden(at, "must not be specified in a nested context"));
    }
}

/// Whatever a value validation mentions has to be part of the structure, too.
fn completeness(
    value: Props<'_>,
    schema: Props<'_>,
    s_path: &Path,
    v_path: &Path,
    out: &mut Vec<FieldError>,
) {
    let not = value.schema("not").map(|one| (one, v_path.child("not")));
    let combined = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|name| {
        value.schemas(name).enumerate().map(move |(index, one)| (one, v_path.child(name).index(index)))
    });
    for (one, at) in not.into_iter().chain(combined) {
        nested_completeness(one, Some(schema), s_path, &at, out);
    }
}

fn nested_completeness(
    value: Props<'_>,
    schema: Option<Props<'_>>,
    s_path: &Path,
    v_path: &Path,
    out: &mut Vec<FieldError>,
) {
    let Some(schema) = schema else {
        out.push(FieldError::required(s_path, format!("because it is defined in {v_path}")));
        return;
    };
    completeness(value, schema, s_path, v_path, out);
    if let Some(items) = value.item() {
        nested_completeness(items, schema.item(), &s_path.child("items"), &v_path.child("items"), out);
    }
    for (name, property) in value.map("properties") {
        let s_path = s_path.child("properties").key(name);
        let v_path = v_path.child("properties").key(name);
        nested_completeness(property, schema.property(name), &s_path, &v_path, out);
    }
}
