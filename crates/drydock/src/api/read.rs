//! Reading: get, list and watch.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, URL_SAFE_NO_PAD};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde_json::{Value, json};
use tokio::time::Instant;
use windlass_machinery::decode;
use windlass_machinery::selector::{Fields, Labels};

use super::definitions::conversion;
use super::negotiation::{Form, View};
use super::options::{ListOptions, parse_unsigned};
use super::registry::Resource;
use super::request::Query;
use super::server::Server;
use super::status::{Failure, Outcome};
use super::table;
use super::view;
use super::write::body::with_type;
use super::write::{decoded, metadata_mut};
use crate::store::{Change, Compacted, Key, Revision, Scope, Stored, Watch};

pub mod recent;
mod selectable;
mod yaml;

/// How often an idle watch is told how far it has come.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// How long a watch lasts unless the client says so.
const WATCH_LENGTH: Duration = Duration::from_secs(3600);

/// Which objects of a resource are wanted.
#[derive(Clone, Debug)]
pub struct Selection {
    scope: Scope,
    labels: Labels,
    fields: Fields,
}

impl Selection {
    /// Reads the selectors of a request.
    ///
    /// # Errors
    /// When a selector makes no sense, or names a field that cannot be selected on.
    pub fn parse(resource: &Resource, namespace: Option<&str>, query: &Query) -> Outcome<Self> {
        let labels = Labels::parse(query.get("labelSelector").unwrap_or_default())
            .map_err(|error| Failure::bad_request(error.to_string()))?;
        let fields = Fields::parse(query.get("fieldSelector").unwrap_or_default())
            .map_err(|error| Failure::bad_request(error.to_string()))?;
        for requirement in fields.requirements() {
            selectable::check(resource, &requirement.field)?;
        }
        let namespace =
            namespace.filter(|_| resource.namespaced).or_else(|| fields.exact("metadata.namespace"));
        let scope = match (namespace, fields.exact("metadata.name")) {
            (Some(namespace), Some(name)) => Scope::Object(Key::new(namespace, name)),
            (None, Some(name)) if !resource.namespaced => Scope::Object(Key::new("", name)),
            (Some(namespace), None) => Scope::Namespace(namespace.into()),
            (None, _) => Scope::All,
        };
        Ok(Self { scope, labels, fields })
    }

    fn holds(&self, resource: &Resource, stored: &Stored) -> bool {
        if !self.labels.matches(|key| stored.label(key)) {
            return false;
        }
        let requirements = self.fields.requirements();
        if requirements.is_empty() {
            return true;
        }
        let named = |field: &str| match field {
            "metadata.name" => Some(&*stored.key.name),
            "metadata.namespace" => Some(&*stored.key.namespace),
            _ => None,
        };
        if requirements.iter().all(|requirement| named(&requirement.field).is_some()) {
            return self.fields.matches(named);
        }
        let Ok(object) = decoded(stored) else { return false };
        let object = view::shown(resource, object);
        let texts: Vec<(String, String)> = requirements
            .iter()
            .map(|requirement| {
                (requirement.field.clone(), selectable::read(resource, &object, &requirement.field))
            })
            .collect();
        self.fields.matches(|field| {
            named(field)
                .or_else(|| texts.iter().find(|(name, _)| name == field).map(|(_, text)| text.as_str()))
        })
    }
}

/// One object in the form the client wants.
///
/// # Errors
/// When it is not there.
pub async fn get(
    server: &Server,
    resource: &Resource,
    key: &Key,
    form: Form,
    query: &Query,
    as_of: Option<Revision>,
) -> Outcome<Bytes> {
    let wanted = query.get("resourceVersion").map(parse_revision).transpose()?;
    let newest = server.store.revision();
    if let Some(wanted) = wanted.filter(|wanted| *wanted > newest) {
        return Err(too_large(wanted, newest));
    }
    if query.get("export").is_some() {
        let gone = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(Failure::bad_request(gone));
    }
    let stored = match as_of {
        None => server.store.get(resource.table, key),
        Some(revision) => {
            let past = server.store.list_at(resource.table, &Scope::Object(key.clone()), revision);
            past.unwrap_or_default().pop()
        }
    };
    let stored = stored.ok_or_else(|| Failure::not_found(resource, &key.name))?;
    let stored = conversion::all(server, resource, vec![stored]).await?;
    let body = stored.first().map(|stored| stored.body.clone()).unwrap_or_default();
    shown(server, resource, &body, form, query)
}

