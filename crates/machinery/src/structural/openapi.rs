//! Which parts of OpenAPI a schema may use, and how they go together.

use serde_json::Value;

use super::golang;
use super::props::{Additional, Items, Props};
use crate::invalid::{FieldError, Path, Shown};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const ROOT: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// With a status subresource, a status is checked without the rest of the object: the root may say little.
pub(super) fn status_root(schema: Props<'_>, path: &Path) -> Option<FieldError> {
    for field in golang::set_fields(schema) {
        if field == "Type" && schema.kind() != "object" {
            let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            return Some(FieldError::invalid(path.child("type"), schema.kind(), why));
        }
        if !ROOT.contains(&field) {
            let why = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                ROOT.join(" ")
            );
            return Some(FieldError::invalid(path, Shown::raw(golang::schema(schema)), why));
        }
    }
    None
}

/// What is wrong with a schema of whole objects.
pub(super) fn check(schema: Props<'_>, path: &Path) -> Vec<FieldError> {
    let mut out = Vec::new();
    walk(schema, path, true, &Place::default(), &mut out);
    out
}

/// What a schema is inside of.
#[derive(Clone, Default)]
struct Place {
    meta: bool,
    no_defaults: Option<String>,
}

fn walk(schema: Props<'_>, path: &Path, root: bool, place: &Place, out: &mut Vec<FieldError>) {
    supported(schema, path, place, out);
    if schema.flag("uniqueItems") {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        out.push(FieldError::forbidden(path.child("uniqueItems"), why));
    }
    if let Some(additional) = schema.additional() {
        let at = path.child("additionalProperties");
        if schema.has_map("properties") && !matches!(additional, Additional::Flag(true)) {
            out.push(FieldError::forbidden(&at, "additionalProperties and properties are mutual exclusive"));
        }
        if let Additional::Schema(one) = additional {
            let mut place = place.clone();
            if place.meta {
                place.no_defaults =
                    Some("inside additionalProperties applying to object metadata".to_owned());
            }
            walk(one, &at, false, &place, out);
        }
    }
    for (name, property) in schema.map("properties") {
        let mut place = place.clone();
        if (root || schema.embedded()) && matches!(name, "metadata" | "kind" | "apiVersion") {
            place.meta = true;
            if root {
                place.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        walk(property, &path.child("properties").key(name), false, &place, out);
    }
    if let Some(not) = schema.schema("not") {
        walk(not, &path.child("not"), false, place, out);
    }
    for name in ["allOf", "oneOf", "anyOf"] {
        for (index, one) in schema.schemas(name).enumerate() {
            walk(one, &path.child(name).index(index), false, place, out);
        }
    }
    for (name, one) in schema.map("definitions") {
        walk(one, &path.child("definitions").key(name), false, place, out);
    }
    let at = path.child("items");
    match schema.items() {
        Some(Items::One(one)) => walk(one, &at, false, place, out),
        Some(Items::Many(all)) => {
            for (index, one) in all.iter().enumerate() {
                walk(Props(one), &at.index(index), false, place, out);
            }
        }
        None => {}
    }
    if schema.get("x-kubernetes-preserve-unknown-fields").is_some() && !schema.preserves() {
        let at = path.child("x-kubernetes-preserve-unknown-fields");
        out.push(FieldError::invalid(at, false, "must be true or undefined"));
    }
    map_type(schema, path, out);
    list_type(schema, path, out);
    rules(schema, path, out);
}

fn supported(schema: Props<'_>, path: &Path, place: &Place, out: &mut Vec<FieldError>) {
    let kind = schema.kind();
    if !kind.is_empty() && !TYPES.contains(&kind) {
        out.push(FieldError::not_supported(path.child("type"), kind, TYPES));
    }
    if let (Some(reason), Some(_)) = (&place.no_defaults, schema.get("default")) {
        out.push(FieldError::forbidden(path.child("default"), format!("must not be set {reason}")));
    }
    let set = [
        ("id", !schema.text("id").is_empty()),
        ("additionalItems", schema.get("additionalItems").is_some()),
        ("patternProperties", schema.has_map("patternProperties")),
        ("definitions", schema.has_map("definitions")),
        ("dependencies", schema.get("dependencies").is_some()),
        ("$ref", schema.get("$ref").is_some()),
    ];
    for (name, _) in set.into_iter().filter(|(_, set)| *set) {
        out.push(FieldError::forbidden(path.child(name), format!("{name} is not supported")));
    }
    if kind == "null" {
        let why = "type cannot be set to null, use nullable as an alternative";
        out.push(FieldError::forbidden(path.child("type"), why));
    }
    if matches!(schema.items(), Some(Items::Many(all)) if !all.is_empty()) {
        let why = "items must be a schema object and not an array";
        out.push(FieldError::forbidden(path.child("items"), why));
    }
    if place.meta && schema.embedded() {
        let at = path.child("x-kubernetes-embedded-resource");
        out.push(FieldError::forbidden(at, "must not be used inside of resource meta"));
    }
}

/// `type` has to be one for an extension to make sense.
fn needs_type(schema: Props<'_>, wanted: &str, extension: &str, path: &Path) -> Option<FieldError> {
    let kind = schema.kind();
    let why = format!("must be {wanted} if {extension} is specified");
    let at = path.child("type");
    match kind {
        kind if kind == wanted => None,
        "" => Some(FieldError::required(at, why)),
        kind => Some(FieldError::invalid(at, kind, why)),
    }
}

fn map_type(schema: Props<'_>, path: &Path, out: &mut Vec<FieldError>) {
    let Some(map_type) = schema.pointer("x-kubernetes-map-type") else {
        return;
    };
    out.extend(needs_type(schema, "object", "x-kubernetes-map-type", path));
    if !matches!(map_type, "atomic" | "granular") {
        let at = path.child("x-kubernetes-map-type");
        out.push(FieldError::not_supported(at, map_type, ["atomic", "granular"]));
    }
}

fn list_type(schema: Props<'_>, path: &Path, out: &mut Vec<FieldError>) {
    let list_type = schema.pointer("x-kubernetes-list-type");
    let at = path.child("x-kubernetes-list-type");
    if let Some(list_type) = list_type {
        let wrong = needs_type(schema, "array", "x-kubernetes-list-type", path);
        if wrong.is_none() && list_type == "set" {
            out.extend(set_items(schema, path));
        }
        out.extend(wrong);
        if !matches!(list_type, "atomic" | "set" | "map") {
            out.push(FieldError::not_supported(&at, list_type, ["atomic", "set", "map"]));
        }
    }
    if !schema.list("x-kubernetes-list-map-keys").is_empty() {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            None => out.push(FieldError::required(&at, why)),
            Some("map") => {}
            Some(other) => out.push(FieldError::invalid(&at, other, why)),
        }
    }
    if list_type == Some("map") {
        list_map(schema, path, out);
    }
    if let (Some(list_type @ ("set" | "map")), Some(items)) = (list_type, schema.item()) {
        let at = path.child("items");
        if items.flag("nullable") {
            let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            out.push(FieldError::forbidden(at.child("nullable"), why));
        }
        let keys = schema.strings("x-kubernetes-list-map-keys").filter(|_| list_type == "map");
        for (key, property) in keys.filter_map(|key| Some((key, items.property(key)?))) {
            let at = at.child("properties").key(key);
            let required = items.strings("required").any(|one| one == key);
            if !required && property.get("default").is_none() {
                let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                out.push(FieldError::required(at.child("default"), why));
            }
            if property.flag("nullable") {
                let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                out.push(FieldError::forbidden(at.child("nullable"), why));
            }
        }
    }
}

fn set_items(schema: Props<'_>, path: &Path) -> Option<FieldError> {
    let items = schema.item()?;
    let wrong = match items.kind() {
        "array" => items.pointer("x-kubernetes-list-type").is_some_and(|kind| kind != "atomic"),
        "object" => items.pointer("x-kubernetes-map-type") != Some("atomic"),
        _ => false,
    };
    let name = if items.kind() == "array" { "x-kubernetes-list-type" } else { "x-kubernetes-map-type" };
    let shown = items.get("x-kubernetes-list-type").unwrap_or(&Value::Null);
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    wrong.then(|| FieldError::invalid(path.child("items").child(name), shown, why))
}

fn list_map(schema: Props<'_>, path: &Path, out: &mut Vec<FieldError>) {
    let keys = schema.get("x-kubernetes-list-map-keys").unwrap_or(&Value::Null);
    let at = path.child("x-kubernetes-list-map-keys");
    if schema.list("x-kubernetes-list-map-keys").is_empty() {
        out.push(FieldError::required(&at, "must not be empty if x-kubernetes-list-type is map"));
    }
    let items_at = path.child("items");
    let items = match schema.items() {
        None => {
            let why = "must have a schema if x-kubernetes-list-type is map";
            out.push(FieldError::required(items_at, why));
            return;
        }
        Some(many @ Items::Many(_)) => {
            let why = "must only have a single schema if x-kubernetes-list-type is map";
            out.push(FieldError::invalid(items_at, Shown::raw(golang::items(many)), why));
            return;
        }
        Some(Items::One(items)) => items,
    };
    if items.kind() != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        out.push(FieldError::invalid(items_at.child("type"), items.kind(), why));
        return;
    }
    let mut seen = Vec::new();
    for key in schema.strings("x-kubernetes-list-map-keys") {
        match items.property(key) {
            Some(property) if matches!(property.kind(), "array" | "object") => {
                let at = items_at.child("properties").key(key).child("type");
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                out.push(FieldError::invalid(at, items.kind(), why));
            }
            Some(_) => {}
            None => out.push(FieldError::invalid(&at, keys, "entries must all be names of item properties")),
        }
        if seen.contains(&key) {
            out.push(FieldError::invalid(&at, keys, "must not contain duplicate entries"));
        }
        seen.push(key);
    }
}

