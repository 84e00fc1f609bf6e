//! `'%s of %d'.format([a, b])`.

use std::fmt::Write;

use super::super::Error;
use super::super::value::{List, Value};
use super::convert::to_text;
use crate::go;

const PRECISION: usize = 6;
/// More digits than this are nobody's wish.
const MAX_PRECISION: usize = 1000;
const MAX_RESULT: usize = 16 << 20;

pub(super) fn apply(pattern: &str, args: &List<'_>) -> Result<String, Error> {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut index = 0;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let Some(value) = args.get(index) else {
            return Err(Error::new(format!("index {index} out of range")));
        };
        if rest.is_empty() {
            return Err(Error::new("unexpected end of string"));
        }
        index += 1;
        rest = clause(rest, &value, &mut out)?;
        if out.len() > MAX_RESULT {
            return Err(Error::CostExceeded);
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Writes one value as the clause before `rest` asks for, and says what is left of the pattern.
fn clause<'p>(rest: &'p str, value: &Value<'_>, out: &mut String) -> Result<&'p str, Error> {
    let unreadable = |why: &str| Error::new(format!("could not parse formatting clause: {why}"));
    let (precision, rest) = match rest.strip_prefix('.') {
        None => (PRECISION, rest),
        Some(after) => {
            let end = after.find(|c: char| !c.is_ascii_digit()).ok_or_else(|| {
                unreadable("error while parsing precision: could not find end of precision specifier")
            })?;
            let digits = after[..end].parse::<usize>().map_err(|_| {
                let why = format!(
                    "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing {}: invalid syntax",
                    go::quote(&after[..end])
                );
                unreadable(&why)
            })?;
            (digits.min(MAX_PRECISION), &after[end..])
        }
    };
    let kind = rest.chars().next().unwrap_or_default();
    let wrong = |why: String| Error::new(format!("error during formatting: {why}"));
    let number = |value: &Value<'_>| match value {
        Value::Double(value) => Some(*value),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    };
    let name = value.type_name();
    match kind {
        's' => out.push_str(&shown(value).map_err(wrong)?),
        'd' => match value {
            Value::Int(value) => {
                let _ = write!(out, "{value}");
            }
            Value::Uint(value) => {
                let _ = write!(out, "{value}");
            }
            _ => {
                return Err(wrong(format!("decimal clause can only be used on integers, was given {name}")));
            }
        },
        'f' => match number(value) {
            Some(value) if value.is_finite() => {
                let _ = write!(out, "{value:.precision$}");
            }
            Some(value) => out.push_str(special(value)),
            None => {
                return Err(wrong(format!(
                    "fixed-point clause can only be used on doubles, was given {name}"
                )));
            }
        },
        'e' => match number(value) {
            Some(value) if value.is_finite() => {
                let text = format!("{value:.precision$e}");
                let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let (sign, digits) = exponent.strip_prefix('-').map_or(("+", exponent), |rest| ("-", rest));
                let _ = write!(out, "{mantissa}e{sign}{digits:0>2}");
            }
            Some(value) => out.push_str(special(value)),
            None => {
                return Err(wrong(format!(
                    "scientific clause can only be used on doubles, was given {name}"
                )));
            }
        },
        'b' | 'o' | 'x' | 'X' => based(kind, value, out).map_err(wrong)?,
        other => return Err(unreadable(&format!("unrecognized formatting clause \"{other}\""))),
    }
    Ok(&rest[kind.len_utf8()..])
}

fn special(value: f64) -> &'static str {
    match (value.is_nan(), value > 0.0) {
        (true, _) => "NaN",
        (_, true) => "∞",
        _ => "-∞",
    }
}

fn based(kind: char, value: &Value<'_>, out: &mut String) -> Result<(), String> {
    let (sign, size) = match value {
        Value::Int(value) => (if *value < 0 { "-" } else { "" }, value.unsigned_abs()),
        Value::Uint(value) => ("", *value),
        Value::Bool(value) if kind == 'b' => ("", u64::from(*value)),
        Value::String(text) if matches!(kind, 'x' | 'X') => return hex(text.as_bytes(), kind, out),
        Value::Bytes(bytes) if matches!(kind, 'x' | 'X') => return hex(bytes, kind, out),
        other => {
            let (what, on) = match kind {
                'b' => ("binary", "integers and bools"),
                'o' => ("octal", "integers"),
                _ => ("hex", "integers, byte buffers, and strings"),
            };
            return Err(format!("{what} clause can only be used on {on}, was given {}", other.type_name()));
        }
    };
    let _ = match kind {
        'b' => write!(out, "{sign}{size:b}"),
        'o' => write!(out, "{sign}{size:o}"),
        'x' => write!(out, "{sign}{size:x}"),
        _ => write!(out, "{sign}{size:X}"),
    };
    Ok(())
}

fn hex(bytes: &[u8], kind: char, out: &mut String) -> Result<(), String> {
    for byte in bytes {
        let _ = if kind == 'x' { write!(out, "{byte:02x}") } else { write!(out, "{byte:02X}") };
    }
    Ok(())
}

/// What `%s` makes of a value.
fn shown(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::Null => Ok("null".to_owned()),
        Value::List(list) => {
            let items: Result<Vec<String>, String> = list.iter().map(|item| literal(&item)).collect();
            Ok(format!("[{}]", items?.join(", ")))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in map.entries() {
                entries.push(format!("{}:{}", literal(&key)?, literal(&value)?));
            }
            entries.sort();
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::Bool(_)
        | Value::String(_)
        | Value::Timestamp(_)
        | Value::Bytes(_)
        | Value::Duration(_)
        | Value::Type(_) => to_text(value).map_err(|error| error.to_string()),
        other => Err(format!(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given {}",
            other.type_name()
        )),
    }
}

/// A value inside a list or a map.
fn literal(value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::String(text) => go::quote(text),
        Value::Bytes(_) => format!("b{}", go::quote(&shown(value)?)),
        Value::Double(number) if number.is_finite() => format!("{number:.PRECISION$}"),
        Value::Double(number) => go::quote(special(*number)),
        Value::Timestamp(_) => format!("timestamp({})", go::quote(&shown(value)?)),
        Value::Duration(_) => format!("duration({})", go::quote(&shown(value)?)),
        other => shown(other)?,
    })
}
