//! The JSON form of a set of fields (`FieldsV1`): `f:`, `k:`, `v:`, `i:` and `.`.

use serde_json::{Map, Value};

use super::{FieldSet, PathElement};
use crate::go;

/// Why a JSON value is not a set of fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to read a set of fields: {0}")]
pub struct FieldsError(String);

impl FieldSet {
    /// Reads the JSON form; elements of an unknown kind are dropped.
    ///
    /// # Errors
    /// When an element cannot be read.
    pub fn from_json(json: &Value) -> Result<Self, FieldsError> {
        Ok(read(json)?.0)
    }

    /// Writes the JSON form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        write(self, false)
    }
}

/// The members below, and whether the element itself is one.
fn read(json: &Value) -> Result<(FieldSet, bool), FieldsError> {
    let mut set = FieldSet::new();
    let mut member = false;
    match json {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, below) in fields {
                if key == "." {
                    member = true;
                } else if let Some(element) = read_element(key)? {
                    let (children, is_member) = read(below)?;
                    set.push(element, is_member, children);
                }
            }
        }
        other => {
            return Err(FieldsError(format!("expected an object, got {}", go::value(other))));
        }
    }
    member |= set.is_empty();
    Ok((set, member))
}

fn read_element(key: &str) -> Result<Option<PathElement>, FieldsError> {
    let wrong = |what: String| FieldsError(format!("parsing key as path element: {what}"));
    let json = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| wrong(error.to_string()));
    let Some((kind, content)) = key.split_at_checked(2) else {
        return Err(wrong("key must be 2 characters long:".to_owned()));
    };
    if !kind.ends_with(':') {
        return Err(wrong(format!("missing colon: {key}")));
    }
    Ok(Some(match kind {
        "f:" => PathElement::field(content),
        "v:" => PathElement::Value(Box::new(json(content)?)),
        "k:" => {
            let Value::Object(fields) = json(content)? else {
                return Err(wrong(format!("expected an object, got {content}")));
            };
            let mut fields: Vec<(Box<str>, Value)> =
                fields.into_iter().map(|(name, value)| (name.into(), value)).collect();
            fields.sort_by(|(left, _), (right, _)| left.cmp(right));
            PathElement::Key(fields.into())
        }
        "i:" => {
            PathElement::Index(content.parse().map_err(|_| {
                wrong(format!("strconv.Atoi: parsing {}: invalid syntax", go::quote(content)))
            })?)
        }
        _ => return Ok(None),
    }))
}

fn write(set: &FieldSet, with_self: bool) -> Value {
    let mut fields = Map::new();
    if with_self && !set.is_empty() {
        fields.insert(".".to_owned(), Value::Object(Map::new()));
    }
    for entry in set.entries() {
        fields.insert(write_element(&entry.element), write(&entry.children, entry.member));
    }
    Value::Object(fields)
}

fn write_element(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => ["f:", name].concat(),
        PathElement::Index(index) => format!("i:{index}"),
        PathElement::Value(value) => {
            let mut text = "v:".to_owned();
            go::write_json(&mut text, value);
            text
        }
        PathElement::Key(fields) => {
            let mut text = "k:{".to_owned();
            for (index, (name, value)) in fields.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                go::write_json_string(&mut text, name);
                text.push(':');
                go::write_json(&mut text, value);
            }
            text.push('}');
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn round_trip() {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a/b": {}}},
            "f:spec": {"f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}},
                "f:set": {"v:\"<x>\"": {}, "v:1": {}, "v:true": {}}, "f:l": {"i:0": {}}}
        });
        let expected = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a/b": {}}},
            "f:spec": {"f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}},
                "f:set": {"v:\"\\u003cx\\u003e\"": {}, "v:1": {}, "v:true": {}}, "f:l": {"i:0": {}}}
        });
        let set = FieldSet::from_json(&fields).unwrap();
        assert_eq!(set.to_json(), expected);
        assert_eq!(FieldSet::from_json(&expected).unwrap(), set);
        assert!(FieldSet::from_json(&json!({})).unwrap().is_empty());
        assert!(FieldSet::from_json(&json!({"x:unknown": {}})).unwrap().is_empty());
        assert!(FieldSet::from_json(&json!({"fx": {}})).is_err());
        assert!(FieldSet::from_json(&json!({"i:x": {}})).is_err());
    }
}
