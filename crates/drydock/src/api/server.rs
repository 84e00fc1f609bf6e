//! The server: takes a request apart, sends it the right way, puts the answer together.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context as TaskContext, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited, StreamBody};
use serde_json::{Value, json};
use windlass_machinery::{Context, decode};

use super::admission::policy::Policies;
use super::admission::webhook::Hooks;
use super::auth::token::Signer;
use super::auth::{self, Attributes, Auth, User};
use super::negotiation::{self, Form};
use super::options::{DeleteOptions, WriteOptions};
use super::read;
use super::registry::{BuiltIn, LoadError, Registry, Resource};
use super::request::{self, Query, ResourcePath, Target};
use super::status::{Failure, Outcome};
use super::write::body::as_json;
use super::write::delete::Deleted;
use super::write::patch::{Patch, PatchKind};
use super::write::{Replace, Write};
use super::{definitions, discovery, log, openapi, subresources};
use crate::faults::{self, Asked, Effect, Faults, Verdict};
use crate::logs::Logs;
use crate::record::{Entry, Record};
use crate::store::{Key, Revision, Store, TableId};
use crate::webhook::Webhooks;

/// The largest body the server reads.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The API server. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Server {
    /// The objects.
    pub store: Store,
    /// Time, randomness and ids.
    pub context: Context,
    /// The built-in resources.
    pub built_in: Arc<BuiltIn>,
    /// Who asked for what.
    pub record: Record,
    /// What containers wrote.
    pub logs: Logs,
    /// What goes wrong, where a test wants it to.
    pub faults: Faults,
    /// Who may do what.
    pub auth: Arc<Auth>,
    /// Admission policies, compiled.
    pub policies: Policies,
    /// Admission webhooks, compiled.
    pub hooks: Hooks,
    /// The way to webhooks.
    pub webhooks: Webhooks,
    registry: Arc<RwLock<Known>>,
    definitions: TableId,
}

/// The resources as of a revision of the definitions.
#[derive(Debug)]
struct Known {
    revision: Revision,
    registry: Arc<Registry>,
}

/// A request, read.
struct Call {
    method: Method,
    headers: HeaderMap,
    query: Query,
    user: User,
    body: Bytes,
    /// Reads see the cluster as it was at that revision.
    as_of: Option<Revision>,
}

/// An answer, not yet sent.
struct Answer {
    code: StatusCode,
    kind: &'static str,
    body: AnswerBody,
    warnings: Vec<String>,
}

enum AnswerBody {
    Whole(Bytes),
    Events(read::Events),
}

impl Answer {
    fn json(code: StatusCode, value: &Value) -> Self {
        Self::bytes(code, Form::PLAIN, Bytes::from(value.to_string()))
    }

    fn bytes(code: StatusCode, form: Form, body: Bytes) -> Self {
        let kind = if form.yaml { "application/yaml" } else { "application/json" };
        Self { code, kind, body: AnswerBody::Whole(body), warnings: Vec::new() }
    }

    fn text(code: StatusCode, text: &str) -> Self {
        let kind = "text/plain; charset=utf-8";
        Self { code, kind, body: AnswerBody::Whole(Bytes::from(text.to_owned())), warnings: Vec::new() }
    }

    fn failure(failure: &Failure, headers: &HeaderMap) -> Self {
        let form = negotiation::accepted(headers).unwrap_or(Form::PLAIN);
        let json = Bytes::from(failure.status().to_string());
        let body = read::encode(json.clone(), form).unwrap_or(json);
        Self::bytes(failure.code, form, body)
    }

    fn response(self) -> Response<Body> {
        let body = match self.body {
            AnswerBody::Whole(bytes) => Full::new(bytes).boxed_unsync(),
            AnswerBody::Events(events) => {
                let frames = events.map(|event| Ok::<_, Infallible>(Frame::data(event)));
                StreamBody::new(frames).boxed_unsync()
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        for warning in &self.warnings {
            let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
                headers.append(HeaderName::from_static("warning"), value);
            }
        }
        response
    }
}

impl Server {
    /// A server with an empty store.
    ///
    /// # Errors
    /// When its tables do not fit the code, which a build of the crate never has.
    pub fn new(context: Context) -> Result<Self, LoadError> {
        let store = Store::default();
        let built_in = Arc::new(BuiltIn::load(&store)?);
        Ok(Self::of(context, store, built_in, Auth::new()?))
    }

