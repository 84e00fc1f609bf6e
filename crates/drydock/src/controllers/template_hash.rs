//! The `pod-template-hash` and the revision hashes, equal to the ones kube-controller-manager computes.
//!
//! A Deployment's hash is the 32-bit FNV-1a of a textual dump of the Go value of its pod template: every field in
//! declaration order with its Go type, unset ones included. `go_types.txt` holds those types (printed by
//! `go_types.go` next to it); this module walks a template's JSON along them. Empty lists and maps count as
//! unset, because the real controller receives its objects as protobuf, which cannot tell them apart.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use serde_json::{Map, Value};

/// The name of a template: what follows the Deployment's name in its ReplicaSet's.
pub(crate) fn template_hash(template: &Value, collisions: Option<i32>) -> String {
    let mut hash = Fnv1a::default();
    hash.write(dump(template).as_bytes());
    if let Some(collisions) = collisions {
        hash.write(&collisions.to_le_bytes());
        hash.write(&[0; 4]);
    }
    safe_encode(&hash.0.to_string())
}

/// The hash of a ControllerRevision's data (FNV-1, not FNV-1a, as the real one has it).
pub(crate) fn revision_hash(data: &[u8], collisions: Option<i32>) -> String {
    let mut hash = FNV_OFFSET;
    let probe = collisions.map(|count| count.to_string()).unwrap_or_default();
    for byte in data.iter().chain(probe.as_bytes()) {
        hash = hash.wrapping_mul(FNV_PRIME) ^ u32::from(*byte);
    }
    safe_encode(&hash.to_string())
}

/// JSON as Go writes it: sorted keys, and `<`, `>`, `&` escaped.
pub(crate) fn go_json(value: &Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Spells a number with letters that form no words.
fn safe_encode(text: &str) -> String {
    const SAFE: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    text.bytes().map(|byte| char::from(SAFE[usize::from(byte) % SAFE.len()])).collect()
}

const FNV_OFFSET: u32 = 2_166_136_261;
const FNV_PRIME: u32 = 16_777_619;

struct Fnv1a(u32);

impl Default for Fnv1a {
    fn default() -> Self {
        Self(FNV_OFFSET)
    }
}

impl Fnv1a {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(FNV_PRIME);
        }
    }
}

fn dump(template: &Value) -> String {
    let types = go_types();
    let mut out = String::with_capacity(8 * 1024);
    field(types, "struct v1.PodTemplateSpec", Some(template), &mut out);
    out
}

struct Field {
    go: &'static str,
    json: &'static str,
    kind: &'static str,
}

type Types = HashMap<&'static str, Vec<Field>>;

fn go_types() -> &'static Types {
    static TYPES: OnceLock<Types> = OnceLock::new();
    TYPES.get_or_init(|| {
        let mut types = Types::new();
        let mut current = "";
        for line in include_str!("template_hash/go_types.txt").lines() {
            match line.strip_prefix('\t') {
                None => current = line,
                Some(line) => {
                    let mut parts = line.splitn(3, '\t');
                    let (go, json, kind) = (parts.next(), parts.next(), parts.next());
                    if let (Some(go), Some(json), Some(kind)) = (go, json, kind) {
                        types.entry(current).or_default().push(Field { go, json, kind });
                    }
                }
            }
        }
        types
    })
}

/// A field's type and value: `(string)x`.
fn field(types: &Types, kind: &str, value: Option<&Value>, out: &mut String) {
    let value = value.filter(|value| !value.is_null());
    let (kind, element) = kind.split_once('|').unwrap_or((kind, ""));
    let (shape, name) = kind.split_once(' ').unwrap_or((kind, kind));
    let _ = write!(out, "({name})");
    match (shape, value) {
        ("pointer", None) => out.push_str("<nil>"),
        ("pointer", Some(value)) => plain(types, element, Some(value), out),
        _ => list_map_or_plain(types, shape, name, element, value, out),
    }
}

/// A value without its type, as elements of lists, values of maps and targets of pointers are printed.
fn plain(types: &Types, kind: &str, value: Option<&Value>, out: &mut String) {
    let (kind, element) = kind.split_once('|').unwrap_or((kind, ""));
    let (shape, name) = kind.split_once(' ').unwrap_or((kind, kind));
    list_map_or_plain(types, shape, name, element, value, out);
}

