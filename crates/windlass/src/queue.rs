//! The queue of primaries to look at: each at most once, one worker per key, per-key backoff.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use windlass_machinery::Context;

/// The pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// A queue of keys. A key that is added while a worker has it is given out again once that worker is done.
pub(crate) struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    context: Context,
}

struct State<K> {
    ready: VecDeque<K>,
    queued: BTreeSet<K>,
    running: BTreeSet<K>,
    /// Keys added while a worker had them.
    again: BTreeSet<K>,
    /// Keys to be added later, by time; the number keeps apart those of one time.
    delayed: BTreeMap<(Instant, u64), K>,
    due: BTreeMap<K, (Instant, u64)>,
    failures: BTreeMap<K, u32>,
    counter: u64,
}

impl<K: Clone + Ord> Queue<K> {
    pub(crate) fn new(context: Context) -> Self {
        let state = State {
            ready: VecDeque::new(),
            queued: BTreeSet::new(),
            running: BTreeSet::new(),
            again: BTreeSet::new(),
            delayed: BTreeMap::new(),
            due: BTreeMap::new(),
            failures: BTreeMap::new(),
            counter: 0,
        };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
            context,
        }
    }

    /// Adds a key, to be given out as soon as may be.
    pub(crate) fn add(&self, key: K) {
        self.lock().add(key);
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
        let longest = FIRST_PAUSE
            .saturating_mul(1 << (failures - 1).min(16))
            .min(LONGEST_PAUSE);
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
                    if !state.ready.is_empty() {
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

    /// Says that a worker is done with a key.
    pub(crate) fn done(&self, key: &K) {
        let mut state = self.lock();
        state.running.remove(key);
        if state.again.remove(key) {
            state.add(key.clone());
            drop(state);
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Ord> State<K> {
    fn add(&mut self, key: K) {
        if self.running.contains(&key) {
            self.again.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    fn take(&mut self) -> Option<K> {
        let key = self.ready.pop_front()?;
        self.queued.remove(&key);
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
            self.add(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue<&'static str> {
        Queue::new(Context::seeded(1))
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_given_out_once_and_never_to_two_workers() {
        let queue = queue();
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        assert_eq!(queue.next().await, "b");
        assert!(
            tokio::time::timeout(Duration::from_secs(9), queue.next())
                .await
                .is_err()
        );
        queue.done(&"a");
        assert_eq!(queue.next().await, "a");
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_a_limit_and_success_resets_them() {
        let queue = queue();
        let mut longest = FIRST_PAUSE;
        for _ in 0..40 {
            let pause = queue.retry("a");
            assert!(
                pause <= longest && pause >= longest / 2,
                "{pause:?} of {longest:?}"
            );
            longest = (longest * 2).min(LONGEST_PAUSE);
            let before = Instant::now();
            assert_eq!(queue.next().await, "a");
            assert_eq!(before.elapsed().as_millis(), pause.as_millis());
            queue.done(&"a");
        }
        queue.succeeded(&"a");
        assert!(queue.retry("a") <= FIRST_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_does_not_wait_for_the_pause_and_replaces_it() {
        let queue = queue();
        queue.add_after("a", Duration::from_secs(100));
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.done(&"a");
        assert!(
            tokio::time::timeout(Duration::from_secs(200), queue.next())
                .await
                .is_err()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_of_several_times_holds() {
        let queue = queue();
        queue.add_after("a", Duration::from_secs(100));
        queue.add_after("a", Duration::from_secs(10));
        queue.add_after("a", Duration::from_secs(50));
        let before = Instant::now();
        queue.next().await;
        assert_eq!(before.elapsed().as_secs(), 10);
    }
}
