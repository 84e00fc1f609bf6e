//! Dropping what the schema does not know.

use serde_json::Value;

use super::default;
use crate::schema::{Shape, Type};

/// Drops the fields of a whole object that its type does not know, and nulls that it does not allow and has
/// no default for. Returns the paths of unknown fields: those in the object's metadata, then all others.
pub fn prune(value: &mut Value, ty: Type<'_>) -> Vec<String> {
    let mut unknown = Vec::new();
    metadata(value, ty, "", &mut unknown);
    unknown.sort();
    let mut others = Vec::new();
    fields(value, Some(ty), "", Keep { meta: true, all: false }, &mut others);
    others.sort();
    unknown.extend(others);
    default::drop_nulls(value, Some(ty));
    let mut embedded = Vec::new();
    embedded_metadata(value, ty, "", true, &mut embedded);
    embedded.sort();
    unknown.extend(embedded);
    unknown
}

/// What a value keeps although its type does not know it.
#[derive(Clone, Copy, Default)]
struct Keep {
    /// `apiVersion`, `kind` and `metadata`.
    meta: bool,
    /// All of its own fields, though not those of known fields.
    all: bool,
}

fn fields(value: &mut Value, ty: Option<Type<'_>>, path: &str, keep: Keep, out: &mut Vec<String>) {
    // Built-in types have no schema of their own; where they hold anything, they keep it.
    if ty.is_some_and(|ty| ty.custom().is_none() && matches!(ty.shape(), Shape::Any)) {
        return;
    }
    // A value without a schema that is not to be kept has no known fields at all.
    let ty = ty.filter(|ty| ty.preserves() || !matches!(ty.shape(), Shape::Any));
    let keep_all = keep.all || ty.is_some_and(Type::preserves);
    match value {
        Value::Object(entries) => {
            let keep_meta = keep.meta || ty.and_then(Type::custom).is_some_and(|custom| custom.embedded);
            entries.retain(|name, entry| {
                if keep_meta && is_meta(name) {
                    return true;
                }
                let at = join(path, name);
                match ty.map(|ty| (ty, ty.member(name))) {
                    // With both kept fields and known ones, only the known have a type to go by.
                    Some((ty, Some(_))) if keep_all && !is_declared(ty, name) => true,
                    Some((_, Some(member))) => {
                        fields(entry, Some(member), &at, Keep::default(), out);
                        true
                    }
                    _ if keep_all => true,
                    _ => {
                        if !(path.is_empty() && is_meta(name)) {
                            out.push(at);
                        }
                        false
                    }
                }
            });
        }
        Value::Array(elements) => {
            let items = ty.and_then(Type::list).map(|(items, _)| items);
            if keep_all && items.is_none() {
                return;
            }
            for (index, element) in elements.iter_mut().enumerate() {
                let keep = Keep { meta: false, all: keep_all };
                fields(element, items, &format!("{path}[{index}]"), keep, out);
            }
        }
        _ => {}
    }
}

fn is_declared(ty: Type<'_>, name: &str) -> bool {
    ty.field(name).is_some()
        || ty.structure().is_none_or(|structure| {
            structure.additional.is_some_and(|node| {
                // What stands in for kept fields has no rules; a schema for additional ones has.
                ty.to(node).custom().is_some_and(|custom| custom.checks.is_some())
            })
        })
}

/// Metadata is typed: what its type does not know goes, too.
fn metadata(value: &mut Value, ty: Type<'_>, path: &str, out: &mut Vec<String>) {
    let meta = ty.field("metadata").map(|field| ty.to(field.node));
    if let (Some(meta), Some(given)) = (meta, value.get_mut("metadata")) {
        fields(given, Some(meta), &join(path, "metadata"), Keep::default(), out);
    }
}

fn embedded_metadata(value: &mut Value, ty: Type<'_>, path: &str, root: bool, out: &mut Vec<String>) {
    if !root && ty.custom().is_some_and(|custom| custom.embedded) {
        metadata(value, ty, path, out);
        // It has been through Go's type, which leaves out what is empty.
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.retain(|_, entry| !is_empty(entry));
        }
    }
    match value {
        Value::Object(entries) => {
            for (name, entry) in entries.iter_mut() {
                if let Some(member) = ty.member(name).filter(|member| member.custom().is_some()) {
                    embedded_metadata(entry, member, &join(path, name), false, out);
                }
            }
        }
        Value::Array(elements) => {
            let Some((items, _)) = ty.list() else { return };
            for (index, element) in elements.iter_mut().enumerate() {
                embedded_metadata(element, items, &format!("{path}[{index}]"), false, out);
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
