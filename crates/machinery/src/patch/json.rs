//! JSON patch (RFC 6902), as the API server's library reads it.
//!
//! It takes `null` and a missing field for the same, so that `replace` and `copy` work on fields that are not
//! there; indexes may be negative, and the text before the first slash of a path does not count.

use serde_json::Value;

use super::PatchError;
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
    let name = operation.get("op").and_then(Value::as_str).unwrap_or("unknown");
    let value = || operation.get("value").cloned().unwrap_or_default();
    let text = |field: &str| {
        let text = operation.get(field).and_then(Value::as_str);
        text.ok_or_else(|| format!("{name} operation failed to decode {field}: missing value"))
    };
    let within = |path: &str, missing: &str, shown: String, done: Result<Value, Failure>| {
        done.map_err(|failure| match failure {
            Failure::NoContainer => {
                format!("{name} operation does not apply: {missing}: {shown}: missing value")
            }
            Failure::Refused(why) if name == "copy" => format!("error in copy for from: '{path}': {why}"),
            Failure::Refused(why) => format!("error in {name} for path: '{path}': {why}"),
        })
    };
    let unit = |done: Result<(), Failure>| done.map(|()| Value::Null);
    match name {
        "add" => {
            let path = text("path")?;
            within(path, "doc is missing path", quote(path), unit(add(document, path, value()))).map(drop)
        }
        "remove" => {
            let path = text("path")?;
            within(path, "doc is missing path", quote(path), remove(document, path)).map(drop)
        }
        "replace" => {
            let path = text("path")?;
            if path.is_empty() {
                return replace_whole(document, value());
            }
            within(path, "doc is missing path", path.to_owned(), unit(replace(document, path, value())))
                .map(drop)
        }
        "move" => {
            let from = text("from")?;
            let key = from.rsplit('/').next().unwrap_or_default();
            let moved = within(key, "doc is missing from path", from.to_owned(), remove(document, from))?;
            let path = text("path")?;
            let added = unit(add(document, path, moved));
            within(path, "doc is missing destination path", path.to_owned(), added).map(drop)
        }
        "copy" => {
            let from = text("from")?;
            let copied = within(from, "doc is missing from path", from.to_owned(), get(document, from))?;
            let path = text("path")?;
            let added = unit(add(document, path, copied));
            within(path, "doc is missing destination path", path.to_owned(), added).map(drop)
        }
        "test" => {
            let path = text("path")?;
            let found = match path {
                "" => document.clone(),
                _ => within(path, "is missing path", path.to_owned(), get(document, path))?,
            };
            // Numbers are the same where they are written the same.
            match found == value() {
                true => Ok(()),
                false => Err(format!("testing value {path} failed: test failed")),
            }
        }
        other => Err(format!("Unexpected kind: {other}")),
    }
}

/// Why a step of an operation does not apply.
enum Failure {
    /// There is nothing at the path that could hold its last part.
    NoContainer,
    /// What is there refuses.
    Refused(String),
}

fn replace_whole(document: &mut Value, value: Value) -> Result<(), String> {
    if !value.is_object() && !value.is_array() {
        return Err("replace operation value must be object or array".to_owned());
    }
    *document = value;
    Ok(())
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), Failure> {
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
        _ => return Err(Failure::NoContainer),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, Failure> {
    let (parent, key) = find(document, path)?;
    match parent {
        Value::Object(fields) => fields.remove(&key).ok_or_else(|| {
            Failure::Refused(format!("Unable to remove nonexistent key: {key}: missing value"))
        }),
        Value::Array(items) => {
            let index = index(&key, items.len())?;
            Ok(items.remove(index))
        }
        _ => Err(Failure::NoContainer),
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), Failure> {
    let (parent, key) = find(document, path)?;
    match parent {
        Value::Object(fields) => {
            fields.insert(key, value);
        }
        Value::Array(items) => {
            let index = index(&key, items.len())?;
            items[index] = value;
        }
        _ => return Err(Failure::NoContainer),
    }
    Ok(())
}

fn get(document: &mut Value, path: &str) -> Result<Value, Failure> {
    let (parent, key) = find(document, path)?;
    match parent {
        Value::Object(fields) => Ok(fields.get(&key).cloned().unwrap_or_default()),
        Value::Array(items) => {
            let index = index(&key, items.len())?;
            Ok(items[index].clone())
        }
        _ => Err(Failure::NoContainer),
    }
}

/// The container of a path's last part, and that part.
fn find<'d>(document: &'d mut Value, path: &str) -> Result<(&'d mut Value, String), Failure> {
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
        container = next.ok_or(Failure::NoContainer)?;
    }
    Err(Failure::NoContainer)
}

fn index(key: &str, length: usize) -> Result<usize, Failure> {
    let number: i64 = key
        .parse()
        .map_err(|_| Failure::Refused(format!("value was not a proper array index: {}", quote(key))))?;
    let size = i64::try_from(length).unwrap_or(i64::MAX);
    let index = if number < 0 { number.saturating_add(size) } else { number };
    usize::try_from(index).ok().filter(|index| *index < length).ok_or_else(|| {
        Failure::Refused(format!("Unable to access invalid index: {number}: invalid index referenced"))
    })
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
