//! Writing: create, update and patch, for every kind the same chain.
//!
//! decode → default → own → admit → prepare → validate → commit → encode. The object is one value tree without
//! `apiVersion` and `kind` from decoding to committing. A write that changes nothing is not committed.

pub mod body;
pub mod delete;
mod draft;
pub mod patch;
pub mod yaml;

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use windlass_machinery::encode;
use windlass_machinery::fields::FieldSet;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::managed::{self, Manager};
use windlass_machinery::structural;

use super::admission::{self, Admission, Operation, View};
use super::auth::{Attributes, ResourceTarget, Target, User, escalation};
use super::definitions::conversion;
use super::options::WriteOptions;
use super::registry::Resource;
use super::server::Server;
use super::status::{Failure, Outcome};
use super::strategy::{self, Strategy};
use super::{defaults, validation, view, warnings};
use crate::store::{Expect, Key, Mismatch, Revision, Stored};
use draft::Draft;

/// How often a write that need not see a certain revision is tried against a moving object.
const TRIES: usize = 16;

/// One write request on its way.
pub struct Write<'a> {
    /// The server.
    pub server: &'a Server,
    /// What is written.
    pub resource: &'a Arc<Resource>,
    /// The part of it that is written.
    pub subresource: Option<&'a str>,
    /// The namespace of the request; empty for cluster-wide objects.
    pub namespace: &'a str,
    /// Who writes.
    pub user: &'a User,
    /// How.
    pub options: WriteOptions,
    /// What the client is told besides the answer.
    pub warnings: Vec<String>,
}

/// An object as it is after a write.
pub struct Written {
    /// Its stored form (of a dry run: what would be stored).
    pub body: Bytes,
    /// Whether it is new.
    pub created: bool,
}

/// What an update makes of the object that is there.
pub trait Change: Send + Sync {
    /// The new object; `None` of the old one where it may be created.
    ///
    /// # Errors
    /// When it cannot be made.
    fn apply(&self, write: &mut Write<'_>, old: Option<&Value>) -> Outcome<Value>;

    /// Whether the change sets `managedFields` itself (server-side apply).
    fn owns(&self) -> bool {
        false
    }

    /// What is admitted, where that is not the object itself.
    fn view(&self) -> Option<View<'_>> {
        None
    }

    /// Whether it may create the object.
    fn creates(&self) -> bool {
        false
    }

    /// Whether it replaces the whole object: what it says of the object's identity must then be so.
    fn replaces(&self) -> bool {
        false
    }

    /// Whether it may be tried again on a newer object.
    fn repeats(&self) -> bool;
}

