//! Reads JSON as Go would read it into a type's struct, in one pass over the text.
//!
//! Unknown and duplicate fields are dropped and reported in document order, wrong types give Go's own message,
//! `null` leaves a field unset, quantities and times get their canonical form. The same code reads a
//! [`Value`] again (the result of a patch). What Go's *encoder* does on the way out is [`crate::encode`].

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::quantity;
use crate::schema::{Scalar, Shape, Type};

pub mod syntax;

/// What strict decoding complains about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strictness {
    /// What a reader of another notation noted before this one read the text.
    before: Vec<String>,
    complaints: Vec<String>,
    unknown_paths: Vec<String>,
}

impl Strictness {
    /// Notes a field that the type does not have.
    pub fn add_unknown(&mut self, path: &str) {
        self.add(format!("unknown field \"{path}\""));
        self.unknown_paths.push(path.to_owned());
    }

    /// Notes anything else, in the server's words.
    pub fn add(&mut self, complaint: String) {
        // Go's reader says a thing once, and at most a hundred.
        if self.complaints.len() < 100 && !self.complaints.contains(&complaint) {
            self.complaints.push(complaint);
        }
    }

    /// Complaints of an earlier reading come before these.
    pub fn after(&mut self, mut earlier: Self) {
        earlier.complaints.append(&mut self.complaints);
        self.complaints = earlier.complaints;
    }

    /// Notes what a reader of YAML complained about, line by line.
    pub fn add_yaml(&mut self, lines: Vec<String>) {
        self.before.extend(lines);
    }

    /// All complaints in one text, as a refusal has them.
    #[must_use]
    pub fn joined(&self) -> String {
        let yaml = self.before.iter().map(|line| format!("\n  {line}")).collect::<String>();
        let yaml = (!self.before.is_empty()).then(|| format!("yaml: unmarshal errors:{yaml}"));
        yaml.iter()
            .map(String::as_str)
            .chain(self.complaints.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// The paths of the fields that the type does not have.
    pub fn unknown_paths(&self) -> impl Iterator<Item = &str> {
        self.unknown_paths.iter().map(String::as_str)
    }

    /// The complaints in document order, as the server words them.
    pub fn complaints(&self) -> impl Iterator<Item = &str> {
        self.before.iter().chain(&self.complaints).map(String::as_str)
    }

    /// Whether there is nothing to complain about.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.complaints.is_empty()
    }
}

/// Why a text could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON.
    #[error("{0}")]
    Syntax(String),
    /// JSON of another type, in Go's words.
    #[error("{0}")]
    Type(String),
}

/// Reads JSON text as the type; without a type, as any JSON.
///
/// # Errors
/// When it is not JSON, or JSON of another type.
pub fn text(json: &[u8], ty: Option<Type<'_>>) -> Result<(Value, Strictness), DecodeError> {
    let mut state = State::default();
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = Seed { state: &mut state, ty, path: &Path::ROOT, within: "" }.deserialize(&mut reader);
    let value = read.and_then(|value| reader.end().map(|()| value));
    match (value, state.error) {
        (Err(error), _) => Err(DecodeError::Syntax(go_syntax_error(json, &error))),
        (Ok(_), Some(error)) => Err(DecodeError::Type(error)),
        (Ok(value), None) => Ok((value.unwrap_or(Value::Null), state.strictness)),
    }
}

/// Reads a value again as the type.
///
/// # Errors
/// When it is of another type.
pub fn value(value: &Value, ty: Type<'_>) -> Result<(Value, Strictness), DecodeError> {
    let mut state = State::default();
    let read = Seed { state: &mut state, ty: Some(ty), path: &Path::ROOT, within: "" }.deserialize(value);
    match (read, state.error) {
        (Err(error), _) => Err(DecodeError::Syntax(error.to_string())),
        (Ok(_), Some(error)) => Err(DecodeError::Type(error)),
        (Ok(value), None) => Ok((value.unwrap_or(Value::Null), state.strictness)),
    }
}

/// The canonical text of a time with whole seconds, or Go's complaint.
///
/// # Errors
/// When the text is not RFC 3339.
pub fn time(text: &str) -> Result<String, String> {
    match text.parse::<jiff::Timestamp>() {
        Ok(time) if text.contains('T') => Ok(crate::context::seconds_text(time)),
        _ => Err(go_time_error(text, "2006-01-02T15:04:05Z07:00")),
    }
}

fn micro_time(text: &str) -> Result<String, String> {
    match text.parse::<jiff::Timestamp>() {
        Ok(time) if text.contains('T') => {
            // Go wants all six digits of the fraction.
            let rest = text.get(19..).unwrap_or_default();
            let digits = rest.trim_start_matches('.').bytes().take_while(u8::is_ascii_digit).count();
            if rest.starts_with('.') && digits == 6 {
                return Ok(crate::context::micros_text(time));
            }
            let layout = "2006-01-02T15:04:05.000000Z07:00";
            Err(format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as \".000000\""))
        }
        _ => Err(go_time_error(text, "2006-01-02T15:04:05.000000Z07:00")),
    }
}

