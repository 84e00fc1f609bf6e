//! Reads bodies in Kubernetes' Protocol Buffers, which `kubectl create` and client-go send for built-in kinds.
//!
//! A message becomes the JSON that the client would have sent otherwise and goes on as such; answers are never
//! written in this form, and clients that send it take JSON as well. The table of messages is made from the
//! `generated.proto` files of Kubernetes: a line for each message, and one for each of its fields with number,
//! JSON name and type. `[]` is a list, `{}` a map of texts, `^` a part whose fields are those of the whole.

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use windlass_machinery::context::{micros_text, seconds_text};

const TABLE: &str = include_str!("../../data/protobuf.txt");
/// What every body begins with.
const PREFIX: &[u8] = b"k8s\0";
const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
/// How deep messages may be within each other.
const DEEPEST: usize = 100;

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ProtobufError {
    /// It does not begin as such bodies do.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// It ends too early.
    #[error("unexpected EOF")]
    Short,
    /// A field is not what its message says.
    #[error("proto: illegal tag or wire type")]
    Wire,
    /// It is too deep.
    #[error("proto: message nested too deeply")]
    Deep,
    /// There is no such message.
    #[error("proto: unknown message {0}")]
    Unknown(String),
}

/// The JSON of a body that should be a message of that type.
///
/// # Errors
/// When it is not a message.
pub fn json(body: &[u8], definition: &str) -> Result<Bytes, ProtobufError> {
    let envelope = body.strip_prefix(PREFIX).ok_or(ProtobufError::Prefix)?;
    let (mut kind, mut raw) = (&[][..], &[][..]);
    for field in Fields(envelope) {
        match field? {
            (1, Wire::Bytes(bytes)) => kind = bytes,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let mut object = message(raw, definition, 0)?;
    for field in Fields(kind) {
        match field? {
            (1, Wire::Bytes(text)) => drop(object.insert("apiVersion".into(), lossy(text).into())),
            (2, Wire::Bytes(text)) => drop(object.insert("kind".into(), lossy(text).into())),
            _ => {}
        }
    }
    Ok(Bytes::from(Value::Object(object).to_string()))
}

/// A field of a message.
struct Field {
    name: &'static str,
    many: Many,
    kind: Kind,
}

/// How often a field comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Many {
    One,
    List,
    Map,
    Inline,
}

/// What a field is.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Integer,
    Bool,
    Bytes,
    Double,
    Message(&'static str),
    /// A message whose JSON is of another form.
    Special(&'static str),
}

type Messages = HashMap<&'static str, HashMap<u64, Field>>;

static MESSAGES: LazyLock<Messages> = LazyLock::new(|| {
    let mut messages = Messages::new();
    let mut current = "";
    for line in TABLE.lines() {
        let Some(field) = line.strip_prefix(' ') else {
            current = line;
            messages.entry(current).or_default();
            continue;
        };
        let mut words = field.split(' ');
        if let (Some(number), Some(name), Some(code)) = (words.next(), words.next(), words.next()) {
            let number = number.parse().unwrap_or_default();
            messages.entry(current).or_default().insert(number, Field::read(name, code));
        }
    }
    messages
});

impl Field {
    fn read(name: &'static str, code: &'static str) -> Self {
        let forms = [("[]", Many::List), ("{}", Many::Map), ("^", Many::Inline)];
        let found = forms.iter().find_map(|(mark, many)| Some((*many, code.strip_prefix(mark)?)));
        let (many, code) = found.unwrap_or((Many::One, code));
        let kind = match (code, code.split_at_checked(1)) {
            ("s", _) => Kind::Text,
            ("i", _) => Kind::Integer,
            ("b", _) => Kind::Bool,
            ("d", _) => Kind::Double,
            (_, Some(("@", message))) => Kind::Message(message),
            (_, Some(("!", special))) => Kind::Special(special),
            _ => Kind::Bytes,
        };
        Self { name, many, kind }
    }
}

fn message(bytes: &[u8], definition: &str, depth: usize) -> Result<Map<String, Value>, ProtobufError> {
    let known = MESSAGES.get(definition).ok_or_else(|| ProtobufError::Unknown(definition.to_owned()))?;
    if depth > DEEPEST {
        return Err(ProtobufError::Deep);
    }
    let mut object = Map::new();
    for field in Fields(bytes) {
        let (number, wire) = field?;
        // What a newer client knows and this server does not.
        let Some(field) = known.get(&number) else { continue };
        match field.many {
            Many::One => {
                object.insert(field.name.to_owned(), value(field.kind, wire, depth)?);
            }
            Many::Inline => {
                if let Value::Object(part) = value(field.kind, wire, depth)? {
                    object.extend(part);
                }
            }
            Many::List => {
                let list = object.entry(field.name).or_insert_with(|| json!([]));
                if let Some(list) = list.as_array_mut() {
                    match (field.kind, wire) {
                        (Kind::Integer, Wire::Bytes(packed)) => {
                            let mut rest = packed;
                            while !rest.is_empty() {
                                list.push(integer(varint(&mut rest)?));
                            }
                        }
                        (kind, wire) => list.push(value(kind, wire, depth)?),
                    }
                }
            }
            Many::Map => {
                let Wire::Bytes(entry) = wire else {
                    return Err(ProtobufError::Wire);
                };
                let (mut key, mut element) = (String::new(), Value::Null);
                for part in Fields(entry) {
                    match part? {
                        (1, Wire::Bytes(text)) => key = lossy(text),
                        (2, wire) => element = value(field.kind, wire, depth)?,
                        _ => {}
                    }
                }
                let map = object.entry(field.name).or_insert_with(|| json!({}));
                if let Some(map) = map.as_object_mut() {
                    map.insert(key, element);
                }
            }
        }
    }
    Ok(object)
}

fn value(kind: Kind, wire: Wire<'_>, depth: usize) -> Result<Value, ProtobufError> {
    Ok(match (kind, wire) {
        (Kind::Text, Wire::Bytes(text)) => lossy(text).into(),
        (Kind::Integer, Wire::Number(number)) => integer(number),
        (Kind::Bool, Wire::Number(number)) => (number != 0).into(),
        (Kind::Double, Wire::Number(bits)) => f64::from_bits(bits).into(),
        (Kind::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Kind::Message(definition), Wire::Bytes(bytes)) => message(bytes, definition, depth + 1)?.into(),
        (Kind::Special(form), Wire::Bytes(bytes)) => special(form, bytes, depth + 1)?,
        _ => return Err(ProtobufError::Wire),
    })
}

/// Messages that are no objects in JSON.
fn special(form: &str, bytes: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    let mut numbers = [0; 4];
    let mut texts: [Vec<&[u8]>; 4] = Default::default();
    for field in Fields(bytes) {
        let (number, wire) = field?;
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        match wire {
            Wire::Number(number) if at < 4 => numbers[at] = number,
            Wire::Bytes(bytes) if at < 4 => texts[at].push(bytes),
            _ => {}
        }
    }
    let last = |at: usize| texts[at].last().copied().unwrap_or_default();
    let schema = |bytes: &[u8]| message(bytes, SCHEMA, depth).map(Value::Object);
    let strings = |at: usize| texts[at].iter().map(|text| lossy(text)).collect::<Vec<_>>();
    Ok(match form {
        "time" | "micro" => {
            let (seconds, nanos) = (numbers[1].cast_signed(), i32::try_from(numbers[2]).unwrap_or(0));
            match Timestamp::new(seconds, nanos) {
                Ok(at) if at != Timestamp::UNIX_EPOCH && form == "micro" => micros_text(at).into(),
                Ok(at) if at != Timestamp::UNIX_EPOCH => seconds_text(at).into(),
                _ => Value::Null,
            }
        }
        "quantity" => lossy(last(1)).into(),
        "intorstring" if numbers[1] == 0 => integer(numbers[2]),
        "intorstring" => lossy(last(3)).into(),
        "raw" => serde_json::from_slice(last(1)).unwrap_or_default(),
        "list" => strings(1).into(),
        "orarray" if texts[1].is_empty() => {
            texts[2].iter().map(|one| schema(one)).collect::<Result<_, _>>()?
        }
        "orbool" if texts[2].is_empty() => (numbers[1] != 0).into(),
        "orstrings" if texts[1].is_empty() => strings(2).into(),
        "orbool" => schema(last(2))?,
        "orarray" | "orstrings" => schema(last(1))?,
        _ => return Err(ProtobufError::Wire),
    })
}

fn integer(bits: u64) -> Value {
    bits.cast_signed().into()
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// A field's value as it is on the wire.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, with their numbers.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Wire<'a>), ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = field(&mut self.0);
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

fn field<'a>(rest: &mut &'a [u8]) -> Result<(u64, Wire<'a>), ProtobufError> {
    let tag = varint(rest)?;
    let wire = match tag & 7 {
        0 => Wire::Number(varint(rest)?),
        1 => {
            let bytes = taken(rest, 8)?.try_into().map_err(|_| ProtobufError::Short)?;
            Wire::Number(u64::from_le_bytes(bytes))
        }
        2 => {
            let length = usize::try_from(varint(rest)?).map_err(|_| ProtobufError::Short)?;
            Wire::Bytes(taken(rest, length)?)
        }
        5 => {
            let bytes = taken(rest, 4)?.try_into().map_err(|_| ProtobufError::Short)?;
            Wire::Number(u32::from_le_bytes(bytes).into())
        }
        _ => return Err(ProtobufError::Wire),
    };
    Ok((tag >> 3, wire))
}

fn varint(rest: &mut &[u8]) -> Result<u64, ProtobufError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, more) = rest.split_first().ok_or(ProtobufError::Short)?;
        *rest = more;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(ProtobufError::Wire)
}

