//! Patches: JSON, merge, strategic merge, and server-side apply.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Map, Value, json};
use windlass_machinery::decode::Strictness;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::patch::PatchError;
use windlass_machinery::patch::convert;
use windlass_machinery::schema::Type;
use windlass_machinery::{decode, encode, go, managed, patch};

use super::super::definitions::conversion;
use super::super::negotiation::content_type;
use super::super::registry::Resource;
use super::super::status::{Failure, Outcome};
use super::body::{self, json_type, with_type, without_type};
use super::{Change, Write, metadata_of};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A patch as the client sent it.
pub struct Patch {
    kind: PatchKind,
    text: Bytes,
    name: String,
}

/// The kinds of patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// A list of operations.
    Json,
    /// A partial object.
    Merge,
    /// A partial object whose lists merge by key.
    Strategic,
    /// An object that a manager wants to be so.
    Apply,
}

impl PatchKind {
    /// The kind of the body, where the resource takes it.
    ///
    /// # Errors
    /// When it does not.
    pub fn of(headers: &HeaderMap, resource: &Resource) -> Outcome<Self> {
        match content_type(headers) {
            JSON => Ok(Self::Json),
            MERGE => Ok(Self::Merge),
            STRATEGIC if resource.custom.is_none() => Ok(Self::Strategic),
            STRATEGIC => Err(Failure::unsupported_media(&[JSON, MERGE, APPLY])),
            APPLY => Ok(Self::Apply),
            _ => Err(Failure::unsupported_patch()),
        }
    }
}

impl Patch {
    /// A patch of the object of that name.
    #[must_use]
    pub fn new(kind: PatchKind, text: Bytes, name: &str) -> Self {
        Self { kind, text, name: name.to_owned() }
    }

    fn parse(&self) -> Outcome<(Value, Strictness)> {
        decode::text(&self.text, None).map_err(|error| {
            let lead = if self.kind == PatchKind::Strategic { "" } else { "error decoding patch: " };
            Failure::bad_request(format!("{lead}{error}"))
        })
    }

    /// The patched object, how the real server shows it, and what is odd about the patch.
    fn patched(&self, resource: &Arc<Resource>, old: &Value) -> Outcome<(Value, String, Strictness)> {
        let whole = with_type(old, resource);
        let (patch, mut strictness) = self.parse()?;
        match self.kind {
            PatchKind::Json => {
                let operations = if patch.is_null() { json!([]) } else { patch };
                if !operations.is_array() {
                    let found = json_type(&operations);
                    return Err(Failure::bad_request(format!(
                        "error decoding patch: json: cannot unmarshal {found} into Go value of type \
                         []handlers.jsonPatchOp"
                    )));
                }
                unknown_members(&operations, &mut strictness);
                let new = patch::json(&whole, &operations).map_err(refused)?;
                let shown = patched_text(&new, &touched(&operations), typed(resource));
                Ok((new, shown, strictness))
            }
            PatchKind::Merge => {
                let partial = patch;
                if partial.is_null() {
                    return Err(Failure::bad_request("Invalid JSON Patch"));
                }
                if !partial.is_object() {
                    let found = json_type(&partial);
                    return Err(Failure::bad_request(format!(
                        "error decoding patch: json: cannot unmarshal {found} into Go value of type \
                         map[string]interface {{}}"
                    )));
                }
                let mut new = whole;
                patch::merge(&mut new, partial.clone());
                let shown = patched_text(&new, &partial, typed(resource));
                Ok((new, shown, strictness))
            }
            PatchKind::Strategic => {
                let shown = go::value(&patch);
                let new = patch::strategic(whole, patch, resource.ty()).map_err(refused)?;
                Ok((new, shown, strictness))
            }
            PatchKind::Apply => Err(Failure::internal("an apply is no patch of a value")),
        }
    }

    /// What managers have set is compared in the versions that they wrote, which must have a place for it all.
    fn fits_managers(&self, write: &Write<'_>, live: Option<&Value>, applied: &Value) -> Outcome<()> {
        let resource = write.resource;
        let version = resource.api_version();
        let who = write.manager(&version);
        let records = live.and_then(|live| metadata_of(live).get("managedFields")?.as_array());
        for record in records.into_iter().flatten().filter(|record| record["apiVersion"] != version.as_str())
        {
            let text = |field: &str| record[field].as_str().unwrap_or_default();
            let written = text("apiVersion").rsplit('/').next().unwrap_or_default();
            let Err(why) = conversion::fits(resource, written, applied) else { continue };
            let own = text("operation") == "Apply"
                && text("manager") == who.name
                && text("subresource") == who.subresource;
            return Err(Failure::internal(match own {
                true => format!(
                    "failed to prune fields: failed to convert merged object to last applied version: {why}"
                ),
                false => why,
            }));
        }
        Ok(())
    }