    /// A server that starts with the objects and the key of another.
    #[must_use]
    pub(crate) fn restored(
        context: Context,
        store: Store,
        built_in: Arc<BuiltIn>,
        signer: Arc<Signer>,
    ) -> Self {
        let server = Self::of(context, store, built_in, Auth::with_signer(signer));
        server.reload();
        server
    }

    /// Takes what is kept besides the store from the store anew.
    pub(crate) fn reload(&self) {
        self.auth.reload(&self.store, &self.registry());
    }

    fn of(context: Context, store: Store, built_in: Arc<BuiltIn>, auth: Auth) -> Self {
        let registry = Arc::new(Registry::new(&built_in, Vec::new()));
        let definitions = store.table(definitions::TABLE);
        let hooks = Hooks::new(&store);
        Self {
            hooks,
            definitions,
            store,
            context,
            built_in,
            record: Record::default(),
            logs: Logs::default(),
            faults: Faults::default(),
            auth: Arc::new(auth),
            policies: Policies::default(),
            webhooks: Webhooks::default(),
            registry: Arc::new(RwLock::new(Known { revision: 0, registry })),
        }
    }

    /// The resources at this moment: whoever has seen a definition established finds what it defines.
    #[must_use]
    pub fn registry(&self) -> Arc<Registry> {
        let newest = self.store.newest(self.definitions);
        let known = self.registry.read().unwrap_or_else(PoisonError::into_inner);
        if known.revision == newest {
            return Arc::clone(&known.registry);
        }
        drop(known);
        let mut known = self.registry.write().unwrap_or_else(PoisonError::into_inner);
        let newest = self.store.newest(self.definitions);
        if known.revision != newest {
            let registry = Arc::new(definitions::registry(self, self.definitions));
            *known = Known { revision: newest, registry };
        }
        Arc::clone(&known.registry)
    }