/// A stored object in the form the client wants.
///
/// # Errors
/// When the stored object cannot be read.
pub fn shown(
    server: &Server,
    resource: &Resource,
    body: &Bytes,
    form: Form,
    query: &Query,
) -> Outcome<Bytes> {
    let json = match form.view {
        View::Whole => typed(resource, body),
        View::Metadata => Bytes::from(partial(resource, body, form.version)?),
        View::MetadataList => {
            return Err(Failure::unfit_view(format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
                resource.go_type("")
            )));
        }
        View::Table => {
            table::check(query)?;
            let object = read(body)?;
            let version = object["metadata"]["resourceVersion"].clone();
            let metadata = json!({"resourceVersion": version});
            Bytes::from(table::of(server, resource, &[object], metadata, form.version, query).to_string())
        }
    };
    encode(json, form)
}

/// A stored object of which only the metadata is shown.
fn partial(resource: &Resource, body: &[u8], version: &str) -> Outcome<String> {
    let metadata = raw_metadata(body)?;
    if !table::adds_metadata(resource) {
        return Ok(metadata_only(metadata, version));
    }
    let mut own: Value =
        serde_json::from_str(metadata).map_err(|error| Failure::internal(error.to_string()))?;
    table::without_added(resource, &mut own);
    Ok(metadata_only(&own.to_string(), version))
}

/// The metadata of a stored object, as it stands there.
fn raw_metadata(body: &[u8]) -> Outcome<&str> {
    #[derive(serde::Deserialize)]
    struct Head<'b> {
        #[serde(borrow)]
        metadata: &'b serde_json::value::RawValue,
    }
    serde_json::from_slice::<Head<'_>>(body)
        .map(|head| head.metadata.get())
        .map_err(|error| Failure::internal(error.to_string()))
}

/// JSON in the form the client wants.
///
/// # Errors
/// When it cannot be written so.
pub fn encode(json: Bytes, form: Form) -> Outcome<Bytes> {
    if !form.yaml {
        return Ok(json);
    }
    let value: Value = read(&json)?;
    Ok(yaml::text(&value).into())
}

fn read(json: &Bytes) -> Outcome<Value> {
    serde_json::from_slice(json).map_err(|error| Failure::internal(error.to_string()))
}

/// The JSON of a stored object with its `kind` and `apiVersion`.
#[must_use]
pub fn typed(resource: &Resource, body: &Bytes) -> Bytes {
    let mut out = BytesMut::with_capacity(resource.prefix().len() + body.len() + 1);
    put_typed(&mut out, resource, body);
    out.freeze()
}

fn put_typed(out: &mut BytesMut, resource: &Resource, body: &Bytes) {
    out.put_slice(resource.prefix());
    if body.len() > 2 {
        out.put_u8(b',');
    }
    out.put_slice(untagged(body).get(1..).unwrap_or(b"}"));
}

/// A stored object without the version that it may say it is stored in.
fn untagged(body: &Bytes) -> &[u8] {
    const TAG: &[u8] = b"{\"apiVersion\":";
    match body.starts_with(TAG).then(|| body.iter().position(|byte| *byte == b',')).flatten() {
        Some(comma) => &body[comma..],
        None => body,
    }
}

fn metadata_only(metadata: &str, version: &str) -> String {
    format!("{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"{version}\",\"metadata\":{metadata}}}")
}

