//! Why each key is in the queue, and since when.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Queue;
use crate::explain::{Cause, Causes};

/// Why each key is in the queue, and since when it could have been given out.
pub(super) struct Ledger<K>(Mutex<BTreeMap<K, (Instant, Causes)>>);

impl<K> Default for Ledger<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Ord> Queue<K> {
    /// Notes why a key is added.
    pub(crate) fn note(&self, key: &K, cause: Cause) {
        self.note_after(key, cause, Duration::ZERO);
    }

    /// Notes why a key is added for later.
    pub(crate) fn note_after(&self, key: &K, cause: Cause, pause: Duration) {
        let due = Instant::now() + pause;
        let mut ledger = self.ledger();
        let (since, causes) = ledger.entry(key.clone()).or_insert_with(|| (due, Causes::default()));
        *since = due.min(*since);
        causes.add(cause);
    }

    /// Why a key was given out, and how long it had to wait; forgotten with this.
    pub(crate) fn taken(&self, key: &K) -> (Duration, Causes) {
        let noted = self.ledger().remove(key);
        noted.map_or_else(Default::default, |(since, causes)| (since.elapsed(), causes))
    }

    fn ledger(&self) -> MutexGuard<'_, BTreeMap<K, (Instant, Causes)>> {
        self.ledger.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