/// The form of rules in CEL; what they say is looked at elsewhere.
fn rules(schema: Props<'_>, path: &Path, out: &mut Vec<FieldError>) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    let lines = |text: &str| text.contains(['\n', '\r']);
    for (index, one) in schema.schemas("x-kubernetes-validations").enumerate() {
        let at = path.child("x-kubernetes-validations").index(index);
        let (rule, message) = (one.text("rule").trim(), one.text("message"));
        if rule.is_empty() {
            out.push(FieldError::required(at.child("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            out.push(FieldError::invalid(at.child("message"), message, "must be non-empty if specified"));
        } else if lines(message.trim()) {
            out.push(FieldError::invalid(at.child("message"), message, "must not contain line breaks"));
        } else if lines(rule) && message.trim().is_empty() {
            let why = "message must be specified if rule contains line breaks";
            out.push(FieldError::required(at.child("message"), why));
        }
        let expression = one.text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            out.push(FieldError::required(at.child("messageExpression"), why));
        }
        if let Some(reason) = one.pointer("reason").filter(|reason| !REASONS.contains(reason)) {
            out.push(FieldError::not_supported(at.child("reason"), reason, REASONS));
        }
        let field = one.text("fieldPath");
        let at = at.child("fieldPath");
        if !field.is_empty() && field.trim().is_empty() {
            out.push(FieldError::invalid(&at, field, "must be non-empty if specified"));
        }
        if lines(field) {
            out.push(FieldError::invalid(&at, field, "must not contain line breaks"));
        }
        if !field.is_empty() && field_path(field, schema, true).is_err() {
            out.push(FieldError::invalid(&at, field, "must be a valid path"));
        }
    }
}

/// Follows a simple JSON path (`.spec.a['b']`) through a schema.
pub(super) fn field_path<'a>(
    text: &str,
    schema: Props<'a>,
    brackets: bool,
) -> Result<(Vec<String>, Option<Props<'a>>), String> {
    let mut tokens = tokens(text).into_iter();
    let mut names = Vec::new();
    let mut at = Some(schema);
    let end = || "unexpected end of JSON path".to_owned();
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = tokens.next().ok_or_else(end)?;
                let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let inner = inner.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                match tokens.next().ok_or_else(end)? {
                    "]" => inner.replace("\\'", "'").replace("\\\\", "\\"),
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => tokens.next().ok_or_else(end)?.to_owned(),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let here = at.ok_or_else(|| "does not refer to a valid field".to_owned())?;
        at = match (here.has_map("properties"), here.additional()) {
            (true, _) => Some(here.property(&name).ok_or("does not refer to a valid field")?),
            (false, Some(Additional::Schema(one))) => Some(one),
            (false, Some(Additional::Flag(_))) => None,
            (false, None) => return Err("does not refer to a valid field".to_owned()),
        };
        names.push(name);
    }
    Ok((names, at))
}

fn tokens(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let length = if rest.starts_with(['.', '[', ']']) {
            1
        } else if rest.starts_with('\'') {
            let bytes = rest.as_bytes();
            (1..bytes.len())
                .find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\')
                .map_or(rest.len(), |at| at + 1)
        } else {
            rest.find(['.', '[', ']']).unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(length);
        out.push(token);
        rest = after;
    }
    out
}
