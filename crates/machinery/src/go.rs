//! Text as Go's `fmt`, `strconv` and `encoding/json` write it, for messages that quote values.

use std::fmt::Write;

use serde_json::{Number, Value};

/// `%q`: a string in double quotes.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c if invisible(c) => {
                let code = c as u32;
                let _ =
                    if code > 0xffff { write!(out, "\\U{code:08x}") } else { write!(out, "\\u{code:04x}") };
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// `%v`: a decoded JSON value (`map[a:b c:[1 2]]`).
#[must_use]
pub fn value(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

/// `%#v`: a decoded JSON value in Go's syntax (`map[string]interface {}{"a":"b"}`).
#[must_use]
pub fn syntax(value: &Value) -> String {
    let mut out = String::new();
    write_syntax(&mut out, value);
    out
}

/// `%T`: the Go type of a decoded JSON value.
#[must_use]
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// `time.ParseDuration`: a span such as `1h30m` or `-1.5s`, in nanoseconds.
#[must_use]
pub fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: i128 =
            if whole.is_empty() { 0 } else { whole.get(..whole.len().min(19))?.parse().ok()? };
        total = total.checked_add(whole.checked_mul(unit)?)?;
        let mut scale = unit;
        for digit in fraction.chars() {
            scale /= 10;
            total += i128::from(digit.to_digit(10)?) * scale;
        }
        if total > i128::from(i64::MAX) {
            return None;
        }
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// JSON as `encoding/json` writes it: sorted keys, HTML characters escaped.
#[must_use]
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

/// A string in JSON as `encoding/json` writes it.
pub(crate) fn write_json_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..'\u{20}' => {
                let _ = write!(out, "\\u{:04x}", character as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

pub(crate) fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => write_json_number(out, number),
        Value::String(text) => write_json_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            for (index, (key, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_string(out, key);
                out.push(':');
                write_json(out, value);
            }
            out.push('}');
        }
    }
}

/// `encoding/json` writes exponents only for very large and very small numbers.
fn write_json_number(out: &mut String, number: &Number) {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) if float != 0.0 && !(1e-6..1e21).contains(&float.abs()) => {
            let text = format!("{float:e}");
            match text.split_once('e') {
                Some((mantissa, exponent)) if !exponent.starts_with('-') => {
                    let _ = write!(out, "{mantissa}e+{exponent}");
                }
                _ => out.push_str(&text),
            }
        }
        Some(float) => {
            let _ = write!(out, "{float}");
        }
        None => {
            let _ = write!(out, "{number}");
        }
    }
}

/// `%v` of a number: floats take the shortest form, with an exponent from 1e21 and below 1e-4.
pub(crate) fn write_number(out: &mut String, number: &Number) {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) if float != 0.0 && !(1e-4..1e21).contains(&float.abs()) => {
            let text = format!("{float:e}");
            let Some((mantissa, exponent)) = text.split_once('e') else {
                return;
            };
            let (sign, digits) = exponent.strip_prefix('-').map_or(("+", exponent), |rest| ("-", rest));
            let _ = write!(out, "{mantissa}e{sign}{digits:0>2}");
        }
        Some(float) => {
            let _ = write!(out, "{float}");
        }
        None => {
            let _ = write!(out, "{number}");
        }
    }
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push_str("map[");
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            for (index, (key, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                write_value(out, value);
            }
            out.push(']');
        }
    }
}

fn write_syntax(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => out.push_str(&quote(text)),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_syntax(out, item);
            }
            out.push('}');
        }
        Value::Object(fields) => {
            out.push_str("map[string]interface {}{");
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            for (index, (key, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                out.push_str(&quote(key));
                out.push(':');
                write_syntax(out, value);
            }
            out.push('}');
        }
    }
}

/// Characters that Go escapes because they cannot be printed.
fn invisible(c: char) -> bool {
    matches!(c, '\u{80}'..='\u{a0}' | '\u{ad}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}'
        | '\u{205f}'..='\u{206f}' | '\u{3000}' | '\u{e000}'..='\u{f8ff}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts() {
        let example = json!({"b": [1, "x y", null, true], "a": {"c": 1.5, "d": 1e21}});
        assert_eq!(value(&example), "map[a:map[c:1.5 d:1e+21] b:[1 x y <nil> true]]");
        assert_eq!(syntax(&json!({"b": [1, "x"]})), r#"map[string]interface {}{"b":[]interface {}{1, "x"}}"#);
        assert_eq!(json(&json!({"b": "<a>&\n"})), r#"{"b":"\u003ca\u003e\u0026\n"}"#);
        assert_eq!(quote("a\"\\\n\u{1}é"), r#""a\"\\\n\x01é""#);
    }
}