/// Where a list goes on.
struct Continue {
    /// `None` goes on in the newest state.
    revision: Option<Revision>,
    start: String,
}

impl Continue {
    fn parse(token: &str) -> Outcome<Self> {
        let invalid = |why: String| Failure::bad_request(format!("invalid continue token: {why}"));
        // Go does not mind what the last bits of a token are.
        const LENIENT: GeneralPurpose = GeneralPurpose::new(
            &alphabet::URL_SAFE,
            GeneralPurposeConfig::new()
                .with_decode_allow_trailing_bits(true)
                .with_decode_padding_mode(DecodePaddingMode::Indifferent),
        );
        let bytes = LENIENT.decode(token).map_err(|error| {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                _ => token.len(),
            };
            invalid(format!("continue key is not valid: illegal base64 data at input byte {at}"))
        })?;
        let (value, _) = decode::text(&bytes, None)
            .map_err(|error| invalid(format!("continue key is not valid: {error}")))?;
        let start = value["start"].as_str().unwrap_or_default().to_owned();
        let version = value["v"].as_str().unwrap_or_default();
        if version != "meta.k8s.io/v1" {
            return Err(invalid(format!(
                "continue key is not valid: server does not recognize this encoded version {version}"
            )));
        }
        match value["rv"].as_i64() {
            Some(revision) if revision != 0 && !start.is_empty() => {
                Ok(Self { revision: Revision::try_from(revision).ok(), start })
            }
            _ => Err(invalid(
                "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
                    .into(),
            )),
        }
    }

    fn token(&self) -> String {
        let json = json!({"v": "meta.k8s.io/v1", "rv": self.revision.map_or(json!(-1), Value::from), "start": self.start});
        URL_SAFE_NO_PAD.encode(json.to_string())
    }
}

/// A list in the form the client wants.
///
/// # Errors
/// When a parameter makes no sense, or the list cannot go on.
pub async fn list(
    server: &Server,
    resource: &Resource,
    namespace: Option<&str>,
    form: Form,
    query: &Query,
    as_of: Option<Revision>,
) -> Outcome<Bytes> {
    let page = page(server, resource, namespace, query, as_of)?;
    let items = conversion::all(server, resource, page.items).await;
    let items = items.map_err(|failure| conversion::unlisted(resource, failure))?;
    list_body(server, resource, &items, page.metadata, form, query)
}

/// Some objects of a list, and the metadata of that list.
pub struct Page {
    /// The objects.
    pub items: Vec<Arc<Stored>>,
    /// The revision, and where to go on.
    pub metadata: Value,
}

/// The objects a client asks for.
///
/// # Errors
/// When a parameter makes no sense, or the list cannot go on.
pub fn page(
    server: &Server,
    resource: &Resource,
    namespace: Option<&str>,
    query: &Query,
    as_of: Option<Revision>,
) -> Outcome<Page> {
    let options = ListOptions::parse(query, false)?;
    let selection = Selection::parse(resource, namespace, query)?;
    let limit = options.limit;
    let from = options.from.as_deref().map(Continue::parse).transpose()?;
    let wanted = options.version.as_deref();
    if from.is_some() && wanted.is_some() {
        return Err(Failure::bad_request("specifying resource version is not allowed when using continue"));
    }
    let at = match (&from, wanted) {
        (Some(from), _) => from.revision,
        (None, Some(version)) => {
            let version = parse_revision(version).map_err(|failure| {
                Failure::bad_request(format!("invalid resource version: {}", failure.message))
            })?;
            let newest = server.store.revision();
            if version > newest {
                return Err(too_large(version, newest));
            }
            options.exact.then_some(version)
        }
        (None, None) => as_of,
    };
    let (revision, objects) = match at {
        None => server.store.list(resource.table, &selection.scope),
        Some(revision) => {
            let objects = server.store.list_at(resource.table, &selection.scope, revision);
            (revision, objects.map_err(|_| expired(from.as_ref()))?)
        }
    };
    let place = |stored: &Stored| match (&selection.scope, resource.namespaced) {
        (Scope::All, true) => format!("{}/{}", stored.key.namespace, stored.key.name),
        _ => format!("/{}", stored.key.name),
    };
    let mut items: Vec<Arc<Stored>> = Vec::new();
    let mut next = None;
    let mut remaining = 0;
    // The token names the last object of the page before, followed by a zero byte.
    let rest = objects.iter().filter(|stored| {
        from.as_ref().is_none_or(|from| *place(stored) > *from.start.trim_end_matches('\0'))
    });
    for stored in rest {
        if !selection.holds(resource, stored) {
            continue;
        }
        if limit > 0 && items.len() == limit {
            if next.is_none()
                && let Some(last) = items.last()
            {
                next = Some(Continue { revision: Some(revision), start: format!("{}\0", place(last)) });
            }
            remaining += 1;
        } else {
            items.push(Arc::clone(stored));
        }
    }
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if let Some(next) = next {
        metadata["continue"] = next.token().into();
        if selection.labels.is_everything() && selection.fields.is_everything() {
            metadata["remainingItemCount"] = remaining.into();
        }
    }
    Ok(Page { items, metadata })
}