fn taken<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], ProtobufError> {
    let (first, more) = rest.split_at_checked(length).ok_or(ProtobufError::Short)?;
    *rest = more;
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = "io.k8s.api.core.v1.Pod";

    fn bytes(number: u8, value: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(value.len()).unwrap()], value].concat()
    }

    fn body(raw: &[u8]) -> Vec<u8> {
        let kind = [bytes(1, b"v1"), bytes(2, b"Pod")].concat();
        [PREFIX, &bytes(1, &kind), &bytes(2, raw)].concat()
    }

    #[test]
    fn a_message_becomes_the_json_it_stands_for() {
        let label = [bytes(1, b"a"), bytes(2, b"b")].concat();
        // An empty creationTimestamp is no time.
        let metadata = [bytes(1, b"p"), bytes(8, b""), bytes(11, &label)].concat();
        let volume = [bytes(1, b"v"), bytes(2, &bytes(2, b""))].concat();
        let spec = [bytes(1, &volume), vec![4 << 3, 30]].concat();
        let json = json(&body(&[bytes(1, &metadata), bytes(2, &spec)].concat()), POD).unwrap();
        let object: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(
            object,
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "p", "creationTimestamp": null, "labels": {"a": "b"}},
                "spec": {"volumes": [{"name": "v", "emptyDir": {}}], "terminationGracePeriodSeconds": 30},
            })
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for bytes in [&b""[..], b"{}", b"k8s\0\x0a\xff", b"k8s\0\x12\x02\x0a\x09", b"k8s\0\xff\xff"] {
            assert!(json(bytes, POD).is_err(), "{bytes:?}");
        }
        assert!(matches!(json(&body(b""), "no.such.Kind"), Err(ProtobufError::Unknown(_))));
    }

    #[test]
    fn the_table_names_no_message_that_is_not_in_it() {
        for (name, fields) in MESSAGES.iter() {
            for field in fields.values() {
                if let Kind::Message(message) = field.kind {
                    assert!(MESSAGES.contains_key(message), "{message} in {name}");
                }
            }
        }
        assert!(MESSAGES.contains_key(SCHEMA));
    }
}
