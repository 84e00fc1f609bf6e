//! What this process is among the replicas of its operators: the only one, a candidate for leader, or one of several
//! that share the primaries.
//!
//! Watches and caches are warm in every replica. Writes are not: each runs under a [`Permit`].

mod fence;
mod leader;
mod lease;
mod shards;
mod view;

use std::sync::Arc;

use kube::Client;
use tokio::sync::watch;
use windlass_machinery::Context;

pub(crate) use fence::{Authority, Deposed, Permit};
use leader::Leader;
use lease::Leases;
pub use lease::{LeaseName, LeaseTimes};
use shards::Shards;

/// How replicas get along, as the runtime was told.
pub(crate) enum Arrangement {
    Alone,
    Leader(LeaseName),
    Shards(LeaseName),
}

/// This process among its replicas.
#[derive(Clone)]
pub(crate) enum Replica {
    Only,
    Candidate(Arc<Leader>),
    Member(Arc<Shards>),
}

impl Replica {
    /// `identity` must be no other process'.
    pub(crate) fn new(
        arrangement: &Arrangement,
        client: Client,
        context: Context,
        times: LeaseTimes,
        identity: String,
    ) -> Self {
        let leases = |name: &LeaseName| Leases::new(client, name.clone(), context, times, identity);
        match arrangement {
            Arrangement::Alone => Self::Only,
            Arrangement::Leader(name) => Self::Candidate(Arc::new(Leader::new(leases(name)))),
            Arrangement::Shards(name) => Self::Member(Arc::new(Shards::new(leases(name)))),
        }
    }

    /// Acquires and renews, for as long as it is polled.
    pub(crate) async fn keep(&self) {
        match self {
            Self::Only => std::future::pending().await,
            Self::Candidate(leader) => leader.keep().await,
            Self::Member(shards) => shards.keep().await,
        }
    }

    /// Gives up what is held, so that others need not wait. Nothing may be written from here on.
    pub(crate) async fn release(&self) {
        match self {
            Self::Only => {}
            Self::Candidate(leader) => leader.release().await,
            Self::Member(shards) => shards.release().await,
        }
    }

    /// What a write for a key has to show.
    pub(crate) fn permit(&self, key: &str) -> Permit {
        match self {
            Self::Only => Permit::default(),
            Self::Candidate(leader) => Permit::of(Arc::clone(leader) as Arc<dyn Authority>, key),
            Self::Member(shards) => Permit::of(Arc::clone(shards) as Arc<dyn Authority>, key),
        }
    }

    /// Says each time that more may be written than before; what was refused is then to be looked at again.
    pub(crate) fn grants(&self) -> Option<watch::Receiver<u64>> {
        match self {
            Self::Only => None,
            Self::Candidate(leader) => Some(leader.grants()),
            Self::Member(shards) => Some(shards.grants()),
        }
    }

    /// Resolves once something for a key may be written.
    pub(crate) async fn granted(&self, key: &str) {
        let Some(mut grants) = self.grants() else { return };
        let permit = self.permit(key);
        while !permit.is_valid() && grants.changed().await.is_ok() {}
    }

    /// In one word.
    pub(crate) fn role(&self) -> &'static str {
        match self {
            Self::Only => "alone",
            Self::Candidate(leader) if leader.fence().is_open() => "leader",
            Self::Candidate(_) => "standby",
            Self::Member(shards) if shards.fence().is_open() => "member",
            Self::Member(_) => "joining",
        }
    }
}

#[cfg(test)]
mod tests;
