//! The Scale of an object: another kind that shows, and changes, its replicas.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use windlass_machinery::invalid::FieldError;
use windlass_machinery::managed;
use windlass_machinery::selector::Labels;

use super::super::admission::View;
use super::super::registry::{Column, Resource, ScalePaths};
use super::super::status::{Failure, Outcome};
use super::super::table::jsonpath;
use super::super::write::body::without_type;
use super::super::write::patch::Patch;
use super::super::write::{Change, Write, decoded, encoded, metadata_mut, metadata_of, name_of, replace};
use super::within;

/// What a client wants of a Scale.
pub enum Wanted {
    /// A change of the one that is there.
    Patched(Patch),
    /// This one, and nothing else.
    Replaced(Value),
}

/// The kind Scale of a resource that has one.
///
/// # Errors
/// When the tables of the server have none.
pub fn kind(write: &Write<'_>) -> Outcome<Arc<Resource>> {
    // Custom resources share the type of the built-in ones.
    let own = write.resource.part("scale");
    let shared = || write.server.registry().find("apps", "v1", "deployments")?.part("scale");
    let mut kind = own.or_else(shared).ok_or_else(|| Failure::internal("there is no kind Scale"))?;
    kind.columns = columns();
    Ok(Arc::new(kind))
}

fn columns() -> Vec<Column> {
    let column = |(name, kind): (&str, &str)| Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: String::new(),
        priority: 0,
        description: String::new(),
        json_path: None,
    };
    let all = [("Name", "string"), ("Desired", "integer"), ("Available", "integer"), ("Age", "string")];
    all.map(column).into()
}

/// The Scale of an object, in its stored form.
///
/// # Errors
/// When the object is not there, or its replicas are not where its definition says.
pub fn read(write: &Write<'_>, name: &str) -> Outcome<Bytes> {
    let stored = write.server.store.get(write.resource.table, &write.key(name));
    let object = decoded(&*stored.ok_or_else(|| Failure::not_found(write.resource, name))?)?;
    if let Some(paths) = write.resource.custom.as_ref().and_then(|custom| custom.scale.as_ref())
        && jsonpath::find(&object, &paths.spec).is_empty()
    {
        let message = format!("the spec replicas field {:?} does not exist", paths.spec);
        let failure = Failure::internal(format!("Internal error occurred: {message}"));
        return Err(Failure { reason: "InternalError", ..failure }
            .with_details(json!({"causes": [{"message": message}]})));
    }
    Ok(encoded(&of(write.resource, &object)))
}

/// Changes the Scale of an object.
///
/// # Errors
/// When the object is not there, or cannot be scaled so.
pub async fn write(
    write: &mut Write<'_>,
    kind: &Arc<Resource>,
    name: &str,
    wanted: Wanted,
) -> Outcome<Bytes> {
    let written = write.update(name, &Rescale { kind: Arc::clone(kind), wanted }).await?;
    let object: Value =
        serde_json::from_slice(&written.body).map_err(|error| Failure::internal(error.to_string()))?;
    Ok(encoded(&of(write.resource, &object)))
}

/// Where the numbers of a resource's scale are.
fn paths(resource: &Resource) -> ScalePaths {
    resource.custom.as_ref().and_then(|custom| custom.scale.clone()).unwrap_or(ScalePaths {
        spec: ".spec.replicas".into(),
        status: ".status.replicas".into(),
        selector: None,
    })
}

