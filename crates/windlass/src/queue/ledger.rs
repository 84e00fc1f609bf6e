//! Why each key is in the queue, and since when.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Queue;
use crate::explain::{Cause, Causes};

/// Why each key is in the queue, and since when it could have been given out.
pub(super) struct Ledger<K>(Mutex<BTreeMap<K, Entry>>);

#[derive(Default)]
struct Entry {
    since: Option<Instant>,
    causes: Causes,
    /// What will be a cause once its time has come.
    later: Option<(Instant, Cause)>,
}

impl<K> Default for Ledger<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Ord> Queue<K> {
    /// Notes why a key is added.
    pub(crate) fn note(&self, key: &K, cause: Cause) {
        let mut ledger = self.ledger();
        let entry = ledger.entry(key.clone()).or_default();
        entry.since.get_or_insert_with(Instant::now);
        entry.causes.add(cause);
    }

    /// Notes why a key is added for later.
    pub(crate) fn note_after(&self, key: &K, cause: Cause, pause: Duration) {
        self.ledger().entry(key.clone()).or_default().later = Some((Instant::now() + pause, cause));
    }

    /// Why a key was given out, and how long it had to wait; forgotten with this.
    pub(crate) fn taken(&self, key: &K) -> (Duration, Causes) {
        let Some(Entry { mut since, mut causes, later }) = self.ledger().remove(key) else {
            return Default::default();
        };
        if let Some((due, cause)) = later.filter(|(due, _)| *due <= Instant::now()) {
            since = Some(since.map_or(due, |since| since.min(due)));
            causes.add(cause);
        }
        (since.map_or(Duration::ZERO, |since| since.elapsed()), causes)
    }

    fn ledger(&self) -> MutexGuard<'_, BTreeMap<K, Entry>> {
        self.ledger.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use windlass_machinery::Context;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_time_that_has_not_come_is_no_cause() {
        let queue = Queue::<&str>::new(Context::seeded(1));
        let key = "a";
        let seconds = Duration::from_secs;
        queue.note_after(&key, Cause::Again, seconds(60));
        queue.note(&key, Cause::Granted);
        tokio::time::advance(seconds(2)).await;
        let (waited, causes) = queue.taken(&key);
        assert_eq!((waited, causes.texts()), (seconds(2), vec!["this replica may write now".to_owned()]));

        queue.note_after(&key, Cause::Retry, seconds(60));
        tokio::time::advance(seconds(61)).await;
        let (waited, causes) = queue.taken(&key);
        assert_eq!((waited, causes.texts()), (seconds(1), vec!["an earlier pass failed".to_owned()]));
        assert_eq!(queue.taken(&key).0, Duration::ZERO);
    }
}
