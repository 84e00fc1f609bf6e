//! The vocabulary of rules: where a field is, what it holds, and what is wrong with it.
//!
//! Paths are built on the stack and written out only for an error, so that checking a good object costs nothing.

use std::fmt;

use serde_json::{Map, Value};
use windlass_machinery::invalid::{FieldError, Shown};
use windlass_machinery::names;

/// What is wrong so far.
pub(super) type Errors = Vec<FieldError>;

/// Where a field is.
#[derive(Clone, Copy)]
pub(super) struct At<'p> {
    parent: Option<&'p At<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Field(&'p str),
    Index(usize),
    Key(&'p str),
}

impl<'p> At<'p> {
    /// A field of the object itself.
    pub(super) const fn new(field: &'p str) -> Self {
        Self { parent: None, step: Step::Field(field) }
    }

    /// A field below this one.
    pub(super) const fn child(&'p self, field: &'p str) -> Self {
        Self { parent: Some(self), step: Step::Field(field) }
    }

    /// An element of this list.
    pub(super) const fn index(&'p self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    /// An entry of this map.
    pub(super) const fn key(&'p self, key: &'p str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(out)?;
        }
        match self.step {
            Step::Field(name) if self.parent.is_some() => write!(out, ".{name}"),
            Step::Field(name) => out.write_str(name),
            Step::Index(index) => write!(out, "[{index}]"),
            Step::Key(key) => write!(out, "[{key}]"),
        }
    }
}

/// A text; empty where there is none.
pub(super) fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object[field].as_str().unwrap_or_default()
}

/// A number, if there is one.
pub(super) fn number(object: &Value, field: &str) -> Option<i64> {
    object[field].as_i64()
}

/// A number; zero where there is none.
pub(super) fn count(object: &Value, field: &str) -> i64 {
    number(object, field).unwrap_or_default()
}

/// Whether a flag is set.
pub(super) fn is(object: &Value, field: &str) -> bool {
    object[field] == true
}

/// Whether a field is there at all.
pub(super) fn has(object: &Value, field: &str) -> bool {
    !object[field].is_null()
}

/// The elements of a list.
pub(super) fn list<'v>(object: &'v Value, field: &str) -> &'v [Value] {
    object[field].as_array().map_or(&[], Vec::as_slice)
}

/// The texts of a list.
pub(super) fn strings<'v>(object: &'v Value, field: &str) -> impl Iterator<Item = &'v str> {
    list(object, field).iter().map(|value| value.as_str().unwrap_or_default())
}

/// The entries of a map.
pub(super) fn entries<'v>(object: &'v Value, field: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    object[field].as_object().into_iter().flat_map(Map::iter)
}

/// Each of the reasons why a value is invalid.
pub(super) fn reasons(out: &mut Errors, value: &str, at: &At<'_>, why: Vec<String>) {
    out.extend(why.into_iter().map(|why| FieldError::invalid(at, value, why)));
}

/// A text has to be there.
pub(super) fn required(out: &mut Errors, object: &Value, field: &str, at: &At<'_>) -> bool {
    let missing = text(object, field).is_empty();
    if missing {
        out.push(FieldError::required(at.child(field), ""));
    }
    !missing
}

/// A number, where there is one, has to be zero or more.
pub(super) fn not_negative(out: &mut Errors, object: &Value, fields: &[&str], at: &At<'_>) {
    for field in fields {
        if let Some(value) = number(object, field).filter(|value| *value < 0) {
            out.push(FieldError::invalid(at.child(field), value, "must be greater than or equal to 0"));
        }
    }
}

/// A text has to be one of these.
pub(super) fn choice(out: &mut Errors, object: &Value, field: &str, at: &At<'_>, options: &[&str]) {
    if required(out, object, field, at) {
        optional_choice(out, object, field, at, options);
    }
}

/// A text, where there is one, has to be one of these.
pub(super) fn optional_choice(out: &mut Errors, object: &Value, field: &str, at: &At<'_>, options: &[&str]) {
    if has(object, field) && !options.contains(&text(object, field)) {
        out.push(FieldError::not_supported(at.child(field), &object[field], options));
    }
}

/// A field must stay as it is.
pub(super) fn immutable(out: &mut Errors, new: &Value, old: &Value, at: &At<'_>) {
    immutable_as(out, new, old, at, |value| Shown::from(value));
}

/// A field must stay as it is; its new value is shown in a form of its own.
pub(super) fn immutable_as(
    out: &mut Errors,
    new: &Value,
    old: &Value,
    at: &At<'_>,
    show: impl FnOnce(&Value) -> Shown,
) {
    if new != old {
        out.push(FieldError::invalid(at, show(new), "field is immutable"));
    }
}

/// `object.field` follows a rule for names, if it is there.
pub(super) fn named(
    out: &mut Errors,
    object: &Value,
    field: &str,
    at: &At<'_>,
    rule: impl FnOnce(&str) -> Vec<String>,
) {
    let value = text(object, field);
    if !value.is_empty() {
        reasons(out, value, &at.child(field), rule(value));
    }
}

/// Labels, or what selects by them.
pub(super) fn labels(out: &mut Errors, object: &Value, field: &str, at: &At<'_>) {
    let at = &at.child(field);
    for (key, value) in entries(object, field) {
        reasons(out, key, at, names::qualified_name(key));
        let value = value.as_str().unwrap_or_default();
        reasons(out, value, at, names::label_value(value));
    }
}

/// Annotations.
pub(super) fn annotations(out: &mut Errors, object: &Value, field: &str, at: &At<'_>) {
    const LIMIT: usize = 256 * 1024;
    let at = &at.child(field);
    let mut size = 0;
    for (key, value) in entries(object, field) {
        reasons(out, key, at, names::qualified_name(&key.to_lowercase()));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > LIMIT {
        out.push(FieldError::too_long(at, LIMIT));
    }
}

/// A number or the name of a port.
pub(super) fn port(out: &mut Errors, value: &Value, at: &At<'_>) {
    match value.as_str() {
        Some(name) => reasons(out, name, at, names::port_name(name)),
        None => port_number(out, value, at),
    }
}

/// The number of a port.
pub(super) fn port_number(out: &mut Errors, value: &Value, at: &At<'_>) {
    let value = value.as_i64().unwrap_or_default();
    out.extend(names::port_number(value).into_iter().map(|why| FieldError::invalid(at, value, why)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_the_api_writes_them() {
        let spec = At::new("spec");
        let containers = spec.child("containers");
        let first = containers.index(0);
        let limits = first.child("limits");
        assert_eq!(limits.key("cpu").to_string(), "spec.containers[0].limits[cpu]");
    }
}
