//! Custom resources in several versions, and the webhooks that convert between them.
//!
//! Objects of such a definition are stored in the version that was the stored one when they were written, and say
//! which (`apiVersion`, before everything else). What is read is given the defaults of that version, converted, and
//! pruned by the schema of the version that is wanted. Definitions of one version know nothing of this.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use windlass_machinery::apply::{self, Duplicates};
use windlass_machinery::schema::{NodeId, Schemas};
use windlass_machinery::structural;

use super::super::destination::{CallError, Destination, Reply, immutable};
use super::super::registry::{Resource, api_version};
use super::super::server::Server;
use super::super::status::{Failure, Outcome};
use super::super::view;
use super::super::write::{decoded, encoded, metadata_mut, metadata_of};
use crate::store::{Change, Stored};

/// How long a conversion may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many objects one review holds.
const MOST: usize = 250;

/// How the objects of a definition are converted.
#[derive(Debug)]
pub struct Conversion {
    group: String,
    kind: String,
    /// The webhook; without one, versions differ in what their schemas keep.
    destination: Option<Destination>,
    review: Option<&'static str>,
    /// The version that objects are stored in from now on.
    storage: String,
    /// The version that objects are in which do not say.
    first: String,
    types: BTreeMap<String, (Arc<Schemas>, NodeId)>,
}

impl Conversion {
    /// The version that objects are stored in from now on.
    #[must_use]
    pub fn storage(&self) -> &str {
        &self.storage
    }

    /// The conversion of a definition that has several versions. `types` are those of all of them.
    #[must_use]
    pub fn of(definition: &Value, types: &BTreeMap<String, (Arc<Schemas>, NodeId)>) -> Option<Self> {
        let spec = &definition["spec"];
        if types.len() < 2 {
            return None;
        }
        let webhook = &spec["conversion"]["webhook"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let storage = list(&spec["versions"]).into_iter().find(|version| version["storage"] == true);
        let storage = storage.map(|version| text(&version["name"])).unwrap_or_default();
        let first = list(&definition["status"]["storedVersions"]).first().map(text);
        let known = |version: &Value| ["v1", "v1beta1"].into_iter().find(|known| version == known);
        Some(Self {
            group: text(&spec["group"]),
            kind: text(&spec["names"]["kind"]),
            destination: (spec["conversion"]["strategy"] == "Webhook")
                .then(|| Destination::read(&webhook["clientConfig"])),
            review: list(&webhook["conversionReviewVersions"]).iter().find_map(known),
            first: first.unwrap_or_else(|| storage.clone()),
            storage,
            types: types.clone(),
        })
    }

    fn version_of(&self, stored: &Value) -> String {
        let version = stored["apiVersion"].as_str().and_then(|api| api.rsplit('/').next());
        version.unwrap_or(&self.first).to_owned()
    }

    /// Objects of one version in another; the error is what the client is told.
    async fn convert(
        &self,
        server: &Server,
        from: &str,
        to: &str,
        objects: Vec<Value>,
    ) -> Result<Vec<Value>, String> {
        if from == to || objects.is_empty() {
            return Ok(objects);
        }
        let Some(destination) = &self.destination else {
            return Ok(objects.into_iter().map(|object| self.pruned(object, to)).collect());
        };
        let mut out = Vec::with_capacity(objects.len());
        for some in objects.chunks(MOST) {
            out.append(&mut self.ask(server, destination, from, to, some).await?);
        }
        Ok(out)
    }

    async fn ask(
        &self,
        server: &Server,
        destination: &Destination,
        from: &str,
        to: &str,
        objects: &[Value],
    ) -> Result<Vec<Value>, String> {
        let (source, target) = (api_version(&self.group, from), api_version(&self.group, to));
        let about = format!("conversion webhook for {source}, Kind={}", self.kind);
        let failed = |why: String| format!("{about} failed: {why}");
        let Some(version) = self.review else {
            return Err(failed("no supported conversion review versions".to_owned()));
        };
        let uid = server.context.uid();
        let typed = objects.iter().map(|object| self.typed(object, &source)).collect::<Vec<_>>();
        let review = json!({
            "kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{version}"),
            "request": {"uid": uid, "desiredAPIVersion": target, "objects": typed},
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
        });
        let answer = destination.call(server, Bytes::from(review.to_string()), PATIENCE).await;
        let answer = answer.map_err(|error| match error {
            CallError::Client(why) | CallError::Call(why) => failed(why),
        })?;
        let reply = Reply { api: "apiextensions.k8s.io", version, kind: "ConversionReview" };
        let review = reply.read(&answer).map_err(failed)?;
        let response = &review["response"];
        if response.is_null() {
            return Err(failed("no response provided".to_owned()));
        }
        if version == "v1" && response["uid"] != uid.as_str() {
            let got = response["uid"].as_str().unwrap_or_default();
            return Err(failed(format!("expected response.uid={uid:?}, got {got:?}")));
        }
        let result = &response["result"];
        match (result["status"].as_str().unwrap_or_default(), result["message"].as_str().unwrap_or_default())
        {
            ("Success", _) => {}
            (status, "") => {
                return Err(failed(format!("response.result.status was '{status}', not 'Success'")));
            }
            (_, message) => return Err(failed(message.to_owned())),
        }
        let converted = response["convertedObjects"].as_array().cloned().unwrap_or_default();
        if converted.len() != objects.len() {
            return Err(format!("{about} returned {} objects, expected {}", converted.len(), objects.len()));
        }
        let pairs = objects.iter().zip(converted).enumerate();
        pairs.map(|(index, (before, after))| self.checked(before, after, &target, index, &about)).collect()
    }

