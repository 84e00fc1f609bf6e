//! A work queue: each key at most once, never two workers on one key, with delays and per-key backoff.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// First and longest wait after failures, as client-go's rate limiter has them.
const FIRST_BACKOFF: Duration = Duration::from_millis(5);
const LONGEST_BACKOFF: Duration = Duration::from_secs(1000);

/// A queue of keys. Cloning shares it.
pub(crate) struct Queue<T> {
    state: Arc<Mutex<State<T>>>,
    changed: Arc<Notify>,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), changed: self.changed.clone() }
    }
}

struct State<T> {
    ready: VecDeque<T>,
    /// Keys that wait to be worked on, whether in `ready` or being worked on and added again.
    dirty: BTreeSet<T>,
    working: BTreeSet<T>,
    delayed: BTreeMap<(Instant, u64), T>,
    due: BTreeMap<T, (Instant, u64)>,
    sequence: u64,
    failures: BTreeMap<T, u32>,
    /// The first and the longest wait after failures.
    backoff: (Duration, Duration),
}

impl<T: Ord + Clone> Queue<T> {
    pub(crate) fn new() -> Self {
        Self::with_backoff(FIRST_BACKOFF, LONGEST_BACKOFF)
    }

    /// With other waits after failures than usual.
    pub(crate) fn with_backoff(first: Duration, longest: Duration) -> Self {
        let state = State {
            ready: VecDeque::new(),
            dirty: BTreeSet::new(),
            working: BTreeSet::new(),
            delayed: BTreeMap::new(),
            due: BTreeMap::new(),
            sequence: 0,
            failures: BTreeMap::new(),
            backoff: (first, longest),
        };
        Self { state: Arc::new(Mutex::new(state)), changed: Arc::new(Notify::new()) }
    }

    pub(crate) fn add(&self, key: T) {
        let mut state = self.lock();
        state.add(key);
        drop(state);
        self.changed.notify_one();
    }

    /// Adds a key after a while. An earlier time already asked for stays.
    pub(crate) fn add_after(&self, key: T, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let mut state = self.lock();
        let when = Instant::now() + delay;
        if let Some(&(earlier, sequence)) = state.due.get(&key) {
            if earlier <= when {
                return;
            }
            state.delayed.remove(&(earlier, sequence));
        }
        state.sequence += 1;
        let slot = (when, state.sequence);
        state.delayed.insert(slot, key.clone());
        state.due.insert(key, slot);
        drop(state);
        self.changed.notify_one();
    }

    /// Adds a key after a wait that doubles with each failure.
    pub(crate) fn add_failed(&self, key: T) {
        let mut state = self.lock();
        let (first, longest) = state.backoff;
        let failures = state.failures.entry(key.clone()).or_default();
        let delay = first.saturating_mul(2u32.saturating_pow(*failures)).min(longest);
        *failures += 1;
        drop(state);
        self.add_after(key, delay);
    }

    /// Forgets a key's failures.
    pub(crate) fn forget(&self, key: &T) {
        self.lock().failures.remove(key);
    }

    /// The next key. [`Queue::done`] must follow.
    pub(crate) async fn next(&self) -> T {
        loop {
            let wait = {
                let mut state = self.lock();
                state.move_due();
                if let Some(key) = state.ready.pop_front() {
                    state.dirty.remove(&key);
                    state.working.insert(key.clone());
                    if !state.ready.is_empty() {
                        self.changed.notify_one();
                    }
                    return key;
                }
                state.delayed.first_key_value().map(|((when, _), _)| *when)
            };
            match wait {
                None => self.changed.notified().await,
                Some(when) => tokio::select! {
                    biased;
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep_until(when) => {}
                },
            }
        }
    }

    /// Ends the work on a key.
    pub(crate) fn done(&self, key: &T) {
        let mut state = self.lock();
        state.working.remove(key);
        if state.dirty.contains(key) {
            state.ready.push_back(key.clone());
            drop(state);
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Ord + Clone> State<T> {
    fn add(&mut self, key: T) {
        if self.dirty.insert(key.clone()) && !self.working.contains(&key) {
            self.ready.push_back(key);
        }
    }

    fn move_due(&mut self) {
        let now = Instant::now();
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            self.due.remove(&key);
            self.add(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_is_worked_on_once_at_a_time_and_never_lost() {
        let queue = Queue::new();
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        assert_eq!(queue.next().await, "b");
        queue.done(&"b");
        assert!(tokio::time::timeout(Duration::from_millis(20), queue.next()).await.is_err());
        queue.done(&"a");
        assert_eq!(queue.next().await, "a");
    }

    #[tokio::test]
    async fn waits_double_with_failures_and_the_earliest_time_wins() {
        let queue = Queue::new();
        let start = Instant::now();
        for _ in 0..3 {
            queue.add_failed("a");
            let key = queue.next().await;
            queue.done(&key);
        }
        assert!(start.elapsed() >= Duration::from_millis(5 + 10 + 20));
        queue.forget(&"a");
        queue.add_after("a", Duration::from_secs(600));
        queue.add_after("a", Duration::from_millis(1));
        assert_eq!(queue.next().await, "a");
    }
}
