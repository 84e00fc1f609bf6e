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
            let whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
            // What Go could convert, and what it has no way to.
            let (fits, converts, go) = match scalar {
                Scalar::Bool => (value.is_boolean(), false, "bool"),
                Scalar::Int32 => (whole, value.is_number(), "int32"),
                Scalar::Int64 => (whole, value.is_number(), "int64"),
                Scalar::Float => (value.is_number(), false, "float64"),
                Scalar::String => (value.is_string(), value.is_i64() || value.is_u64(), "string"),
                // These read themselves, and complain in their own words.
                Scalar::IntOrString => return unreadable(value, value.is_string() || whole, "int32"),
                Scalar::Time | Scalar::MicroTime | Scalar::Duration => {
                    return unreadable(value, value.is_string(), "string");
                }
                _ => return None,
            };
            let named = name.as_deref().unwrap_or(go);
            match (fits, converts) {
                (true, _) => None,
                (false, true) => Some(format!("cannot convert {found} to {named}")),
                (false, false) => Some(format!("unrecognized type: {go}")),
            }
        }
    }
}

/// What Go says of a value that a type of its own cannot read.
fn unreadable(value: &Value, fits: bool, wanted: &str) -> Option<String> {
    let found = match value {
        _ if fits => return None,
        Value::Null => return None,
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if wanted == "int32" => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    Some(format!("json: cannot unmarshal {found} into Go value of type {wanted}"))
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
