//! Reads the object that a client sends.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Map, Value};
use windlass_machinery::decode::{self, DecodeError, Strictness};
use windlass_machinery::schema::Type;
use windlass_machinery::structural;

use super::super::negotiation::{self, BodyForm};
use super::super::options::FieldValidation;
use super::super::protobuf;
use super::super::registry::{Resource, api_version};
use super::super::status::{Failure, Outcome};
use super::{Write, name_of};

impl Write<'_> {
    /// The object in the body, without `apiVersion` and `kind`.
    ///
    /// # Errors
    /// When it is not one of this kind.
    pub fn read_body(&mut self, headers: &HeaderMap, body: &Bytes) -> Outcome<Value> {
        let json = as_json(headers, body, self.resource.ty(), &self.resource.kind)?;
        self.check_kind(&json)?;
        let failed = |error: DecodeError| {
            let Resource { kind, version, .. } = &**self.resource;
            Failure::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {error}"
            ))
        };
        let (object, strictness) = if self.resource.custom.is_some() {
            let (mut object, strictness) = decode::text(&json, None).map_err(failed)?;
            let strictness = self.read_custom(&mut object, strictness).map_err(failed)?;
            (object, strictness)
        } else {
            decode::text(&json, Some(self.resource.ty())).map_err(failed)?
        };
        self.complain(&strictness, |complaints| {
            let Resource { kind, version, .. } = &**self.resource;
            Failure::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {complaints}"
            ))
        })?;
        Ok(without_type(object))
    }

    /// Reads the metadata of a custom object as a built-in type and drops what its schema does not know.
    ///
    /// # Errors
    /// When the metadata is of another type.
    pub fn read_custom(
        &self,
        object: &mut Value,
        mut strictness: Strictness,
    ) -> Result<Strictness, DecodeError> {
        if let Some(metadata) = object.get_mut("metadata") {
            let (read, unknown) = decode::value(metadata, self.server.built_in.metadata())?;
            *metadata = read;
            for path in unknown.unknown_paths() {
                strictness.add_unknown(&format!("metadata.{path}"));
            }
        }
        for path in structural::prune(object, self.resource.ty()) {
            strictness.add_unknown(&path);
        }
        Ok(strictness)
    }

    /// Warns about, refuses or ignores unknown and duplicate fields.
    ///
    /// # Errors
    /// What `refusal` makes of the complaints, where strictness was asked for.
    pub fn complain(
        &mut self,
        strictness: &Strictness,
        refusal: impl FnOnce(&str) -> Failure,
    ) -> Outcome<()> {
        if strictness.is_empty() {
            return Ok(());
        }
        match self.options.validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => self.warnings.extend(strictness.complaints().map(ToOwned::to_owned)),
            FieldValidation::Strict => {
                return Err(refusal(&strictness.complaints().collect::<Vec<_>>().join(", ")));
            }
        }
        Ok(())
    }

    /// The object's name must be that of the path.
    ///
    /// # Errors
    /// When it is another, or none.
    pub fn check_name(&self, object: &Value, name: &str) -> Outcome<()> {
        match name_of(object) {
            "" => Err(Failure::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            ))),
            given if given != name => Err(Failure::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            ))),
            _ => Ok(()),
        }
    }

    /// `apiVersion` and `kind`, where they are given, must be those of the resource.
    fn check_kind(&self, json: &[u8]) -> Outcome<()> {
        let resource = self.resource;
        let unrecognized = |why: String| {
            let shown = shown(json);
            let kind = &resource.kind;
            Failure::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json \
                 parse error: {why} ({shown})"
            ))
        };
        #[derive(serde::Deserialize)]
        struct Head {
            #[serde(rename = "apiVersion")]
            api_version: Option<Value>,
            kind: Option<Value>,
        }
        // A list is no object, even where its elements would do in their order.
        let first = json.iter().find(|byte| !byte.is_ascii_whitespace());
        let head = match serde_json::from_slice::<Option<Head>>(json) {
            Ok(_) if first == Some(&b'[') => {
                return Err(unrecognized(decode::not_a_head("array")));
            }
            Ok(head) => head.unwrap_or(Head { api_version: None, kind: None }),
            Err(error) if error.is_data() => {
                let found = match json.iter().find(|byte| !byte.is_ascii_whitespace()) {
                    Some(b'[') => "array",
                    Some(b'"') => "string",
                    Some(b't' | b'f') => "bool",
                    _ => "number",
                };
                return Err(unrecognized(decode::not_a_head(found)));
            }
            Err(error) => return Err(unrecognized(decode::go_syntax_error(json, &error))),
        };
        let text = |field: &str, value: Option<Value>| match value {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(unrecognized(format!(
                "json: cannot unmarshal {} into Go struct field .{field} of type string",
                json_type(&other)
            ))),
        };
        let given = text("apiVersion", head.api_version)?;
        let kind = text("kind", head.kind)?;
        let expected = resource.api_version();
        let same = (given.is_empty() || given == expected) && (kind.is_empty() || kind == resource.kind);
        if same {
            return Ok(());
        }
        if resource.custom.is_some() {
            if !kind.is_empty() && kind != resource.kind {
                return Err(Failure::bad_request(format!(
                    "{kind} in version {given:?} cannot be handled as a {}",
                    resource.kind
                )));
            }
            return Err(Failure::bad_request(format!(
                "the API version in the data ({given}) does not match the expected API version ({expected})"
            )));
        }
        if given.matches('/').count() > 1 {
            return Err(Failure::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): unexpected GroupVersion string: \
                 {given} ({})",
                resource.kind,
                shown(json)
            )));
        }
        let kind = if kind.is_empty() { resource.kind.clone() } else { kind };
        let given = if given.is_empty() { expected } else { given };
        let version = given.rsplit('/').next().unwrap_or_default();
        let why = self.misfit(&given, &kind);
        Err(Failure::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {}: {why}",
            resource.kind
        )))
    }

    /// Why an object of another kind is none of this resource.
    #[must_use]
    pub fn misfit(&self, given: &str, kind: &str) -> String {
        let resource = self.resource;
        let version = given.rsplit('/').next().unwrap_or_default();
        if self.server.registry().of_kind(given, kind).is_some() {
            format!(
                "converting ({version}.{kind}) to ({}.{}): unknown conversion",
                if resource.group.is_empty() {
                    "core"
                } else {
                    resource.group.split('.').next().unwrap_or_default()
                },
                resource.kind
            )
        } else {
            format!(
                "no kind {kind:?} is registered for version {given:?} in scheme \"pkg/runtime/scheme.go:111\""
            )
        }
    }
}