fn list_map_or_plain(
    types: &Types,
    shape: &str,
    name: &str,
    element: &str,
    value: Option<&Value>,
    out: &mut String,
) {
    match shape {
        "slice" => match value.and_then(Value::as_array).filter(|items| !items.is_empty()) {
            None => out.push_str("<nil>"),
            Some(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(' ');
                    }
                    plain(types, element, Some(item), out);
                }
                out.push(']');
            }
        },
        "map" => match value.and_then(Value::as_object).filter(|entries| !entries.is_empty()) {
            None => out.push_str("<nil>"),
            Some(entries) => {
                let mut entries: Vec<_> = entries.iter().collect();
                entries.sort_by(|a, b| a.0.cmp(b.0));
                out.push_str("map[");
                for (i, (key, item)) in entries.into_iter().enumerate() {
                    if i > 0 {
                        out.push(' ');
                    }
                    let _ = write!(out, "{key}:");
                    plain(types, element, Some(item), out);
                }
                out.push(']');
            }
        },
        "struct" => structure(types, name, value, out),
        "bool" => {
            let _ = write!(out, "{}", value.and_then(Value::as_bool).unwrap_or_default());
        }
        "string" => out.push_str(value.and_then(Value::as_str).unwrap_or_default()),
        _ => match value {
            Some(Value::Number(number)) => {
                let _ = write!(out, "{number}");
            }
            _ => out.push('0'),
        },
    }
}

fn structure(types: &Types, name: &str, value: Option<&Value>, out: &mut String) {
    match (name, value) {
        ("resource.Quantity", Some(Value::String(text))) => return quantity(text, out),
        ("resource.Quantity", Some(Value::Number(number))) => return quantity(&number.to_string(), out),
        ("intstr.IntOrString", Some(Value::Number(number))) => {
            let _ = write!(out, "{{Type:(intstr.Type)0 IntVal:(int32){number} StrVal:(string)}}");
            return;
        }
        ("intstr.IntOrString", Some(Value::String(text))) => {
            let _ = write!(out, "{{Type:(intstr.Type)1 IntVal:(int32)0 StrVal:(string){text}}}");
            return;
        }
        _ => {}
    }
    let empty = Map::new();
    let object = value.and_then(Value::as_object).unwrap_or(&empty);
    out.push('{');
    for (i, entry) in types.get(name).map(Vec::as_slice).unwrap_or_default().iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        let _ = write!(out, "{}:", entry.go);
        // `<` is a struct embedded in this one's JSON object; a time's inside is not looked into.
        let inner = if entry.json == "<" { value.filter(|v| v.is_object()) } else { object.get(entry.json) };
        field(types, entry.kind, inner, out);
    }
    out.push('}');
}

/// A parsed quantity. The text is kept in it only where it is the canonical form by a quick look.
fn quantity(text: &str, out: &mut String) {
    let digits = text.trim_start_matches(['+', '-']);
    let split = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(split);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let (format, exponent) = interpret(suffix);
    let mut shifted: i128 = format!("{whole}{fraction}").parse().unwrap_or_default();
    let joined = format!("{whole}{fraction}");
    let (mut scale, mut decimal) = (0, None);
    let kept = if text == "0" {
        true
    } else if format == "BinarySI" {
        let kept = fraction.is_empty() && exponent % 10 == 0 && shifted & 7 != 0;
        shifted <<= exponent;
        decimal = Some(fraction.len()).filter(|places| *places > 0);
        kept
    } else {
        scale = exponent - i32::try_from(fraction.len()).unwrap_or_default();
        scale % 3 == 0 && !joined.ends_with("000") && !joined.starts_with('0')
    };
    let sign = if text.starts_with('-') { "-" } else { "" };
    let kept = if kept { text } else { "" };
    let _ = match decimal {
        None => write!(
            out,
            "{{i:(resource.int64Amount){{value:(int64){sign}{shifted} scale:(resource.Scale){scale}}} \
             d:(resource.infDecAmount){{Dec:(*inf.Dec)<nil>}} s:(string){kept} Format:(resource.Format){format}}}"
        ),
        // A fraction of a binary unit is a big decimal; the API writes none, so this is for its shape only.
        Some(places) => write!(
            out,
            "{{i:(resource.int64Amount){{value:(int64)0 scale:(resource.Scale)0}} \
             d:(resource.infDecAmount){{Dec:(*inf.Dec){{unscaled:(big.Int){{neg:(bool){} abs:(big.nat)[{shifted}]}} \
             scale:(inf.Scale){places}}}}} s:(string) Format:(resource.Format){format}}}",
            !sign.is_empty()
        ),
    };
}

fn interpret(suffix: &str) -> (&'static str, i32) {
    const DECIMAL: [(&str, i32); 10] = [
        ("n", -9),
        ("u", -6),
        ("m", -3),
        ("", 0),
        ("k", 3),
        ("M", 6),
        ("G", 9),
        ("T", 12),
        ("P", 15),
        ("E", 18),
    ];
    const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
    if let Some((_, exponent)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return ("BinarySI", *exponent);
    }
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return ("DecimalSI", *exponent);
    }
    ("DecimalExponent", suffix.trim_start_matches(['e', 'E']).parse().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dump_and_its_hash_are_the_real_ones() {
        let template: Value =
            serde_json::from_str(include_str!("template_hash/fixtures/template.json")).unwrap();
        assert_eq!(dump(&template), include_str!("template_hash/fixtures/template.dump").trim_end());
        assert_eq!(template_hash(&template, None), "599cf9866b");
    }
}
