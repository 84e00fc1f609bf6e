//! Takes fields out of a value, or takes nothing but them.

use serde_json::{Map, Value};

use super::place::{Atom, Place};
use crate::fields::FieldSet;

pub(super) fn remove(value: &Value, items: &FieldSet, place: Place<'_>) -> Value {
    match place.atom(value) {
        Atom::Scalar(_) => value.clone(),
        Atom::List(list) => {
            let Value::Array(elements) = value else {
                return Value::Null;
            };
            if list.is_atomic() {
                return Value::Null;
            }
            let mut kept = Vec::with_capacity(elements.len());
            for item in elements {
                let entry = list.element(item).ok().and_then(|element| items.get(&element));
                match entry {
                    Some(entry) if entry.member => {}
                    Some(entry) => kept.push(remove(item, &entry.children, list.items)),
                    None => kept.push(item.clone()),
                }
            }
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        Atom::Map(object) => {
            let Value::Object(fields) = value else {
                return Value::Null;
            };
            if object.atomic {
                return Value::Null;
            }
            let mut kept = Map::new();
            for (name, field) in fields {
                match items.get_field(name) {
                    Some(entry) if entry.member => {}
                    Some(entry) => {
                        kept.insert(name.clone(), remove(field, &entry.children, object.any_member(name)));
                    }
                    None => {
                        kept.insert(name.clone(), field.clone());
                    }
                }
            }
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
    }
}

pub(super) fn extract(value: &Value, items: &FieldSet, place: Place<'_>) -> Value {
    match place.atom(value) {
        Atom::Scalar(_) => value.clone(),
        Atom::List(list) => {
            let Value::Array(elements) = value else {
                return Value::Null;
            };
            if elements.is_empty() || list.is_atomic() {
                return value.clone();
            }
            let mut kept = Vec::new();
            for item in elements {
                let Some(entry) = list.element(item).ok().and_then(|element| items.get(&element)) else {
                    continue;
                };
                if entry.children.is_empty() {
                    kept.push(item.clone());
                } else {
                    kept.push(extract(item, &entry.children, list.items));
                }
            }
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        Atom::Map(object) => {
            let Value::Object(fields) = value else {
                return Value::Null;
            };
            if fields.is_empty() || object.atomic {
                return value.clone();
            }
            let mut kept = Map::new();
            for (name, field) in fields {
                let Some(entry) = items.get_field(name) else {
                    continue;
                };
                // A member is looked at with the whole set again, as the original does.
                let below = if entry.member { items } else { &entry.children };
                kept.insert(name.clone(), extract(field, below, object.any_member(name)));
            }
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
    }
}
