//! Brings a value into the form Go's encoder writes for its type.
//!
//! Empty `omitempty` fields go, fields that are always written get their zero value. Equal objects are then
//! equal as JSON, which is what "nothing changed" and field ownership are decided on.

use serde_json::{Map, Value};

use crate::decode::zero;
use crate::go;
use crate::schema::{Field, Omit, Scalar, Shape, Type};

/// Brings the value into the form Go writes.
pub fn normalise(value: &mut Value, ty: Type<'_>) {
    match (value, ty.shape()) {
        (Value::Object(map), Shape::Struct(_)) => {
            if let Some(structure) = ty.structure() {
                for (name, field) in &structure.fields {
                    normalise_field(map, name, field, ty);
                }
            }
        }
        (Value::Object(map), Shape::Map(values)) => {
            let ty = ty.to(*values);
            map.values_mut().for_each(|value| normalise(value, ty));
        }
        (Value::Array(list), Shape::List { items, .. }) => {
            let ty = ty.to(*items);
            list.iter_mut().for_each(|value| normalise(value, ty));
        }
        _ => {}
    }
}

/// Whether [`normalise`] would drop a list or map that is there and empty. Go has those in memory, and shows them.
#[must_use]
pub fn drops_empty(value: &Value, ty: Type<'_>) -> bool {
    has_empty(value) && drops_below(value, ty)
}

