//! The fields that a value mentions.

use serde_json::Value;

use super::place::{Atom, Place};
use crate::fields::{FieldSet, PathElement};

pub(super) fn of(value: &Value, place: Place<'_>) -> FieldSet {
    visit(value, place).1
}

/// Whether the value itself is a leaf, and the fields below it.
fn visit(value: &Value, place: Place<'_>) -> (bool, FieldSet) {
    let mut set = FieldSet::new();
    match place.atom(value) {
        Atom::Scalar(_) => return (true, set),
        Atom::List(list) => {
            if list.is_atomic() {
                return (true, set);
            }
            let Value::Array(items) = value else {
                return (false, set);
            };
            let mut elements: Vec<(PathElement, &Value)> =
                items.iter().filter_map(|item| Some((list.element(item).ok()?, item))).collect();
            elements.sort_by(|(left, _), (right, _)| left.cmp(right));
            let mut elements = elements.into_iter().peekable();
            while let Some((element, item)) = elements.next() {
                let mut twice = false;
                while elements.next_if(|(next, _)| *next == element).is_some() {
                    twice = true;
                }
                // Elements that are there more than once are owned as a whole.
                let below = if twice { FieldSet::new() } else { visit(item, list.items).1 };
                set.push(element, true, below);
            }
        }
        Atom::Map(object) => {
            if object.atomic {
                return (true, set);
            }
            let Value::Object(fields) = value else {
                return (false, set);
            };
            for (name, field) in fields {
                let (leaf, below) = visit(field, object.any_member(name));
                let empty = field.is_null() || field.as_object().is_some_and(|fields| fields.is_empty());
                let member = leaf || empty || object.named(name).is_none();
                if member || !below.is_empty() {
                    set.push(PathElement::field(name), member, below);
                }
            }
        }
    }
    (false, set)
}