/// An object with the `apiVersion` and `kind` of its resource.
#[must_use]
pub fn with_type(object: &Value, resource: &Resource) -> Value {
    let mut map = object.as_object().cloned().unwrap_or_default();
    map.insert("apiVersion".into(), api_version(&resource.group, &resource.version).into());
    map.insert("kind".into(), resource.kind.clone().into());
    Value::Object(map)
}

/// An object without `apiVersion` and `kind`.
#[must_use]
pub fn without_type(object: Value) -> Value {
    let mut map = match object {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    map.remove("apiVersion");
    map.remove("kind");
    Value::Object(map)
}

/// A body as JSON, whatever form it is in; it should be of that type and kind.
///
/// # Errors
/// When it is in no form that the server reads, or not what it says.
pub fn as_json(headers: &HeaderMap, body: &Bytes, ty: Type<'_>, kind: &str) -> Outcome<Bytes> {
    let unrecognized = |error: String| {
        let shown = shown(body);
        Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {error} ({shown})"
        ))
    };
    match negotiation::body_form(headers)? {
        BodyForm::Json => Ok(body.clone()),
        BodyForm::Yaml => Ok(Bytes::from(yaml(body).map_err(unrecognized)?.to_string())),
        BodyForm::Protobuf => {
            let definition = ty.structure().map(|structure| structure.name.to_string()).unwrap_or_default();
            protobuf::json(body, &definition).map_err(|error| unrecognized(error.to_string()))
        }
    }
}

/// YAML as JSON.
///
/// # Errors
/// Go's words for what is wrong with it.
pub fn yaml(text: &[u8]) -> Result<Value, String> {
    // Most clients send JSON, which is YAML too, and much quicker to read as what it is.
    if text.first() == Some(&b'{')
        && let Ok(value) = serde_json::from_slice(text)
    {
        return Ok(value);
    }
    let text = std::str::from_utf8(text).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        let open = text.chars().fold(Vec::new(), |mut open, char| {
            match char {
                '[' | '{' => open.push(char),
                ']' | '}' => drop(open.pop()),
                _ => {}
            }
            open
        });
        match open.last() {
            Some('[') => format!("yaml: line {line}: did not find expected ',' or ']'"),
            Some(_) => format!("yaml: line {line}: did not find expected ',' or '}}'"),
            None => format!("yaml: line {line}: {error}"),
        }
    })
}

/// What Go's JSON reader calls a value.
#[must_use]
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        _ => "object",
    }
}

/// The start of a body that makes no sense, as the real server shows it.
fn shown(body: &[u8]) -> String {
    const MOST: usize = 30;
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let start = &body[..body.len().min(MOST)];
    if body.first() == Some(&b'{') {
        let more = if body.len() > MOST { " ..." } else { "" };
        return format!("{}{more}", String::from_utf8_lossy(start));
    }
    let hex: String = start.iter().map(|byte| format!("{byte:02x}")).collect();
    if body.len() > MOST { format!("{hex} ...") } else { hex }
}
