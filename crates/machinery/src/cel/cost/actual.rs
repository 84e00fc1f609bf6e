//! What a call costs, by the sizes of its arguments.

use super::super::value::Value;
use super::range::{Range, scale};
use super::{PATTERN, TRAVERSAL};

/// What making a list costs.
pub(in super::super) const LIST: u64 = 10;
/// What making a map costs.
pub(in super::super) const MAP: u64 = 30;
/// What making an object costs.
pub(in super::super) const STRUCT: u64 = 40;

fn walked(value: Option<&Value<'_>>) -> u64 {
    scale(value.map_or(0, Value::size), TRAVERSAL)
}

fn size(args: &[Value<'_>], index: usize) -> u64 {
    args.get(index).map_or(0, Value::size)
}

/// The price of a call that is known before it is made.
pub(in super::super) fn before(function: &str, overload: &str, args: &[Value<'_>]) -> u64 {
    let first = args.first();
    match function {
        "check" => 350_000,
        "fieldSelector" | "labelSelector" => selector(Range::fixed(size(args, 1))).max,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => first.map_or(0, traversal),
        "url"
        | "jsonpatch.escapeKey"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "cidr"
        | "isIP"
        | "isCIDR"
        | "quantity"
        | "isQuantity"
        | "semver"
        | "isSemver" => walked(first),
        "ip" => {
            if matches!(first, Some(Value::Cidr(..))) {
                1
            } else {
                walked(first)
            }
        }
        "replace" | "split" | "ip.isCanonical" => scale(size(args, 0), 2.0 * TRAVERSAL),
        "join" => 0,
        "find" | "findAll" | "matches" => {
            scale(size(args, 0).saturating_add(1), TRAVERSAL).saturating_mul(scale(size(args, 1), PATTERN))
        }
        "contains" => walked(first).saturating_mul(walked(args.get(1))),
        "containsIP" | "containsCIDR" => {
            let range = size(args, 0);
            let mut cost = scale(range * 2, TRAVERSAL);
            if function == "containsCIDR" {
                cost += scale(range, TRAVERSAL) + 1;
            }
            if let Some(Value::String(_)) = args.get(1) {
                cost += walked(args.get(1));
            }
            cost
        }
        "validate" => scale(size(args, 1).saturating_add(1), TRAVERSAL).saturating_mul(scale(60, PATTERN)),
        "startsWith" | "endsWith" | "strings.quote" | "format" => walked(first),
        "bytes" if overload == "string_to_bytes" => walked(first),
        "string" if matches!(first, Some(Value::Bytes(_))) => walked(first),
        "@in" => {
            if matches!(args.get(1), Some(Value::List(_))) {
                size(args, 1)
            } else {
                1
            }
        }
        "_==_" | "_!=_" => scale(size(args, 0).min(size(args, 1)), TRAVERSAL),
        "_<_" | "_<=_" | "_>_" | "_>=_" => match first {
            Some(Value::String(_) | Value::Bytes(_)) => scale(size(args, 0).min(size(args, 1)), TRAVERSAL),
            _ => 1,
        },
        "_+_" => match first {
            Some(Value::String(_) | Value::Bytes(_)) => {
                scale(size(args, 0).saturating_add(size(args, 1)), TRAVERSAL)
            }
            _ => 1,
        },
        "sort" | "distinct" | "@sortByAssociatedKeys" => {
            let keys = if function == "@sortByAssociatedKeys" { args.get(1) } else { first };
            let Some(Value::List(list)) = keys else { return 1 };
            let text = matches!(list.get(0), Some(Value::String(_) | Value::Bytes(_)));
            let factor = if text { 2.0 + TRAVERSAL } else { 2.0 };
            let length = list.len() as u64;
            scale(length.saturating_mul(length), factor).saturating_add(1 + LIST)
        }
        "flatten" => {
            let depth = match args.get(1) {
                Some(Value::Int(depth)) => u64::try_from(*depth).unwrap_or(0),
                _ => 1,
            };
            depth.saturating_mul(size(args, 0)).saturating_add(1 + LIST)
        }
        "lists.range" => match first {
            Some(Value::Int(end)) => u64::try_from(*end).unwrap_or(0).saturating_add(1 + LIST),
            _ => 1,
        },
        "slice" | "reverse" => size(args, 0).saturating_add(1 + LIST),
        _ => 1,
    }
}

/// The price of a call that depends on its result.
pub(in super::super) fn after(function: &str, result: &Value<'_>) -> u64 {
    if function == "join" { scale(result.size(), 2.0 * TRAVERSAL) } else { 0 }
}

/// What it costs to parse a selector of some length.
pub(super) fn selector(length: Range) -> Range {
    let requirements = length.scaled(0.5).scaled(50.0);
    Range::fixed(LIST).add(length.scaled(TRAVERSAL)).add(requirements)
}

fn traversal(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => (text.len() as f64 * TRAVERSAL) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * TRAVERSAL) as u64,
        Value::List(list) => list.iter().map(|item| traversal(&item)).sum(),
        Value::Map(map) => map.entries().iter().map(|(key, value)| traversal(key) + traversal(value)).sum(),
        _ => 1,
    }
}