impl<'a> Write<'a> {
    /// The rules of the kind.
    pub fn strategy(&self) -> &'static Strategy {
        strategy::of(self.resource)
    }

    /// Creates an object.
    ///
    /// # Errors
    /// When it is not to be.
    pub async fn create(&mut self, object: Value) -> Outcome<Written> {
        self.create_by(object, None).await
    }

    /// Creates an object, by a request for it or by a change of what turned out not to be there.
    async fn create_by(&mut self, mut object: Value, change: Option<&dyn Change>) -> Outcome<Written> {
        self.check_namespace(&mut object)?;
        if self.resource.custom.as_ref().is_some_and(|custom| custom.terminating) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Failure::forbidden(self.resource, name_of(&object), why));
        }
        for field in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            metadata_mut(&mut object).remove(field);
        }
        let empties = self.fill(&mut object, None);
        if change.is_some_and(Change::owns) {
            metadata_mut(&mut object).remove("resourceVersion");
        } else {
            self.own(None, &mut object);
        }
        let given = self.options.given.clone();
        let mut admission = Admission {
            server: self.server,
            resource: self.resource,
            subresource: self.subresource,
            namespace: self.namespace,
            operation: Operation::Create,
            user: self.user,
            old: None,
            name: None,
            part: None,
            shown: None,
            put_back: None,
            options: &given,
            dry_run: self.options.dry_run,
            warnings: Vec::new(),
        };
        let mutated = admission::mutate(&mut admission, &mut object).await;
        self.warnings.append(&mut admission.warnings);
        mutated?;
        self.check_namespace(&mut object)?;
        escalation::check(self, &object, None)?;
        self.system_fields(&mut object);
        strategy::prepare_create(self, &mut object)?;
        self.normalise(&mut object);
        self.refuse(&object, validation::create(self, &object, empties.as_ref()))?;
        self.warnings.extend(warnings::of(self.resource, &object, None));
        let stale = metadata_of(&object).get("resourceVersion").is_some_and(|version| version != "");
        if stale && !self.options.dry_run {
            return Err(Failure::internal("resourceVersion should not be set on objects to be created"));
        }
        if change.is_some() {
            self.authorize_create(name_of(&object))?;
        }
        let validated = admission::validate(&mut admission, &object).await;
        self.warnings.append(&mut admission.warnings);
        validated?;
        self.settle(&mut object);
        let key = self.key(name_of(&object));
        let mut form = self.form(&object).await?;
        if self.options.dry_run {
            if let Some(there) = self.server.store.get(self.resource.table, &key) {
                return Err(self.taken(&there));
            }
            return Ok(Written { body: self.answered(form, &object).await?, created: true });
        }
        let draft = Draft::of(form.as_mut().unwrap_or(&mut object));
        let stored = self
            .server
            .store
            .write(self.resource.table, &key, Expect::Absent, |revision| draft.at(revision))
            .map_err(|Mismatch(there)| match there {
                Some(there) => self.taken(&there),
                None => Failure::already_exists(self.resource, &key.name),
            })?;
        stamp(form.as_mut().unwrap_or(&mut object), stored.revision);
        self.server.after_write(self.resource, None, Some(&object)).await;
        let body = match form {
            None => stored.body.clone(),
            form => self.answered(form, &object).await?,
        };
        Ok(Written { body, created: true })
    }

    /// There is an object of that name already, if only for a while.
    fn taken(&self, there: &Stored) -> Failure {
        let failure = Failure::already_exists(self.resource, &there.key.name);
        if !is_leaving(there) {
            return failure;
        }
        Failure { message: format!("object is being deleted: {}", failure.message), ..failure }
    }

    /// Who may change an object may not make one by that, unless they may create it.
    fn authorize_create(&self, name: &str) -> Outcome<()> {
        let target = ResourceTarget {
            group: &self.resource.group,
            resource: &self.resource.plural,
            subresource: "",
            namespace: self.namespace,
            name,
        };
        let wanted = Attributes { verb: "create", target: Target::Resource(target) };
        self.server.auth.authorize(self.user, &wanted)
    }

    /// Updates an object by what `change` makes of it.
    ///
    /// # Errors
    /// When it is not there, or not to be changed so.
    pub async fn update(&mut self, name: &str, change: &dyn Change) -> Outcome<Written> {
        let key = self.key(name);
        let mut tries = 0;
        loop {
            let current = self.server.store.get(self.resource.table, &key);
            let warnings = self.warnings.len();
            match self.update_once(&key, current, change).await {
                Err(Retry::Moved) if change.repeats() && tries < TRIES => {
                    tries += 1;
                    self.warnings.truncate(warnings);
                }
                Err(Retry::Moved) => return Err(Failure::modified(self.resource, name)),
                Err(Retry::Failed(failure)) => return Err(failure),
                Ok(written) => return Ok(written),
            }
        }
    }

    async fn update_once(
        &mut self,
        key: &Key,
        current: Option<Arc<Stored>>,
        change: &dyn Change,
    ) -> Result<Written, Retry> {
        let Some(current) = current else {
            let creates = change.creates() || self.strategy().create_on_update;
            // A part of an object does not come before the object.
            if !creates || self.subresource.is_some() {
                return Err(Failure::not_found(self.resource, &key.name).into());
            }
            let object = change.apply(self, None)?;
            return match self.create_by(object, Some(change)).await {
                Err(failure) if failure.reason == "AlreadyExists" => Err(Retry::Moved),
                other => Ok(other?),
            };
        };
        let old = conversion::current(self.server, self.resource, &current).await?;
        let mut new = change.apply(self, Some(&old))?;
        self.check_namespace(&mut new)?;
        self.check_identity(&old, &new, change)?;
        let metadata = metadata_mut(&mut new);
        let link = metadata.remove("selfLink").filter(|link| self.options.dry_run && *link != "");
        // An empty list asks for all managers to be forgotten, and would be lost on the way.
        if metadata.get("managedFields").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            metadata.insert("managedFields".into(), Value::Array(vec![Value::Object(Map::new())]));
        }
        let empties = self.fill(&mut new, Some(&old));
        if !change.owns() {
            self.own(Some(&old), &mut new);
        }
        let given = self.options.given.clone();
        let view = change.view();
        let mut admission = Admission {
            server: self.server,
            resource: self.resource,
            subresource: self.subresource,
            namespace: self.namespace,
            operation: Operation::Update,
            user: self.user,
            old: Some(&old),
            name: Some(&key.name),
            part: view.map(|view| view.kind),
            shown: view.map(|view| view.shown),
            put_back: view.map(|view| view.put_back),
            options: &given,
            dry_run: self.options.dry_run,
            warnings: Vec::new(),
        };
        let mutated = admission::mutate(&mut admission, &mut new).await;
        self.warnings.append(&mut admission.warnings);
        mutated?;
        escalation::check(self, &new, Some(&old))?;
        self.check_revision(&old, &new, current.revision)?;
        let metadata = metadata_mut(&mut new);
        metadata.insert("resourceVersion".into(), current.revision.to_string().into());
        strategy::prepare_update(self, &mut new, &old)?;
        self.normalise(&mut new);
        let errors = validation::update(self, &new, &old, empties.as_ref());
        self.refuse(&new, errors)?;
        if self.subresource.is_none() {
            self.warnings.extend(warnings::of(self.resource, &new, Some(&old)));
        }
        let validated = admission::validate(&mut admission, &new).await;
        self.warnings.append(&mut admission.warnings);
        validated?;
        self.settle(&mut new);
        drop(admission);
        let mut form = self.form(&new).await?;
        if form.is_none() && link.is_none() && is_same(&new, &old) {
            return Ok(Written { body: current.body.clone(), created: false });
        }
        let gone = is_finished(&new);
        if self.options.dry_run {
            // It is dropped on the way to the store only.
            if let Some(link) = link {
                metadata_mut(form.as_mut().unwrap_or(&mut new)).insert("selfLink".into(), link);
            }
            return Ok(Written { body: self.answered(form, &new).await?, created: false });
        }
        let store = &self.server.store;
        let table = self.resource.table;
        if form.as_ref().is_some_and(|form| is_unchanged(form, &current)) {
            return Ok(Written { body: self.answered(form, &new).await?, created: false });
        }
        if gone {
            let body = encoded(&new);
            // Whoever watches sees it a last time as it was.
            let mut last: Value = serde_json::from_slice(&current.body).unwrap_or_default();
            store
                .remove(table, key, current.revision, |revision| committed(&mut last, revision))
                .map_err(Retry::from)?;
            self.server.after_write(self.resource, Some(&old), None).await;
            return Ok(Written { body, created: false });
        }
        let draft = Draft::of(form.as_mut().unwrap_or(&mut new));
        let stored = store
            .write(table, key, Expect::At(current.revision), |revision| draft.at(revision))
            .map_err(Retry::from)?;
        stamp(form.as_mut().unwrap_or(&mut new), stored.revision);
        self.server.after_write(self.resource, Some(&old), Some(&new)).await;
        let body = match form {
            None => stored.body.clone(),
            form => self.answered(form, &new).await?,
        };
        Ok(Written { body, created: false })
    }

    /// Changes an object as it is stored, past defaults, ownership and validation: what the server itself does
    /// to objects within a request of another kind.
    ///
    /// # Errors
    /// When it is not there, or `change` refuses.
    pub async fn touch(
        &mut self,
        name: &str,
        change: impl Fn(&Self, &mut Value) -> Outcome<()>,
    ) -> Outcome<Value> {
        let key = self.key(name);
        loop {
            let current = self.server.store.get(self.resource.table, &key);
            let current = current.ok_or_else(|| Failure::not_found(self.resource, name))?;
            let old = decoded(&current)?;
            let mut new = old.clone();
            change(self, &mut new)?;
            if new == old || self.options.dry_run {
                return Ok(new);
            }
            let table = self.resource.table;
            let expect = Expect::At(current.revision);
            if is_finished(&new) {
                let removed = self
                    .server
                    .store
                    .remove(table, &key, current.revision, |revision| committed(&mut new, revision));
                if removed.is_ok() {
                    self.server.after_write(self.resource, Some(&old), None).await;
                    return Ok(new);
                }
            } else if self
                .server
                .store
                .write(table, &key, expect, |revision| committed(&mut new, revision))
                .is_ok()
            {
                self.server.after_write(self.resource, Some(&old), Some(&new)).await;
                return Ok(new);
            }
        }
    }

    /// The form in which an object is stored, where a webhook converts it.
    pub(super) async fn form(&self, object: &Value) -> Outcome<Option<Value>> {
        conversion::stored_form(self.server, self.resource, object).await
    }

    /// What the client is shown of what is stored, or would be.
    async fn answered(&self, form: Option<Value>, object: &Value) -> Outcome<Bytes> {
        match form {
            Some(form) => conversion::answered(self.server, self.resource, form).await,
            None => Ok(encoded(object)),
        }
    }

    /// The key of an object of the request's namespace.
    #[must_use]
    pub fn key(&self, name: &str) -> Key {
        Key::new(if self.resource.namespaced { self.namespace } else { "" }, name)
    }

    /// Brings an object that is answered and not stored to where admission would find it.
    ///
    /// # Errors
    /// When it is of another namespace.
    pub fn draft(&self, object: &mut Value) -> Outcome<()> {
        self.check_namespace(object)?;
        metadata_mut(object).remove("selfLink");
        self.fill(object, None);
        self.own(None, object);
        Ok(())
    }

    pub(super) fn check_namespace(&self, object: &mut Value) -> Outcome<()> {
        let metadata = metadata_mut(object);
        let given = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
        if !self.resource.namespaced {
            metadata.remove("namespace");
        } else if given.is_empty() {
            metadata.insert("namespace".into(), self.namespace.into());
        } else if given != self.namespace {
            return Err(Failure::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Ok(())
    }

    /// What a request says of the object's identity must be so; what admission makes of it is validated.
    fn check_identity(&self, old: &Value, new: &Value, change: &dyn Change) -> Result<(), Retry> {
        let name = name_of(old);
        let text = |object: &Value| {
            metadata_of(object).get("uid").and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (uid, wanted) = (text(old), text(new));
        if change.replaces() && !wanted.is_empty() && wanted != uid {
            let why =
                format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}");
            return Err(self.storage_conflict(name, &why).into());
        }
        Ok(())
    }

    /// An object that is not the one a client means, in the words of the real server's storage.
    pub(super) fn storage_conflict(&self, name: &str, why: &str) -> Failure {
        let place = match self.namespace {
            "" => name.to_owned(),
            namespace => format!("{namespace}/{name}"),
        };
        // A rehearsal does not get as far as the storage that knows the prefix.
        let prefix = if self.options.dry_run { "" } else { "/registry" };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {prefix}/{}/{place}, ResourceVersion: 0, \
             AdditionalErrorMsg: {why}",
            strategy::storage_name(self.resource)
        );
        Failure::conflict(self.resource, name, &why)
    }

    fn check_revision(&self, old: &Value, new: &Value, revision: Revision) -> Result<(), Retry> {
        let name = name_of(old);
        let version = metadata_of(new).get("resourceVersion").and_then(Value::as_str).unwrap_or_default();
        if version.is_empty() || version == "0" {
            if self.strategy().unconditional_update {
                return Ok(());
            }
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            return Err(Failure::invalid(&self.resource.group, &self.resource.plural, name, &[error]).into());
        }
        let wanted = version.parse::<Revision>().map_err(|_| {
            Failure::internal(format!("strconv.ParseUint: parsing {version:?}: invalid syntax"))
        })?;
        if wanted == revision { Ok(()) } else { Err(Failure::modified(self.resource, name).into()) }
    }

    /// Defaults, and the form Go would write; what was given, where that has empty lists and maps that others do
    /// without.
    fn fill(&self, object: &mut Value, old: Option<&Value>) -> Option<Value> {
        if self.resource.custom.is_some() {
            structural::default(object, self.resource.ty());
            return None;
        }
        defaults::apply(object, self.resource.ty(), old.is_some());
        let given = encode::drops_empty(object, self.resource.ty()).then(|| object.clone());
        self.normalise(object);
        given
    }

    /// Brings an object into the form Go would write.
    pub fn normalise(&self, object: &mut Value) {
        if self.resource.custom.is_none() {
            encode::normalise(object, self.resource.ty());
        } else if let Some(metadata) = object.get_mut("metadata") {
            encode::normalise(metadata, self.server.built_in.metadata());
        }
    }

    /// Brings an object into the form it will come back in. Definitions and custom objects are stored as they are.
    fn settle(&self, object: &mut Value) {
        if self.resource.custom.is_none() && self.resource.group != "apiextensions.k8s.io" {
            encode::stored(object, self.resource.ty());
        }
    }

    pub(super) fn own(&self, live: Option<&Value>, new: &mut Value) {
        let reset = self.reset_fields();
        let version = self.resource.api_version();
        // The real server loses what it knows of managers when it would have to convert it by a webhook.
        let foreign = |entry: &Value| entry["apiVersion"] != version.as_str();
        let entries = live.and_then(|live| metadata_of(live).get("managedFields")).and_then(Value::as_array);
        // So it does when a version that somebody wrote has no place for what is in the object now.
        let unfit = |entry: &Value| {
            let version = entry["apiVersion"].as_str().and_then(|given| given.rsplit('/').next());
            let objects = live.into_iter().chain([&*new]);
            version.is_some_and(|version| {
                objects.into_iter().any(|object| conversion::fits(self.resource, version, object).is_err())
            })
        };
        let others = || entries.into_iter().flatten().filter(|entry| foreign(entry));
        if others().next().is_some() && conversion::by_webhook(self.resource) || others().any(unfit) {
            metadata_mut(new).remove("managedFields");
            return;
        }
        let who = self.manager(&version);
        managed::update(live, new, self.resource.ty(), &who, reset, &self.server.context.now_text());
        // And of those who wrote it under the name of another group, whose fields have other names.
        let metadata = metadata_mut(new);
        if let Some(list) = metadata.get_mut("managedFields").and_then(Value::as_array_mut)
            && list.iter().any(foreign)
        {
            let registry = self.server.registry();
            let known = |entry: &Value| {
                let given = entry["apiVersion"].as_str().unwrap_or_default();
                let (group, version) = given.rsplit_once('/').unwrap_or(("", given));
                group == self.resource.group && registry.find(group, version, &self.resource.plural).is_some()
            };
            list.retain(|entry| self.subresource == Some("scale") || known(entry));
            if list.is_empty() {
                metadata.remove("managedFields");
            }
        }
    }

    /// Who owns the fields that this write sets.
    #[must_use]
    pub fn manager<'m>(&'m self, api_version: &'m str) -> Manager<'m> {
        Manager {
            name: &self.options.manager,
            api_version,
            subresource: self.subresource.unwrap_or_default(),
        }
    }

    /// The fields that this write cannot set.
    #[must_use]
    pub fn reset_fields(&self) -> &'static FieldSet {
        strategy::reset_fields(self.resource, self.subresource)
    }

    fn system_fields(&self, object: &mut Value) {
        let context = &self.server.context;
        let metadata = metadata_mut(object);
        metadata.insert("creationTimestamp".into(), context.now_text().into());
        metadata.insert("uid".into(), context.uid().into());
        let named = metadata.get("name").is_some_and(|name| name != "");
        let prefix = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default();
        if !named && !prefix.is_empty() {
            let prefix: String = prefix.chars().take(58).collect();
            metadata.insert("name".into(), format!("{prefix}{}", context.name_suffix()).into());
        }
    }

    fn refuse(&self, object: &Value, errors: Vec<FieldError>) -> Outcome<()> {
        if errors.is_empty() {
            return Ok(());
        }
        let group = view::storage_group(&self.resource.group, &self.resource.plural);
        Err(Failure::invalid(group, &self.resource.kind, name_of(object), &errors))
    }
}

