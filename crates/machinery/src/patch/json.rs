//! JSON patch (RFC 6902), as the API server's library reads it.
//!
//! It takes `null` and a missing field for the same, so that `replace` and `copy` work on fields that are not
//! there; indexes may be negative, and the text before the first slash of a path does not count.

use serde_json::Value;

use super::PatchError;
use crate::fields::equal;
use crate::go::quote;

const MOST: usize = 10_000;

/// Applies a JSON patch.
///
/// # Errors
/// When the patch is none, or does not apply.
pub fn json(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => return Err(wrong_type(other, "Go value of type []handlers.jsonPatchOp")),
    };
    for operation in operations {
        if !operation.is_object() && !operation.is_null() {
            return Err(wrong_type(operation, "Go value of type handlers.jsonPatchOp"));
        }
        for name in ["op", "path", "from"] {
            if let Some(value) = operation.get(name).filter(|value| !value.is_string() && !value.is_null()) {
                return Err(wrong_type(value, &format!("Go struct field jsonPatchOp.{name} of type string")));
            }
        }
    }
    if operations.len() > MOST {
        let count = operations.len();
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MOST}, got {count}"
        )));
    }
    let mut document = document.clone();
    for operation in operations {
        apply(&mut document, operation).map_err(PatchError::Unprocessable)?;
    }
    Ok(document)
}

fn apply(document: &mut Value, operation: &Value) -> Result<(), String> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let value = || operation.get("value").cloned().unwrap_or_default();
    let path = || text("path").ok_or_else(|| "missing path".to_owned());
    let from = || text("from").ok_or_else(|| "missing from".to_owned());
    match text("op").unwrap_or("unknown") {
        "add" => add(document, path()?, value()),
        "remove" => remove(document, path()?).map(drop),
        "replace" => replace(document, path()?, value()),
        "move" => {
            let moved = remove(document, from()?)?;
            add(document, path()?, moved)
        }
        "copy" => {
            let copied = get(document, from()?)?;
            add(document, path()?, copied)
        }
        "test" => test(document, path()?, &value()),
        other => Err(format!("Unexpected kind: {other}")),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let (parent, key) = find(document, path)?;
    match parent {
        Value::Object(fields) => {
            fields.insert(key, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let index = index(&key, items.len() + 1)?;
            items.insert(index, value);
        }
        _ => return Err(missing(path)),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, String> {
    let (parent, key) = find(document, path)?;
    match parent {
        Value::Object(fields) => fields
            .remove(&key)
            .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
        Value::Array(items) => {
            let index = index(&key, items.len())?;
            Ok(items.remove(index))
        }
        _ => Err(missing(path)),
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("replace operation value must be object or array".to_owned());
        }
        *document = value;
        return Ok(());
    }
    let (parent, key) = find(document, path)?;
    match parent {
        Value::Object(fields) => {
            fields.insert(key, value);
        }
        Value::Array(items) => {
            let index = index(&key, items.len())?;
            items[index] = value;
        }
        _ => return Err(missing(path)),
    }
    Ok(())
}

fn test(document: &mut Value, path: &str, expected: &Value) -> Result<(), String> {
    let found = if path.is_empty() { document.clone() } else { get(document, path)? };
    if equal(&found, expected) { Ok(()) } else { Err(format!("testing value {path} failed: test failed")) }
}

fn get(document: &mut Value, path: &str) -> Result<Value, String> {
    let (parent, key) = find(document, path)?;
    match parent {
        Value::Object(fields) => Ok(fields.get(&key).cloned().unwrap_or_default()),
        Value::Array(items) => {
            let index = index(&key, items.len())?;
            Ok(items[index].clone())
        }
        _ => Err(missing(path)),
    }
}

/// The container of a path's last part, and that part.
fn find<'d>(document: &'d mut Value, path: &str) -> Result<(&'d mut Value, String), String> {
    let mut parts = path.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).peekable();
    let mut container = document;
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return Ok((container, part));
        }
        let next = match container {
            Value::Object(fields) => fields.get_mut(&part),
            Value::Array(items) => {
                let index = index(&part, items.len())?;
                items.get_mut(index)
            }
            _ => None,
        };
        container = next.ok_or_else(|| missing(path))?;
    }
    Err(missing(path))
}