    /// That an applied object is none of its type, although its configuration is.
    fn inconvertible(&self, resource: &Resource, why: &str) -> Failure {
        let (group, version) = (&resource.group, &resource.version);
        let kind = format!("{group}/{version}, Kind={}", resource.kind);
        let config = body::applied(&self.text).map(|document| document.value).unwrap_or_default();
        let namespace = metadata_of(&config).get("namespace").and_then(Value::as_str).unwrap_or_default();
        Failure::internal(format!(
            "failed to convert new object ({namespace}/{}; {kind}) to proper version: unable to convert \
             unstructured object to {kind}: {why}",
            super::name_of(&config)
        ))
    }

    fn applied(&self, write: &mut Write<'_>, old: Option<&Value>) -> Outcome<Value> {
        let resource = write.resource;
        let document = body::applied(&self.text).map_err(|error| {
            Failure::bad_request(format!("error decoding YAML: error converting YAML to JSON: {error}"))
        })?;
        let (config, duplicates) = (document.value, document.duplicates);
        if !config.is_object() && !config.is_null() {
            return Err(Failure::bad_request(format!(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} \
                 into Go value of type map[string]interface {{}}",
                json_type(&config)
            )));
        }
        let text = |field: &str| config[field].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version != resource.api_version() || kind != resource.kind {
            let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
            // What is no version at all is of no kind.
            let (group, version, kind) =
                if group.contains('/') { ("", "", "") } else { (group, version, &*kind) };
            return Err(Failure::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")));
        }
        if metadata_of(&config).get("managedFields").is_some_and(|fields| !fields.is_null()) {
            return Err(Failure::bad_request("metadata.managedFields must be nil"));
        }
        if old.is_none() {
            write.check_name(&config, &self.name)?;
            let uid = metadata_of(&config).get("uid").and_then(Value::as_str).unwrap_or_default();
            if !uid.is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                );
                return Err(Failure::conflict(resource, &self.name, &why));
            }
        }
        let live = old.map(|old| with_type(old, resource));
        let force = write.options.force.unwrap_or_default();
        let now = write.server.context.now_text();
        let version = resource.api_version();
        let applied = managed::apply(
            live.as_ref(),
            config,
            resource.ty(),
            &write.manager(&version),
            force,
            write.reset_fields(),
            &now,
        );
        applied.map_err(|error| match error {
            managed::ApplyError::Conflict(conflict) => {
                let causes = conflict.all().iter().map(|one| {
                    let message = format!("conflict with {}", one.manager);
                    json!({"reason": "FieldManagerConflict", "message": message, "field": one.path.to_string()})
                });
                Failure::apply_conflict(conflict.to_string(), causes.collect())
            }
            other => Failure::internal(other.to_string()),
        })
        .and_then(|applied| {
            self.fits_managers(write, live.as_ref(), &applied)?;
            // What is odd about the notation comes after what is wrong with the object.
            let mut strictness = Strictness::default();
            strictness.add_yaml(duplicates);
            write.complain(&strictness, |complaints| {
                Failure::bad_request(format!(
                    "error strict decoding YAML: error converting YAML to JSON: {complaints}"
                ))
            })?;
            Ok(applied)
        })
    }
}

/// The type in whose order the fields of an object are written; custom objects have none.
fn typed(resource: &Resource) -> Option<Type<'_>> {
    resource.custom.is_none().then(|| resource.ty())
}

