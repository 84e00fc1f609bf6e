//! The server: takes a request apart, sends it the right way, puts the answer together.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context as TaskContext, Poll};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::USER_AGENT;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde_json::Value;
use windlass_machinery::Context;

use super::admission::policy::Policies;
use super::admission::webhook::Hooks;
use super::auth::token::Signer;
use super::auth::{self, Attributes, Auth, User};
use super::options::WriteOptions;
use super::read::recent::Recent;
use super::registry::{BuiltIn, LoadError, Registry, Resource};
use super::request::{self, Query, ResourcePath, Target};
use super::status::{Failure, Outcome};
use super::write::Write;
use super::{definitions, upkeep};
use crate::faults::{self, Asked, Effect, Faults, Verdict};
use crate::logs::Logs;
use crate::record::{Entry, Record};
use crate::store::{Revision, Store, TableId};
use crate::webhook::Webhooks;

mod answer;
mod input;
mod objects;
mod pages;
mod parts;

pub(super) use input::too_deep;

use answer::{Answer, AnswerBody};

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
    /// Events that watches share.
    pub(super) recent: Recent,
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
    user: Arc<User>,
    body: Bytes,
    /// Reads see the cluster as it was at that revision.
    as_of: Option<Revision>,
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
            recent: Recent::default(),
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
            upkeep::changed(self, resource, new).await;
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
            Ok(body) => input::mended(&headers, body.to_bytes()),
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
            Target::Path(path) => self.page(&call, &path),
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
                    Err(Unanswered::NoPage) => Answer::no_page(),
                    Err(Unanswered::Failed(failure)) => Answer::failure(&failure, &call.headers),
                };
                let answer = after(answer, verdict, &self.faults, &client, &call.headers).await;
                self.record.add(&client, verb, || Entry {
                    client: client.clone(),
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
        let answer = match call.method {
            // Who asks for the head of an answer gets no more.
            Method::HEAD => Answer { body: AnswerBody::Whole(Bytes::new()), ..answer },
            _ => answer,
        };
        answer.response()
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
                _ if registry.is_custom(&path.group) => Unanswered::NoPage,
                _ => Failure::no_such_resource().into(),
            });
        };
        if resource.custom.is_some() && is_elsewhere(path, resource, verb) {
            return Err(Unanswered::NoPage);
        }
        check_place(path, resource, verb)?;
        let allowed = path.subresource.is_some()
            || !(verb.is_empty() || !takes(resource, verb) || lacks_name(verb, path));
        if !allowed {
            return Err(Failure::method_not_allowed().into());
        }
        // What has no address has no other one either.
        let known = path.subresource.as_ref().is_none_or(|sub| resource.subresources.contains_key(sub));
        if known || resource.custom.is_some() {
            warnings.extend(deprecation(resource).map(Cow::into_owned));
        }
        if let Some(name) = path.name.as_ref().filter(|_| verb != "update")
            && let Some(why) = windlass_machinery::names::path_segment_name(name, false).first()
        {
            return Err(Failure::bad_request(format!("Name parameter invalid: {name:?}: {why}")).into());
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
            None => self.object(call, path, resource, verb, &mut write).await,
        };
        warnings.append(&mut write.warnings);
        Ok(answer?)
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

/// Whether a custom resource is asked for in a namespace that it has not, or without one that it needs.
fn is_elsewhere(path: &ResourcePath, resource: &Resource, verb: &str) -> bool {
    match (resource.namespaced, path.namespace.is_some()) {
        (false, true) => true,
        (true, false) => !matches!(verb, "list" | "watch"),
        _ => false,
    }
}

/// Whether the path is one that a resource has.
fn check_place(path: &ResourcePath, resource: &Resource, verb: &str) -> Outcome<()> {
    // What is only answered and never stored has no objects, and no path beside its own.
    let unstored = resource.verbs.iter().all(|known| known == "create");
    let outside = resource.namespaced && path.namespace.is_none();
    if unstored && (path.name.is_some() || (outside && auth::reviews::is_review(resource))) {
        return Err(Failure::no_such_resource());
    }
    // Nothing but namespaces is both cluster-wide and within one.
    let inside = path.namespace.is_some() && path.namespace != path.name;
    if !resource.namespaced && inside {
        return Err(Failure::no_such_resource());
    }
    // A namespaced object has no address without its namespace.
    match (outside, &path.name) {
        (true, Some(_)) => Err(Failure::no_such_resource()),
        (true, None) if matches!(verb, "create" | "deletecollection") => Err(Failure::method_not_allowed()),
        _ => Ok(()),
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
fn deprecation(resource: &Resource) -> Option<Cow<'_, str>> {
    static TABLE: &[(&str, &str, &str)] = &[
        ("", "endpoints", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        ("", "componentstatuses", "v1 ComponentStatus is deprecated in v1.19+"),
    ];
    if let Some(custom) = &resource.custom {
        return custom.deprecation.as_deref().map(Cow::Borrowed);
    }
    let found =
        TABLE.iter().find(|(group, plural, _)| *plural == resource.plural && *group == resource.group);
    found.map(|(_, _, message)| Cow::Borrowed(*message))
}

/// Whether a resource takes a verb. One whose definition is going lists fewer than it takes.
fn takes(resource: &Resource, verb: &str) -> bool {
    resource.custom.is_some() || resource.allows(verb)
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
