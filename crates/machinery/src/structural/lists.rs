//! Lists that are sets or maps have no element twice.

use serde_json::{Map, Value};

use crate::invalid::{FieldError, Path};
use crate::schema::{ListKind, Type};

/// The duplicates in a value.
pub(super) fn check(value: &Value, ty: Type<'_>, path: &Path) -> Vec<FieldError> {
    match value {
        Value::Object(entries) => {
            let mut out = Vec::new();
            for (name, entry) in entries {
                let declared = ty.field(name).is_some();
                let Some(member) = ty.member(name).filter(|member| member.custom().is_some()) else {
                    continue;
                };
                let at = if declared { path.child(name) } else { path.key(name) };
                out.extend(check(entry, member, &at));
            }
            out
        }
        Value::Array(elements) => {
            let Some((items, kind)) = ty.list() else {
                return Vec::new();
            };
            let mut out = match kind {
                ListKind::Atomic => Vec::new(),
                ListKind::Set => duplicates(elements, path),
                ListKind::Map(keys) => same_keys(elements, keys, path),
            };
            for (index, element) in elements.iter().enumerate() {
                out.extend(check(element, items, &path.index(index)));
            }
            out
        }
        _ => Vec::new(),
    }
}

/// Each value that is there more than once is told once, at its second place.
fn duplicates(elements: &[Value], path: &Path) -> Vec<FieldError> {
    let before = |at: usize| elements[..at].iter().filter(|element| **element == elements[at]).count();
    let second = (0..elements.len()).filter(|at| before(*at) == 1);
    second.map(|at| FieldError::duplicate(path.index(at), &elements[at])).collect()
}

fn same_keys(elements: &[Value], keys: &[Box<str>], path: &Path) -> Vec<FieldError> {
    if let Some(at) = elements.iter().position(|element| !element.is_object() && !element.is_null()) {
        let why = "must be an object for an array of list-type map";
        return vec![FieldError::invalid(path.index(at), &elements[at], why)];
    }
    let key_of = |element: &Value| -> Value {
        let values = keys.iter().filter_map(|key| Some((key.to_string(), element.get(&**key)?.clone())));
        Value::Object(values.collect::<Map<_, _>>())
    };
    let keys: Vec<Value> = elements.iter().map(key_of).collect();
    duplicates(&keys, path)
}
