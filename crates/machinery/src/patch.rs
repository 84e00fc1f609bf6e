//! Patches: JSON patch, JSON merge patch and strategic merge patch, with the API server's peculiarities.

pub mod convert;
mod json;
mod strategic;

use serde_json::{Map, Value};

pub use json::json;
pub use strategic::strategic;

/// Why a patch does not apply, by how the API server answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is no patch: 400 with this message.
    #[error("{0}")]
    BadRequest(String),
    /// The patch has too many operations: 413 with this message.
    #[error("{0}")]
    TooLarge(String),
    /// The patch does not fit the object: 422; the server keeps this message to itself.
    #[error("{0}")]
    Unprocessable(String),
    /// The patch could not be merged: 500 with this message.
    #[error("{0}")]
    Internal(String),
}

/// Applies a JSON merge patch (RFC 7396).
pub fn merge(document: &mut Value, patch: Value) {
    match (document, patch) {
        (Value::Object(document), Value::Object(patch)) => merge_fields(document, patch),
        (document, mut patch) => {
            prune_nulls(&mut patch);
            *document = patch;
        }
    }
}

fn merge_fields(document: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, mut value) in patch {
        match document.get_mut(&name) {
            _ if value.is_null() => {
                document.remove(&name);
            }
            Some(Value::Object(current)) => match value {
                Value::Object(value) => merge_fields(current, value),
                // What replaces an object is taken as it is, nulls in lists of objects included.
                other => {
                    document.insert(name, other);
                }
            },
            _ => {
                prune_nulls(&mut value);
                document.insert(name, value);
            }
        }
    }
}

/// Removes null fields, at any depth.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(prune_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merge_patch() {
        for (document, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        ] {
            let mut document = document;
            merge(&mut document, patch);
            assert_eq!(document, expected);
        }
    }
}
