//! One step of a path: a field, an element of a list by key, by value or by index.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Number, Value};

use crate::go;

/// One step of a path.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of an object.
    Field(Box<str>),
    /// The element of a list whose fields have these values, sorted by name.
    Key(Box<[(Box<str>, Value)]>),
    /// The element of a list that has this value.
    Value(Box<Value>),
    /// The element at this place.
    Index(i64),
}

impl PathElement {
    /// A field of an object.
    #[must_use]
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left == right,
            _ => self.cmp(other) == Ordering::Equal,
        }
    }
}

impl Eq for PathElement {}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => {
                for ((name, value), (other_name, other_value)) in left.iter().zip(right) {
                    let order = name.cmp(other_name).then_with(|| compare(value, other_value));
                    if order != Ordering::Equal {
                        return order;
                    }
                }
                left.len().cmp(&right.len())
            }
            (Self::Value(left), Self::Value(right)) => compare(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(out, ".{name}"),
            Self::Key(fields) => {
                for (index, (name, value)) in fields.iter().enumerate() {
                    let before = if index == 0 { "[" } else { "," };
                    write!(out, "{before}{name}={}", text(value))?;
                }
                out.write_str("]")
            }
            Self::Value(value) => write!(out, "[={}]", text(value)),
            Self::Index(index) => write!(out, "[{index}]"),
        }
    }
}

/// Whether values are equal; numbers are compared as numbers.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || compare_numbers(left, right) == Ordering::Equal
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| equal(left, right)))
        }
        _ => left == right,
    }
}

/// The order of values of whatever type: numbers, strings, booleans, lists, objects, null.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    fn rank(value: &Value) -> u8 {
        match value {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let pairs = left.iter().zip(right).map(|(left, right)| compare(left, right));
            pairs.fold(Ordering::Equal, Ordering::then).then(left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let pairs = left.iter().zip(right).map(|((left_key, left), (right_key, right))| {
                left_key.cmp(right_key).then_with(|| compare(left, right))
            });
            pairs.fold(Ordering::Equal, Ordering::then).then(left.len().cmp(&right.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => {
            let (left, right) = (left.as_f64().unwrap_or_default(), right.as_f64().unwrap_or_default());
            left.partial_cmp(&right).unwrap_or(Ordering::Equal)
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => go::quote(text),
        Value::Null => "null".to_owned(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(text).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => fields.iter().map(|(key, value)| format!("{key}={}", text(value))).collect(),
        other => go::value(other),
    }
}
