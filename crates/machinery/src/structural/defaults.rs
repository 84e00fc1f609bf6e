//! Defaults have to be valid values of their schema, with no field that would be pruned.

use serde_json::{Value, json};

use super::props::Props;
use super::rule::{Purpose, Rule};
use super::rules::Rules;
use super::{embedded, validate};
use crate::invalid::{FieldError, Path, summary};

/// What is wrong with the defaults in a schema of whole objects.
pub(super) fn check(schema: Props<'_>, path: &Path) -> Vec<FieldError> {
    let mut out = Vec::new();
    walk(schema, path, true, None, &mut out);
    out
}

/// The way from a whole object to what is inside its metadata.
type Inside<'a> = Option<&'a dyn Fn(Value) -> Value>;

fn walk(schema: Props<'_>, path: &Path, root: bool, inside: Inside<'_>, out: &mut Vec<FieldError>) {
    let whole = root || schema.embedded();
    let inside = if whole { None } else { inside };
    if let Some(default) = schema.get("default") {
        out.extend(one(schema, default, &path.child("default"), whole, inside));
    }
    if let Some(items) = schema.item() {
        let wrap = |value: Value| inside.map_or(Value::Null, |inside| inside(json!([value])));
        let inside: Inside<'_> = inside.is_some().then_some(&wrap);
        walk(items, &path.child("items"), false, inside, out);
    }
    for (name, property) in schema.map("properties") {
        let meta = whole && matches!(name, "metadata" | "apiVersion" | "kind");
        let wrap = |value: Value| {
            let mut object = serde_json::Map::new();
            object.insert(name.to_owned(), value);
            match inside {
                Some(inside) => inside(Value::Object(object)),
                None => {
                    object.entry("apiVersion").or_insert_with(|| json!("validation/v1"));
                    object.entry("kind").or_insert_with(|| json!("Validation"));
                    Value::Object(object)
                }
            }
        };
        let inside: Inside<'_> = (meta || inside.is_some()).then_some(&wrap);
        walk(property, &path.child("properties").key(name), false, inside, out);
    }
}

fn one(schema: Props<'_>, default: &Value, path: &Path, whole: bool, inside: Inside<'_>) -> Vec<FieldError> {
    let mut out = Vec::new();
    let metadata = match inside {
        Some(inside) => {
            let errors = embedded::resource(&inside(default.clone()), &Path::default());
            let why = format!("must result in valid metadata: {}", summary(&errors));
            (!errors.is_empty()).then(|| vec![FieldError::invalid(path, default, why)])
        }
        None => {
            let mut pruned = default.clone();
            prune(&mut pruned, Some(schema));
            if &pruned != default {
                out.push(FieldError::invalid(path, default, "must not have unknown fields"));
            }
            let mut errors = resources(default, schema, path);
            if whole && !schema.embedded() {
                errors.extend(embedded::resource(default, path));
            }
            (!errors.is_empty()).then_some(errors)
        }
    };
    out.extend(metadata.unwrap_or_else(|| {
        let errors = validate::check(&Rule::new(schema, Purpose::Defaults), default, None, path);
        if errors.is_empty() { rules(schema, default, path, whole) } else { errors }
    }));
    out
}

/// What the rules in CEL have against a default: as a value that stays, and as one that is new.
fn rules(schema: Props<'_>, default: &Value, path: &Path, whole: bool) -> Vec<FieldError> {
    let Some(rules) = Rules::of_part(schema, whole) else { return Vec::new() };
    let (errors, passed) = rules.check_at(default, Some(default), path);
    let errors: Vec<FieldError> = errors.into_iter().chain(passed).collect();
    if errors.is_empty() { rules.check_at(default, None, path).0 } else { errors }
}

/// What is wrong with the embedded resources of a default.
fn resources(value: &Value, schema: Props<'_>, path: &Path) -> Vec<FieldError> {
    let mut out = Vec::new();
    match value {
        Value::Object(entries) => {
            if schema.embedded() {
                out.extend(embedded::resource(value, path));
            }
            for (name, entry) in entries {
                match (schema.property(name), schema.additional()) {
                    (Some(property), _) => out.extend(resources(entry, property, &path.child(name))),
                    (None, Some(super::props::Additional::Schema(one))) => {
                        out.extend(resources(entry, one, &path.key(name)));
                    }
                    _ => {}
                }
            }
        }
        Value::Array(elements) => {
            let items =
                schema.item().into_iter().flat_map(|items| elements.iter().map(move |one| (items, one)));
            for (index, (items, element)) in items.enumerate() {
                out.extend(resources(element, items, &path.index(index)));
            }
        }
        _ => {}
    }
    out
}

/// Drops what a schema that is still JSON does not know.
fn prune(value: &mut Value, schema: Option<Props<'_>>) {
    use super::props::Additional;
    let keep = schema.is_some_and(Props::preserves);
    match value {
        Value::Object(entries) => entries.retain(|name, entry| {
            let Some(schema) = schema else { return false };
            if schema.embedded() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                return true;
            }
            match (schema.property(name), schema.additional()) {
                (Some(property), _) => prune(entry, Some(property)),
                (None, Some(Additional::Schema(one))) => prune(entry, Some(one)),
                (None, Some(Additional::Flag(_))) => prune(entry, None),
                (None, None) => return keep,
            }
            true
        }),
        Value::Array(elements) => {
            let items = schema.and_then(Props::item);
            if keep && items.is_none() {
                return;
            }
            elements.iter_mut().for_each(|element| prune(element, items));
        }
        _ => {}
    }
}
