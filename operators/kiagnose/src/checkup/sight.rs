//! Whether an object is really there, asked of the server itself.
//!
//! A plan reads from caches, which may be behind. That is of no matter where the next event puts it right; but "it was
//! deleted" ends a run for good, and must be true.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::PartialObjectMeta;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use windlass::{External, ExternalError};

/// How often a plan that waits for its cache has it asked again.
const POLL: Duration = Duration::from_secs(5);

/// Looks whether the object of a [name and uid](id) is there.
pub struct Sight {
    client: Client,
}

impl Sight {
    /// Looks through this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    async fn uid<K>(&self, namespace: &str, name: &str) -> Result<Option<String>, ExternalError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + std::fmt::Debug,
        K: serde::de::DeserializeOwned,
    {
        let found: Option<PartialObjectMeta<K>> =
            Api::<K>::namespaced(self.client.clone(), namespace).get_metadata_opt(name).await?;
        Ok(found.and_then(|found| found.uid()))
    }
}

/// How an object is called here; without a uid, whichever has the name.
pub(super) fn id(resource: &str, namespace: &str, name: &str, uid: &str) -> String {
    format!("{resource}/{namespace}/{name}/{uid}")
}

impl External for Sight {
    const TYPE: &'static str = "Sight";
    type Desired = ();
    type Observed = ();

    async fn observe(&self, id: &str) -> Result<Option<()>, ExternalError> {
        let parts: Vec<&str> = id.split('/').collect();
        let [resource, namespace, name, uid] = parts.as_slice() else {
            return Err(format!("{id} names no object").into());
        };
        let found = match *resource {
            "jobs" => self.uid::<Job>(namespace, name).await?,
            "serviceaccounts" => self.uid::<ServiceAccount>(namespace, name).await?,
            _ => self.uid::<ConfigMap>(namespace, name).await?,
        };
        Ok(found.filter(|found| uid.is_empty() || found == uid).map(drop))
    }

    async fn apply(&self, id: &str, (): &()) -> Result<(), ExternalError> {
        Err(format!("{id} is only looked at").into())
    }

    async fn remove(&self, _: &str) -> Result<(), ExternalError> {
        Ok(())
    }

    fn differs(&self, (): &(), (): &()) -> bool {
        false
    }

    fn poll(&self) -> Option<Duration> {
        Some(POLL)
    }
}