/// A list whose state is forgotten may go on in the newest one.
fn expired(from: Option<&Continue>) -> Failure {
    let Some(from) = from else {
        return Failure::expired("The resourceVersion for the provided list is too old.");
    };
    let failure = Failure::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new \
         list without the continue parameter, or use the continue token in this response to retrieve the \
         remainder of the results. Continuing with the provided token results in an inconsistent list - \
         objects that were created, modified, or deleted between the time the first chunk was returned and \
         now may show up in the list.",
    );
    Failure { from: Some(Continue { revision: None, start: from.start.clone() }.token()), ..failure }
}

/// A list in the form the client wants.
///
/// # Errors
/// When a stored object cannot be read, or a list has no such form.
pub fn list_body(
    server: &Server,
    resource: &Resource,
    items: &[Arc<Stored>],
    mut metadata: Value,
    form: Form,
    query: &Query,
) -> Outcome<Bytes> {
    if form.view == View::Whole {
        let custom = resource.custom.is_some();
        if custom && metadata.get("continue").is_none() {
            metadata["continue"] = "".into();
        }
        let size = items.iter().map(|stored| stored.body.len() + 80).sum::<usize>();
        let mut out = BytesMut::with_capacity(size + 128);
        out.put_slice(
            format!(
                "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{metadata},\"items\":[",
                Value::from(resource.list_kind.as_str()),
                Value::from(resource.api_version())
            )
            .as_bytes(),
        );
        for (index, stored) in items.iter().enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            if custom {
                put_typed(&mut out, resource, &stored.body);
            } else {
                out.put_slice(&stored.body);
            }
        }
        out.put_slice(b"]}");
        return encode(out.freeze(), form);
    }
    let json = match form.view {
        View::Table => {
            table::check(query)?;
            let objects = items.iter().map(|stored| decoded(stored)).collect::<Outcome<Vec<_>>>()?;
            table::of(server, resource, &objects, metadata, form.version, query).to_string()
        }
        View::MetadataList => {
            let all = items.iter().map(|stored| partial(resource, &stored.body, form.version));
            let all = all.collect::<Outcome<Vec<_>>>()?;
            // Go writes a list that was never made as null.
            let all = if all.is_empty() { "null".to_owned() } else { format!("[{}]", all.join(",")) };
            format!(
                "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\
                 \"items\":{all}}}",
                form.version
            )
        }
        _ => {
            return Err(Failure::unfit_view(format!(
                "you requested PartialObjectMetadata, but the requested object is a list ({})",
                resource.go_type("List")
            )));
        }
    };
    encode(Bytes::from(json), form)
}

/// A stream of watch events, each a line of JSON.
pub type Events = BoxStream<'static, Bytes>;