    fn typed(&self, object: &Value, api_version: &str) -> Value {
        let mut object = object.clone();
        object["apiVersion"] = api_version.into();
        object["kind"] = self.kind.as_str().into();
        object
    }

    /// A converted object without its type, once it is what it must be.
    fn checked(
        &self,
        before: &Value,
        mut after: Value,
        target: &str,
        index: usize,
        about: &str,
    ) -> Result<Value, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let at = format!("{about} returned invalid object at index {index}");
        let (api, kind) = (text(&after["apiVersion"]), text(&after["kind"]));
        if api != target {
            return Err(format!("{at}: invalid groupVersion (expected {target}, received {api})"));
        }
        if kind != self.kind {
            return Err(format!("{at}: invalid kind (expected {}, received {kind})", self.kind));
        }
        if !after["metadata"].is_object() {
            return Err(format!("{about} returned invalid metadata: missing metadata in converted object"));
        }
        if let Some(difference) = immutable(before, &after) {
            return Err(format!("{about} returned invalid object: {difference}"));
        }
        // All else of the metadata stays as it was, but labels and annotations.
        let mut metadata = metadata_of(before).clone();
        for field in ["labels", "annotations"] {
            let given =
                after["metadata"].get(field).filter(|map| map.as_object().is_some_and(|map| !map.is_empty()));
            super::super::write::replace(&mut metadata, field, given.cloned());
        }
        let mut after = after.as_object_mut().map(std::mem::take).unwrap_or_default();
        after.remove("apiVersion");
        after.remove("kind");
        after.insert("metadata".into(), metadata.into());
        Ok(self.pruned(Value::Object(after), target.rsplit('/').next().unwrap_or_default()))
    }

    /// An object without what a version does not know.
    fn pruned(&self, mut object: Value, version: &str) -> Value {
        if let Some((types, root)) = self.types.get(version) {
            structural::prune(&mut object, types.at(*root));
        }
        object
    }

    /// Objects as they are stored, in the version `to`.
    async fn read(&self, server: &Server, to: &str, stored: Vec<Value>) -> Result<Vec<Value>, String> {
        let mut out = vec![Value::Null; stored.len()];
        let mut by_version: BTreeMap<String, Vec<(usize, Value)>> = BTreeMap::new();
        for (index, mut object) in stored.into_iter().enumerate() {
            let version = self.version_of(&object);
            if let Some(map) = object.as_object_mut() {
                map.remove("apiVersion");
            }
            if let Some((types, root)) = self.types.get(&version) {
                structural::default(&mut object, types.at(*root));
            }
            by_version.entry(version).or_default().push((index, object));
        }
        for (version, some) in by_version {
            let (places, objects): (Vec<usize>, Vec<Value>) = some.into_iter().unzip();
            for (place, object) in places.into_iter().zip(self.convert(server, &version, to, objects).await?)
            {
                out[place] = object;
            }
        }
        Ok(out)
    }
}

/// Objects of one version of a resource in another.
///
/// # Errors
/// When a webhook does it, and did not.
pub async fn between(
    server: &Server,
    from: &Resource,
    to: &Resource,
    objects: Vec<Value>,
) -> Result<Vec<Value>, String> {
    match conversion(from) {
        Some(conversion) => conversion.convert(server, &from.version, &to.version, objects).await,
        None => Ok(objects),
    }
}

fn conversion(resource: &Resource) -> Option<&Arc<Conversion>> {
    resource.custom.as_ref()?.conversion.as_ref()
}

/// Whether objects are stored in the resource's version.
#[must_use]
pub fn is_stored(resource: &Resource) -> bool {
    conversion(resource).is_none_or(|conversion| conversion.storage == resource.version)
}

fn refused(why: String) -> Failure {
    Failure::internal(why)
}

/// A stored object in the version of the resource.
///
/// # Errors
/// When it cannot be converted.
pub async fn current(server: &Server, resource: &Resource, stored: &Stored) -> Outcome<Value> {
    let Some(conversion) = conversion(resource) else {
        return Ok(view::shown(resource, decoded(stored)?));
    };
    let object = whole(stored)?;
    let mut read = conversion.read(server, &resource.version, vec![object]).await.map_err(refused)?;
    Ok(read.pop().unwrap_or_default())
}