fn index(key: &str, length: usize) -> Result<usize, String> {
    let number: i64 =
        key.parse().map_err(|_| format!("value was not a proper array index: {}", quote(key)))?;
    let size = i64::try_from(length).unwrap_or(i64::MAX);
    let index = if number < 0 { number.saturating_add(size) } else { number };
    usize::try_from(index)
        .ok()
        .filter(|index| *index < length)
        .ok_or_else(|| format!("Unable to access invalid index: {number}: invalid index referenced"))
}

fn missing(path: &str) -> String {
    format!("doc is missing path: {}: missing value", quote(path))
}

fn wrong_type(value: &Value, target: &str) -> PatchError {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    PatchError::BadRequest(format!("error decoding patch: json: cannot unmarshal {kind} into {target}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json as j;

    use super::*;

    #[test]
    fn operations() {
        let document = j!({"data": {"x": "1", "y": "2"}, "list": ["a", "b"]});
        for (patch, expected) in [
            (
                j!([{"op": "replace", "path": "/data/x", "value": "z"}, {"op": "remove", "path": "/data/y"}]),
                j!({"data": {"x": "z"}, "list": ["a", "b"]}),
            ),
            (
                j!([{"op": "copy", "from": "/data/x", "path": "/data/c"}, {"op": "move", "from": "/data/y", "path": "/data/m"}]),
                j!({"data": {"x": "1", "c": "1", "m": "2"}, "list": ["a", "b"]}),
            ),
            (
                j!([{"op": "add", "path": "/list/1", "value": "c"}, {"op": "add", "path": "/list/-", "value": "d"}]),
                j!({"data": {"x": "1", "y": "2"}, "list": ["a", "c", "b", "d"]}),
            ),
            (
                j!([{"op": "add", "path": "/list/-1", "value": "c"}, {"op": "remove", "path": "/list/0"}]),
                j!({"data": {"x": "1", "y": "2"}, "list": ["b", "c"]}),
            ),
            (
                j!([{"op": "replace", "path": "/data/none", "value": 1}, {"op": "test", "path": "/data/no", "value": null}]),
                j!({"data": {"x": "1", "y": "2", "none": 1}, "list": ["a", "b"]}),
            ),
            (
                j!([{"op": "add", "path": "/data/a~1b~0c", "value": 1}]),
                j!({"data": {"x": "1", "y": "2", "a/b~c": 1}, "list": ["a", "b"]}),
            ),
            (j!(null), document.clone()),
        ] {
            assert_eq!(json(&document, &patch).unwrap(), expected);
        }
    }

    #[test]
    fn refusals() {
        let document = j!({"data": {"x": "1"}, "list": []});
        for patch in [
            j!([{"op": "test", "path": "/data/x", "value": "nope"}]),
            j!([{"op": "remove", "path": "/data/none"}]),
            j!([{"op": "frob", "path": "/data"}]),
            j!([{"op": "add", "path": "/none/x", "value": 1}]),
            j!([{"op": "add", "path": "/list/3", "value": 1}]),
            j!([{"op": "remove", "path": "/list/0"}]),
            j!([{"op": "add", "path": ""}]),
            j!([{"path": "/data/x"}]),
            j!([{"op": "replace", "path": "", "value": 3}]),
            j!([null]),
        ] {
            let error = json(&document, &patch).unwrap_err();
            assert!(matches!(error, PatchError::Unprocessable(_)), "{patch}: {error}");
        }
        let message = |patch| json(&document, &patch).unwrap_err().to_string();
        assert_eq!(
            message(j!({"not": "list"})),
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        );
        assert_eq!(
            message(j!(["x"])),
            "error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp"
        );
        assert_eq!(
            message(j!([{"op": 1}])),
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"
        );
        let many = j!(vec![j!({"op": "test", "path": "/data/x", "value": "1"}); 10_001]);
        assert!(matches!(json(&document, &many), Err(PatchError::TooLarge(_))));
    }
}