/// The Scale of an object, without its type.
fn of(resource: &Resource, object: &Value) -> Value {
    let paths = paths(resource);
    let number =
        |path: &str| jsonpath::find(object, path).first().and_then(|value| value.as_i64()).unwrap_or(0);
    let metadata = metadata_of(object);
    let mut kept = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(field) {
            kept.insert(field.into(), value.clone());
        }
    }
    let mut scale = json!({"metadata": kept, "spec": {}, "status": {"replicas": number(&paths.status)}});
    if number(&paths.spec) != 0 {
        scale["spec"]["replicas"] = number(&paths.spec).into();
    }
    if let Some(selector) = selector(resource, &paths, object).filter(|text| !text.is_empty()) {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

fn selector(resource: &Resource, paths: &ScalePaths, object: &Value) -> Option<String> {
    match (&paths.selector, resource.custom.is_some()) {
        (Some(path), _) => {
            jsonpath::find(object, path).first().and_then(|value| value.as_str()).map(ToOwned::to_owned)
        }
        (None, true) => None,
        // A replication controller selects by labels alone.
        (None, false) if resource.group.is_empty() => {
            let labels = object["spec"]["selector"].as_object().into_iter().flatten();
            let pairs = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
            Some(pairs.collect::<Vec<_>>().join(","))
        }
        (None, false) => {
            Labels::from_object(Some(&object["spec"]["selector"]).filter(|value| !value.is_null()))
                .ok()
                .map(|labels| labels.to_string())
        }
    }
}

/// A new Scale of an object.
struct Rescale {
    kind: Arc<Resource>,
    wanted: Wanted,
}

impl Rescale {
    fn applies(&self) -> bool {
        matches!(&self.wanted, Wanted::Patched(patch) if patch.owns())
    }

    fn check(&self, write: &Write<'_>, live: &Value, new: &Value) -> Outcome<()> {
        let resource = write.resource;
        let name = name_of(live);
        let uid = |object: &Value| {
            metadata_of(object).get("uid").and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let wanted = uid(new);
        if !wanted.is_empty() && wanted != uid(live) {
            let why = format!(
                "Precondition failed: UID in precondition: {wanted}, UID in object meta: {}",
                uid(live)
            );
            if matches!(self.wanted, Wanted::Replaced(_)) {
                return Err(write.storage_conflict(name, &why));
            }
            let plural = format!("{}/scale", resource.plural);
            return Err(Failure::conflict_name(&resource.group, &plural, name, &why));
        }
        let replicas = new["spec"]["replicas"].as_i64().unwrap_or(0);
        if replicas < 0 && resource.custom.is_some() {
            let field = paths(resource).spec;
            let error = FieldError::invalid(&field, replicas, "should be a non-negative integer");
            return Err(Failure::invalid(&resource.group, &resource.kind, name, &[error]));
        }
        if replicas < 0 {
            let error = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
            return Err(Failure::invalid(&self.kind.group, &self.kind.kind, name, &[error]));
        }
        Ok(())
    }
}

impl Change for Rescale {
    fn apply(&self, write: &mut Write<'_>, old: Option<&Value>) -> Outcome<Value> {
        let resource = Arc::clone(write.resource);
        let Some(old) = old else { return Err(Failure::not_found(&resource, "")) };
        let failed = |error: managed::ManagedFieldsError| Failure::internal(error.to_string());
        let paths = paths(&resource);
        let path: Vec<&str> = paths.spec.split('.').filter(|part| !part.is_empty()).collect();
        let none = json!([]);
        let parent = metadata_of(old).get("managedFields").unwrap_or(&none);
        let mut live = of(&resource, old);
        let shown = managed::scale_view(parent, &path).map_err(failed)?;
        replace(metadata_mut(&mut live), "managedFields", shown);
        let mut own = within(write, &self.kind, "scale");
        let changed = match &self.wanted {
            Wanted::Patched(patch) => patch.apply(&mut own, Some(&live)),
            Wanted::Replaced(scale) => Ok(scale.clone()),
        };
        let mut new = changed.and_then(|mut new| own.check_namespace(&mut new).map(|()| new))?;
        if !self.applies() {
            own.own(Some(&live), &mut new);
        }
        let mut warnings = std::mem::take(&mut own.warnings);
        write.warnings.append(&mut warnings);
        self.check(write, &live, &new)?;
        let mut object = old.clone();
        jsonpath::set(&mut object, &paths.spec, new["spec"]["replicas"].as_i64().unwrap_or(0).into());
        let fields = metadata_of(&new).get("managedFields").unwrap_or(&none);
        let fields =
            managed::scale_to_parent(parent, fields, &path, &resource.api_version()).map_err(failed)?;
        replace(metadata_mut(&mut object), "managedFields", fields);
        match metadata_of(&new).get("resourceVersion") {
            Some(version) => {
                metadata_mut(&mut object).insert("resourceVersion".into(), version.clone());
            }
            // Of custom objects the one that was read is meant then: they are never replaced blindly.
            None if resource.custom.is_some() => {}
            None => {
                metadata_mut(&mut object).remove("resourceVersion");
            }
        }
        Ok(object)
    }

    fn owns(&self) -> bool {
        true
    }

    fn view(&self) -> Option<View<'_>> {
        Some(View {
            kind: &self.kind,
            shown: |resource, object| without_type(of(resource, object)),
            put_back: |resource, object, scale| {
                let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
                jsonpath::set(object, &paths(resource).spec, replicas.into());
            },
        })
    }

    fn repeats(&self) -> bool {
        match &self.wanted {
            Wanted::Patched(_) => true,
            Wanted::Replaced(scale) => {
                metadata_of(scale).get("resourceVersion").is_none_or(|version| version == "")
            }
        }
    }
}
