//! The types that rules see of a schema, with the sizes that it allows.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::props::{Additional, Props};
use crate::cel::{Declared, DeclaredField, Elements, MAX_REQUEST, ObjectType, Type, escape};

/// The type of a schema, if rules can see it; `root` for whole objects.
pub(in super::super) fn declare(schema: Props<'_>, root: bool) -> Option<Declared> {
    build(schema, root, "selfType")
}

fn build(schema: Props<'_>, root: bool, name: &str) -> Option<Declared> {
    let length = |schema: Props<'_>| schema.integer("maxLength").map(|length| length.max(0));
    if schema.int_or_string() {
        let most = length(schema).map_or(MAX_REQUEST - 2, |length| length.saturating_mul(4));
        return Some(Declared::simple(Type::Dyn, 1, most));
    }
    match schema.kind() {
        "array" => {
            let items = schema.item()?;
            let element = build(items, items.embedded(), &format!("{name}.@idx"))?;
            let most = schema
                .integer("maxItems")
                .map_or((MAX_REQUEST - 2) / (element.min_size + 1), |items| items.max(0));
            let elements = match schema.text("x-kubernetes-list-type") {
                "set" => Elements::Set,
                "map" => {
                    Elements::Keyed(schema.strings("x-kubernetes-list-map-keys").map(Into::into).collect())
                }
                _ => Elements::Ordered,
            };
            let ty = Type::list(element.ty.clone());
            Some(Declared { element: Some(Arc::new(element)), elements, ..Declared::simple(ty, 2, most) })
        }
        "object" => object(schema, root, name),
        "string" => Some(match (schema.text("format"), length(schema)) {
            ("byte", length) => Declared::simple(Type::Bytes, 2, length.unwrap_or(MAX_REQUEST - 2)),
            ("duration", _) => Declared::simple(Type::Duration, 3, 32),
            ("date", _) => Declared::simple(Type::Timestamp, 12, 12),
            ("date-time", _) => Declared::simple(Type::Timestamp, 21, 32),
            (_, Some(length)) => Declared::simple(Type::String, 2, length.saturating_mul(4)),
            (_, None) => {
                let longest =
                    schema.list("enum").iter().filter_map(serde_json::Value::as_str).map(str::len).max();
                let most =
                    longest.map_or(MAX_REQUEST - 2, |longest| i64::try_from(longest).unwrap_or(i64::MAX));
                Declared::simple(Type::String, 2, most)
            }
        }),
        "boolean" => Some(Declared::simple(Type::Bool, 4, 0)),
        "number" => Some(Declared::simple(Type::Double, 1, 0)),
        "integer" => Some(Declared::simple(Type::Int, 1, 0)),
        _ => None,
    }
}

fn object(schema: Props<'_>, root: bool, name: &str) -> Option<Declared> {
    if let Some(Additional::Schema(values)) = schema.additional() {
        let element = build(values, values.embedded(), &format!("{name}.@elem"))?;
        let most = schema
            .integer("maxProperties")
            .map_or((MAX_REQUEST - 2) / (element.min_size + 6), |properties| properties.max(0));
        let ty = Type::map(Type::String, element.ty.clone());
        return Some(Declared { element: Some(Arc::new(element)), ..Declared::simple(ty, 2, most) });
    }
    let mut fields: BTreeMap<Box<str>, DeclaredField> = BTreeMap::new();
    let mut least = 2;
    let required = |name: &str| schema.strings("required").any(|one| one == name);
    let mut add = |field: &str, declared: Declared| {
        if let Some(escaped) = escape(field) {
            fields.insert(escaped.into(), DeclaredField { name: field.into(), declared: Arc::new(declared) });
        }
    };
    for (field, property) in schema.map("properties") {
        if root && matches!(field, "apiVersion" | "kind" | "metadata") {
            continue;
        }
        let Some(declared) = build(property, property.embedded(), &format!("{name}.{field}")) else {
            continue;
        };
        if required(field) && property.get("default").is_none() {
            least += i64::try_from(field.len()).unwrap_or(0) + declared.min_size + 4;
        }
        add(field, declared);
    }
    if root {
        // Whatever the schema says, rules see what kind of object it is and what it is called.
        let text = || Declared::simple(Type::String, 2, MAX_REQUEST - 2);
        add("apiVersion", text());
        add("kind", text());
        let named = ["name", "generateName"]
            .map(|field| (field.into(), DeclaredField { name: field.into(), declared: Arc::new(text()) }));
        add("metadata", made(&format!("{name}.metadata"), named.into_iter().collect(), 2));
    }
    Some(made(name, fields, least))
}

fn made(name: &str, fields: BTreeMap<Box<str>, DeclaredField>, least: i64) -> Declared {
    let types = fields.iter().map(|(name, field)| (name.clone(), field.declared.ty.clone())).collect();
    let ty = Type::Object(Arc::new(ObjectType { name: name.into(), fields: types, open: false }));
    Declared { fields, ..Declared::simple(ty, least, 0) }
}
