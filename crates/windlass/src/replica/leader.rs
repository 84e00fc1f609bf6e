//! Leader election by one Lease, as Kubernetes' own components do it.
//!
//! A candidate reads the Lease. If it is free, or has not changed for its whole duration as far as the candidate has
//! seen, it writes its own name into it; the resource version lets one of several through. The leader renews it,
//! and writes only within the [fence](super::fence). A leader that has lost the Lease becomes a candidate again.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::core::ObjectMeta;
use tokio::sync::watch;
use tokio::time::Instant;

use super::fence::{Authority, Fence};
use super::lease::{Leases, holder, validity};

/// A candidate, or the leader.
pub(crate) struct Leader {
    leases: Leases,
    fence: Fence,
    grants: watch::Sender<u64>,
    seen: Mutex<Option<Seen>>,
}

/// The Lease as it was last seen, and since when it has been like that.
#[derive(Clone)]
struct Seen {
    lease: Lease,
    since: Instant,
}

impl Authority for Leader {
    fn fence(&self) -> &Fence {
        &self.fence
    }
}

impl Leader {
    pub(super) fn new(leases: Leases) -> Self {
        Self { leases, fence: Fence::closed(), grants: watch::Sender::new(0), seen: Mutex::default() }
    }

    pub(super) fn grants(&self) -> watch::Receiver<u64> {
        self.grants.subscribe()
    }

    pub(super) async fn keep(&self) {
        let Leases { name, identity, times, .. } = &self.leases;
        loop {
            let led = self.fence.is_open();
            let began = Instant::now();
            match self.attempt(led).await {
                Ok(true) => {
                    self.fence.extend(began + times.renew_deadline);
                    if !led {
                        tracing::info!(lease = %name.name, %identity, "leading");
                        self.grants.send_modify(|grants| *grants += 1);
                    }
                }
                Ok(false) => {
                    if led {
                        tracing::warn!(lease = %name.name, %identity, "another leads");
                    }
                    self.fence.close();
                }
                // Until its time is over, the leader goes on and tries again.
                Err(error) => {
                    tracing::warn!(lease = %name.name, %identity, %error, "failed to renew the lease")
                }
            }
            tokio::time::sleep(self.pause()).await;
        }
    }

    pub(super) async fn release(&self) {
        let led = self.fence.is_open();
        self.fence.close();
        let Some(mut lease) = self.seen().take().map(|seen| seen.lease).filter(|_| led) else {
            return;
        };
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            ..self.leases.held(None, transitions(&lease))
        });
        if let Err(error) = self.leases.write(&lease).await {
            tracing::warn!(lease = %self.leases.name.name, %error, "failed to release the lease");
        }
    }

    fn pause(&self) -> Duration {
        if self.fence.is_open() { self.leases.times.retry } else { self.leases.candidate_pause() }
    }

    /// Acquires or renews; whether this replica leads.
    async fn attempt(&self, led: bool) -> Result<bool, String> {
        let known = self.seen().as_ref().map(|seen| seen.lease.clone());
        // Nobody else should have touched it: no need to read it first.
        if let Some(lease) = known.filter(|_| led)
            && self.take(lease).await?
        {
            return Ok(true);
        }
        let name = &self.leases.name;
        let Some(lease) = self.leases.get(&name.name).await? else {
            let metadata = ObjectMeta {
                name: Some(name.name.clone()),
                namespace: Some(name.namespace.clone()),
                ..ObjectMeta::default()
            };
            return self.take(Lease { metadata, spec: None }).await;
        };
        let since = self.observe(lease.clone());
        let theirs = holder(&lease).is_some_and(|holder| holder != self.leases.identity);
        if theirs && since.elapsed() < validity(&lease, self.leases.times.duration) {
            return Ok(false);
        }
        self.take(lease).await
    }

    /// Writes this replica's name into the Lease, if it is still like this.
    async fn take(&self, mut lease: Lease) -> Result<bool, String> {
        let ours = holder(&lease) == Some(&self.leases.identity);
        let acquired = lease.spec.as_ref().and_then(|spec| spec.acquire_time.clone());
        let before = transitions(&lease);
        lease.spec = Some(match (ours, &lease.spec) {
            (true, _) => self.leases.held(acquired, before),
            (false, Some(_)) => self.leases.held(None, before.saturating_add(1)),
            (false, None) => self.leases.held(None, 0),
        });
        match self.leases.write(&lease).await? {
            Some(written) => {
                self.observe(written);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Takes in what the Lease looks like; since when it has been like that.
    fn observe(&self, lease: Lease) -> Instant {
        let mut seen = self.seen();
        let since = match seen.as_ref() {
            Some(seen) if seen.lease.spec == lease.spec => seen.since,
            _ => Instant::now(),
        };
        *seen = Some(Seen { lease, since });
        since
    }

    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn transitions(lease: &Lease) -> i32 {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.lease_transitions).unwrap_or_default()
}
