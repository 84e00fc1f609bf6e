//! Reads the object that a client sends.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Map, Value};
use windlass_machinery::decode::{self, DecodeError, Strictness};
use windlass_machinery::invalid::FieldError;
use windlass_machinery::schema::Type;
use windlass_machinery::structural;

use super::super::negotiation::{self, BodyForm};
use super::super::options::FieldValidation;
use super::super::protobuf;
use super::super::registry::{Resource, api_version};
use super::super::server::too_deep;
use super::super::status::{Failure, Outcome};
use super::{Write, name_of, yaml};

impl Write<'_> {
    /// The object in the body, without `apiVersion` and `kind`.
    ///
    /// # Errors
    /// When it is not one of this kind.
    pub fn read_body(&mut self, headers: &HeaderMap, body: &Bytes) -> Outcome<Value> {
        let (json, duplicates) = as_json(headers, body, self.resource.ty(), &self.resource.kind)?;
        self.check_kind(&json, body)?;
        let failed = |error: DecodeError| {
            let Resource { kind, version, .. } = &**self.resource;
            Failure::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {error}"
            ))
        };
        let (object, mut strictness) = if self.resource.custom.is_some() {
            let (mut object, strictness) = decode::text(&json, None).map_err(failed)?;
            let strictness = self.read_custom(&mut object, strictness).map_err(failed)?;
            (object, strictness)
        } else {
            decode::text(&json, Some(self.resource.ty())).map_err(failed)?
        };
        strictness.add_yaml(duplicates);
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
    pub fn read_custom(&self, object: &mut Value, strictness: Strictness) -> Result<Strictness, DecodeError> {
        let mut strictness = self.read_metadata(object, strictness)?;
        structural::coerce(object, self.resource.ty(), self.server.built_in.metadata())
            .map_err(DecodeError::Type)?;
        for path in structural::prune(object, self.resource.ty()) {
            strictness.add_unknown(&path);
        }
        Ok(strictness)
    }

    /// Reads the metadata of a custom object as a built-in type.
    ///
    /// # Errors
    /// When it is of another type.
    pub fn read_metadata(
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
        whole_numbers(object);
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
                return Err(refusal(&strictness.joined()));
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
    fn check_kind(&self, json: &[u8], sent: &[u8]) -> Outcome<()> {
        let resource = self.resource;
        let unrecognized = |why: String| {
            let shown = shown(sent);
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
            // Whoever says it twice has said it.
            Err(error) if error.is_data() && first == Some(&b'{') => {
                let mut object = decode::text(json, None).map(|(object, _)| object).unwrap_or_default();
                Head { api_version: Some(object["apiVersion"].take()), kind: Some(object["kind"].take()) }
            }
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
        // What has no type of its own must say what it is.
        let bound = resource.custom.is_some();
        if bound && kind.is_empty() {
            let (text, shown) = (String::from_utf8_lossy(sent), shown(sent));
            return Err(Failure::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing in '{text}' \
                 ({shown})",
                resource.kind
            )));
        }
        let same =
            ((given.is_empty() && !bound) || given == expected) && (kind.is_empty() || kind == resource.kind);
        if same {
            return Ok(());
        }
        let outdated = || {
            Failure::bad_request(format!(
                "the API version in the data ({given}) does not match the expected API version ({expected})"
            ))
        };
        if resource.custom.is_some() {
            return Err(match given == expected {
                true => self.other_kind(json, &kind),
                false => outdated(),
            });
        }
        match former(&given, &kind, resource) {
            Some(true) => return Ok(()),
            Some(false) => return Err(outdated()),
            None => {}
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

    /// A custom object that says it is of another kind.
    fn other_kind(&self, json: &[u8], kind: &str) -> Failure {
        let object = decode::text(json, None).map(|(object, _)| object).unwrap_or_default();
        let error = FieldError::invalid("kind", kind, format!("must be {}", self.resource.kind));
        Failure::invalid(&self.resource.group, kind, name_of(&object), &[error])
    }

    /// Whether there is a kind of that name: of a resource, of its lists, or one that every version has.
    fn registered(&self, given: &str, kind: &str) -> bool {
        const EVERYWHERE: [&str; 7] = [
            "CreateOptions",
            "DeleteOptions",
            "GetOptions",
            "ListOptions",
            "PatchOptions",
            "UpdateOptions",
            "WatchEvent",
        ];
        const CORE: [&str; 6] =
            ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "List", "Status"];
        let registry = self.server.registry();
        let of_kind = |kind: &str| registry.of_kind(given, kind).is_some_and(|known| known.custom.is_none());
        let built_in = || registry.all().iter().any(|one| one.custom.is_none() && one.api_version() == given);
        registry.of_kind(given, kind).is_some()
            || kind.strip_suffix("List").is_some_and(of_kind)
            || given == "v1" && CORE.contains(&kind)
            || EVERYWHERE.contains(&kind) && built_in()
    }

    /// Why an object of another kind is none of this resource.
    #[must_use]
    pub fn misfit(&self, given: &str, kind: &str) -> String {
        let resource = self.resource;
        let version = given.rsplit('/').next().unwrap_or_default();
        if self.registered(given, kind) {
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

/// Go writes whole numbers without a point, however they were written.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() < 1e15 {
                #[allow(clippy::cast_possible_truncation, reason = "it is whole and small")]
                let whole = float as i64;
                *value = whole.into();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// Whether a kind had that version before, and whether it is still read as what it is now.
fn former(given: &str, kind: &str, resource: &Resource) -> Option<bool> {
    const APPS: [&str; 3] = ["apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"];
    static TABLE: &[(&str, &[&str], bool)] = &[
        ("Eviction", &["policy/v1beta1"], true),
        ("CustomResourceDefinition", &["apiextensions.k8s.io/v1beta1"], false),
        ("Scale", &APPS, false),
        ("Deployment", &APPS, false),
        ("ReplicaSet", &["apps/v1beta2", "extensions/v1beta1"], false),
        ("DaemonSet", &["apps/v1beta2", "extensions/v1beta1"], false),
        ("StatefulSet", &["apps/v1beta1", "apps/v1beta2"], false),
        ("ControllerRevision", &["apps/v1beta1", "apps/v1beta2"], false),
        ("Ingress", &["extensions/v1beta1", "networking.k8s.io/v1beta1"], false),
        ("IngressClass", &["networking.k8s.io/v1beta1"], false),
        ("NetworkPolicy", &["extensions/v1beta1"], false),
        ("CronJob", &["batch/v1beta1"], false),
        ("PodDisruptionBudget", &["policy/v1beta1"], false),
        ("Lease", &["coordination.k8s.io/v1beta1"], false),
        ("EndpointSlice", &["discovery.k8s.io/v1beta1"], false),
        ("PriorityClass", &["scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha1"], false),
        ("RuntimeClass", &["node.k8s.io/v1beta1", "node.k8s.io/v1alpha1"], false),
        ("StorageClass", &["storage.k8s.io/v1beta1"], false),
        ("CSIDriver", &["storage.k8s.io/v1beta1"], false),
        ("CSINode", &["storage.k8s.io/v1beta1"], false),
        ("CertificateSigningRequest", &["certificates.k8s.io/v1beta1"], false),
        ("Role", &["rbac.authorization.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1alpha1"], false),
        ("RoleBinding", &["rbac.authorization.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1alpha1"], false),
        ("ClusterRole", &["rbac.authorization.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1alpha1"], false),
        (
            "ClusterRoleBinding",
            &["rbac.authorization.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1alpha1"],
            false,
        ),
    ];
    let (_, versions, read) = TABLE.iter().find(|(known, ..)| *known == kind && kind == resource.kind)?;
    versions.contains(&given).then_some(*read)
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

/// A body as JSON, whatever form it is in, and what its notation was given twice; it should be of that type and kind.
///
/// # Errors
/// When it is in no form that the server reads, or not what it says.
pub fn as_json(headers: &HeaderMap, body: &Bytes, ty: Type<'_>, kind: &str) -> Outcome<(Bytes, Vec<String>)> {
    let unrecognized = |error: String| {
        let shown = shown(body);
        Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {error} ({shown})"
        ))
    };
    match negotiation::body_form(headers)? {
        BodyForm::Json => match too_deep(body) {
            None => Ok((body.clone(), Vec::new())),
            Some(bracket) => {
                let why = "couldn't get version/kind; json parse error: invalid character";
                Err(unrecognized(format!("{why} '{bracket}' exceeded max depth")))
            }
        },
        BodyForm::Yaml => {
            let document = yaml::read(body).map_err(unrecognized)?;
            Ok((Bytes::from(document.value.to_string()), document.duplicates))
        }
        BodyForm::Protobuf => {
            let definition = ty.structure().map(|structure| structure.name.to_string()).unwrap_or_default();
            let json = protobuf::json(body, &definition).map_err(|error| unrecognized(error.to_string()))?;
            Ok((json, Vec::new()))
        }
    }
}

/// The document of an apply: most clients send JSON, which is YAML too, and much quicker to read as what it is.
///
/// # Errors
/// Go's words for what is wrong with it.
pub fn applied(text: &[u8]) -> Result<yaml::Document, String> {
    if text.first() == Some(&b'{')
        && let Ok((value, strictness)) = decode::text(text, None)
        && strictness.is_empty()
    {
        return Ok(yaml::Document { value, duplicates: Vec::new() });
    }
    yaml::read(text)
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
