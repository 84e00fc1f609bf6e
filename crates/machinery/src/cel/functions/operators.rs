//! Operators.

use std::cmp::Ordering;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::super::Error;
use super::super::value::{List, Value};

pub(super) fn negate<'a>(one: &Value<'a>) -> Result<Value<'a>, Error> {
    match one {
        Value::Int(value) => value.checked_neg().map(Value::Int).ok_or_else(overflow),
        Value::Double(value) => Ok(Value::Double(-value)),
        Value::Duration(value) => {
            value.checked_neg().map(Value::Duration).ok_or_else(|| Error::new("duration overflow"))
        }
        _ => Err(Error::overload()),
    }
}

pub(super) fn order<'a>(operator: &str, one: &Value<'a>, two: &Value<'a>) -> Result<Value<'a>, Error> {
    let Some(order) = one.compare(two) else {
        let numbers = one.is_number() && two.is_number();
        return Err(if numbers { Error::new("NaN values cannot be ordered") } else { Error::overload() });
    };
    Ok(Value::Bool(match operator {
        "_<_" => order == Ordering::Less,
        "_<=_" => order != Ordering::Greater,
        "_>_" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }))
}

fn overflow() -> Error {
    Error::new("integer overflow")
}

pub(in super::super) fn arithmetic<'a>(
    operator: &str,
    one: &Value<'a>,
    two: &Value<'a>,
) -> Result<Value<'a>, Error> {
    match (one, two) {
        (Value::Int(one), Value::Int(two)) => {
            let value = match operator {
                "_+_" => one.checked_add(*two),
                "_-_" => one.checked_sub(*two),
                "_*_" => one.checked_mul(*two),
                "_/_" if *two == 0 => return Err(Error::new("division by zero")),
                "_/_" => one.checked_div(*two),
                _ if *two == 0 => return Err(Error::new("modulus by zero")),
                _ => one.checked_rem(*two),
            };
            value.map(Value::Int).ok_or_else(overflow)
        }
        (Value::Uint(one), Value::Uint(two)) => {
            let value = match operator {
                "_+_" => one.checked_add(*two),
                "_-_" => one.checked_sub(*two),
                "_*_" => one.checked_mul(*two),
                "_/_" if *two == 0 => return Err(Error::new("division by zero")),
                "_/_" => one.checked_div(*two),
                _ if *two == 0 => return Err(Error::new("modulus by zero")),
                _ => one.checked_rem(*two),
            };
            value.map(Value::Uint).ok_or_else(|| Error::new("unsigned integer overflow"))
        }
        (Value::Double(one), Value::Double(two)) => Ok(Value::Double(match operator {
            "_+_" => one + two,
            "_-_" => one - two,
            "_*_" => one * two,
            "_/_" => one / two,
            _ => return Err(Error::overload()),
        })),
        (Value::String(one), Value::String(two)) if operator == "_+_" => {
            let mut text = String::with_capacity(one.len() + two.len());
            text.push_str(one);
            text.push_str(two);
            Ok(text.into())
        }
        (Value::Bytes(one), Value::Bytes(two)) if operator == "_+_" => {
            Ok(Value::Bytes([&**one, &**two].concat().into()))
        }
        (Value::List(one), Value::List(two)) if operator == "_+_" => Ok(concat(one, two)),
        _ => times(operator, one, two),
    }
}

fn concat<'a>(one: &List<'a>, two: &List<'a>) -> Value<'a> {
    Value::List(List::Made(Arc::new(one.concat(two))))
}

fn times<'a>(operator: &str, one: &Value<'a>, two: &Value<'a>) -> Result<Value<'a>, Error> {
    let moved = |time: &Timestamp, by: i64| {
        time.checked_add(SignedDuration::from_nanos(by))
            .map(Value::Timestamp)
            .map_err(|_| Error::new("timestamp overflow"))
    };
    let long = || Error::new("duration overflow");
    match (operator, one, two) {
        ("_+_", Value::Duration(one), Value::Duration(two)) => {
            one.checked_add(*two).map(Value::Duration).ok_or_else(long)
        }
        ("_-_", Value::Duration(one), Value::Duration(two)) => {
            one.checked_sub(*two).map(Value::Duration).ok_or_else(long)
        }
        ("_+_", Value::Timestamp(time), Value::Duration(by))
        | ("_+_", Value::Duration(by), Value::Timestamp(time)) => moved(time, *by),
        ("_-_", Value::Timestamp(time), Value::Duration(by)) => {
            moved(time, by.checked_neg().ok_or_else(long)?)
        }
        ("_-_", Value::Timestamp(one), Value::Timestamp(two)) => {
            let nanos = one.as_nanosecond() - two.as_nanosecond();
            i64::try_from(nanos).map(Value::Duration).map_err(|_| long())
        }
        _ => Err(Error::overload()),
    }
}

pub(super) fn within<'a>(one: &Value<'a>, two: &Value<'a>) -> Result<Value<'a>, Error> {
    match two {
        Value::List(list) => Ok(Value::Bool(list.iter().any(|item| item.equals(one)))),
        Value::Map(map) => Ok(Value::Bool(map.get(one).is_some())),
        _ => Err(Error::overload()),
    }
}

/// A key as errors show it.
fn shown(key: &Value<'_>) -> String {
    match key {
        Value::String(text) => text.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        _ => key.type_name().to_owned(),
    }
}

pub(super) fn index<'a>(one: &Value<'a>, two: &Value<'a>) -> Result<Value<'a>, Error> {
    match one {
        Value::Optional(None) => Ok(Value::Optional(None)),
        Value::Optional(Some(_)) => optional_index(one, two),
        Value::List(list) => {
            let position = position(two)?;
            let item = usize::try_from(position).ok().and_then(|position| list.get(position));
            item.ok_or_else(|| Error::new(format!("index out of bounds: {position}")))
        }
        Value::Map(map) => map.get(two).ok_or_else(|| missing(two)),
        _ => Err(missing(two)),
    }
}

/// The error for a key that is not there.
pub(in super::super) fn missing(key: &Value<'_>) -> Error {
    Error::new(format!("no such key: {}", shown(key)))
}

fn position(value: &Value<'_>) -> Result<i64, Error> {
    match value {
        Value::Int(value) => Ok(*value),
        Value::Uint(value) => i64::try_from(*value).map_err(|_| Error::overload()),
        Value::Double(value) if value.fract() == 0.0 => Ok(*value as i64),
        Value::Double(_) => Err(Error::new(format!("unsupported index value {} in list", shown(value)))),
        other => Err(Error::new(format!("unsupported index type '{}' in list", other.type_name()))),
    }
}

pub(super) fn optional_index<'a>(one: &Value<'a>, two: &Value<'a>) -> Result<Value<'a>, Error> {
    let found = match one {
        Value::Optional(None) => None,
        Value::Optional(Some(inner)) => return optional_index(inner, two),
        Value::List(list) => usize::try_from(position(two)?).ok().and_then(|position| list.get(position)),
        Value::Map(map) => map.get(two),
        _ => return Err(missing(two)),
    };
    Ok(found.map_or(Value::Optional(None), Value::present))
}
