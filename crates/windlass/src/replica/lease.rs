//! Leases as replicas use them: their names, their times, and the requests for them.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, DeleteParams, ListParams, PostParams, Preconditions};
use kube::{Client, ResourceExt as _};
use windlass_machinery::Context;

/// Where a Lease is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseName {
    /// Its namespace.
    pub namespace: String,
    /// Its name. Replicas that share the primaries have one Lease each, whose names begin with this.
    pub name: String,
}

/// How long replicas hold on and wait; the usual times are those of Kubernetes' own components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// After so long without a renewal another replica takes over. 15 s; kept in whole seconds.
    pub duration: Duration,
    /// After so long without a renewal the holder stops writing. 10 s; must be less than the duration.
    pub renew_deadline: Duration,
    /// How often it is renewed, and asked for. 2 s; must be less than the deadline.
    pub retry: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

impl LeaseTimes {
    /// Whether no two replicas can write at once with these times.
    pub(crate) fn is_safe(&self) -> bool {
        self.duration >= Duration::from_secs(1)
            && self.renew_deadline < Duration::from_secs(self.duration.as_secs())
            && self.retry < self.renew_deadline
            && !self.retry.is_zero()
    }

    pub(super) fn seconds(&self) -> i32 {
        i32::try_from(self.duration.as_secs()).unwrap_or(i32::MAX)
    }
}

/// Requests for Leases, as one replica.
pub(super) struct Leases {
    api: Api<Lease>,
    pub(super) name: LeaseName,
    pub(super) context: Context,
    pub(super) times: LeaseTimes,
    pub(super) identity: String,
}

impl Leases {
    pub(super) fn new(
        client: Client,
        name: LeaseName,
        context: Context,
        times: LeaseTimes,
        identity: String,
    ) -> Self {
        Self { api: Api::namespaced(client, &name.namespace), name, context, times, identity }
    }

    pub(super) async fn get(&self, name: &str) -> Result<Option<Lease>, String> {
        self.limited(self.api.get_opt(name)).await
    }

    pub(super) async fn list(&self, labels: &str) -> Result<Vec<Lease>, String> {
        let params = ListParams::default().labels(labels);
        self.limited(self.api.list(&params)).await.map(|list| list.items)
    }

    /// Writes a Lease if it is still as it was read, or creates it if it was not there; `None` if another was
    /// faster.
    pub(super) async fn write(&self, lease: &Lease) -> Result<Option<Lease>, String> {
        let params = PostParams { field_manager: Some(self.name.name.clone()), ..PostParams::default() };
        let name = lease.name_any();
        let request = async {
            let written = match lease.metadata.resource_version {
                Some(_) => self.api.replace(&name, &params, lease).await,
                None => self.api.create(&params, lease).await,
            };
            match written {
                Ok(lease) => Ok(Some(lease)),
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(None),
                Err(error) => Err(error),
            }
        };
        self.limited(request).await
    }

    /// Deletes a Lease if it is still as it was read.
    pub(super) async fn delete(&self, lease: &Lease) -> Result<(), String> {
        let preconditions = Preconditions {
            uid: lease.metadata.uid.clone(),
            resource_version: lease.metadata.resource_version.clone(),
        };
        let params = DeleteParams::default().preconditions(preconditions);
        let name = lease.name_any();
        let request = async {
            match self.api.delete(&name, &params).await {
                Ok(_) => Ok(()),
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
                Err(error) => Err(error),
            }
        };
        self.limited(request).await
    }

    /// What a Lease says when this replica holds it from `acquired` on.
    pub(super) fn held(&self, acquired: Option<MicroTime>, transitions: i32) -> LeaseSpec {
        let now = MicroTime(self.now());
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(self.times.seconds()),
            acquire_time: Some(acquired.unwrap_or_else(|| now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }

    /// The time now, as exactly as the API keeps it.
    pub(super) fn now(&self) -> Timestamp {
        let now = self.context.now();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    /// A pause before the next attempt to acquire: more than the time between two, so that replicas that started
    /// together do not stay together.
    pub(super) fn candidate_pause(&self) -> Duration {
        let retry = self.times.retry.as_millis() as u64;
        Duration::from_millis(retry + self.context.below(retry * 6 / 5))
    }

    /// No request may use up the time in which there could be another.
    async fn limited<T>(&self, request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, String> {
        match tokio::time::timeout(self.times.renew_deadline / 2, request).await {
            Ok(answer) => answer.map_err(|error| match error {
                kube::Error::Api(status) => status.message,
                other => other.to_string(),
            }),
            Err(_) => Err("no answer from the API server in time".into()),
        }
    }
}

/// Who holds a Lease; nobody if it was released.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    (!holder.is_empty()).then_some(holder)
}

/// How long a Lease holds after it was renewed.
pub(super) fn validity(lease: &Lease, usual: Duration) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(usual, Duration::from_secs)
}