/// Puts lists and maps that were given, and are empty, back to where they were dropped.
pub fn put_back(value: &mut Value, given: &Value) {
    match (value, given) {
        (Value::Object(map), Value::Object(given)) => {
            for (name, given) in given {
                match map.get_mut(name) {
                    Some(value) => put_back(value, given),
                    None if is_empty(given) => _ = map.insert(name.clone(), given.clone()),
                    None => {}
                }
            }
        }
        (Value::Array(list), Value::Array(given)) if list.len() == given.len() => {
            list.iter_mut().zip(given).for_each(|(value, given)| put_back(value, given));
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

fn has_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty() || map.values().any(has_empty),
        Value::Array(list) => list.is_empty() || list.iter().any(has_empty),
        _ => false,
    }
}

fn drops_below(value: &Value, ty: Type<'_>) -> bool {
    match (value, ty.shape()) {
        (Value::Object(map), Shape::Struct(_)) => {
            let Some(structure) = ty.structure() else { return false };
            map.iter().any(|(name, value)| {
                let Some(field) = structure.fields.get(name.as_str()) else { return false };
                let ty = ty.to(field.node);
                let dropped = field.omit != Omit::Never && !field.pointer && !is_go_struct(ty);
                (dropped && is_empty(value)) || drops_below(value, ty)
            })
        }
        (Value::Object(map), Shape::Map(values)) => {
            map.values().any(|value| drops_below(value, ty.to(*values)))
        }
        (Value::Array(list), Shape::List { items, .. }) => {
            list.iter().any(|value| drops_below(value, ty.to(*items)))
        }
        _ => false,
    }
}

/// Brings the value into the form it has once it was stored: protocol buffers have no lists that are there and empty.
pub fn stored(value: &mut Value, ty: Type<'_>) {
    match (value, ty.shape()) {
        (Value::Object(map), Shape::Struct(_)) => {
            let Some(structure) = ty.structure() else { return };
            for (name, value) in map {
                let Some(field) = structure.fields.get(name.as_str()) else { continue };
                let ty = ty.to(field.node);
                let list = matches!(ty.shape(), Shape::List { .. });
                if list && field.omit == Omit::Never && value.as_array().is_some_and(Vec::is_empty) {
                    *value = Value::Null;
                } else if value.is_object() || value.is_array() {
                    stored(value, ty);
                }
            }
        }
        (Value::Array(list), Shape::List { items, .. }) => {
            let ty = ty.to(*items);
            list.iter_mut().for_each(|value| stored(value, ty));
        }
        _ => {}
    }
}

/// The JSON text of a value with its fields in the order Go writes them.
#[must_use]
pub fn text(value: &Value, ty: Option<Type<'_>>) -> String {
    match value {
        Value::Object(map) => {
            let order =
                ty.and_then(Type::structure).map(|structure| structure.order.as_slice()).unwrap_or_default();
            let known = order.iter().filter_map(|name| map.get_key_value(&**name));
            let others = map.iter().filter(|(name, _)| !order.iter().any(|known| **known == **name));
            let members = known.chain(others).map(|(name, member)| {
                let ty = ty.and_then(|ty| ty.member(name));
                format!("{}:{}", go::json(&Value::from(name.as_str())), text(member, ty))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(list) => {
            let items = ty.and_then(Type::list).map(|(items, _)| items);
            let members = list.iter().map(|member| text(member, items)).collect::<Vec<_>>();
            format!("[{}]", members.join(","))
        }
        scalar => go::json(scalar),
    }
}

fn normalise_field(map: &mut Map<String, Value>, name: &str, field: &Field, within: Type<'_>) {
    let ty = within.to(field.node);
    let structure = is_go_struct(ty);
    if let Some(value) = map.get_mut(name) {
        normalise(value, ty);
        let gone = match field.omit {
            Omit::Never => false,
            // Go never finds a struct empty.
            Omit::Empty if structure => field.pointer && value.is_null(),
            Omit::Empty => value.is_null() || (!field.pointer && is_zero(value)),
            Omit::Zero => value.is_null() || (!field.pointer && is_zero(value)),
        };
        if gone {
            map.remove(name);
        }
        return;
    }
    let written = match field.omit {
        Omit::Never => true,
        Omit::Empty => structure && !field.pointer,
        Omit::Zero => false,
    };
    if written {
        let mut value = if field.pointer { Value::Null } else { zero(Some(ty)) };
        normalise(&mut value, ty);
        map.insert(name.to_owned(), value);
    }
}

/// Whether Go's type is a struct, whatever its JSON form.
fn is_go_struct(ty: Type<'_>) -> bool {
    use Scalar::{Duration, IntOrString, MicroTime, Quantity, Time};
    matches!(
        ty.shape(),
        Shape::Any
            | Shape::Struct(_)
            | Shape::Scalar(Time | MicroTime | Duration | Quantity | IntOrString, _)
    )
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::Schemas;

    fn normalised(definition: &str, mut value: Value) -> Value {
        let mut all = Schemas::from_table(include_str!("../../drydock/data/types.json")).unwrap();
        let root = all.root(definition).unwrap();
        normalise(&mut value, all.at(root));
        value
    }

    #[test]
    fn what_was_dropped_can_be_put_back() {
        let mut all = Schemas::from_table(include_str!("../../drydock/data/types.json")).unwrap();
        let root = all.root("io.k8s.api.core.v1.Pod").unwrap();
        let given = json!({"metadata": {"labels": {}}, "spec": {"containers": [{"name": "c", "args": []}]}});
        assert!(drops_empty(&given, all.at(root)));
        let mut value = given.clone();
        normalise(&mut value, all.at(root));
        assert!(!drops_empty(&value, all.at(root)));
        put_back(&mut value, &given);
        assert_eq!(value["metadata"], given["metadata"]);
        assert_eq!(value["spec"]["containers"][0]["args"], json!([]));
    }

    #[test]
    fn empty_goes_and_what_go_always_writes_comes() {
        assert_eq!(
            normalised(
                "io.k8s.api.apps.v1.Deployment",
                json!({"metadata": {"labels": {}}, "spec": {"minReadySeconds": 0, "replicas": 0, "template": {
                    "spec": {"containers": [{"name": "c"}], "securityContext": {}}}}})
            ),
            json!({"metadata": {}, "spec": {"replicas": 0, "selector": null, "strategy": {}, "template": {
                "metadata": {}, "spec": {"containers": [{"name": "c", "resources": {}}], "securityContext": {}}}},
                "status": {}})
        );
        assert_eq!(
            normalised("io.k8s.api.apps.v1.ReplicaSet", json!({"metadata": {}, "spec": {}}))["status"],
            json!({"replicas": 0})
        );
    }
}