    /// What the server itself does after a write.
    pub fn after_write<'a>(
        &'a self,
        resource: &'a Arc<Resource>,
        old: Option<&'a Value>,
        new: Option<&'a Value>,
    ) -> BoxFuture<'a, ()> {
        if let Some(object) = new.or(old) {
            self.auth.changed(&self.store, resource, object);
        }
        async move {
            if definitions::is_definition(resource) {
                definitions::changed(self, resource, new).await;
            } else if resource.custom.is_some() && new.is_none() && old.is_some() {
                definitions::instance_removed(self, resource).await;
            }
        }
        .boxed()
    }

    /// Answers a request.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let headers = parts.headers;
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let target = request::target(parts.uri.path());
        let user = match auth::requester(self, &parts.extensions, &headers, &parts.method, &target, &query) {
            Ok(user) => user,
            Err(failure) => return Answer::failure(&failure, &headers).response(),
        };
        let body = match Limited::new(body, BODY_LIMIT).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Answer::failure(&Failure::too_large(BODY_LIMIT), &headers).response();
            }
            Err(error) => {
                let failure = Failure::bad_request(format!("failed to read the body: {error}"));
                return Answer::failure(&failure, &headers).response();
            }
        };
        let mut call = Call { query, method: parts.method, headers, user, body, as_of: None };
        let answer = match target {
            Target::Path(path) => self.path(&call, &path),
            Target::Resource(path) => {
                let verb = request::verb(&call.method, &path, &call.query);
                let client = user_agent(&call.headers).to_owned();
                let verdict = self.faults.verdict(&asked(&client, verb, &path), &self.context);
                call.as_of = verdict.frozen;
                if let Some(answer) = before(verdict.effect.as_ref(), &call.headers).await {
                    return answer.response();
                }
                let mut warnings = Vec::new();
                let answer = match self.resource(&call, &path, verb, &mut warnings).await {
                    Ok(answer) => answer,
                    Err(Unanswered::NoPage) => Answer::text(StatusCode::NOT_FOUND, "404 page not found\n"),
                    Err(Unanswered::Failed(failure)) => Answer::failure(&failure, &call.headers),
                };
                let answer = after(answer, verdict, &self.faults, &client, &call.headers).await;
                self.record.add(|| Entry {
                    client,
                    verb,
                    resource: path.resource.clone(),
                    subresource: path.subresource.clone(),
                    namespace: path.namespace.clone(),
                    name: path.name.clone(),
                    code: answer.code.as_u16(),
                });
                Answer { warnings, ..answer }
            }
        };
        answer.response()
    }

    fn path(&self, call: &Call, path: &str) -> Answer {
        let verb = call.method.as_str().to_lowercase();
        let wanted = Attributes { verb: &verb, target: auth::Target::Path(path) };
        if let Err(failure) = self.auth.authorize(&call.user, &wanted) {
            return Answer::failure(&failure, &call.headers);
        }
        let page = path.trim_end_matches('/');
        let registry = self.registry();
        match page {
            "/healthz" | "/livez" | "/readyz" => return Answer::text(StatusCode::OK, "ok"),
            "/.well-known/openid-configuration" => {
                return Answer::json(StatusCode::OK, &auth::token::discovery());
            }
            "/openid/v1/jwks" => {
                let keys = Answer::json(StatusCode::OK, &self.auth.signer.key_set());
                return Answer { kind: "application/jwk-set+json", ..keys };
            }
            "/version" => return Answer::json(StatusCode::OK, &version()),
            "/openapi/v2" => {
                let accept = call.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
                let accept = accept.unwrap_or("*/*");
                if !["*/*", "application/json", "application/*"].iter().any(|known| accept.contains(known)) {
                    return Answer::text(StatusCode::NOT_ACCEPTABLE, "");
                }
                return Answer::json(StatusCode::OK, &openapi::v2::whole(self, &registry));
            }
            "/openapi/v3" => return Answer::json(StatusCode::OK, &openapi::index(&registry)),
            _ => {}
        }
        if let Some(place) = page.strip_prefix("/openapi/v3/") {
            if let Some(document) = openapi::document(self, &registry, place) {
                return Answer::json(StatusCode::OK, &document);
            }
            return Answer::text(StatusCode::NOT_FOUND, "404 page not found\n");
        }
        let aggregated = discovery::wants_aggregated(&call.headers) && matches!(page, "/api" | "/apis");
        match discovery::answer(&registry, page, aggregated) {
            Some(answer) if aggregated => {
                Answer { kind: discovery::AGGREGATED, ..Answer::json(StatusCode::OK, &answer) }
            }
            Some(answer) => Answer::json(StatusCode::OK, &answer),
            None => match page.split('/').collect::<Vec<_>>().as_slice() {
                ["", "apis", group, _] if registry.knows(group, "").0 => {
                    Answer::failure(&Failure::no_such_resource(), &call.headers)
                }
                _ => Answer::text(StatusCode::NOT_FOUND, "404 page not found\n"),
            },
        }
    }

    async fn resource(
        &self,
        call: &Call,
        path: &ResourcePath,
        verb: &'static str,
        warnings: &mut Vec<String>,
    ) -> Result<Answer, Unanswered> {
        self.auth.authorize(&call.user, &Attributes::of(verb, path, &call.query))?;
        let registry = self.registry();
        let Some(resource) = registry.find(&path.group, &path.version, &path.resource) else {
            return Err(match registry.knows(&path.group, &path.version) {
                (false, _) => Unanswered::NoPage,
                _ => Failure::no_such_resource().into(),
            });
        };
        warnings.extend(deprecation(resource).map(ToOwned::to_owned));
        if let Some(name) = &path.name
            && let Some(why) = windlass_machinery::names::path_segment_name(name, false).first()
        {
            return Err(Failure::bad_request(format!("Name parameter invalid: {name:?}: {why}")).into());
        }
        // What is only answered and never stored has no objects, and no path beside its own.
        let misplaced = path.name.is_some() || (resource.namespaced && path.namespace.is_none());
        if auth::reviews::is_review(resource) && misplaced {
            return Err(Failure::no_such_resource().into());
        }
        // A namespaced object has no address without its namespace.
        if resource.namespaced && path.namespace.is_none() && (path.name.is_some() || verb == "create") {
            return Err(if path.name.is_some() {
                Failure::no_such_resource()
            } else {
                Failure::method_not_allowed()
            }
            .into());
        }
        let namespace = path.namespace.as_deref().filter(|_| resource.namespaced);
        let mut write = Write {
            server: self,
            resource,
            subresource: path.subresource.as_deref(),
            namespace: namespace.unwrap_or_default(),
            user: &call.user,
            options: WriteOptions::internal(),
            warnings: Vec::new(),
        };
        let answer = match &path.subresource {
            Some(sub) => self.subresource(call, path, resource, sub, verb, &mut write).await,
            None if verb.is_empty() || !resource.allows(verb) || lacks_name(verb, path) => {
                Err(Failure::method_not_allowed())
            }
            None => self.object(call, path, resource, verb, &mut write).await,
        };
        warnings.append(&mut write.warnings);
        Ok(answer?)
    }

    async fn object(
        &self,
        call: &Call,
        path: &ResourcePath,
        resource: &Arc<Resource>,
        verb: &str,
        write: &mut Write<'_>,
    ) -> Outcome<Answer> {
        let form = negotiation::accepted(&call.headers)?;
        let name = path.name.as_deref().unwrap_or_default();
        let namespace = path.namespace.as_deref().filter(|_| resource.namespaced);
        let key = Key::new(namespace.unwrap_or_default(), name);
        match verb {
            "get" => {
                let object = read::get(self, resource, &key, form, &call.query, call.as_of).await?;
                Ok(Answer::bytes(StatusCode::OK, form, object))
            }
            "list" => {
                let list = read::list(self, resource, namespace, form, &call.query, call.as_of).await?;
                Ok(Answer::bytes(StatusCode::OK, form, list))
            }
            "watch" => {
                let events =
                    read::watch(self, resource, namespace, path.name.as_deref(), form, &call.query).await?;
                let body = AnswerBody::Events(events);
                Ok(Answer { code: StatusCode::OK, kind: "application/json", body, warnings: Vec::new() })
            }
            "create" => {
                write.options = self.write_options("CreateOptions", call, false)?;
                let object = write.read_body(&call.headers, &call.body)?;
                if auth::reviews::is_review(resource) {
                    let body = auth::reviews::create(write, object)?;
                    let shown = read::shown(self, resource, &body, form, &call.query)?;
                    return Ok(Answer::bytes(StatusCode::CREATED, form, shown));
                }
                let written = write.create(object).await?;
                self.written(resource, &written, form, &call.query)
            }
            "update" => {
                write.options = self.write_options("UpdateOptions", call, false)?;
                let object = write.read_body(&call.headers, &call.body)?;
                write.check_name(&object, name)?;
                let written = write.update(name, &Replace(object)).await?;
                self.written(resource, &written, form, &call.query)
            }
            "patch" => {
                let patch = self.patch(call, resource, name, write)?;
                let written = write.update(name, &patch).await?;
                self.written(resource, &written, form, &call.query)
            }
            "delete" => {
                let options = self.delete_options(call)?;
                match write.delete(name, &options).await? {
                    Deleted::Gone(status) => {
                        let json = Bytes::from(status.to_string());
                        Ok(Answer::bytes(StatusCode::OK, form, read::encode(json, form)?))
                    }
                    Deleted::Object(body) => {
                        let shown = read::shown(self, resource, &body, form, &call.query)?;
                        Ok(Answer::bytes(StatusCode::OK, form, shown))
                    }
                }
            }
            _ => self.delete_all(call, resource, namespace, form, write).await,
        }
    }

    async fn delete_all(
        &self,
        call: &Call,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        form: Form,
        write: &mut Write<'_>,
    ) -> Outcome<Answer> {
        let options = DeleteOptions { collection: true, ..self.delete_options(call)? };
        let read::Page { items, metadata } = read::page(self, resource, namespace, &call.query, None)?;
        for stored in &items {
            match write.delete(&stored.key.name, &options).await {
                Err(failure) if failure.reason != "NotFound" => return Err(failure),
                _ => {}
            }
        }
        let list = read::list_body(self, resource, &items, metadata, form, &call.query)?;
        Ok(Answer::bytes(StatusCode::OK, form, list))
    }

    async fn subresource(
        &self,
        call: &Call,
        path: &ResourcePath,
        resource: &Arc<Resource>,
        sub: &str,
        verb: &str,
        write: &mut Write<'_>,
    ) -> Outcome<Answer> {
        let name = path.name.as_deref().unwrap_or_default();
        let Some(known) = resource.subresources.get(sub) else {
            // A custom resource answers for subresources it might have had as for objects.
            return Err(match &resource.custom {
                Some(_) if matches!(sub, "status" | "scale") => Failure::not_found(resource, name),
                _ => Failure::no_such_resource(),
            });
        };
        if !known.verbs.iter().any(|allowed| allowed == verb) {
            return Err(Failure::method_not_allowed());
        }
        let options = |kind: &str| self.write_options(kind, call, false);
        match (sub, verb) {
            ("status", _) => self.object(call, path, resource, verb, write).await,
            ("finalize", _) => self.object(call, path, resource, "update", write).await,
            ("scale", _) => {
                if verb != "get" {
                    let kind = if verb == "patch" { "PatchOptions" } else { "UpdateOptions" };
                    write.options = options(kind)?;
                }
                let (code, scale) =
                    subresources::scale(write, &call.method, &call.headers, name, call.body.clone()).await?;
                Ok(Answer::json(code, &scale))
            }
            (auth::token_request::SUBRESOURCE, "create") => {
                let form = negotiation::accepted(&call.headers)?;
                write.options = options("CreateOptions")?;
                let (kind, body) =
                    auth::token_request::create(write, &call.headers, &call.body, name).await?;
                let shown = read::shown(self, &kind, &body, form, &call.query)?;
                Ok(Answer::bytes(StatusCode::CREATED, form, shown))
            }
            ("log", "get") => {
                let kind = "text/plain";
                let key = write.key(name);
                let (code, body) = match log::answer(self, resource, &key, &call.query)? {
                    Some(lines) => (StatusCode::OK, AnswerBody::Events(lines)),
                    None => (StatusCode::NO_CONTENT, AnswerBody::Whole(Bytes::new())),
                };
                Ok(Answer { code, kind, body, warnings: Vec::new() })
            }
            ("binding", "create") => {
                write.options = options("CreateOptions")?;
                let (code, answer) =
                    subresources::bind(write, name, &self.any_body(call, resource, sub)?).await?;
                Ok(Answer::json(code, &answer))
            }
            ("eviction", "create") => {
                write.options = options("CreateOptions")?;
                let (code, answer) =
                    subresources::evict(write, name, &self.any_body(call, resource, sub)?, &call.query)
                        .await?;
                Ok(Answer::json(code, &answer))
            }
            _ => {
                let key = write.key(name);
                self.store.get(resource.table, &key).ok_or_else(|| Failure::not_found(resource, name))?;
                Err(Failure::not_implemented(format!(
                    "the drydock does not have {}/{sub} of {} {name:?}; use a real cluster for it",
                    resource.plural, resource.kind
                )))
            }
        }
    }

    fn any_body(&self, call: &Call, resource: &Resource, sub: &str) -> Outcome<Value> {
        if call.body.is_empty() {
            return Ok(json!({}));
        }
        let json = match resource.part(sub) {
            Some(part) => as_json(&call.headers, &call.body, part.ty(), &part.kind)?,
            None => call.body.clone(),
        };
        decode::text(&json, None)
            .map(|(value, _)| value)
            .map_err(|error| Failure::bad_request(error.to_string()))
    }

    fn write_options(&self, kind: &str, call: &Call, apply: bool) -> Outcome<WriteOptions> {
        WriteOptions::parse(kind, &call.query, user_agent(&call.headers), apply)
    }

    fn delete_options(&self, call: &Call) -> Outcome<DeleteOptions> {
        if call.body.is_empty() {
            return DeleteOptions::parse(None, &call.query);
        }
        let ty = self.built_in.schemas.at(self.built_in.delete_options);
        let json = as_json(&call.headers, &call.body, ty, "DeleteOptions")?;
        let unreadable = |error: decode::DecodeError| {
            Failure::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
        };
        let (any, _) = decode::text(&json, None).map_err(unreadable)?;
        if let (Some(version), Some(kind)) = (any["apiVersion"].as_str(), any["kind"].as_str())
            && kind != "DeleteOptions"
        {
            return Err(Failure::bad_request(format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
            )));
        }
        let (body, _) =
            decode::text(&json, Some(ty)).map_err(|error| Failure::bad_request(error.to_string()))?;
        DeleteOptions::parse(Some(&body), &call.query)
    }

    fn patch(&self, call: &Call, resource: &Resource, name: &str, write: &mut Write<'_>) -> Outcome<Patch> {
        let kind = PatchKind::of(&call.headers, resource)?;
        write.options = self.write_options("PatchOptions", call, kind == PatchKind::Apply)?;
        Ok(Patch::new(kind, call.body.clone(), name))
    }

    fn written(
        &self,
        resource: &Resource,
        written: &super::write::Written,
        form: Form,
        query: &Query,
    ) -> Outcome<Answer> {
        let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
        Ok(Answer::bytes(code, form, read::shown(self, resource, &written.body, form, query)?))
    }
}

