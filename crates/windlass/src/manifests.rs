//! What to deploy on a cluster so that an operator runs there, made from the operator itself: definitions, an account
//! with the [permissions](crate::Permissions) it needs and no others, and a Deployment. Pure: objects as trees.
//!
//! The same for `windlass manifests`, for bundles, and for tests that run an operator with its own permissions.

mod deployment;
mod roles;

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use serde_json::{Value, json};

pub(crate) use self::deployment::{service, spec as deployment_spec};
pub use self::roles::roles;
use crate::admission::{FailurePolicy, Webhooks};
use crate::apply::without_nulls;
use crate::{LeaseName, ObjectName, Operator, Permissions};

/// The port of metrics, health and explain in a pod.
pub const PORT: u16 = 9446;
/// The port of webhooks in a pod.
pub const WEBHOOKS_PORT: u16 = 9443;
/// The port of webhooks at their Service, where the API server asks.
const SERVICE_PORT: u16 = 443;
const NAME: &str = "app.kubernetes.io/name";
const COMPONENT: &str = "app.kubernetes.io/component";

/// How an operator is deployed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The namespace it runs in.
    pub namespace: String,
    /// The namespaces it [works in](crate::Runtime::namespaces), with roles in them and none for the whole cluster; all,
    /// if nothing is said. The arguments must say the same.
    pub watch_namespaces: Vec<String>,
    /// Whether that namespace is made too.
    pub make_namespace: bool,
    /// The image of its program.
    pub image: String,
    /// The program in the image; its entry point if nothing is said.
    pub command: Vec<String>,
    /// The program's arguments. They must have it [lead](crate::Runtime::leader) or [share](crate::Runtime::shards) by
    /// [`Setup::lease`], and [listen](crate::Runtime::listen) on [`PORT`] of the pod's
    /// address.
    pub args: Vec<String>,
    /// Variables of its environment, besides `POD_NAME`, `POD_NAMESPACE` and `POD_IP`.
    pub env: BTreeMap<String, String>,
    /// How many of it run.
    pub replicas: u32,
    /// Whether they share the objects; else one works and the others stand by.
    pub shards: bool,
    /// Whether the API server asks it about each write. The arguments must then have it serve
    /// [webhooks](Setup::webhook_service) on [`WEBHOOKS_PORT`].
    pub webhooks: bool,
}

impl Setup {
    /// The Lease of its replicas.
    #[must_use]
    pub fn lease(&self, operator: &Operator) -> LeaseName {
        LeaseName { namespace: self.namespace.clone(), name: operator.name().into() }
    }

    /// The Service of its webhooks.
    #[must_use]
    pub fn webhook_service(&self, operator: &Operator) -> ObjectName {
        ObjectName::new(self.namespace.clone(), operator.name())
    }

    /// What it has to be allowed when it is deployed like this.
    #[must_use]
    pub fn permissions(&self, operator: &Operator) -> Permissions {
        let permissions = Permissions::within(operator, &self.watch_namespaces);
        let lease = self.lease(operator);
        let permissions = if self.shards { permissions.shards(&lease) } else { permissions.leader(&lease) };
        if !self.webhooks {
            return permissions;
        }
        let webhooks = Webhooks::service(self.webhook_service(operator), SERVICE_PORT)
            .failure_policy(FailurePolicy::default());
        permissions.webhooks(&webhooks.permissions(std::slice::from_ref(operator)))
    }
}

/// The definitions of an operator's kinds.
#[must_use]
pub fn definitions(operator: &Operator) -> Vec<Value> {
    let tree = |crd| without_nulls(serde_json::to_value(crd).unwrap_or_default());
    let mut crds: Vec<_> = operator.crds().iter().collect();
    crds.sort_by_key(|crd| crd.name_any());
    crds.into_iter().map(tree).collect()
}

/// All but the definitions, in the order in which they are to be applied.
#[must_use]
pub fn objects(operator: &Operator, setup: &Setup) -> Vec<Value> {
    let account = ObjectName::new(setup.namespace.clone(), operator.name());
    let mut objects = Vec::new();
    if setup.make_namespace {
        // The Deployment below is fit for it.
        let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        objects.push(json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": setup.namespace, "labels": labels},
        }));
    }
    objects.push(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(&account)}));
    objects.extend(roles(&setup.permissions(operator), operator.name(), &account));
    if setup.webhooks {
        objects.push(deployment::service(&account));
    }
    objects.push(deployment::deployment(&account, setup));
    objects
}

/// Labels by which everything of an operator is found.
pub(crate) fn labels(name: &str) -> Value {
    json!({NAME: name, COMPONENT: "operator"})
}

fn metadata(name: &ObjectName) -> Value {
    let mut metadata = json!({"name": name.name, "labels": labels(&name.name)});
    if !name.namespace.is_empty() {
        metadata["namespace"] = name.namespace.as_str().into();
    }
    metadata
}

#[cfg(test)]
mod tests;