/// A patched object as the real server shows it: what the patch went through has its fields sorted, the rest is
/// as Go wrote it.
fn patched_text(value: &Value, patch: &Value, ty: Option<Type<'_>>) -> String {
    let (Value::Object(map), Value::Object(touched)) = (value, patch) else {
        return encode::text(value, ty);
    };
    let members = map.iter().map(|(name, member)| {
        let ty = ty.and_then(|ty| ty.member(name));
        let patch = touched.get(name).unwrap_or(&Value::Null);
        format!("{}:{}", Value::from(name.as_str()), patched_text(member, patch, ty))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// The objects that the operations of a JSON patch go through.
fn touched(operations: &Value) -> Value {
    let mut tree = json!({});
    for operation in operations.as_array().into_iter().flatten() {
        let path = operation["path"].as_str().unwrap_or_default();
        let mut place = &mut tree;
        for name in path.split('/').skip(1) {
            place = &mut place[name.replace("~1", "/").replace("~0", "~")];
            if !place.is_object() {
                *place = json!({});
            }
        }
    }
    tree
}

/// What strict clients are told of operations with members that they do not have.
fn unknown_members(operations: &Value, strictness: &mut Strictness) {
    for (index, operation) in operations.as_array().into_iter().flatten().enumerate() {
        for name in operation.as_object().into_iter().flat_map(Map::keys) {
            if !matches!(name.as_str(), "op" | "path" | "from" | "value") {
                strictness.add(format!("json patch unknown field \"[{index}].{name}\""));
            }
        }
    }
}

/// A patched custom object is still of its kind.
fn same_kind(new: &Value, resource: &Resource) -> Outcome<()> {
    let text = |field: &str| new[field].as_str().unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let mut errors = Vec::new();
    if kind != resource.kind {
        errors.push(FieldError::invalid("kind", kind, format!("must be {}", resource.kind)));
    }
    if version != resource.api_version() {
        let why = format!("must be {}", resource.api_version());
        errors.push(FieldError::invalid("apiVersion", version, why));
    }
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Failure::invalid(&resource.group, kind, super::name_of(new), &errors)),
    }
}

fn refused(error: PatchError) -> Failure {
    match error {
        PatchError::BadRequest(message) => Failure::bad_request(message),
        PatchError::Unprocessable(_) => Failure::rejected(),
        PatchError::TooLarge(message) => {
            let message = format!("Request entity too large: {message}");
            Failure { message, ..Failure::too_large(super::super::server::BODY_LIMIT) }
        }
        PatchError::Internal(message) => Failure::internal(message),
    }
}

impl Change for Patch {
    fn apply(&self, write: &mut Write<'_>, old: Option<&Value>) -> Outcome<Value> {
        let resource = write.resource;
        let (mut new, shown, earlier) = match (self.kind, old) {
            (PatchKind::Apply, old) => (self.applied(write, old)?, String::new(), Strictness::default()),
            (_, Some(old)) => self.patched(resource, old)?,
            (_, None) => return Err(Failure::not_found(resource, &self.name)),
        };
        if resource.custom.is_some() && !self.owns() && new["kind"].as_str().is_none_or(str::is_empty) {
            let why = format!("Object 'Kind' is missing in '{shown}'");
            return Err(Failure::invalid("", "", "", &[FieldError::invalid("patch", shown, why)]));
        }
        let none = decode::Strictness::default();
        let mut patched = Value::Null;
        let read = match &resource.custom {
            // What is applied fits the type already, and keeps its nulls.
            Some(_) if self.owns() => write.read_metadata(&mut new, none).map(|strictness| (new, strictness)),
            Some(_) => write.read_custom(&mut new, none).map(|strictness| (new, strictness)),
            None => {
                let read = decode::value(&new, resource.ty());
                patched = new;
                read
            }
        };
        let unreadable =
            |why: String| Failure::invalid("", "", "", &[FieldError::invalid("patch", shown.clone(), why)]);
        let (new, mut strictness) = read.map_err(|error| match self.kind {
            PatchKind::Apply if resource.custom.is_some() => Failure::bad_request(error.to_string()),
            PatchKind::Apply | PatchKind::Strategic => {
                let why = convert::complaint(&patched, resource.ty());
                let own = || match error.to_string() {
                    bytes if bytes.starts_with("illegal base64") => {
                        format!("error decoding from json: {bytes}")
                    }
                    other => other,
                };
                let why = why.unwrap_or_else(own);
                if self.owns() { self.inconvertible(resource, &why) } else { unreadable(why) }
            }
            _ => unreadable(error.to_string()),
        })?;
        strictness.after(earlier);
        if resource.custom.is_none() && matches!(self.kind, PatchKind::Json | PatchKind::Merge) {
            let text = |field: &str| new[field].as_str().unwrap_or_default();
            let (version, kind) = (text("apiVersion"), text("kind"));
            if version != resource.api_version() || kind != resource.kind {
                return Err(unreadable(write.misfit(version, kind)));
            }
        }
        if resource.custom.is_some() {
            same_kind(&new, resource)?;
        }
        write.complain(&strictness, |complaints| {
            let detail = format!("strict decoding error: {complaints}");
            Failure::invalid("", "", "", &[FieldError::invalid("patch", shown.clone(), detail)])
        })?;
        if old.is_some() {
            write.check_name(&new, &self.name)?;
        }
        let mut new = without_type(new);
        if old.is_none() {
            super::metadata_mut(&mut new).insert("name".into(), self.name.clone().into());
        }
        Ok(new)
    }

    fn owns(&self) -> bool {
        self.kind == PatchKind::Apply
    }

    fn creates(&self) -> bool {
        self.kind == PatchKind::Apply
    }

    fn repeats(&self) -> bool {
        true
    }
}
