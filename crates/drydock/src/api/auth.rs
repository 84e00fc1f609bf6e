//! Who asks, and whether they may.
//!
//! A request is made by whom its client certificate or its bearer token names ([`token`]), or by whom that user
//! may act as ([`impersonation`]). What a user may do is what the stored roles say ([`rbac`]), members of
//! `system:masters` excepted, who may do everything. Roles and bindings are held to what their writer may do
//! itself ([`escalation`]); clients ask about all of it with [`reviews`].

pub mod escalation;
pub mod impersonation;
pub mod rbac;
pub mod reviews;
pub mod rule;
pub mod token;
pub mod token_request;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap, Method};
use serde_json::Value;
use windlass_machinery::go::quote;
use windlass_machinery::names;

use super::registry::{Registry, Resource};
use super::request::{self, Query, ResourcePath};
use super::server::Server;
use super::status::{Failure, Outcome};
use super::write::{metadata_of, name_of};
use crate::store::{Key, Scope, Store};
use rbac::{Decision, Policy};
use token::{KeyError, Signer};

/// The group that may do everything.
pub const MASTERS: &str = "system:masters";
/// The group of everybody who said who they are.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody who did not.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of everybody who did not.
pub const ANONYMOUS: &str = "system:anonymous";
/// The key of a user's extras that names the certificate or token it came with.
pub const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Who makes a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// What tells it from users that had the name before; may be empty.
    pub uid: String,
    /// The groups it is in.
    pub groups: Vec<String>,
    /// What else is known about it.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// An authenticated user.
    #[must_use]
    pub fn new(name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().chain(&[AUTHENTICATED]).map(|group| (*group).to_owned()).collect();
        Self { name: name.to_owned(), groups, ..Self::default() }
    }

    /// A member of `system:masters`.
    #[must_use]
    pub fn master(name: &str) -> Self {
        Self::new(name, &[MASTERS])
    }

    /// A service account.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let own = format!("system:serviceaccounts:{namespace}");
        Self::new(&account_name(namespace, name), &["system:serviceaccounts", &own])
    }

    /// Somebody who did not say who they are.
    #[must_use]
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..Self::default() }
    }

    /// Whether the user may do everything.
    #[must_use]
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}

/// The user name of a service account.
#[must_use]
pub fn account_name(namespace: &str, name: &str) -> String {
    format!("{ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The namespace and name of the service account that a user name is of.
#[must_use]
pub fn account_of(user_name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user_name.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
    let valid =
        names::label_name(namespace, false).is_empty() && names::subdomain_name(name, false).is_empty();
    valid.then_some((namespace, name))
}

/// What somebody wants to do.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// The API's verb, or the HTTP method in lower case.
    pub verb: &'a str,
    /// To what.
    pub target: Target<'a>,
}

/// What something is done to.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A resource, or objects of it.
    Resource(ResourceTarget<'a>),
    /// A path that is no resource.
    Path(&'a str),
}

/// A resource, or objects of it. Empty is none or all.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResourceTarget<'a> {
    /// The API group.
    pub group: &'a str,
    /// The plural name.
    pub resource: &'a str,
    /// The subresource.
    pub subresource: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The object's name.
    pub name: &'a str,
}

impl<'a> Attributes<'a> {
    /// What a request for a resource wants.
    #[must_use]
    pub fn of(verb: &'a str, path: &'a ResourcePath, query: &'a Query) -> Self {
        let text = |value: &'a Option<String>| value.as_deref().unwrap_or_default();
        let mut name = text(&path.name);
        if name.is_empty() && matches!(verb, "list" | "watch") {
            name = named(query).unwrap_or_default();
        }
        let namespace = match text(&path.namespace) {
            // A namespace is in itself.
            "" if path.resource == "namespaces" => text(&path.name),
            namespace => namespace,
        };
        let subresource = text(&path.subresource).split('/').next().unwrap_or_default();
        let (group, resource) = (path.group.as_str(), path.resource.as_str());
        Self {
            verb,
            target: Target::Resource(ResourceTarget { group, resource, subresource, namespace, name }),
        }
    }

    fn namespace(&self) -> &'a str {
        match self.target {
            Target::Resource(target) => target.namespace,
            Target::Path(_) => "",
        }
    }

    /// 403 with the user and what it wanted.
    #[must_use]
    pub fn refusal(&self, user: &User, reason: &str) -> Failure {
        let (user, verb) = (quote(&user.name), self.verb);
        let message = match self.target {
            Target::Path(path) => format!("User {user} cannot {verb} path {}", quote(path)),
            Target::Resource(target) => {
                let what = match target.subresource {
                    "" => target.resource.to_owned(),
                    sub => format!("{}/{sub}", target.resource),
                };
                let place = match target.namespace {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {}", quote(namespace)),
                };
                let (what, group) = (quote(&what), quote(target.group));
                format!("User {user} cannot {verb} resource {what} in API group {group} {place}")
            }
        };
        // Never anything that a browser takes for a page.
        let mut message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        if !reason.is_empty() {
            message = format!("{message}: {reason}");
        }
        match self.target {
            Target::Path(_) => Failure::forbidden_path(format!("forbidden: {message}")),
            Target::Resource(target) => {
                Failure::forbidden_name(target.group, target.resource, target.name, message)
            }
        }
    }
}