/// Why an update did not happen.
enum Retry {
    /// The object changed meanwhile.
    Moved,
    /// It cannot happen.
    Failed(Failure),
}

impl From<Failure> for Retry {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Mismatch> for Retry {
    fn from(_: Mismatch) -> Self {
        Self::Moved
    }
}

/// A change that the server itself makes to an object that is there, through the whole chain.
pub struct Edit<F>(pub F);

impl<F: Fn(&mut Value) -> Outcome<()> + Send + Sync> Change for Edit<F> {
    fn apply(&self, write: &mut Write<'_>, old: Option<&Value>) -> Outcome<Value> {
        let mut new = old.cloned().ok_or_else(|| Failure::not_found(write.resource, ""))?;
        (self.0)(&mut new)?;
        Ok(new)
    }

    fn repeats(&self) -> bool {
        true
    }
}

/// A new object in place of the old one, as `PUT` sends it.
pub struct Replace(pub Value);

impl Change for Replace {
    fn apply(&self, _: &mut Write<'_>, _: Option<&Value>) -> Outcome<Value> {
        Ok(self.0.clone())
    }

    fn replaces(&self) -> bool {
        true
    }

    fn repeats(&self) -> bool {
        metadata_of(&self.0).get("resourceVersion").is_none_or(|version| version == "")
    }
}

/// Whether a write changes nothing but the times of field ownership.
fn is_same(new: &Value, old: &Value) -> bool {
    if new == old {
        return true;
    }
    let same = |new: &Map<String, Value>, old: &Map<String, Value>, apart: &str| {
        new.len() == old.len()
            && new.iter().all(|(key, value)| key == apart || old.get(key) == Some(value))
            && new.contains_key(apart) == old.contains_key(apart)
    };
    let (Some(whole), Some(old_whole)) = (new.as_object(), old.as_object()) else { return false };
    fn entries(object: &Value) -> &[Value] {
        metadata_of(object).get("managedFields").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
    same(whole, old_whole, "metadata") && same(metadata_of(new), metadata_of(old), "managedFields") && {
        let (new, old) = (entries(new), entries(old));
        new.len() == old.len()
            && new.iter().zip(old).all(|(new, old)| match (new.as_object(), old.as_object()) {
                (Some(new), Some(old)) => same(new, old, "time"),
                _ => new == old,
            })
    }
}

/// Whether an object would be stored as it is, but for the times of field ownership.
fn is_unchanged(form: &Value, current: &Stored) -> bool {
    serde_json::from_slice::<Value>(&current.body).is_ok_and(|old| is_same(form, &old))
}

/// Whether nothing holds a deleted object any more.
fn is_finished(object: &Value) -> bool {
    let metadata = metadata_of(object);
    metadata.contains_key("deletionTimestamp")
        && metadata.get("finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty)
        && metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) == 0
        && object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty)
}

/// An object's metadata.
#[must_use]
pub fn metadata_of(object: &Value) -> &Map<String, Value> {
    static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    object.get("metadata").and_then(Value::as_object).unwrap_or(&EMPTY)
}

/// An object's metadata, made where there is none.
pub fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(map) => map,
        _ => unreachable!("just made an object"),
    }
}

