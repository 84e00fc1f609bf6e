//! The numbers of custom objects that can be scaled, where their definition says they are.

use serde_json::Value;
use windlass_machinery::invalid::FieldError;

use super::super::registry::Resource;

/// What is wrong with the replicas and the selector of an object. A write of its status is not asked for its
/// specification.
pub(super) fn scale(resource: &Resource, object: &Value, subresource: Option<&str>) -> Vec<FieldError> {
    let mut out = Vec::new();
    let Some(paths) = resource.custom.as_ref().and_then(|custom| custom.scale.as_ref()) else { return out };
    if subresource != Some("status") {
        replicas(&mut out, object, &paths.spec);
    }
    replicas(&mut out, object, &paths.status);
    if let Some(path) = &paths.selector
        && let Some(Err(why)) = nested(object, path, "string", Value::is_string)
    {
        out.push(FieldError::invalid(&**path, "", why));
    }
    out
}

fn replicas(out: &mut Vec<FieldError>, object: &Value, path: &str) {
    match nested(object, path, "int64", |value| value.is_i64()) {
        None => {}
        Some(Err(why)) => out.push(FieldError::invalid(path, 0, why)),
        Some(Ok(value)) => {
            let number = value.as_i64().unwrap_or_default();
            if number < 0 {
                out.push(FieldError::invalid(path, number, "should be a non-negative integer"));
            } else if number > i64::from(i32::MAX) {
                let why = format!("should be less than or equal to {}", i32::MAX);
                out.push(FieldError::invalid(path, number, why));
            }
        }
    }
}

/// The value at a path, if there is one, or why it is none of the type.
fn nested<'v>(
    object: &'v Value,
    path: &str,
    wanted: &str,
    fits: impl Fn(&Value) -> bool,
) -> Option<Result<&'v Value, String>> {
    let mut place = object;
    let mut shown = String::new();
    let mismatch = |shown: &str, found: &Value, wanted: &str| {
        let (text, ty) = native(found);
        format!("{shown} accessor error: {text} is of the type {ty}, expected {wanted}")
    };
    for name in path.trim_start_matches('.').split('.') {
        match place {
            Value::Object(fields) => place = fields.get(name)?,
            Value::Null => return None,
            other => return Some(Err(mismatch(&shown, other, "map[string]interface{}"))),
        }
        shown.push('.');
        shown.push_str(name);
    }
    Some(if fits(place) { Ok(place) } else { Err(mismatch(&shown, place, wanted)) })
}

/// A value as Go shows it, and the name of its type there.
fn native(value: &Value) -> (String, &'static str) {
    let ty = match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    (windlass_machinery::go::value(value), ty)
}
