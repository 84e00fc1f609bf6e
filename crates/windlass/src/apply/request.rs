//! The requests that change the cluster. All writes of the framework go through here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::TryFutureExt as _;
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Status;
use serde_json::{Value, json};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use crate::annotation::{HOLDS, PREFIX};
use crate::cache::{Delivered, Stored};
use crate::explain::{Sent, Trace};
use crate::metrics::Metrics;
use crate::plan::Dependent;
use crate::replica::{Deposed, Permit};
use crate::{Kind, ObjectName};

/// How long a request may take before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Writes as one operator.
#[derive(Clone)]
pub(crate) struct Requests {
    client: Client,
    operator: String,
    permit: Permit,
    trace: Option<Arc<Trace>>,
    metrics: Arc<Metrics>,
}

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    /// The server refused it. Its message names the object, and for a missing permission the verb and resource.
    #[error("{}", .0.message)]
    Refused(Box<Status>),
    #[error("failed to reach the API server: {0}")]
    Unreachable(#[source] kube::Error),
    #[error("no answer from the API server within {} s", PATIENCE.as_secs())]
    Silent,
    #[error(transparent)]
    Deposed(#[from] Deposed),
}

impl ApplyError {
    /// A word for programs.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Refused(status) if !status.reason.is_empty() => status.reason.clone(),
            Self::Refused(_) => "Refused".into(),
            Self::Unreachable(_) | Self::Silent => "Unreachable".into(),
            Self::Deposed(_) => "Deposed".into(),
        }
    }

    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 409)
    }

    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 403)
    }

    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 404)
    }
}

impl From<kube::Error> for ApplyError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            other => Self::Unreachable(other),
        }
    }
}

impl Requests {
    pub(crate) fn new(client: Client, operator: String) -> Self {
        Self { client, operator, permit: Permit::default(), trace: None, metrics: Arc::default() }
    }

    /// The field manager.
    pub(crate) fn manager(&self) -> &str {
        &self.operator
    }

    /// As another field manager.
    pub(crate) fn named(&self, manager: &str) -> Self {
        Self { operator: manager.to_owned(), ..self.clone() }
    }

