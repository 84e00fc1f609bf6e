//! Primaries shared out among replicas, without two that write the same one.
//!
//! Each member keeps a Lease of its own, and in it the members that it acts by: its *published view*. A key belongs
//! to one member of a [view](View). A member writes a key only if
//!
//! 1. its own Lease is renewed in time (the [fence](super::fence)),
//! 2. the key is its own in the view that it has published, and in the one that it is about to publish, and
//! 3. no other living member's published view says that the key is that member's,
//!
//! where what the others have published was read *after* its own view was published. Of two members that claim one
//! key, the one that published later has therefore seen the claim of the other, and waits. A view that gives a key
//! away is published only when no write of that key is under way. A member is dead when its Lease has not changed
//! for its whole duration, which is after its own fence has closed; a member whose fence has closed starts anew.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;
use kube::core::ObjectMeta;
use tokio::sync::watch;
use tokio::time::Instant;

use super::fence::{Authority, Fence};
use super::lease::{Leases, holder, validity};
use super::view::View;

/// The label of a group's Leases.
const GROUP: &str = "windlass.dev/shards";
/// The annotation with the view that a member acts by.
const VIEW: &str = "windlass.dev/members";
/// A dead member's Lease is deleted after so many of its durations.
const LITTER: u32 = 4;
/// How soon to look again whether writes of keys that are given away are over.
const DRAINING: Duration = Duration::from_millis(200);

/// One member.
pub(crate) struct Shards {
    leases: Leases,
    fence: Fence,
    grants: watch::Sender<u64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// This member's own Lease.
    lease: Option<Lease>,
    /// The view that it acts by.
    published: View,
    /// A view besides, by which a key must be its own too: one that is about to be published, or the former one
    /// until the claims of others have been read.
    besides: Option<View>,
    /// What the other living members have published.
    others: BTreeMap<String, View>,
    /// Which version of each Lease was seen, and when first.
    seen: BTreeMap<String, (String, Instant)>,
    underway: BTreeMap<Arc<str>, usize>,
    /// What was decided by at the end of the last turn: where it changes, more may be written.
    basis: Option<(View, Option<View>, BTreeMap<String, View>)>,
}

impl Authority for Shards {
    fn fence(&self) -> &Fence {
        &self.fence
    }

    fn begin(&self, key: &str) -> bool {
        let mut state = self.state();
        let may = self.fence.is_open() && state.owns(key, &self.leases.identity);
        if may {
            *state.underway.entry(key.into()).or_default() += 1;
        }
        may
    }

    fn end(&self, key: &str) {
        let mut state = self.state();
        if let Some(count) = state.underway.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                state.underway.remove(key);
            }
        }
    }

    fn allows(&self, key: &str) -> bool {
        self.fence.is_open() && self.state().owns(key, &self.leases.identity)
    }
}

impl State {
    fn owns(&self, key: &str, identity: &str) -> bool {
        self.published.gives(key, identity)
            && self.besides.as_ref().is_none_or(|view| view.gives(key, identity))
            && !self.others.iter().any(|(other, view)| view.gives(key, other))
    }

    /// Who lives, this member included.
    fn living(&self, identity: &str) -> View {
        let others = self.others.keys().cloned();
        others.chain([identity.to_owned()]).collect()
    }
}

impl Shards {
    pub(super) fn new(leases: Leases) -> Self {
        Self { leases, fence: Fence::closed(), grants: watch::Sender::new(0), state: Mutex::default() }
    }

    pub(super) fn grants(&self) -> watch::Receiver<u64> {
        self.grants.subscribe()
    }