fn go_time_error(text: &str, layout: &str) -> String {
    // Go names the first element that does not fit; for text that is no date at all that is the year.
    format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\"")
}

#[derive(Default)]
struct State {
    strictness: Strictness,
    error: Option<String>,
}

/// Where the reader is: a list on the stack, so that a path costs nothing until it is printed.
struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

enum Step<'p> {
    Root,
    Key(&'p str),
    /// A field of embedded structs, which Go's messages name.
    Embedded(&'p str, &'p str),
    /// A key of a map, which Go's messages leave out.
    Entry(&'p str),
    Index(usize),
}

impl Path<'_> {
    const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    fn write(&self, out: &mut String, indexes: bool) {
        if let Some(parent) = self.parent {
            parent.write(out, indexes);
        }
        match self.step {
            Step::Root => {}
            Step::Entry(_) if !indexes => {}
            Step::Key(key) | Step::Entry(key) | Step::Embedded(_, key) => {
                if let (Step::Embedded(structs, _), false) = (&self.step, indexes) {
                    if !out.is_empty() {
                        out.push('.');
                    }
                    out.push_str(structs);
                }
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(key);
            }
            Step::Index(index) if indexes => {
                out.push('[');
                out.push_str(&index.to_string());
                out.push(']');
            }
            Step::Index(_) => {}
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, true);
        out
    }
}

