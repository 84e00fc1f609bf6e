//! The queue of primaries to look at: each at most once, one worker per key, per-key backoff, changes first.

mod lanes;
mod ledger;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use windlass_machinery::Context;

use self::lanes::Lanes;
use self::ledger::Ledger;

/// The pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// A queue of keys. A key that is added while a worker has it is given out again once that worker is done.
///
/// What a person has changed comes before what follows from it, and before looking again; tenants take turns, so
/// that ten thousand keys of one do not hold up the one key of another.
pub(crate) struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    context: Context,
    ledger: Ledger<K>,
}

/// A key that belongs to somebody.
pub(crate) trait Tenant {
    /// Whose it is: the namespace.
    fn tenant(&self) -> &str;
}

/// How soon a key should be given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// It follows from our own work, or time has passed, or a list began.
    Routine,
    /// Somebody has changed something.
    Change,
}

struct State<K> {
    lanes: Lanes<K>,
    running: BTreeSet<K>,
    /// Keys added while a worker had them.
    again: BTreeMap<K, Urgency>,
    /// Keys to be added later, by time; the number keeps apart those of one time.
    delayed: BTreeMap<(Instant, u64), K>,
    due: BTreeMap<K, (Instant, u64)>,
    failures: BTreeMap<K, u32>,
    counter: u64,
}

impl<K: Clone + Ord + Tenant> Queue<K> {
    pub(crate) fn new(context: Context) -> Self {
        let state = State {
            lanes: Lanes::default(),
            running: BTreeSet::new(),
            again: BTreeMap::new(),
            delayed: BTreeMap::new(),
            due: BTreeMap::new(),
            failures: BTreeMap::new(),
            counter: 0,
        };
        Self { state: Mutex::new(state), changed: Notify::new(), context, ledger: Ledger::default() }
    }

    /// Adds a key, to be given out as soon as may be.
    pub(crate) fn add(&self, key: K) {
        self.add_with(key, Urgency::Routine);
    }

    /// Adds a key with its urgency; of several the highest holds.
    pub(crate) fn add_with(&self, key: K, urgency: Urgency) {
        self.lock().add(key, urgency);
        self.changed.notify_one();
    }

    /// Adds a key for later; the earliest of several times holds.
    pub(crate) fn add_after(&self, key: K, pause: Duration) {
        let mut state = self.lock();
        let at = Instant::now() + pause;
        if let Some(due) = state.due.get(&key).copied() {
            if due.0 <= at {
                return;
            }
            state.delayed.remove(&due);
        }
        state.counter += 1;
        let slot = (at, state.counter);
        state.delayed.insert(slot, key.clone());
        state.due.insert(key, slot);
        drop(state);
        self.changed.notify_one();
    }

    /// Adds a key after a failure: the pause doubles with each one in a row, less up to half of it by chance.
    pub(crate) fn retry(&self, key: K) -> Duration {
        let failures = {
            let mut state = self.lock();
            let failures = state.failures.entry(key.clone()).or_insert(0);
            *failures = failures.saturating_add(1);
            *failures
        };
        let longest = FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(16)).min(LONGEST_PAUSE);
        let jitter = self.context.below(longest.as_millis() as u64 / 2);
        let pause = longest - Duration::from_millis(jitter);
        self.add_after(key, pause);
        pause
    }

    /// Forgets earlier failures of a key.
    pub(crate) fn succeeded(&self, key: &K) {
        self.lock().failures.remove(key);
    }

    /// The next key, once there is one. Call [`done`](Self::done) with it.
    pub(crate) async fn next(&self) -> K {
        loop {
            let deadline = {
                let mut state = self.lock();
                state.release_due();
                if let Some(key) = state.take() {
                    if !state.lanes.is_empty() {
                        self.changed.notify_one();
                    }
                    return key;
                }
                state.delayed.keys().next().map(|(at, _)| *at)
            };
            match deadline {
                Some(at) => tokio::select! {
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => self.changed.notified().await,
            }
        }
    }

    /// Whether the time of more keys than these comes so soon.
    pub(crate) fn is_crowded(&self, soon: Duration, crowd: usize) -> bool {
        let latest = (Instant::now() + soon, u64::MAX);
        self.lock().delayed.range(..=latest).nth(crowd).is_some()
    }

    /// How many keys wait for a worker.
    pub(crate) fn depth(&self) -> usize {
        self.lock().lanes.len()
    }

    /// Says that a worker is done with a key.
    pub(crate) fn done(&self, key: &K) {
        let mut state = self.lock();
        state.running.remove(key);
        if let Some(urgency) = state.again.remove(key) {
            state.add(key.clone(), urgency);
            drop(state);
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Ord + Tenant> State<K> {
    fn add(&mut self, key: K, urgency: Urgency) {
        if self.running.contains(&key) {
            let again = self.again.entry(key).or_insert(urgency);
            *again = urgency.max(*again);
        } else {
            self.lanes.push(key, urgency);
        }
    }

    fn take(&mut self) -> Option<K> {
        let key = self.lanes.pop()?;
        self.running.insert(key.clone());
        // The worker looks at everything anew and asks again if it has to.
        if let Some(slot) = self.due.remove(&key) {
            self.delayed.remove(&slot);
        }
        Some(key)
    }

    fn release_due(&mut self) {
        let now = Instant::now();
        while let Some(entry) = self.delayed.first_entry().filter(|entry| entry.key().0 <= now) {
            let key = entry.remove();
            self.due.remove(&key);
            self.add(key, Urgency::Routine);
        }
    }
}

#[cfg(test)]
mod tests;
