//! What is wrong with a patched object whose parts are of other types than they should be, in the words of the
//! converter that the real server puts strategic merge patches through.

use serde_json::Value;

use crate::schema::{Scalar, Shape, Type};

/// The first complaint about a value that should be of a type.
#[must_use]
pub fn complaint(value: &Value, ty: Type<'_>) -> Option<String> {
    let found = go_kind(value);
    match (value, ty.shape()) {
        (Value::Null, _) | (_, Shape::Any) => None,
        (Value::Object(map), Shape::Struct(_)) => {
            let structure = ty.structure()?;
            let mut fields = structure.order.iter().filter_map(|name| Some((name, map.get(&**name)?)));
            fields.find_map(|(name, value)| complaint(value, ty.member(name)?))
        }
        (_, Shape::Struct(_)) => Some(format!("cannot restore struct from: {found}")),
        (Value::Object(map), Shape::Map(values)) => {
            let ty = ty.to(*values);
            map.values().find_map(|value| complaint(value, ty))
        }
        (_, Shape::Map(_)) => Some(format!("cannot restore map from {found}")),
        (Value::Array(list), Shape::List { items, .. }) => {
            let ty = ty.to(*items);
            list.iter().find_map(|value| complaint(value, ty))
        }
        (_, Shape::List { .. }) => Some(format!("cannot restore slice from {found}")),
        (_, Shape::Scalar(scalar, name)) => {
            let (fits, go) = match scalar {
                Scalar::Bool => (value.is_boolean(), "bool"),
                Scalar::Int32 => (value.is_number(), "int32"),
                Scalar::Int64 => (value.is_number(), "int64"),
                Scalar::Float => (value.is_number(), "float64"),
                Scalar::String => (value.is_string(), "string"),
                // These read themselves, and complain in their own words.
                _ => return None,
            };
            let go = name.as_deref().unwrap_or(go);
            (!fits).then(|| format!("cannot convert {found} to {go}"))
        }
    }
}

fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