struct Seed<'a, 's> {
    state: &'a mut State,
    ty: Option<Type<'s>>,
    path: &'a Path<'a>,
    /// The name of the Go struct that holds the value.
    within: &'a str,
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Seed<'_, '_> {
    fn fail(self, found: &str) -> Option<Value> {
        if self.state.error.is_none() {
            let wanted = self.ty.map(go_type).unwrap_or_default();
            let mut field = String::new();
            self.path.write(&mut field, false);
            let place = if field.is_empty() {
                "Go value".to_owned()
            } else {
                format!("Go struct field {}.{field}", self.within.rsplit('.').next().unwrap_or_default())
            };
            self.state.error = Some(format!("json: cannot unmarshal {found} into {place} of type {wanted}"));
        }
        None
    }

    fn refuse(self, message: String) -> Option<Value> {
        self.state.error.get_or_insert(message);
        None
    }

    fn scalar(&self) -> Option<Scalar> {
        match self.ty?.shape() {
            Shape::Scalar(scalar, _) => Some(*scalar),
            _ => None,
        }
    }

    fn is_any(&self) -> bool {
        self.ty.is_none_or(|ty| matches!(ty.shape(), Shape::Any))
    }

    fn integer(self, number: i128) -> Option<Value> {
        let fits = match self.scalar() {
            Some(Scalar::Int32) => i32::try_from(number).is_ok(),
            Some(Scalar::Int64) => i64::try_from(number).is_ok(),
            Some(Scalar::IntOrString) if i32::try_from(number).is_ok() => true,
            Some(Scalar::IntOrString) => false,
            Some(Scalar::Float) => true,
            Some(Scalar::Quantity) => return self.quantity(&number.to_string()),
            _ if self.is_any() => true,
            _ => return self.fail("number"),
        };
        if !fits {
            return self.fail(&format!("number {number}"));
        }
        match i64::try_from(number) {
            Ok(small) => Some(Value::from(small)),
            Err(_) => u64::try_from(number).ok().map(Value::from),
        }
    }

    fn quantity(self, text: &str) -> Option<Value> {
        match quantity::canonical(text) {
            Ok(text) => Some(Value::String(text)),
            Err(error) => self.refuse(error.to_string()),
        }
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Option<Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(if self.is_any() { Some(Value::Null) } else { None })
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        self.visit_unit()
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(if self.is_any() || self.scalar() == Some(Scalar::Bool) {
            Some(Value::Bool(value))
        } else if self.scalar() == Some(Scalar::Quantity) {
            // An amount reads whatever it is given as text.
            self.quantity(if value { "true" } else { "false" })
        } else {
            self.fail("bool")
        })
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(self.integer(i128::from(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(self.integer(i128::from(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(match self.scalar() {
            Some(Scalar::Float) => serde_json::Number::from_f64(value).map(Value::Number),
            Some(Scalar::Quantity) => self.quantity(&value.to_string()),
            Some(Scalar::Int32 | Scalar::Int64 | Scalar::IntOrString) => {
                self.fail(&format!("number {value}"))
            }
            _ if self.is_any() => serde_json::Number::from_f64(value).map(Value::Number),
            _ => self.fail("number"),
        })
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        let checked = match self.scalar() {
            Some(Scalar::String | Scalar::IntOrString | Scalar::Duration) => Ok(value.to_owned()),
            Some(Scalar::Time) => time(value),
            Some(Scalar::MicroTime) => micro_time(value),
            Some(Scalar::Bytes) => match STANDARD.decode(value.replace(['\r', '\n'], "")) {
                Ok(bytes) => Ok(STANDARD.encode(bytes)),
                Err(error) => {
                    Err(format!("illegal base64 data at input byte {}", base64_offset(&error, value)))
                }
            },
            Some(Scalar::Quantity) => return Ok(self.quantity(value)),
            None if self.is_any() => Ok(value.to_owned()),
            _ => return Ok(self.fail("string")),
        };
        Ok(match checked {
            Ok(text) => Some(Value::String(text)),
            Err(message) => self.refuse(message),
        })
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Self::Value, E> {
        if self.is_any() || self.scalar() == Some(Scalar::String) {
            return Ok(Some(Value::String(value)));
        }
        self.visit_str(&value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let items = match self.ty.map(Type::shape) {
            None | Some(Shape::Any) => None,
            Some(Shape::List { items, .. }) => self.ty.map(|ty| ty.to(*items)),
            Some(_) => {
                while access.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(match self.scalar() {
                    Some(Scalar::Quantity) => self.quantity("[]"),
                    _ => self.fail("array"),
                });
            }
        };
        let mut list = Vec::with_capacity(access.size_hint().unwrap_or_default().min(64));
        loop {
            let path = Path { parent: Some(self.path), step: Step::Index(list.len()) };
            let seed = Seed { state: self.state, ty: items, path: &path, within: self.within };
            match access.next_element_seed(seed)? {
                // Go appends the zero value for a null element.
                Some(element) => list.push(element.unwrap_or_else(|| zero(items))),
                None => return Ok(Some(Value::Array(list))),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let shape = self.ty.map(Type::shape);
        if !matches!(shape, None | Some(Shape::Any | Shape::Map(_) | Shape::Struct(_))) {
            while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(match self.scalar() {
                Some(Scalar::Quantity) => self.quantity("{}"),
                _ => self.fail("object"),
            });
        }
        let structure = self.ty.and_then(Type::structure);
        let within = match structure {
            Some(structure) => &structure.go,
            None => self.within,
        };
        let mut map = Map::new();
        let mut nulls: Vec<String> = Vec::new();
        while let Some(key) = access.next_key::<String>()? {
            let field = structure.and_then(|structure| structure.fields.get(key.as_str()));
            let step = match (shape, field.and_then(|field| field.embedded.as_deref())) {
                (_, Some(structs)) => Step::Embedded(structs, &key),
                (Some(Shape::Map(_)), None) => Step::Entry(&key),
                _ => Step::Key(&key),
            };
            let path = Path { parent: Some(self.path), step };
            let member = match (shape, field) {
                (None | Some(Shape::Any), _) => Some(None),
                (_, Some(field)) => Some(self.ty.map(|ty| ty.to(field.node))),
                _ => self.ty.and_then(|ty| ty.member(&key)).map(Some),
            };
            let Some(ty) = member else {
                self.state.strictness.add_unknown(&path.text());
                access.next_value::<IgnoredAny>()?;
                continue;
            };
            if map.contains_key(&key) || nulls.contains(&key) {
                self.state.strictness.add(format!("duplicate field \"{}\"", path.text()));
            }
            let seed = Seed { state: self.state, ty, path: &path, within };
            match access.next_value_seed(seed)? {
                // Go reads what is given twice into one place.
                Some(Value::Object(more)) if ty.is_some() && map.get(&key).is_some_and(Value::is_object) => {
                    if let Some(Value::Object(before)) = map.get_mut(&key) {
                        before.extend(more);
                    }
                }
                Some(value) => {
                    map.insert(key, value);
                }
                None if matches!(shape, Some(Shape::Map(_))) => {
                    map.insert(key, zero(ty));
                }
                None => nulls.push(key),
            }
        }
        Ok(Some(Value::Object(map)))
    }
}

/// Go's zero value of a type that is not a pointer.
#[must_use]
pub fn zero(ty: Option<Type<'_>>) -> Value {
    match ty.map(Type::shape) {
        Some(Shape::Scalar(scalar, _)) => match scalar {
            Scalar::Bool => Value::Bool(false),
            Scalar::Int32 | Scalar::Int64 | Scalar::IntOrString => Value::from(0),
            Scalar::Float => Value::from(0),
            Scalar::String => Value::from(""),
            Scalar::Quantity => Value::from("0"),
            Scalar::Duration => Value::from("0s"),
            Scalar::Bytes | Scalar::Time | Scalar::MicroTime => Value::Null,
        },
        Some(Shape::Struct(_)) => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

fn go_type(ty: Type<'_>) -> String {
    match ty.shape() {
        Shape::Any => "interface {}".to_owned(),
        Shape::Scalar(_, Some(go)) => go.to_string(),
        Shape::Scalar(scalar, None) => match scalar {
            Scalar::Bool => "bool",
            // A number or a text is read as a number where it is no text.
            Scalar::Int32 | Scalar::IntOrString => "int32",
            Scalar::Int64 => "int64",
            Scalar::Float => "float64",
            Scalar::String | Scalar::Time | Scalar::MicroTime | Scalar::Duration => "string",
            Scalar::Bytes => "[]uint8",
            Scalar::Quantity => "resource.Quantity",
        }
        .to_owned(),
        Shape::List { items, .. } => format!("[]{}", go_type(ty.to(*items))),
        Shape::Map(values) => match ty.map_name() {
            Some(name) => name.to_owned(),
            None => format!("map[string]{}", go_element(ty.to(*values))),
        },
        Shape::Struct(_) => ty.structure().map(|structure| structure.go.to_string()).unwrap_or_default(),
    }
}

/// The type of a map's values: those that read themselves have a name there.
fn go_element(ty: Type<'_>) -> String {
    match ty.shape() {
        Shape::Scalar(Scalar::Time, None) => "v1.Time".to_owned(),
        Shape::Scalar(Scalar::MicroTime, None) => "v1.MicroTime".to_owned(),
        _ => go_type(ty),
    }
}

fn base64_offset(error: &base64::DecodeError, text: &str) -> usize {
    match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => *at,
        base64::DecodeError::InvalidLength(_) => text.len() / 4 * 4,
        base64::DecodeError::InvalidPadding => text.len(),
    }
}

/// Go's words for a value where `apiVersion` and `kind` were looked for.
#[must_use]
pub fn not_a_head(found: &str) -> String {
    format!(
        "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \
         \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )
}

/// Go's words for text that is not JSON.
#[must_use]
pub fn go_syntax_error(json: &[u8], error: &serde_json::Error) -> String {
    syntax::complaint(json).unwrap_or_else(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::{NodeId, Schemas};

    fn built_in(definition: &str) -> (Schemas, NodeId) {
        let mut all = Schemas::from_table(include_str!("../../drydock/data/types.json")).unwrap();
        let root = all.root(definition).unwrap();
        (all, root)
    }

    #[test]
    fn complaints_come_in_document_order() {
        let (all, root) = built_in("io.k8s.api.core.v1.ConfigMap");
        let body =
            br#"{"kind":"ConfigMap","metadata":{"name":"a","nam":1},"dat":{},"data":{"a":"1","a":"2"}}"#;
        let (value, strict) = text(body, Some(all.at(root))).unwrap();
        assert_eq!(value, json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "2"}}));
        assert_eq!(
            strict.complaints().collect::<Vec<_>>(),
            [r#"unknown field "metadata.nam""#, r#"unknown field "dat""#, r#"duplicate field "data.a""#]
        );
    }

    #[test]
    fn wrong_types_are_told_as_go_does() {
        let (all, root) = built_in("io.k8s.api.apps.v1.Deployment");
        let error = |body: &str| text(body.as_bytes(), Some(all.at(root))).unwrap_err().to_string();
        assert_eq!(
            error(r#"{"spec":{"replicas":"many"}}"#),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
        );
        assert_eq!(
            error(r#"{"spec":{"template":{"spec":{"containers":[{"name":5}]}}}}"#),
            "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.name of type string"
        );
        assert_eq!(
            error(r#"{"spec":{"template":{"spec":{"volumes":[{"csi":{"driver":5}}]}}}}"#),
            "json: cannot unmarshal number into Go struct field \
             CSIVolumeSource.spec.template.spec.volumes.VolumeSource.csi.driver of type string"
        );
        assert_eq!(error(r#"{"spec":"#), "unexpected end of JSON input");
        assert_eq!(error(r#"{"spec":{}}x"#), "invalid character 'x' after top-level value");
    }

    #[test]
    fn nulls_are_unset_and_scalars_canonical() {
        let (all, root) = built_in("io.k8s.api.core.v1.Pod");
        let body = br#"{"metadata":{"labels":null,"creationTimestamp":"2026-01-01T01:00:00+01:00"},
            "spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":0.5,"memory":"1024Mi"}}}]}}"#;
        let (value, strict) = text(body, Some(all.at(root))).unwrap();
        assert!(strict.is_empty());
        assert_eq!(value["metadata"], json!({"creationTimestamp": "2026-01-01T00:00:00Z"}));
        assert_eq!(
            value["spec"]["containers"][0]["resources"]["limits"],
            json!({"cpu": "500m", "memory": "1Gi"})
        );
    }
}