/// An object's name.
#[must_use]
pub fn name_of(object: &Value) -> &str {
    metadata_of(object).get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Sets a field, or removes it.
pub fn replace(map: &mut Map<String, Value>, field: &str, value: Option<Value>) {
    match value {
        Some(value) => map.insert(field.to_owned(), value),
        None => map.remove(field),
    };
}

/// The tree of a stored object.
///
/// # Errors
/// Never, unless the store was tampered with.
pub fn decoded(stored: &Stored) -> Outcome<Value> {
    let mut object: Value = serde_json::from_slice(&stored.body)
        .map_err(|error| Failure::internal(format!("failed to read {:?}: {error}", stored.key.name)))?;
    // What a webhook converts says which version it is stored in.
    if let Some(map) = object.as_object_mut() {
        map.remove("apiVersion");
    }
    Ok(object)
}

/// The stored form of an object.
#[must_use]
pub fn encoded(object: &Value) -> Bytes {
    draft::encoded(object)
}

/// Whether a stored object is being deleted; reads no more of it than that takes.
#[must_use]
pub fn is_leaving(stored: &Stored) -> bool {
    #[derive(Deserialize)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        deletion_timestamp: Option<IgnoredAny>,
    }
    let read = serde_json::from_slice::<Object>(&stored.body);
    read.is_ok_and(|object| object.metadata.deletion_timestamp.is_some())
}

/// The stored form of an object at a revision, with its labels.
pub fn committed(object: &mut Value, revision: Revision) -> (Bytes, Vec<(String, String)>) {
    stamp(object, revision);
    let labels = draft::labels(metadata_mut(object));
    (encoded(object), labels)
}

/// Gives an object its revision.
fn stamp(object: &mut Value, revision: Revision) {
    metadata_mut(object).insert("resourceVersion".into(), revision.to_string().into());
}