/// What a request asks for, as far as faults look at it.
fn asked<'a>(client: &'a str, verb: &'a str, path: &'a ResourcePath) -> Asked<'a> {
    let resource = match &path.subresource {
        Some(subresource) => Cow::Owned(format!("{}/{subresource}", path.resource)),
        None => Cow::Borrowed(path.resource.as_str()),
    };
    Asked { client, verb, resource, name: path.name.as_deref() }
}

/// What a fault does before the request is carried out; an answer where it is not to be.
async fn before(effect: Option<&Effect>, headers: &HeaderMap) -> Option<Answer> {
    match effect? {
        Effect::Refuse(code, reason) => {
            let failure = Failure { code: *code, reason, ..Failure::internal("a fault was switched on") };
            Some(Answer::failure(&failure, headers))
        }
        Effect::Delay(time) => {
            tokio::time::sleep(*time).await;
            None
        }
        Effect::Hang => std::future::pending().await,
        Effect::ExpireWatch => {
            Some(Answer::failure(&Failure::expired("too old resource version: 1 (2)"), headers))
        }
        _ => None,
    }
}

/// What faults leave of an answer.
async fn after(
    answer: Answer,
    verdict: Verdict,
    faults: &Faults,
    client: &str,
    headers: &HeaderMap,
) -> Answer {
    if verdict.last {
        return std::future::pending().await;
    }
    if matches!(verdict.effect, Some(Effect::LoseAnswer)) {
        let failure = Failure {
            code: StatusCode::GATEWAY_TIMEOUT,
            reason: "Timeout",
            ..Failure::internal("the answer was lost")
        };
        return Answer::failure(&failure, headers);
    }
    match answer.body {
        AnswerBody::Events(events) => {
            let events = faults::spoil(events, verdict.effect.as_ref(), faults.clone(), client.to_owned());
            Answer { body: AnswerBody::Events(events), ..answer }
        }
        AnswerBody::Whole(_) => answer,
    }
}

/// Why there is no answer.
enum Unanswered {
    /// The path is none that the server knows.
    NoPage,
    /// The client is told.
    Failed(Failure),
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What the client of a resource on its way out is told.
fn deprecation(resource: &Resource) -> Option<&'static str> {
    static TABLE: &[(&str, &str, &str)] = &[
        ("", "endpoints", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        ("", "componentstatuses", "v1 ComponentStatus is deprecated in v1.19+"),
    ];
    let found =
        TABLE.iter().find(|(group, plural, _)| *group == resource.group && *plural == resource.plural);
    found.map(|(_, _, message)| *message)
}

/// Whether a verb that is for one object comes without its name, or a create with one.
fn lacks_name(verb: &str, path: &ResourcePath) -> bool {
    match verb {
        "update" | "patch" => path.name.is_none(),
        "create" => path.name.is_some(),
        _ => false,
    }
}

fn user_agent(headers: &HeaderMap) -> &str {
    headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": "v1.36.3+windlass", "gitCommit": "", "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        }),
    })
}

impl<B> tower::Service<Request<B>> for Server
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        async move { Ok(server.handle(request).await) }.boxed()
    }
}
