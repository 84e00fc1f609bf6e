//! Conversions.

use jiff::Timestamp;

use super::super::Error;
use super::super::value::Value;
use super::{Found, time};

pub(super) fn call<'a>(function: &str, one: &Value<'a>) -> Found<'a> {
    let result = match function {
        "bool" => to_bool(one),
        "bytes" => match one {
            Value::Bytes(_) => Some(one.clone()),
            Value::String(text) => Some(Value::Bytes(text.as_bytes().into())),
            _ => None,
        },
        "double" => match one {
            Value::Double(_) => Some(one.clone()),
            Value::Int(value) => Some(Value::Double(*value as f64)),
            Value::Uint(value) => Some(Value::Double(*value as f64)),
            Value::String(text) => text.parse().ok().map(Value::Double),
            _ => None,
        },
        "int" => return Some(to_int(one)),
        "uint" => return Some(to_uint(one)),
        "string" => return Some(to_text(one).map(Into::into)),
        "duration" => match one {
            Value::Duration(_) => Some(one.clone()),
            Value::Int(seconds) => seconds.checked_mul(1_000_000_000).map(Value::Duration),
            Value::String(text) => time::parse_duration(text).map(Value::Duration),
            _ => None,
        },
        "timestamp" => match one {
            Value::Timestamp(_) => Some(one.clone()),
            Value::Int(seconds) => Timestamp::from_second(*seconds).ok().map(Value::Timestamp),
            Value::String(text) => time::parse_timestamp(text).map(Value::Timestamp),
            _ => None,
        },
        _ => return None,
    };
    Some(result.ok_or_else(|| refused(one, function)))
}

fn refused(one: &Value<'_>, to: &str) -> Error {
    let to = match to {
        "duration" => "google.protobuf.Duration",
        "timestamp" => "google.protobuf.Timestamp",
        other => other,
    };
    Error::new(format!("type conversion error from '{}' to '{to}'", one.type_name()))
}

fn to_bool<'a>(one: &Value<'a>) -> Option<Value<'a>> {
    match one {
        Value::Bool(_) => Some(one.clone()),
        Value::String(text) => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(Value::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(Value::Bool(false)),
            _ => None,
        },
        _ => None,
    }
}

fn to_int<'a>(one: &Value<'a>) -> Result<Value<'a>, Error> {
    let overflow = || Error::new("integer overflow");
    match one {
        Value::Int(_) => Ok(one.clone()),
        Value::Uint(value) => i64::try_from(*value).map(Value::Int).map_err(|_| overflow()),
        Value::Double(value) if value.is_finite() && value.abs() < 9.223_372_036_854_775e18 => {
            Ok(Value::Int(*value as i64))
        }
        Value::Double(_) => Err(overflow()),
        Value::String(text) => text.parse().map(Value::Int).map_err(|_| refused(one, "int")),
        Value::Duration(nanos) => Ok(Value::Int(*nanos)),
        Value::Timestamp(time) => Ok(Value::Int(time.as_second())),
        _ => Err(refused(one, "int")),
    }
}

fn to_uint<'a>(one: &Value<'a>) -> Result<Value<'a>, Error> {
    let overflow = || Error::new("unsigned integer overflow");
    match one {
        Value::Uint(_) => Ok(one.clone()),
        Value::Int(value) => u64::try_from(*value).map(Value::Uint).map_err(|_| overflow()),
        Value::Double(value) if (0.0..1.844_674_407_370_955e19).contains(value) => {
            Ok(Value::Uint(*value as u64))
        }
        Value::Double(_) => Err(overflow()),
        Value::String(text) => text.parse().map(Value::Uint).map_err(|_| refused(one, "uint")),
        _ => Err(refused(one, "uint")),
    }
}

/// A value as `string()` gives it.
pub(super) fn to_text(one: &Value<'_>) -> Result<String, Error> {
    Ok(match one {
        Value::String(text) => text.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => double_text(*value),
        Value::Bytes(bytes) => String::from_utf8(bytes.to_vec())
            .map_err(|_| Error::new("invalid UTF-8 in bytes, cannot convert to string"))?,
        Value::Duration(nanos) => time::duration_text(*nanos),
        Value::Timestamp(moment) => time::timestamp_text(*moment),
        Value::Ip(ip) => ip.to_string(),
        Value::Cidr(ip, bits) => format!("{ip}/{bits}"),
        Value::Type(name) => name.to_string(),
        _ => return Err(refused(one, "string")),
    })
}

/// Go's `%g` in its shortest form.
fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if value != 0.0 && !(1e-4..1e21).contains(&value.abs()) {
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = exponent.strip_prefix('-').map_or(("+", exponent), |rest| ("-", rest));
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    value.to_string()
}