    /// Counts with these metrics.
    pub(crate) fn counted(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    /// Writes only under a permit, and keeps a record of it.
    pub(crate) fn under(&self, permit: Permit, trace: Option<Arc<Trace>>) -> Self {
        Self { permit, trace, ..self.clone() }
    }

    /// Makes a dependent that is not there. What is made once is posted, so that it can never overwrite; all else
    /// is applied without force, so that an object which the cache has not seen yet is not taken from its owner.
    pub(crate) async fn create(&self, dependent: &Dependent) -> Result<Delivered, ApplyError> {
        if !dependent.once() {
            return self
                .patch_from("create", &dependent.kind, &dependent.name, None, &dependent.desired, false)
                .await;
        }
        let api = dependent.kind.api(&self.client, &dependent.name);
        let params = PostParams { field_manager: Some(self.operator.clone()), ..Default::default() };
        let object = Delivered::made(&dependent.desired);
        let sent = Sent {
            verb: "create",
            kind: &dependent.kind,
            name: &dependent.name,
            before: None,
            body: &dependent.desired,
        };
        self.send(sent, api.create(&params, &object)).await
    }

    /// Applies a dependent onto the observed object; without `force`, fields of other managers are a conflict.
    pub(crate) async fn apply(
        &self,
        dependent: &Dependent,
        observed: &Stored,
        force: bool,
    ) -> Result<Delivered, ApplyError> {
        let mut desired = dependent.desired.clone();
        // The very object that was compared, not one that has taken its name meanwhile.
        desired["metadata"]["uid"] = Value::from(&*observed.uid);
        self.patch_from("apply", &dependent.kind, &dependent.name, Some(observed), &desired, force).await
    }

    /// Asks what would come of [`apply`](Self::apply) without force. Nothing is written.
    pub(crate) async fn probe(
        &self,
        dependent: &Dependent,
        observed: &Stored,
    ) -> Result<Delivered, ApplyError> {
        let mut desired = dependent.desired.clone();
        desired["metadata"]["uid"] = Value::from(&*observed.uid);
        let params = PatchParams { dry_run: true, ..PatchParams::apply(&self.operator) };
        let api = dependent.kind.api(&self.client, &dependent.name);
        limited(api.patch(&dependent.name.name, &params, &Patch::Apply(&desired))).await
    }

    /// Gives an object back to its owner and touches nothing else.
    pub(crate) async fn repair_owner(
        &self,
        dependent: &Dependent,
        observed: &Stored,
    ) -> Result<Delivered, ApplyError> {
        let mut metadata = json!({"uid": observed.uid});
        for field in ["ownerReferences", "annotations", "labels"] {
            // What says whose it is, and no more.
            let planned = &dependent.desired["metadata"][field];
            match planned.as_object() {
                None if planned.is_array() => metadata[field] = planned.clone(),
                None => {}
                Some(planned) => planned
                    .iter()
                    .filter(|(key, _)| key.starts_with(PREFIX))
                    .for_each(|(key, value)| metadata[field][key] = value.clone()),
            }
        }
        let body = self.envelope(&dependent.kind, &dependent.name, metadata);
        self.patch_from("apply", &dependent.kind, &dependent.name, Some(observed), &body, true).await
    }

    /// Says on a primary what has to be cleaned up before it may go: external things, and whether there is anything
    /// at all.
    pub(crate) async fn hold(
        &self,
        kind: &Kind,
        observed: &Stored,
        finalizer: Option<&str>,
        holds: &BTreeSet<String>,
    ) -> Result<Delivered, ApplyError> {
        let mut metadata = json!({"uid": observed.uid});
        if let Some(finalizer) = finalizer {
            metadata["finalizers"] = json!([finalizer]);
        }
        if !holds.is_empty() {
            metadata["annotations"] = json!({HOLDS: json!(holds).to_string()});
        }
        let body = self.envelope(kind, &observed.name, metadata);
        self.patch_from("apply", kind, &observed.name, Some(observed), &body, true).await
    }

    /// Deletes the observed object and no other of its name.
    pub(crate) async fn delete(&self, kind: &Kind, observed: &Stored) -> Result<(), ApplyError> {
        self.delete_with(kind, observed, DeleteParams::background()).await
    }

    /// The same, but what it owns goes first.
    pub(crate) async fn delete_last(&self, kind: &Kind, observed: &Stored) -> Result<(), ApplyError> {
        self.delete_with(kind, observed, DeleteParams::foreground()).await
    }

    async fn delete_with(
        &self,
        kind: &Kind,
        observed: &Stored,
        params: DeleteParams,
    ) -> Result<(), ApplyError> {
        let preconditions = Preconditions { uid: Some(observed.uid.to_string()), resource_version: None };
        let params = params.preconditions(preconditions);
        let api = kind.api(&self.client, &observed.name);
        let sent = Sent { verb: "delete", kind, name: &observed.name, before: None, body: &Value::Null };
        match self.send(sent, api.delete(&observed.name.name, &params)).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Writes the status of a primary.
    pub(crate) async fn status(
        &self,
        kind: &Kind,
        observed: &Stored,
        status: &Value,
    ) -> Result<Delivered, ApplyError> {
        let mut body = self.envelope(kind, &observed.name, json!({"uid": observed.uid}));
        body["status"] = status.clone();
        let api = kind.api(&self.client, &observed.name);
        let params = PatchParams::apply(&self.operator).force();
        let sent = Sent { verb: "status", kind, name: &observed.name, before: Some(observed), body: &body };
        self.send(sent, api.patch_status(&observed.name.name, &params, &Patch::Apply(&body))).await
    }

    /// Posts an Event, or counts it where the same was posted before.
    pub(crate) async fn post(&self, kind: &Kind, object: &DynamicObject) -> Result<(), ApplyError> {
        let namespace = object.metadata.namespace.clone().unwrap_or_default();
        let name = ObjectName::new(namespace, object.metadata.name.clone().unwrap_or_default());
        let api = kind.api(&self.client, &name);
        let params = PostParams { field_manager: Some(self.operator.clone()), ..Default::default() };
        let sent = Sent { verb: "event", kind, name: &name, before: None, body: &Value::Null };
        let posted = Delivered::made(object);
        match self.send(sent, api.create(&params, &posted)).await {
            Err(error) if error.is_conflict() => {}
            answer => return answer.map(|_| ()),
        }
        let Some(before) = self.get(kind, &name).await? else {
            return Ok(());
        };
        let before: Value = before.decode().map_err(kube::Error::SerdeError)?;
        let count = before["series"]["count"].as_u64().unwrap_or(1) + 1;
        let time = &object.data["eventTime"];
        let series = json!({"series": {"count": count, "lastObservedTime": time}});
        let params = PatchParams { field_manager: Some(self.operator.clone()), ..Default::default() };
        self.send(sent, api.patch(&name.name, &params, &Patch::Merge(&series))).await.map(|_| ())
    }

    /// An object as it is now.
    pub(crate) async fn get(&self, kind: &Kind, name: &ObjectName) -> Result<Option<Delivered>, ApplyError> {
        limited(kind.api(&self.client, name).get_opt(&name.name)).await
    }

    pub(crate) async fn patch(
        &self,
        kind: &Kind,
        name: &ObjectName,
        body: &Value,
        force: bool,
    ) -> Result<Delivered, ApplyError> {
        self.patch_from("apply", kind, name, None, body, force).await
    }

    async fn patch_from(
        &self,
        verb: &'static str,
        kind: &Kind,
        name: &ObjectName,
        before: Option<&Stored>,
        body: &Value,
        force: bool,
    ) -> Result<Delivered, ApplyError> {
        let params = PatchParams { force, ..PatchParams::apply(&self.operator) };
        let sent = Sent { verb, kind, name, before, body };
        let api = kind.api(&self.client, name);
        self.send(sent, api.patch(&name.name, &params, &Patch::Apply(body))).await
    }

    /// Changes something outside Kubernetes, under the same rules as all writes.
    pub(crate) async fn outside<T>(
        &self,
        verb: &'static str,
        kind: &Kind,
        name: &ObjectName,
        change: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        let span = span(verb, kind, name);
        let answer = self.permit.guard(change).instrument(span.clone()).await;
        let answer = answer.unwrap_or_else(|deposed| Err(deposed.to_string()));
        let result = if answer.is_ok() { "ok" } else { "refused" };
        record(&span, result);
        self.metrics.wrote(&self.operator, kind, verb, result);
        if let Some(trace) = &self.trace {
            let sent = Sent { verb, kind, name, before: None, body: &Value::Null };
            trace.wrote(&sent, answer.as_ref().err().cloned());
        }
        answer
    }

    /// Sends a write, if it may be sent, and keeps a record of it.
    async fn send<T>(
        &self,
        sent: Sent<'_>,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, ApplyError> {
        let span = span(sent.verb, sent.kind, sent.name);
        let answer = self.permit.guard(limited(request)).instrument(span.clone()).await;
        let answer = answer.unwrap_or_else(|deposed| Err(deposed.into()));
        let result = match &answer {
            Ok(_) => "ok",
            Err(error) if error.is_conflict() => "conflict",
            Err(ApplyError::Refused(_)) => "refused",
            Err(ApplyError::Unreachable(_) | ApplyError::Silent) => "unreachable",
            Err(ApplyError::Deposed(_)) => "deposed",
        };
        record(&span, result);
        self.metrics.wrote(&self.operator, sent.kind, sent.verb, result);
        if let Some(trace) = &self.trace {
            trace.wrote(&sent, answer.as_ref().err().map(ToString::to_string));
        }
        answer
    }

    fn envelope(&self, kind: &Kind, name: &ObjectName, mut metadata: Value) -> Value {
        metadata["name"] = name.name.as_str().into();
        if kind.namespaced() {
            metadata["namespace"] = name.namespace.as_str().into();
        }
        json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": metadata})
    }
}

/// What is traced of a write: never its content.
fn span(verb: &'static str, kind: &Kind, name: &ObjectName) -> Span {
    tracing::info_span!(
        "write",
        verb,
        kind = kind.name(),
        namespace = name.namespace,
        name = name.name,
        result = Empty,
        otel.status_code = Empty,
    )
}

fn record(span: &Span, result: &'static str) {
    span.record("result", result);
    if result != "ok" {
        span.record("otel.status_code", "ERROR");
    }
}

async fn limited<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, ApplyError> {
    match tokio::time::timeout(PATIENCE, request.map_err(ApplyError::from)).await {
        Ok(answer) => answer,
        Err(_) => Err(ApplyError::Silent),
    }
}
