//! The rules for numbers: whole ones and floats are told apart as Go tells them apart.

use serde_json::{Number, json};

use super::rule::{Bound, Rule};
use super::validate::Problem;
use crate::go;

/// Whether a float stands for a whole number that JSON can hold exactly.
pub(super) fn is_whole(value: f64) -> bool {
    const EPSILON: f64 = 1e-9;
    let size = value.abs();
    if !value.is_finite() || size > 9_007_199_254_740_991.0 {
        return false;
    }
    let nearest = size.trunc();
    let difference = (size - nearest).abs();
    size == nearest || (nearest != 0.0 && difference / (size + nearest) < EPSILON)
}

/// Whether a number is one of an enumeration's: converted to its type, it is equal.
pub(super) fn same(choice: &Number, given: &Number) -> bool {
    match (choice.as_i64().filter(|_| !choice.is_f64()), choice.as_f64(), given.as_f64()) {
        #[expect(clippy::cast_possible_truncation, reason = "Go's conversion truncates too")]
        (Some(choice), _, Some(float)) if given.is_f64() => float as i64 == choice,
        (Some(choice), _, _) => given.as_i64() == Some(choice),
        (None, Some(choice), Some(given)) => choice == given,
        _ => choice == given,
    }
}

/// What is wrong with a number.
pub(super) fn check(rule: &Rule, given: &Number, path: &str) -> Vec<Problem> {
    let mut out = Vec::new();
    out.extend(out_of_range(rule, given, "Checked", path));
    if let Some(factor) = rule.multiple_of {
        let bad_factor = out_of_range(rule, &float(factor), "MultipleOf", path);
        let as_float = bad_factor.is_some();
        out.extend(bad_factor);
        out.extend(multiple(given, factor, as_float, path));
    }
    let mut bounds = Vec::new();
    if let Some(bound) = rule.minimum {
        let bad = out_of_range(rule, &float(bound.value), "Minimum boundary", path);
        let words = if bound.exclusive { "greater than" } else { "greater than or equal to" };
        bounds.push((bound, bad, words, false));
    }
    if let Some(bound) = rule.maximum {
        let bad = out_of_range(rule, &float(bound.value), "Maximum boundary", path);
        let words = if bound.exclusive { "less than" } else { "less than or equal to" };
        bounds.push((bound, bad, words, true));
    }
    for (bound, bad, words, most) in bounds {
        let as_float = bad.is_some();
        out.extend(bad);
        if let Some((limit, shown)) = beyond(given, bound, most, as_float) {
            out.push(Problem::invalid(path, &shown, format!("{path} in body should be {words} {limit}")));
        }
    }
    out
}

/// The limit that a number is beyond, and the number, as each is shown.
fn beyond(given: &Number, bound: Bound, most: bool, as_float: bool) -> Option<(String, serde_json::Value)> {
    let is_beyond = |order: std::cmp::Ordering| {
        let outside = if most { order.is_gt() } else { order.is_lt() };
        outside || (bound.exclusive && order.is_eq())
    };
    match given.as_i64().filter(|_| !as_float && !given.is_f64()) {
        Some(whole) => {
            #[expect(clippy::cast_possible_truncation, reason = "Go's conversion truncates too")]
            let limit = bound.value as i64;
            is_beyond(whole.cmp(&limit)).then(|| (limit.to_string(), json!(whole)))
        }
        None => {
            let given = given.as_f64()?;
            let order = given.partial_cmp(&bound.value)?;
            is_beyond(order).then(|| (go::value(&json!(bound.value)), json!(given)))
        }
    }
}

fn multiple(given: &Number, factor: f64, as_float: bool, path: &str) -> Option<Problem> {
    let wrong = |shown: serde_json::Value, factor: &serde_json::Value| {
        let text = format!("{path} in body should be a multiple of {}", go::value(factor));
        Some(Problem::invalid(path, &shown, text))
    };
    let positive = |factor: serde_json::Value| {
        let text = format!("factor MultipleOf declared for {path} must be positive: {}", go::value(&factor));
        Some(Problem::invalid(path, &factor, text))
    };
    match given.as_i64().filter(|_| !as_float && !given.is_f64()) {
        Some(whole) => {
            #[expect(clippy::cast_possible_truncation, reason = "Go's conversion truncates too")]
            let factor = factor as i64;
            if factor <= 0 {
                return positive(json!(factor));
            }
            if whole % factor == 0 { None } else { wrong(json!(whole), &json!(factor)) }
        }
        None => {
            let given = given.as_f64()?;
            if factor <= 0.0 {
                return positive(json!(factor));
            }
            let times = if factor < 1.0 { 1.0 / factor * given } else { given / factor };
            if is_whole(times) { None } else { wrong(json!(given), &json!(factor)) }
        }
    }
}

/// A number that its type and format cannot hold.
fn out_of_range(rule: &Rule, number: &Number, what: &str, path: &str) -> Option<Problem> {
    let [kind] = rule.types.as_slice() else {
        return None;
    };
    let format = &*rule.format;
    let fits = match &**kind {
        "integer" => {
            let value = whole(number);
            if format == "int32" { value.is_some_and(|v| i32::try_from(v).is_ok()) } else { value.is_some() }
        }
        "number" if format == "float" => number.as_f64().is_some_and(|v| v.abs() <= f64::from(f32::MAX)),
        _ => return None,
    };
    let format = match format {
        "int32" | "int64" | "float" | "double" => format!("with format {format}"),
        _ => "(default format)".to_owned(),
    };
    (!fits).then(|| Problem::general(format!("{what} value must be of type {kind} {format} in {path}")))
}

fn whole(number: &Number) -> Option<i64> {
    if !number.is_f64() {
        return number.as_i64();
    }
    // As Go does: through the number's decimal text.
    number.as_f64().and_then(|float| float.to_string().parse().ok())
}

fn float(value: f64) -> Number {
    Number::from_f64(value).unwrap_or_else(|| Number::from(0))
}
