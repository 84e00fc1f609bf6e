//! Subresources that are not simply a part of their object: scale, binding, eviction, log, finalize.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use windlass_machinery::invalid::FieldError;
use windlass_machinery::selector::Labels;
use windlass_machinery::{decode, managed, patch};

use super::admission::{self, Admission, Operation, View};
use super::registry::{Resource, ScalePaths};
use super::status::{Failure, Outcome};
use super::table::jsonpath;
use super::write::body::without_type;
use super::write::patch::PatchKind;
use super::write::{Change, Write, decoded, metadata_mut, metadata_of, name_of};

mod eviction;

pub use eviction::evict;

const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// The answer of a subresource: a status code and an object.
pub type Answer = (http::StatusCode, Value);

/// Where the numbers of a built-in kind's scale are.
fn paths(resource: &Resource) -> ScalePaths {
    resource.custom.as_ref().and_then(|custom| custom.scale.clone()).unwrap_or(ScalePaths {
        spec: ".spec.replicas".into(),
        status: ".status.replicas".into(),
        selector: None,
    })
}

/// The Scale of an object.
fn scale_of(resource: &Resource, object: &Value) -> Value {
    let paths = paths(resource);
    let number =
        |path: &str| jsonpath::find(object, path).first().and_then(|value| value.as_i64()).unwrap_or(0);
    let metadata = metadata_of(object);
    let mut kept = serde_json::Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(field) {
            kept.insert(field.into(), value.clone());
        }
    }
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept,
        "spec": {}, "status": {"replicas": number(&paths.status)},
    });
    if number(&paths.spec) != 0 {
        scale["spec"]["replicas"] = number(&paths.spec).into();
    }
    let selector = match (&paths.selector, resource.custom.is_some()) {
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
    };
    if let Some(selector) = selector.filter(|text| !text.is_empty()) {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

/// A new number of replicas.
struct Rescale {
    /// The kind Scale.
    scale: Option<Resource>,
    kind: Option<PatchKind>,
    body: Bytes,
}

impl Rescale {
    /// The Scale that the client wants, without managed fields.
    fn wanted(&self, resource: &Resource, old: &Value) -> Outcome<Value> {
        let bad = |error: decode::DecodeError| Failure::bad_request(format!("error decoding patch: {error}"));
        let (body, _) = decode::text(&self.body, None).map_err(bad)?;
        match self.kind {
            None => {
                let kind = body["kind"].as_str().unwrap_or("Scale");
                if kind != "Scale" {
                    let version = body["apiVersion"].as_str().unwrap_or_default();
                    return Err(Failure::bad_request(format!(
                        "{kind} in version {version:?} cannot be handled as a Scale: converting \
                         ({version}.{kind}) to (autoscaling.Scale): unknown conversion"
                    )));
                }
                Ok(body)
            }
            Some(PatchKind::Json) => {
                patch::json(&scale_of(resource, old), &body).map_err(|_| Failure::rejected())
            }
            Some(_) => {
                let mut scale = scale_of(resource, old);
                patch::merge(&mut scale, body);
                Ok(scale)
            }
        }
    }
}

impl Change for Rescale {
    fn apply(&self, write: &mut Write<'_>, old: Option<&Value>) -> Outcome<Value> {
        let resource = Arc::clone(write.resource);
        let Some(old) = old else { return Err(Failure::not_found(&resource, "")) };
        let wanted = self.wanted(&resource, old)?;
        let (name, given) = (name_of(old), name_of(&wanted));
        if !given.is_empty() && given != name {
            return Err(Failure::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
        let replicas = wanted["spec"]["replicas"].as_i64().unwrap_or(0);
        if replicas < 0 {
            let error = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
            return Err(Failure::invalid("autoscaling", "Scale", name, &[error]));
        }
        let paths = paths(&resource);
        let mut new = old.clone();
        jsonpath::set(&mut new, &paths.spec, replicas.into());
        let fields = self.fields(write, &resource, old, replicas)?;
        super::write::replace(metadata_mut(&mut new), "managedFields", fields);
        // Only a whole Scale says which revision it is about.
        let version = metadata_of(&wanted).get("resourceVersion").filter(|_| self.kind.is_none());
        if let Some(version) = version {
            metadata_mut(&mut new).insert("resourceVersion".into(), version.clone());
        }
        Ok(new)
    }

    fn owns(&self) -> bool {
        true
    }

    fn view(&self) -> Option<View<'_>> {
        let kind = self.scale.as_ref()?;
        Some(View {
            kind,
            shown: |resource, object| without_type(scale_of(resource, object)),
            put_back: |resource, object, scale| {
                let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
                jsonpath::set(object, &paths(resource).spec, replicas.into());
            },
        })
    }

    fn repeats(&self) -> bool {
        true
    }
}

impl Rescale {
    /// The object's managed fields once its Scale has been written.
    fn fields(
        &self,
        write: &Write<'_>,
        resource: &Resource,
        old: &Value,
        replicas: i64,
    ) -> Outcome<Option<Value>> {
        let failed = |error: managed::ManagedFieldsError| Failure::internal(error.to_string());
        let paths = paths(resource);
        let path: Vec<&str> = paths.spec.split('.').filter(|part| !part.is_empty()).collect();
        let none = json!([]);
        let parent = metadata_of(old).get("managedFields").unwrap_or(&none);
        let mut live = scale_of(resource, old);
        super::write::replace(
            metadata_mut(&mut live),
            "managedFields",
            managed::scale_view(parent, &path).map_err(failed)?,
        );
        let mut new = live.clone();
        new["spec"]["replicas"] = replicas.into();
        let Some(ty) = write.server.built_in.definition(SCALE) else {
            return Ok(Some(parent.clone()));
        };
        let now = write.server.context.now_text();
        managed::update(
            Some(&live),
            &mut new,
            ty,
            &write.manager("autoscaling/v1"),
            write.reset_fields(),
            &now,
        );
        let scale = metadata_of(&new).get("managedFields").unwrap_or(&none);
        managed::scale_to_parent(parent, scale, &path, &resource.api_version()).map_err(failed)
    }
}

/// Reads or changes the Scale of an object.
///
/// # Errors
/// When the object is not there, or cannot be scaled so.
pub async fn scale(
    write: &mut Write<'_>,
    method: &Method,
    headers: &HeaderMap,
    name: &str,
    body: Bytes,
) -> Outcome<Answer> {
    let object = match *method {
        Method::GET => {
            let stored = write.server.store.get(write.resource.table, &write.key(name));
            decoded(&*stored.ok_or_else(|| Failure::not_found(write.resource, name))?)?
        }
        _ => {
            let kind = match *method {
                Method::PATCH => Some(PatchKind::of(headers, write.resource)?),
                _ => None,
            };
            let written = {
                let registry = write.server.registry();
                let scale = registry.find("apps", "v1", "deployments").and_then(|one| one.part("scale"));
                write.update(name, &Rescale { scale, kind, body }).await?
            };
            serde_json::from_slice(&written.body).map_err(|error| Failure::internal(error.to_string()))?
        }
    };
    Ok((http::StatusCode::OK, scale_of(write.resource, &object)))
}

/// Lets admission look at what is posted to a part of an object.
async fn admit(write: &mut Write<'_>, part: &str, name: &str, object: &Value) -> Outcome<Value> {
    let Some(kind) = write.resource.part(part).map(Arc::new) else { return Ok(object.clone()) };
    let own = Write {
        server: write.server,
        resource: &kind,
        subresource: Some(part),
        namespace: write.namespace,
        user: write.user,
        options: write.options.clone(),
        warnings: Vec::new(),
    };
    let mut object = without_type(object.clone());
    own.draft(&mut object)?;
    let mut admission = Admission {
        server: write.server,
        resource: write.resource,
        subresource: Some(part),
        namespace: write.namespace,
        operation: Operation::Create,
        user: write.user,
        old: None,
        name: Some(name),
        part: Some(&kind),
        shown: None,
        put_back: None,
        options: &own.options.given,
        dry_run: write.options.dry_run,
        warnings: Vec::new(),
    };
    let mut outcome = admission::mutate(&mut admission, &mut object).await;
    if outcome.is_ok() {
        outcome = admission::validate(&mut admission, &object).await;
    }
    write.warnings.append(&mut admission.warnings);
    outcome.map(|()| object)
}

/// Binds a pod to the node that the body names.
///
/// # Errors
/// When the pod is bound already, or not there.
pub async fn bind(write: &mut Write<'_>, name: &str, binding: &Value) -> Outcome<Answer> {
    let binding = &admit(write, "binding", name, binding).await?;
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    // The real server does not foresee these.
    let kind = binding["target"]["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "Node") {
        let error = FieldError::not_supported("target.kind", kind, ["Node", "<empty>"]);
        return Err(Failure::internal(error.to_string()));
    }
    if node.is_empty() {
        return Err(Failure::internal(FieldError::required("target.name", "").to_string()));
    }
    write
        .touch(name, |write, pod| {
            let conflict = |why: String| {
                let message = format!("Operation cannot be fulfilled on pods/binding {name:?}: {why}");
                let failure = Failure::conflict(write.resource, name, &why);
                Failure { message, ..failure }.with_details(json!({"name": name, "kind": "pods/binding"}))
            };
            if metadata_of(pod).contains_key("deletionTimestamp") {
                return Err(conflict(format!("pod {name} is being deleted, cannot be assigned to a host")));
            }
            if let Some(bound) = pod["spec"].get("nodeName").and_then(Value::as_str).filter(|node| !node.is_empty()) {
                return Err(conflict(format!("pod {name} is already assigned to node {bound:?}")));
            }
            pod["spec"]["nodeName"] = node.into();
            for (key, value) in binding["metadata"]["annotations"].as_object().into_iter().flatten() {
                pod["metadata"]["annotations"][key] = value.clone();
            }
            let now = write.server.context.now_text();
            set_condition(pod, json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}));
            Ok(())
        })
        .await?;
    Ok((http::StatusCode::CREATED, success(201)))
}

fn set_condition(pod: &mut Value, condition: Value) {
    match pod["status"]["conditions"].as_array_mut() {
        Some(list) => match list.iter_mut().find(|known| known["type"] == condition["type"]) {
            Some(known) => *known = condition,
            None => list.push(condition),
        },
        None => pod["status"]["conditions"] = json!([condition]),
    }
}

fn success(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code})
}