    pub(super) async fn keep(&self) {
        // Who else is there, before the first view is published.
        while let Err(error) = self.look().await {
            tracing::warn!(group = %self.leases.name.name, %error, "failed to list the members' leases");
            tokio::time::sleep(self.leases.candidate_pause()).await;
        }
        loop {
            let pause = match self.turn().await {
                Ok(pause) => pause,
                Err(error) => {
                    let identity = &self.leases.identity;
                    tracing::warn!(group = %self.leases.name.name, %identity, %error, "failed to renew the lease");
                    self.leases.times.retry
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    pub(super) async fn release(&self) {
        self.fence.close();
        let lease = self.state().lease.take();
        if let Some(lease) = lease
            && let Err(error) = self.leases.delete(&lease).await
        {
            tracing::warn!(lease = %lease.name_any(), %error, "failed to release the lease");
        }
    }

    /// Renews, with a new view if there is one, and looks at the others; gives the pause until the next turn.
    async fn turn(&self) -> Result<Duration, String> {
        let (lease, view) = self.prepare();
        let began = Instant::now();
        let Some(written) = self.leases.write(&lease).await? else {
            // An answer was lost, or somebody has deleted it.
            self.state().lease = self.leases.get(&lease.name_any()).await?;
            return Ok(Duration::ZERO);
        };
        {
            let mut state = self.state();
            state.lease = Some(written);
            let published = std::mem::replace(&mut state.published, view);
            // If the fence closed meanwhile, others may have taken over: begin anew.
            let former = if self.fence.is_open() { published } else { View::default() };
            if former != state.published {
                state.besides = Some(former);
            }
        }
        self.fence.extend(began + self.leases.times.renew_deadline);
        self.look().await?;
        let mut state = self.state();
        let living = state.living(&self.leases.identity);
        let unsettled = living != state.published;
        state.besides = unsettled.then_some(living);
        let basis = (state.published.clone(), state.besides.clone(), state.others.clone());
        if state.basis.replace(basis.clone()) != Some(basis) {
            self.grants.send_modify(|grants| *grants += 1);
        }
        Ok(if unsettled { DRAINING } else { self.leases.times.retry })
    }

    /// The Lease to write and the view in it. Keys that it gives away are not begun from here on.
    fn prepare(&self) -> (Lease, View) {
        let identity = &self.leases.identity;
        let mut state = self.state();
        if !self.fence.is_open() {
            // Others may have taken over: no key is this member's until it has been read what they claim.
            state.published = View::default();
            state.basis = None;
        }
        let wanted = state.living(identity);
        state.besides = Some(wanted.clone());
        let draining = state.underway.keys().any(|key| !wanted.gives(key, identity));
        let view = if draining { state.published.clone() } else { wanted };
        let (spec, resource_version) = match &state.lease {
            Some(lease) => (lease.spec.clone(), lease.metadata.resource_version.clone()),
            None => (None, None),
        };
        let acquired = spec.and_then(|spec| spec.acquire_time);
        let group = &self.leases.name;
        let metadata = ObjectMeta {
            name: Some(format!("{}-{identity}", group.name)),
            namespace: Some(group.namespace.clone()),
            labels: Some([(GROUP.to_owned(), group.name.clone())].into()),
            annotations: Some([(VIEW.to_owned(), view.to_string())].into()),
            resource_version,
            ..ObjectMeta::default()
        };
        let spec = Some(self.leases.held(acquired, 0));
        (Lease { metadata, spec }, view)
    }

    /// Reads what the others have published.
    async fn look(&self) -> Result<(), String> {
        let labels = format!("{GROUP}={}", self.leases.name.name);
        let leases = self.leases.list(&labels).await?;
        let litter = self.take_in(&leases);
        for lease in litter {
            self.leases.delete(lease).await?;
        }
        Ok(())
    }

    /// Takes in the Leases of the group; gives those that are long dead.
    fn take_in<'a>(&self, leases: &'a [Lease]) -> Vec<&'a Lease> {
        let mut litter = Vec::new();
        let mut state = self.state();
        let (mut seen, mut others) = (BTreeMap::new(), BTreeMap::new());
        for lease in leases {
            let Some(member) = holder(lease).filter(|member| *member != self.leases.identity) else {
                continue;
            };
            let version = lease.resource_version().unwrap_or_default();
            let first = match state.seen.get(member) {
                Some((known, first)) if *known == version => *first,
                _ => Instant::now(),
            };
            let valid = validity(lease, self.leases.times.duration);
            if first.elapsed() < valid {
                let view = lease.annotations().get(VIEW).map_or("", String::as_str);
                others.insert(member.to_owned(), View::parse(view));
            } else if first.elapsed() >= valid * LITTER {
                litter.push(lease);
            }
            seen.insert(member.to_owned(), (version, first));
        }
        state.seen = seen;
        state.others = others;
        litter
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