struct Watching {
    server: Server,
    resource: Arc<Resource>,
    selection: Selection,
    form: Form,
    query: Query,
    watch: Watch,
    pending: Vec<Bytes>,
    bookmarks: bool,
    end: Instant,
    done: bool,
    first_table: bool,
}

/// Starts a watch.
///
/// # Errors
/// When a parameter makes no sense.
pub async fn watch(
    server: &Server,
    resource: &Arc<Resource>,
    namespace: Option<&str>,
    name: Option<&str>,
    form: Form,
    query: &Query,
) -> Outcome<Events> {
    let options = ListOptions::parse(query, true)?;
    let mut selection = Selection::parse(resource, namespace, query)?;
    if let Some(name) = name {
        selection.scope = Scope::Object(Key::new(namespace.unwrap_or_default(), name));
    }
    if form.view == View::Table {
        table::check(query)?;
    }
    let bookmarks = query.flag("allowWatchBookmarks");
    let initial_events = options.initial_events;
    let version = options.version.as_deref().map_or(Ok(0), parse_revision)?;
    let length = options.timeout.map_or(WATCH_LENGTH, Duration::from_secs);
    let mut pending = Vec::new();
    let from_now = version == 0 || initial_events == Some(true);
    let (revision, initial) = if from_now && initial_events != Some(false) {
        let (revision, objects) = server.store.list(resource.table, &selection.scope);
        (revision, objects.into_iter().filter(|stored| selection.holds(resource, stored)).collect())
    } else if from_now {
        (server.store.revision(), Vec::new())
    } else {
        (version, Vec::new())
    };
    let started = server.store.watch(resource.table, selection.scope.clone(), revision);
    let watch = match started {
        Ok(watch) => watch,
        Err(Compacted(trimmed)) => {
            let gone = gone(version, trimmed);
            return Ok(stream::once(async move { gone }).boxed());
        }
    };
    let mut watching = Watching {
        server: server.clone(),
        resource: Arc::clone(resource),
        selection,
        form,
        query: query.clone(),
        watch,
        pending: Vec::new(),
        bookmarks,
        end: Instant::now() + length,
        done: false,
        first_table: true,
    };
    for stored in conversion::all(server, resource, initial).await? {
        pending.push(watching.event("ADDED", &stored.body));
    }
    // Who begins with what there is now is told where that ends, also without asking for it.
    let begins_now = initial_events.unwrap_or(version == 0);
    if begins_now && bookmarks {
        pending.push(watching.bookmark(revision, true));
    }
    pending.reverse();
    watching.pending = pending;
    Ok(stream::unfold(watching, |mut watching| async move {
        let event = watching.next().await?;
        Some((event, watching))
    })
    .boxed())
}

impl Watching {
    async fn next(&mut self) -> Option<Bytes> {
        let bookmark_at = Instant::now() + BOOKMARK_PERIOD;
        loop {
            if let Some(event) = self.pending.pop() {
                return Some(event);
            }
            if self.done {
                return None;
            }
            let wake = if self.bookmarks { bookmark_at.min(self.end) } else { self.end };
            let changes = tokio::select! {
                biased;
                changes = self.watch.next() => changes,
                () = tokio::time::sleep_until(wake) => {
                    if Instant::now() >= self.end {
                        return None;
                    }
                    let revision = self.watch.seen();
                    return Some(self.bookmark(revision, false));
                }
            };
            match changes {
                Ok(changes) => {
                    let changes = match conversion::changes(&self.server, &self.resource, changes).await {
                        Ok(changes) => changes,
                        Err(failure) => {
                            self.done = true;
                            return Some(error(&failure));
                        }
                    };
                    let mut events: Vec<Bytes> =
                        changes.iter().filter_map(|change| self.seen(change)).collect();
                    events.reverse();
                    self.pending = events;
                }
                Err(Compacted(trimmed)) => {
                    self.done = true;
                    return Some(gone(self.watch.seen(), trimmed));
                }
            }
        }
    }

