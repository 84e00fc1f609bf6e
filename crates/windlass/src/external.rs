//! Dependents outside Kubernetes: a database table, an account at a service, a plugin's answer.
//!
//! A plan stays pure: it says what should be ([`Plan::add_external`](crate::Plan::add_external)) and reads what is
//! ([`World::external`](crate::World::external)). The async code that looks and changes is an [`External`], given to
//! the [`Operator`](crate::Operator::external). What it finds is a fact like any other: tracked, and planned again
//! when it changes. Before the first such thing is made for a primary, the primary gets a finalizer and a note of
//! it, so that neither a crash nor a deletion leaves it behind.

mod watch;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, BoxStream, StreamExt as _};
use serde::{Deserialize as _, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

pub(crate) use self::watch::{attend, observe};
use crate::cache::{Shares, Stored};
use crate::{Condition, Kind};

/// How long one call may take before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often external things are looked at, unless they say otherwise.
const POLL: Duration = Duration::from_secs(60);

/// What went wrong with an external thing, in words for people.
pub type ExternalError = Box<dyn std::error::Error + Send + Sync>;

/// How one type of external thing is observed, made, changed and removed.
///
/// Each call is limited in time, may come again after a crash, and must then do no harm. An error is the dependent's
/// condition, and is tried again with growing pauses.
pub trait External: Send + Sync + 'static {
    /// What the type is called in the status and in messages, such as `Table`. Unique in a process.
    const TYPE: &'static str;
    /// What a plan wants.
    type Desired: Serialize + DeserializeOwned + Send + Sync;
    /// What is there: the fact that plans read.
    type Observed: Serialize + DeserializeOwned + Send + Sync;

    /// The thing of this id as it is now, if there is one.
    fn observe(&self, id: &str)
    -> impl Future<Output = Result<Option<Self::Observed>, ExternalError>> + Send;

    /// Makes it as desired, or changes it to be so; gives it as it is then.
    fn apply(
        &self,
        id: &str,
        desired: &Self::Desired,
    ) -> impl Future<Output = Result<Self::Observed, ExternalError>> + Send;

    /// Removes it. That it is not there is no error.
    fn remove(&self, id: &str) -> impl Future<Output = Result<(), ExternalError>> + Send;

    /// Whether what is there has to be changed.
    fn differs(&self, desired: &Self::Desired, observed: &Self::Observed) -> bool;

    /// How it is; ready because it is there, unless said otherwise.
    fn condition(&self, observed: &Self::Observed) -> Condition {
        let _ = observed;
        Condition::ready()
    }

    /// How often to look; `None` if [`changes`](Self::changes) tells all.
    fn poll(&self) -> Option<Duration> {
        Some(POLL)
    }

    /// The ids of things that have changed, where something tells.
    fn changes(&self) -> BoxStream<'static, String> {
        stream::pending().boxed()
    }
}

/// All external types of a runtime.
pub(crate) type Externals = BTreeMap<Kind, Arc<dyn AnyExternal>>;

/// An [`External`], its types erased.
pub(crate) trait AnyExternal: Send + Sync {
    fn kind(&self) -> Kind;
    fn observe<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Value>, String>>;
    fn apply<'a>(&'a self, id: &'a str, desired: &'a Value) -> BoxFuture<'a, Result<Value, String>>;
    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), String>>;
    fn differs(&self, desired: &Value, observed: &Value) -> Result<bool, String>;
    fn condition(&self, observed: &Value) -> Condition;
    fn poll(&self) -> Option<Duration>;
    fn changes(&self) -> BoxStream<'static, String>;
}

impl<X: External> AnyExternal for X {
    fn kind(&self) -> Kind {
        Kind::external(X::TYPE)
    }

    fn observe<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Value>, String>> {
        guarded(async move {
            let observed = External::observe(self, id).await?;
            Ok(observed.map(serde_json::to_value).transpose()?)
        })
    }

    fn apply<'a>(&'a self, id: &'a str, desired: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        guarded(async move {
            let desired: X::Desired = serde_json::from_value(desired.clone())?;
            Ok(serde_json::to_value(External::apply(self, id, &desired).await?)?)
        })
    }

    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), String>> {
        guarded(External::remove(self, id))
    }

    fn differs(&self, desired: &Value, observed: &Value) -> Result<bool, String> {
        let desired = X::Desired::deserialize(desired).map_err(|error| error.to_string())?;
        let observed = X::Observed::deserialize(observed).map_err(|error| error.to_string())?;
        Ok(External::differs(self, &desired, &observed))
    }

    fn condition(&self, observed: &Value) -> Condition {
        match X::Observed::deserialize(observed) {
            Ok(observed) => External::condition(self, &observed),
            Err(error) => Condition::failed("Undecodable", error.to_string()),
        }
    }

    fn poll(&self) -> Option<Duration> {
        External::poll(self)
    }

    fn changes(&self) -> BoxStream<'static, String> {
        External::changes(self)
    }
}

/// A call whose time is limited and whose panic is an error.
fn guarded<'a, T: 'a>(
    call: impl Future<Output = Result<T, ExternalError>> + Send + 'a,
) -> BoxFuture<'a, Result<T, String>> {
    async move {
        match tokio::time::timeout(PATIENCE, AssertUnwindSafe(call).catch_unwind()).await {
            Ok(Ok(result)) => result.map_err(|error| error.to_string()),
            Ok(Err(_)) => Err("the operator's own code panicked".into()),
            Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
        }
    }
    .boxed()
}

/// A fact as the cache keeps it.
pub(crate) fn stored(id: &str, observed: Value) -> Stored {
    Stored::made(&json!({"metadata": {"name": id}, "observed": observed}), &Shares::new(Default::default()))
}

/// The fact itself.
pub(crate) fn observed(stored: &Stored) -> Value {
    stored.value().get("observed").cloned().unwrap_or_default()
}
