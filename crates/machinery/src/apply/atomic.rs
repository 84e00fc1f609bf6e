//! The parts of a configuration that would replace a whole.

use serde_json::Value;

use super::place::{Atom, Place};

/// The paths of all atomic lists and maps in a value.
pub(super) fn parts(value: &Value, place: Place<'_>) -> Vec<String> {
    let mut out = Vec::new();
    walk(value, place, "", &mut out);
    out
}

fn walk(value: &Value, place: Place<'_>, path: &str, out: &mut Vec<String>) {
    match (place.atom(value), value) {
        (Atom::Map(object), Value::Object(fields)) => {
            if object.atomic {
                out.push(path.to_owned());
            }
            for (name, value) in fields {
                // What stands under a key of a map has no name that the type knows.
                if object.named(name).is_some()
                    && let Some(place) = object.member(name)
                {
                    walk(value, place, &format!("{path}.{name}"), out);
                }
            }
        }
        (Atom::List(list), Value::Array(items)) => {
            if list.is_atomic() {
                out.push(path.to_owned());
            }
            for (index, item) in items.iter().enumerate() {
                walk(item, list.items, &format!("{path}[{index}]"), out);
            }
        }
        _ => {}
    }
}