/// The one object that a field selector asks for.
fn named(query: &Query) -> Option<&str> {
    let terms = query.get("fieldSelector")?.split(',');
    let name = terms
        .filter_map(|term| term.trim().strip_prefix("metadata.name="))
        .map(|value| value.strip_prefix('=').unwrap_or(value).trim())
        .next()?;
    names::path_segment_name(name, false).is_empty().then_some(name)
}

/// What a server needs to tell who asks and whether they may.
#[derive(Debug)]
pub struct Auth {
    policy: RwLock<Policy>,
    /// What signs and checks the tokens of service accounts.
    pub signer: Arc<Signer>,
    /// How each user last impersonated another with success: that way is tried first.
    modes: Mutex<HashMap<String, impersonation::Mode>>,
}

impl Auth {
    /// With no roles, and a new key for tokens.
    ///
    /// # Errors
    /// When there is no key to be had.
    pub fn new() -> Result<Self, KeyError> {
        Ok(Self::with_signer(Arc::new(Signer::new()?)))
    }

    /// With no roles, and a key that is there already.
    #[must_use]
    pub fn with_signer(signer: Arc<Signer>) -> Self {
        Self { policy: RwLock::default(), signer, modes: Mutex::default() }
    }

    /// Takes all roles and bindings from the store anew.
    pub(super) fn reload(&self, store: &Store, registry: &Registry) {
        let mut policy = Policy::default();
        for resource in registry.all().iter().filter(|resource| resource.group == rbac::GROUP) {
            for stored in store.list(resource.table, &Scope::All).1 {
                policy.refresh(store, resource, &stored.key);
            }
        }
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = policy;
    }

    /// Whether a user may do that, and why.
    #[must_use]
    pub fn decide(&self, user: &User, wanted: &Attributes<'_>) -> Decision {
        if user.is_master() {
            return Decision::Privileged;
        }
        self.policy().decide(user, wanted)
    }

    /// Lets a user do that, or not.
    ///
    /// # Errors
    /// 403, naming the user, the verb and the resource.
    pub fn authorize(&self, user: &User, wanted: &Attributes<'_>) -> Outcome<()> {
        match self.decide(user, wanted) {
            Decision::Denied(missing) => Err(wanted.refusal(user, &missing.reason())),
            _ => Ok(()),
        }
    }

    /// Takes note of a change to an object that may be a role or a binding.
    pub(super) fn changed(&self, store: &Store, resource: &Resource, object: &Value) {
        if resource.group != rbac::GROUP {
            return;
        }
        let namespace = metadata_of(object).get("namespace").and_then(Value::as_str);
        let key = Key::new(namespace.unwrap_or_default(), name_of(object));
        let mut policy = self.policy.write().unwrap_or_else(PoisonError::into_inner);
        policy.refresh(store, resource, &key);
    }

    /// The roles and bindings at this moment.
    pub(super) fn policy(&self) -> RwLockReadGuard<'_, Policy> {
        self.policy.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whom a request counts as: who makes it, or whom they may act as.
///
/// # Errors
/// 401 for a token that is not good, 400 and 403 for an impersonation that is not.
pub fn requester(
    server: &Server,
    extensions: &Extensions,
    headers: &HeaderMap,
    method: &Method,
    target: &request::Target,
    query: &Query,
) -> Outcome<Arc<User>> {
    let user = authenticate(server, extensions, headers)?;
    match target {
        request::Target::Resource(path) => {
            let wanted = Attributes::of(request::verb(method, path, query), path, query);
            impersonation::apply(&server.auth, user, headers, &wanted)
        }
        request::Target::Path(path) => {
            let verb = method.as_str().to_lowercase();
            let wanted = Attributes { verb: &verb, target: Target::Path(path) };
            impersonation::apply(&server.auth, user, headers, &wanted)
        }
    }
}

/// Who makes a request: whom the connection or the bearer token names, or nobody in particular.
///
/// # Errors
/// 401 for a token that is not good.
fn authenticate(server: &Server, extensions: &Extensions, headers: &HeaderMap) -> Outcome<Arc<User>> {
    // Who makes many requests is shared by them.
    if let Some(user) = extensions.get::<Arc<User>>() {
        return Ok(Arc::clone(user));
    }
    if let Some(user) = extensions.get::<User>() {
        return Ok(Arc::new(user.clone()));
    }
    let Some(token) = bearer(headers) else {
        return Ok(Arc::new(User::anonymous()));
    };
    token::authenticate(server, token, &[token::AUDIENCE])
        .map(|(user, _)| Arc::new(user))
        .map_err(|_| Failure::unauthorized())
}

/// The token of an `Authorization` header, where there is one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut parts = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split(' ');
    let (scheme, token) = (parts.next()?, parts.next()?);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests;