/// The form in which an object is stored, where it is another than its own.
///
/// # Errors
/// When it cannot be converted.
pub async fn stored_form(server: &Server, resource: &Resource, object: &Value) -> Outcome<Option<Value>> {
    let Some(conversion) = conversion(resource) else {
        let origin = view::origin(resource);
        let registry = server.registry();
        let origin = origin.and_then(|(group, version)| registry.find(group, version, &resource.plural));
        return Ok(origin.map(|origin| view::stored(resource, origin, object)));
    };
    let storage = &conversion.storage;
    let converted = conversion.convert(server, &resource.version, storage, vec![object.clone()]).await;
    let mut form = converted.map_err(refused)?.pop().unwrap_or_default();
    form["apiVersion"] = api_version(&resource.group, storage).into();
    Ok(Some(form))
}

/// An object that was stored in that form, as the client is shown it.
///
/// # Errors
/// When it cannot be converted.
pub async fn answered(server: &Server, resource: &Resource, form: Value) -> Outcome<Bytes> {
    let Some(conversion) = conversion(resource) else {
        return Ok(encoded(&view::shown(resource, form)));
    };
    let mut read = conversion.read(server, &resource.version, vec![form]).await.map_err(refused)?;
    Ok(encoded(&read.pop().unwrap_or_default()))
}

/// Whether an object would also do as one of another version, where no webhook converts it: what each manager
/// manages is compared in the version that it wrote.
///
/// # Errors
/// What the schema of that version has against it.
pub fn fits(resource: &Resource, version: &str, object: &Value) -> Result<(), String> {
    let known = conversion(resource).and_then(|conversion| {
        let (types, root) = conversion.types.get(version)?;
        Some((conversion, types.at(*root)))
    });
    let Some((conversion, ty)) = known else { return Ok(()) };
    let typed = conversion.typed(object, &api_version(&resource.group, version));
    apply::validate(&typed, ty, Duplicates::Allowed).map_err(|errors| errors.to_string())
}

/// Whether a webhook converts the objects of a resource.
#[must_use]
pub fn by_webhook(resource: &Resource) -> bool {
    conversion(resource).is_some_and(|conversion| conversion.destination.is_some())
}

/// What a list is answered when its objects cannot be converted: the real server could not fill its cache.
#[must_use]
pub fn unlisted(resource: &Resource, failure: Failure) -> Failure {
    let about = format!("{}, Kind={}", resource.api_version(), resource.kind);
    let message = format!("storage is (re)initializing: failed to list {about}: {}", failure.message);
    Failure::too_many_requests(message).with_details(json!({"retryAfterSeconds": 1}))
}

/// Stored objects in the version of the resource; as they are, where none is of another.
///
/// # Errors
/// When they cannot be converted.
pub async fn all(
    server: &Server,
    resource: &Resource,
    stored: Vec<Arc<Stored>>,
) -> Outcome<Vec<Arc<Stored>>> {
    let Some(conversion) = conversion(resource) else {
        if !view::is_view(resource) {
            return Ok(stored);
        }
        let shown = stored.iter().map(|one| Ok(Arc::new(with_body(one, view::shown(resource, whole(one)?)))));
        return shown.collect();
    };
    let objects = stored.iter().map(|one| whole(one)).collect::<Outcome<Vec<_>>>()?;
    let read = conversion.read(server, &resource.version, objects).await.map_err(refused)?;
    Ok(stored.iter().zip(read).map(|(stored, object)| Arc::new(with_body(stored, object))).collect())
}

/// Changes as a watch of the resource's version sees them.
///
/// # Errors
/// When they cannot be converted.
pub async fn changes(
    server: &Server,
    resource: &Resource,
    changes: Vec<Arc<Change>>,
) -> Outcome<Vec<Arc<Change>>> {
    if conversion(resource).is_none() && !view::is_view(resource) {
        return Ok(changes);
    }
    let after = changes.iter().map(|change| Arc::clone(&change.after)).collect();
    let after = all(server, resource, after).await?;
    let mut out = Vec::with_capacity(changes.len());
    for (change, after) in changes.iter().zip(after) {
        let before = all(server, resource, change.before.iter().cloned().collect()).await?.pop();
        out.push(Arc::new(Change { revision: change.revision, before, after, deleted: change.deleted }));
    }
    Ok(out)
}

fn whole(stored: &Stored) -> Outcome<Value> {
    serde_json::from_slice(&stored.body).map_err(|error| Failure::internal(error.to_string()))
}

fn with_body(stored: &Stored, mut object: Value) -> Stored {
    let labels =
        metadata_mut(&mut object).get("labels").and_then(Value::as_object).cloned().unwrap_or_default();
    let labels =
        labels.into_iter().map(|(key, value)| (key.into(), value.as_str().unwrap_or_default().into()));
    Stored {
        key: stored.key.clone(),
        revision: stored.revision,
        body: encoded(&object),
        labels: labels.collect(),
    }
}
