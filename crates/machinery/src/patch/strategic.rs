//! Strategic merge patch: a merge patch that knows how lists merge, with directives.
//!
//! Element order follows the original: `$setElementOrder` counts most, then the patch, then the live list.

mod list;
mod meta;

use serde_json::{Map, Value};

use super::{PatchError, prune_nulls};
use crate::go;
use crate::schema::Type;
use list::{merge_lists, partition, set_order};
use meta::Meta;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

type Fields = Map<String, Value>;

/// Applies a strategic merge patch to an object of a built-in type.
///
/// # Errors
/// When the patch is malformed, or does not fit the type.
pub fn strategic(original: Value, patch: Value, ty: Type<'_>) -> Result<Value, PatchError> {
    let object = |value: Value| match value {
        Value::Object(fields) => Ok(fields),
        other => Err(PatchError::BadRequest(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            match other {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            }
        ))),
    };
    let patch = if patch.is_null() { Fields::new() } else { object(patch)? };
    merge_maps(object(original)?, patch, Meta::of(ty)).map(Value::Object)
}

fn merge_maps(mut original: Fields, mut patch: Fields, meta: Meta<'_>) -> Result<Fields, PatchError> {
    match patch.get(DIRECTIVE) {
        Some(Value::String(directive)) if directive == "replace" => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some(Value::String(directive)) if directive == "delete" => return Ok(Fields::new()),
        Some(other) => return Err(bad_directive(other, &patch)),
        None => {}
    }
    retain_keys(&mut original, &mut patch)?;
    merge_ordered_lists(&mut original, &mut patch, meta)?;
    for (key, value) in patch {
        let (key, deletes) = match key.strip_prefix(DELETE_FROM) {
            Some(rest) => (rest.strip_prefix('/').ok_or_else(bad_primitive_list)?.to_owned(), true),
            None => (key, false),
        };
        if value.is_null() {
            original.remove(&key);
            continue;
        }
        let merged = match (original.remove(&key), value) {
            (Some(Value::Object(current)), Value::Object(value)) if !deletes => {
                let (meta, strategy) = meta.object(&key)?;
                let merged = if strategy.replace { value } else { merge_maps(current, value, meta)? };
                Some(Value::Object(merged))
            }
            (Some(Value::Array(current)), Value::Array(value)) => {
                let (meta, patch) = meta.list(&key)?;
                if deletes || patch.merge {
                    Some(Value::Array(merge_lists(current, value, patch.key.as_deref(), meta, deletes)?))
                } else {
                    Some(Value::Array(value))
                }
            }
            (current, _) if deletes => current,
            (_, mut value) => {
                prune_nulls(&mut value);
                without_directives(value)
            }
        };
        if let Some(merged) = merged {
            original.insert(key, merged);
        }
    }
    Ok(original)
}

/// Drops what the patch does not retain.
fn retain_keys(original: &mut Fields, patch: &mut Fields) -> Result<(), PatchError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let bad = || PatchError::BadRequest("invalid patch format of retainKeys".to_owned());
    let Value::Array(retained) = retained else {
        return Err(bad());
    };
    let known = |key: &str| retained.iter().any(|name| name == key);
    for (key, value) in patch.iter() {
        if !value.is_null() && !key.starts_with(DELETE_FROM) && !key.starts_with(SET_ORDER) && !known(key) {
            return Err(bad());
        }
    }
    original.retain(|key, _| known(key));
    Ok(())
}

/// Merges the lists that `$setElementOrder` is about, and puts them into that order.
fn merge_ordered_lists(original: &mut Fields, patch: &mut Fields, meta: Meta<'_>) -> Result<(), PatchError> {
    let directives: Vec<String> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(bad_type("[]interface {}", other.as_ref().unwrap_or(&Value::Null))),
        };
        let key = directive[SET_ORDER.len()..].strip_prefix('/').ok_or_else(bad_order_list)?;
        let list = |fields: &mut Fields| match fields.get_mut(key) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(std::mem::take(items))),
            Some(other) => Err(bad_type("[]interface {}", other)),
        };
        let (live, changes) = (list(original)?, list(patch)?);
        let (meta, strategy) = meta.list(key)?;
        let merge_key = strategy.key.as_deref();
        list::check_order(changes.as_deref().unwrap_or_default(), &order, merge_key)?;
        if live.is_none() && changes.is_none() {
            continue;
        }
        if live.iter().chain(&changes).all(Vec::is_empty) {
            return Err(PatchError::Internal("no elements in any of the given slices".to_owned()));
        }
        let server_order = match (&live, &changes) {
            (Some(live), Some(changes)) if strategy.merge => list::server_order(live, changes, merge_key)?,
            _ => live.clone().unwrap_or_default(),
        };
        let merged = match (live, changes) {
            (None, None) => Vec::new(),
            (Some(live), None) => live,
            (None, Some(changes)) => changes.into_iter().filter_map(without_directives).collect(),
            (Some(live), Some(changes)) if strategy.merge => {
                merge_lists(live, changes, merge_key, meta, false)?
            }
            (Some(_), Some(changes)) => changes,
        };
        let (listed, others) = partition(merged, &order, merge_key)?;
        original.insert(
            key.to_owned(),
            Value::Array(set_order(listed, others, &order, &server_order, merge_key)?),
        );
        patch.remove(key);
    }
    Ok(())
}

/// The value without the objects that are directives; none if it is one itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let kept = fields.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}

fn bad_directive(directive: &Value, patch: &Fields) -> PatchError {
    let name = match directive {
        Value::String(name) => name.clone(),
        Value::Null => "%!s(<nil>)".to_owned(),
        other => format!("%!s({}={})", go::type_of(other), go::value(other)),
    };
    let patch = go::value(&Value::Object(patch.clone()));
    PatchError::Internal(format!("unknown patch type: {name} in map: {patch}"))
}

fn bad_type(expected: &str, actual: &Value) -> PatchError {
    let actual = if actual.is_null() { "%!s(<nil>)" } else { go::type_of(actual) };
    PatchError::Internal(format!("expected a {expected}, but received a {actual}"))
}

fn no_merge_key(fields: &Fields, key: &str) -> PatchError {
    let fields = go::value(&Value::Object(fields.clone()));
    PatchError::Internal(format!("map: {fields} does not contain declared merge key: {key}"))
}

fn bad_primitive_list() -> PatchError {
    PatchError::BadRequest("invalid patch format of primitive list".to_owned())
}

fn bad_order_list() -> PatchError {
    PatchError::BadRequest("invalid patch format of setElementOrder list".to_owned())
}

#[cfg(test)]
mod tests;
