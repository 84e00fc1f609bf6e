//! Admission webhooks: mutating ones are called one after the other, validating ones all at once.
//!
//! Configurations are compiled when their table has a new revision, so that a cluster without webhooks pays for a
//! look at two numbers. How a webhook is reached is in [`crate::webhook`].

mod hook;
mod mutating;
mod review;
mod validating;

use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Value, json};

use super::super::definitions::conversion;
use super::super::registry::Resource;
use super::super::server::Server;
use super::super::status::{Failure, Outcome};
use super::super::write::decoded;
use super::matching;
use super::{Admission, Operation};
use crate::store::{Revision, Scope, Store, TableId};

use hook::Hook;
pub(super) use mutating::{Rounds, mutate, read};
pub(super) use validating::validate;

const GROUP: &str = "admissionregistration.k8s.io";

/// The webhooks of a cluster, compiled. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Hooks {
    mutating: Arc<Source>,
    validating: Arc<Source>,
}

#[derive(Debug)]
struct Source {
    table: TableId,
    known: RwLock<(Revision, Arc<[Arc<Hook>]>)>,
}

impl Hooks {
    /// The webhooks in a store.
    #[must_use]
    pub fn new(store: &Store) -> Self {
        let source = |plural: &str| {
            let table = store.table(&format!("{GROUP}/{plural}"));
            Arc::new(Source { table, known: RwLock::new((0, Arc::default())) })
        };
        Self {
            mutating: source("mutatingwebhookconfigurations"),
            validating: source("validatingwebhookconfigurations"),
        }
    }

    /// Whether there is anything that may change objects.
    pub(super) fn may_mutate(&self, server: &Server) -> bool {
        server.store.is_used(self.mutating.table)
    }
}

impl Source {
    /// The webhooks at this moment, in the order in which they are called.
    fn hooks(&self, server: &Server) -> Arc<[Arc<Hook>]> {
        // Asked before the objects are read, so that what changes meanwhile is read again.
        let newest = server.store.newest(self.table);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.0 == newest {
            return Arc::clone(&known.1);
        }
        drop(known);
        let (_, stored) = server.store.list(self.table, &Scope::All);
        let configurations = stored.iter().filter_map(|one| decoded(one).ok());
        let hooks: Arc<[Arc<Hook>]> =
            configurations.flat_map(|one| Hook::compile(&one)).map(Arc::new).collect();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = (newest, Arc::clone(&hooks));
        hooks
    }
}

/// Whether a resource is one of those that decide about admission: no webhook may keep itself from being changed.
fn is_exempt(resource: &Resource) -> bool {
    resource.group == GROUP
}

/// An object and what it was, in the version that a webhook wants.
struct Versioned {
    resource: Arc<Resource>,
    object: Value,
    old: Option<Value>,
}

impl Versioned {
    fn new(admission: &Admission<'_>, object: &Value) -> Self {
        Self {
            resource: Arc::clone(admission.resource),
            object: if object.is_null() { Value::Null } else { admission.seen(object) },
            old: admission.old.map(|old| admission.seen(old)),
        }
    }

    /// Converts both, where they are of another version.
    async fn turn(&mut self, admission: &Admission<'_>, to: &Arc<Resource>) -> Outcome<()> {
        if self.resource.version == to.version {
            return Ok(());
        }
        let all: Vec<Value> =
            [&self.object].into_iter().chain(&self.old).filter(|one| !one.is_null()).cloned().collect();
        let converted = conversion::between(admission.server, &self.resource, to, all).await;
        let mut converted = converted.map_err(|why| internal(internal(why).message))?;
        if self.old.is_some() {
            self.old = converted.pop();
        }
        if !self.object.is_null() {
            self.object = converted.pop().unwrap_or_default();
        }
        self.resource = Arc::clone(to);
        Ok(())
    }

    fn typed(&self, admission: &Admission<'_>, object: &Value) -> Value {
        let kind = admission.kind(&self.resource);
        super::super::write::body::with_type(object, kind)
    }
}

/// What comes of asking whether a webhook is to be called.
///
/// # Errors
/// When its conditions cannot be decided.
async fn wanted(
    admission: &Admission<'_>,
    hook: &Hook,
    versions: &mut Versioned,
) -> Outcome<Option<Arc<Resource>>> {
    let object = &versions.object;
    if !matching::selects_namespace(admission, object, &hook.namespaces)
        || !matching::selects_object(admission, object, &hook.objects)
    {
        return Ok(None);
    }
    let Some(seen) = matching::seen_as(admission, object, hook.rules(), !hook.exact) else {
        return Ok(None);
    };
    let Some(conditions) = &hook.conditions else { return Ok(Some(seen)) };
    versions.turn(admission, &seen).await?;
    let request = admission.request(&versions.object, &seen);
    let old = versions.old.as_ref().map_or(Value::Null, |old| versions.typed(admission, old));
    let object = match admission.operation {
        Operation::Delete => Value::Null,
        _ => versions.typed(admission, &versions.object),
    };
    match conditions.holds(admission, object, old, request) {
        Ok(true) => Ok(Some(seen)),
        Ok(false) => Ok(None),
        Err(_) if hook.ignores_failures => Ok(None),
        Err(why) => {
            let name = admission.name(&versions.object);
            Err(Failure::forbidden(admission.resource, name, why))
        }
    }
}

/// 500 as the real server answers for webhooks.
pub(super) fn internal(why: impl Into<String>) -> Failure {
    let why = why.into();
    let failure = Failure::internal(format!("Internal error occurred: {why}"));
    Failure { reason: "InternalError", ..failure }.with_details(json!({"causes": [{"message": why}]}))
}

/// Why a webhook's call came to nothing.
enum Refusal {
    /// It could not be called, or its answer made no sense: what that means is its failure policy.
    Failed(String),
    /// It said no, or what it wants cannot be.
    Denied(Failure),
}

impl Refusal {
    /// The failure, unless the webhook's failures do not matter.
    fn settle(self, hook: &Hook) -> Option<Failure> {
        match self {
            Self::Denied(failure) => Some(failure),
            Self::Failed(why) if hook.ignores_failures => {
                tracing::warn!(webhook = %hook.name, %why, "failed to call a webhook whose failures are ignored");
                None
            }
            Self::Failed(why) => Some(internal(format!("failed calling webhook {:?}: {why}", hook.name))),
        }
    }
}
