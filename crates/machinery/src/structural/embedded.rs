//! Embedded resources are whole objects: they have a type, and their metadata follows the usual rules.

use serde_json::{Value, json};

use crate::invalid::{FieldError, Path};
use crate::schema::Type;
use crate::{decode, names};

/// Reads what embedded resources have in common as the types that it has in Go.
///
/// # Errors
/// What is of another type, as the server says it.
pub fn coerce(value: &Value, ty: Type<'_>, object_meta: Type<'_>) -> Result<(), String> {
    at(value, ty, object_meta, true, &Path::default())
}

fn at(value: &Value, ty: Type<'_>, object_meta: Type<'_>, root: bool, path: &Path) -> Result<(), String> {
    let invalid = |path: Path, value: &Value, why: String| FieldError::invalid(path, value, why).to_string();
    match value {
        Value::Object(entries) => {
            let embedded = !root && ty.custom().is_some_and(|custom| custom.embedded);
            for (name, entry) in entries {
                match name.as_str() {
                    "apiVersion" | "kind" if embedded && !entry.is_string() => {
                        return Err(invalid(path.child(name), entry, "must be a string".to_owned()));
                    }
                    "metadata" if embedded => {
                        decode::value(entry, object_meta)
                            .map_err(|error| invalid(path.child(name), entry, error.to_string()))?;
                    }
                    _ => {
                        if let Some(member) = ty.member(name).filter(|member| member.custom().is_some()) {
                            at(entry, member, object_meta, false, &path.child(name))?;
                        }
                    }
                }
            }
            Ok(())
        }
        Value::Array(elements) => {
            let Some((items, _)) = ty.list() else { return Ok(()) };
            let mut elements = elements.iter().enumerate();
            elements.try_for_each(|(index, one)| at(one, items, object_meta, false, &path.index(index)))
        }
        _ => Ok(()),
    }
}

/// What is wrong with the resources that are embedded in a value. The value itself is not one of them.
pub(super) fn check(value: &Value, ty: Type<'_>, path: &Path) -> Vec<FieldError> {
    let mut out = Vec::new();
    match value {
        Value::Object(entries) => {
            for (name, entry) in entries {
                let Some(member) = ty.member(name) else { continue };
                let Some(custom) = member.custom() else { continue };
                let at = if ty.field(name).is_some() { path.child(name) } else { path.key(name) };
                if custom.embedded && entry.is_object() {
                    out.extend(resource(entry, &at));
                }
                out.extend(check(entry, member, &at));
            }
        }
        Value::Array(elements) => {
            let Some((items, _)) = ty.list() else { return out };
            for (index, element) in elements.iter().enumerate() {
                let at = path.index(index);
                if items.custom().is_some_and(|custom| custom.embedded) && element.is_object() {
                    out.extend(resource(element, &at));
                }
                out.extend(check(element, items, &at));
            }
        }
        _ => {}
    }
    out
}

/// What is wrong with one resource's type and metadata.
pub(super) fn resource(value: &Value, path: &Path) -> Vec<FieldError> {
    let mut out = Vec::new();
    for name in ["apiVersion", "kind"] {
        let at = path.child(name);
        match value.get(name) {
            None => out.push(FieldError::required(at, "")),
            Some(Value::String(text)) if text.is_empty() => {
                out.push(FieldError::invalid(at, "", "must not be empty"));
            }
            Some(Value::String(text)) if name == "apiVersion" => {
                if text.matches('/').count() > 1 {
                    let why = format!("unexpected GroupVersion string: {text}");
                    out.push(FieldError::invalid(at, text, why));
                }
            }
            Some(Value::String(text)) => {
                let why = names::dns1035_label(&text.to_lowercase());
                if !why.is_empty() {
                    let why = format!("may have mixed case, but should otherwise match: {}", why.join(","));
                    out.push(FieldError::invalid(at, text, why));
                }
            }
            Some(other) => out.push(FieldError::invalid(at, other, "must be a string")),
        }
    }
    if let Some(meta) = value.get("metadata") {
        let mut meta = meta.clone();
        let text = |meta: &Value, name: &str| meta[name].as_str().unwrap_or_default().to_owned();
        // A name is not asked for here; any will do.
        if text(&meta, "name").is_empty() && meta.is_object() {
            meta["name"] = json!("fakename");
        }
        let namespaced = !text(&meta, "namespace").is_empty();
        out.extend(names::object_meta(&meta, namespaced, names::path_segment_name, &path.child("metadata")));
    }
    out
}
