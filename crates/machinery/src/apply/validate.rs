//! Whether a value conforms to its type.

use std::fmt;

use serde_json::Value;

use super::Duplicates;
use super::place::{Atom, Kind, Place};
use crate::fields::PathElement;
use crate::go;

/// Everything that is wrong with a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationErrors(Vec<String>);

impl std::error::Error for ValidationErrors {}

impl fmt::Display for ValidationErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => out.write_str(one),
            several => {
                out.write_str("errors:")?;
                several.iter().try_for_each(|error| write!(out, "\n  {error}"))
            }
        }
    }
}

pub(super) fn validate(
    value: &Value,
    place: Place<'_>,
    duplicates: Duplicates,
) -> Result<(), ValidationErrors> {
    let mut walk = Walk { duplicates, errors: Vec::new(), path: Vec::new() };
    walk.visit(value, place);
    if walk.errors.is_empty() { Ok(()) } else { Err(ValidationErrors(walk.errors)) }
}

struct Walk<'v> {
    duplicates: Duplicates,
    errors: Vec<String>,
    path: Vec<Step<'v>>,
}

/// A step of the path, made into text only for messages.
enum Step<'v> {
    Field(&'v str),
    Element(PathElement),
}

impl<'v> Walk<'v> {
    fn visit(&mut self, value: &'v Value, place: Place<'_>) {
        if value.is_null() {
            return;
        }
        match place.atom(value) {
            Atom::Scalar(kind) => self.scalar(value, kind),
            Atom::List(list) => {
                let Value::Array(items) = value else {
                    return self.error(&format!("expected list, got &{{{}}}", go::value(value)));
                };
                let mut seen: Vec<PathElement> = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    let element = if list.is_atomic() {
                        PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
                    } else {
                        match list.element(item) {
                            Ok(element) => {
                                self.note(&mut seen, &element);
                                element
                            }
                            Err(error) => return self.error(&format!("element {index}: {error}")),
                        }
                    };
                    self.path.push(Step::Element(element));
                    self.visit(item, list.items);
                    self.path.pop();
                }
            }
            Atom::Map(object) => {
                let Value::Object(fields) = value else {
                    return self.error(&format!("expected map, got &{{{}}}", go::value(value)));
                };
                for (name, field) in fields {
                    self.path.push(Step::Field(name));
                    let known = object.member(name);
                    match known {
                        Some(place) => self.visit(field, place),
                        None => self.error("field not declared in schema"),
                    }
                    self.path.pop();
                    if known.is_none() {
                        // The rest of the object is not looked at.
                        return;
                    }
                }
            }
        }
    }

    fn scalar(&mut self, value: &Value, kind: Kind) {
        let fits = match kind {
            Kind::Numeric => value.is_number(),
            Kind::String => value.is_string(),
            Kind::Boolean => value.is_boolean(),
            Kind::Untyped => !value.is_array() && !value.is_object(),
        };
        if fits {
            return;
        }
        self.error(&match kind {
            Kind::Numeric => format!("expected numeric (int or float), got {}", go::type_of(value)),
            Kind::String => {
                format!("expected string, got &value.valueUnstructured{{Value:{}}}", go::syntax(value))
            }
            Kind::Boolean => format!("expected boolean, got &{{{}}}", go::value(value)),
            Kind::Untyped => format!("expected any scalar, got &{{{}}}", go::value(value)),
        });
    }

    fn note(&mut self, seen: &mut Vec<PathElement>, element: &PathElement) {
        match seen.binary_search(element) {
            Ok(_) if self.duplicates == Duplicates::Refused => {
                self.error(&format!("duplicate entries for key {element}"));
            }
            Ok(_) => {}
            Err(index) => seen.insert(index, element.clone()),
        }
    }

    fn error(&mut self, message: &str) {
        let path: String = self
            .path
            .iter()
            .map(|step| match step {
                Step::Field(name) => format!(".{name}"),
                Step::Element(element) => element.to_string(),
            })
            .collect();
        self.errors.push(if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") });
    }
}
