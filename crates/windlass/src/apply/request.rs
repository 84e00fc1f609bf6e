//! The requests that change the cluster. All writes of the framework go through here.

use std::time::Duration;

use futures::TryFutureExt as _;
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Status;
use serde_json::{Value, json};

use crate::cache::Stored;
use crate::plan::{Dependent, Owner};
use crate::{Kind, ObjectName};

/// How long a request may take before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Writes as one operator.
#[derive(Clone)]
pub(crate) struct Requests {
    client: Client,
    operator: String,
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
}

impl ApplyError {
    /// A word for programs.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Refused(status) if !status.reason.is_empty() => status.reason.clone(),
            Self::Refused(_) => "Refused".into(),
            Self::Unreachable(_) | Self::Silent => "Unreachable".into(),
        }
    }

    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 409)
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
        Self { client, operator }
    }

    /// Makes a dependent that is not there. What is made once is posted, so that it can never overwrite; all else
    /// is applied without force, so that an object which the cache has not seen yet is not taken from its owner.
    pub(crate) async fn create(&self, dependent: &Dependent) -> Result<DynamicObject, ApplyError> {
        if !dependent.once {
            return self
                .patch(&dependent.kind, &dependent.name, &dependent.desired, false)
                .await;
        }
        let api = dependent.kind.api(&self.client, &dependent.name);
        let params = PostParams {
            field_manager: Some(self.operator.clone()),
            ..Default::default()
        };
        let object: DynamicObject = serde_json::from_value(dependent.desired.clone())
            .map_err(|error| ApplyError::Unreachable(kube::Error::SerdeError(error)))?;
        limited(api.create(&params, &object)).await
    }

    /// Applies a dependent onto the observed object; without `force`, fields of other managers are a conflict.
    pub(crate) async fn apply(
        &self,
        dependent: &Dependent,
        observed: &Stored,
        force: bool,
    ) -> Result<DynamicObject, ApplyError> {
        let mut desired = dependent.desired.clone();
        // The very object that was compared, not one that has taken its name meanwhile.
        desired["metadata"]["uid"] = Value::from(&*observed.uid);
        self.patch(&dependent.kind, &dependent.name, &desired, force)
            .await
    }

    /// Gives an object back to its owner and touches nothing else.
    pub(crate) async fn repair_owner(
        &self,
        dependent: &Dependent,
        observed: &Stored,
        owner: &Owner,
    ) -> Result<DynamicObject, ApplyError> {
        let metadata = json!({"uid": observed.uid, "ownerReferences": [owner.reference]});
        let body = self.envelope(&dependent.kind, &dependent.name, metadata);
        self.patch(&dependent.kind, &dependent.name, &body, true).await
    }

    /// Deletes the observed object and no other of its name.
    pub(crate) async fn delete(&self, kind: &Kind, observed: &Stored) -> Result<(), ApplyError> {
        let preconditions = Preconditions {
            uid: Some(observed.uid.to_string()),
            resource_version: None,
        };
        let params = DeleteParams::background().preconditions(preconditions);
        let api = kind.api(&self.client, &observed.name);
        match limited(api.delete(&observed.name.name, &params)).await {
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
    ) -> Result<DynamicObject, ApplyError> {
        let mut body = self.envelope(kind, &observed.name, json!({"uid": observed.uid}));
        body["status"] = status.clone();
        let api = kind.api(&self.client, &observed.name);
        let params = PatchParams::apply(&self.operator).force();
        limited(api.patch_status(&observed.name.name, &params, &Patch::Apply(&body))).await
    }

    /// Creates an object that nothing depends on, such as an Event.
    pub(crate) async fn post(&self, kind: &Kind, object: &DynamicObject) -> Result<(), ApplyError> {
        let namespace = object.metadata.namespace.clone().unwrap_or_default();
        let api = kind.api(&self.client, &ObjectName::new(namespace, ""));
        let params = PostParams {
            field_manager: Some(self.operator.clone()),
            ..Default::default()
        };
        limited(api.create(&params, object)).await.map(|_| ())
    }

    /// An object as it is now.
    pub(crate) async fn get(
        &self,
        kind: &Kind,
        name: &ObjectName,
    ) -> Result<Option<DynamicObject>, ApplyError> {
        limited(kind.api(&self.client, name).get_opt(&name.name)).await
    }

    pub(crate) async fn patch(
        &self,
        kind: &Kind,
        name: &ObjectName,
        body: &Value,
        force: bool,
    ) -> Result<DynamicObject, ApplyError> {
        let params = PatchParams {
            force,
            ..PatchParams::apply(&self.operator)
        };
        limited(
            kind.api(&self.client, name)
                .patch(&name.name, &params, &Patch::Apply(body)),
        )
        .await
    }

    fn envelope(&self, kind: &Kind, name: &ObjectName, mut metadata: Value) -> Value {
        metadata["name"] = name.name.as_str().into();
        if kind.namespaced() {
            metadata["namespace"] = name.namespace.as_str().into();
        }
        json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": metadata})
    }
}

async fn limited<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, ApplyError> {
    match tokio::time::timeout(PATIENCE, request.map_err(ApplyError::from)).await {
        Ok(answer) => answer,
        Err(_) => Err(ApplyError::Silent),
    }
}