    fn seen(&mut self, change: &Change) -> Option<Bytes> {
        let before = change.before.as_ref().filter(|stored| self.selection.holds(&self.resource, stored));
        let after =
            (!change.deleted && self.selection.holds(&self.resource, &change.after)).then_some(&change.after);
        match (before, after) {
            (None, None) => None,
            (None, Some(after)) => Some(self.shared("ADDED", after)),
            (Some(_), Some(after)) => Some(self.shared("MODIFIED", after)),
            (Some(_), None) if change.deleted => Some(self.shared("DELETED", &change.after)),
            // It left the selection: its last state there, at the revision that took it away.
            (Some(before), None) => {
                let mut object = decoded(before).ok()?;
                metadata_mut(&mut object)
                    .insert("resourceVersion".into(), change.revision.to_string().into());
                Some(self.event("DELETED", &Bytes::from(object.to_string())))
            }
        }
    }

    /// An event that others may be sent as well.
    fn shared(&mut self, kind: &'static str, stored: &Stored) -> Bytes {
        if self.form.view == View::Table {
            return self.event(kind, &stored.body);
        }
        let (recent, resource) = (self.server.recent.clone(), Arc::clone(&self.resource));
        recent.event(&resource, stored.revision, kind, self.form, || self.event(kind, &stored.body))
    }

    fn event(&mut self, kind: &str, body: &Bytes) -> Bytes {
        let mut out = BytesMut::with_capacity(body.len() + 128);
        out.put_slice(b"{\"type\":\"");
        out.put_slice(kind.as_bytes());
        out.put_slice(b"\",\"object\":");
        match self.form.view {
            View::Whole => put_typed(&mut out, &self.resource, body),
            View::Metadata | View::MetadataList => {
                let partial = partial(&self.resource, body, self.form.version);
                out.put_slice(partial.unwrap_or_else(|_| "{}".to_owned()).as_bytes());
            }
            View::Table => {
                let object: Value = serde_json::from_slice(body).unwrap_or_default();
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                let table = self.table(object, metadata);
                out.put_slice(table.to_string().as_bytes());
            }
        }
        out.put_slice(b"}\n");
        out.freeze()
    }

    fn table(&mut self, object: Value, metadata: Value) -> Value {
        let version = self.form.version;
        let mut table = table::of(&self.server, &self.resource, &[object], metadata, version, &self.query);
        if !std::mem::take(&mut self.first_table) {
            table["columnDefinitions"] = Value::Null;
        }
        table
    }

    fn bookmark(&mut self, revision: Revision, initial: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.form.view {
            View::Whole => with_type(&json!({"metadata": metadata}), &self.resource),
            View::Table => {
                let version = json!({"resourceVersion": revision.to_string()});
                self.table(json!({"metadata": metadata}), version)
            }
            _ => json!({
                "kind": "PartialObjectMetadata", "apiVersion": self.form.version, "metadata": metadata,
            }),
        };
        Bytes::from(format!("{}\n", json!({"type": "BOOKMARK", "object": object})))
    }
}

fn gone(version: Revision, trimmed: Revision) -> Bytes {
    error(&Failure::expired(format!("too old resource version: {version} ({trimmed})")))
}

/// What ends a watch that cannot go on.
fn error(failure: &Failure) -> Bytes {
    Bytes::from(format!("{}\n", json!({"type": "ERROR", "object": failure.status()})))
}

fn parse_revision(text: &str) -> Outcome<Revision> {
    parse_unsigned(text).map_err(|error| {
        Failure::internal(format!("resourceVersion: Invalid value: {text:?}: {}", error.message))
    })
}

fn too_large(wanted: Revision, newest: Revision) -> Failure {
    let message = format!("Too large resource version: {wanted}, current: {newest}");
    let mut failure = Failure::internal(format!("Timeout: {message}"));
    failure.code = http::StatusCode::GATEWAY_TIMEOUT;
    failure.reason = "Timeout";
    failure.with_details(json!({
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }))
}
