//! What is remembered of a primary between passes, and lost with the process without harm.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use windlass_machinery::Context;

use crate::cache::PrimaryKey;
use crate::memo::Derived;
use crate::{Kind, ObjectName};

const LETTERS_AND_DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// So many writes of one and the same content to an object within the [window](WINDOW) are a fight.
pub(super) const FIGHT: usize = 5;
const WINDOW: Duration = Duration::from_secs(600);

/// The memories of all primaries.
#[derive(Default)]
pub(crate) struct Memories(Mutex<BTreeMap<PrimaryKey, Arc<Memory>>>);

impl Memories {
    pub(super) fn of(&self, key: &PrimaryKey) -> Arc<Memory> {
        let mut memories = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(memories.entry(key.clone()).or_default())
    }

    pub(super) fn forget(&self, key: &PrimaryKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// The memory of one primary.
#[derive(Default)]
pub(super) struct Memory(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    randoms: BTreeMap<(Box<str>, String), String>,
    writes: BTreeMap<(Kind, ObjectName), Writes>,
    status_written: Option<Instant>,
    wrote: Option<Instant>,
    derived: Vec<Arc<Derived>>,
    forced: Option<String>,
}

/// The writes to one dependent.
#[derive(Clone, Default)]
pub(super) struct Writes {
    /// A hash of what was written.
    desired: u64,
    times: Vec<Instant>,
    /// What the object looked like after a write that the server did not take over unchanged.
    pub(super) settled: Option<u64>,
    /// Who keeps changing it back, once that is known.
    pub(super) conflict: Option<String>,
}

impl Memory {
    /// Random text that stays the same for one primary (not only of the same name) and key.
    pub(super) fn random(&self, context: &Context, uid: &str, key: &str, length: usize) -> String {
        let mut inner = self.lock();
        let slot = inner.randoms.entry((uid.into(), key.into()));
        slot.or_insert_with(|| context.text_of(LETTERS_AND_DIGITS, length)).clone()
    }

    /// The writes of this content to a dependent; those of other content are forgotten.
    pub(super) fn writes(&self, kind: &Kind, name: &ObjectName, desired: u64) -> Writes {
        let mut inner = self.lock();
        let writes = inner.writes.entry((kind.clone(), name.clone())).or_default();
        if writes.desired != desired {
            *writes = Writes { desired, ..Writes::default() };
        }
        writes.times.retain(|time| time.elapsed() < WINDOW);
        writes.clone()
    }

    pub(super) fn keep_writes(&self, kind: &Kind, name: &ObjectName, writes: Writes) {
        self.lock().writes.insert((kind.clone(), name.clone()), writes);
    }

    /// Whether this force was not known before. If so, fights are forgotten.
    pub(super) fn is_new_force(&self, force: Option<&String>) -> bool {
        let mut inner = self.lock();
        if inner.forced.as_ref() == force {
            return false;
        }
        inner.forced = force.cloned();
        inner.writes.clear();
        force.is_some()
    }

    /// Nothing differs: if there was a fight, it is over.
    pub(super) fn agreed(&self, kind: &Kind, name: &ObjectName) {
        if let Some(writes) = self.lock().writes.get_mut(&(kind.clone(), name.clone())) {
            writes.conflict = None;
        }
    }

    pub(super) fn since_status(&self) -> Option<Duration> {
        self.lock().status_written.map(|written| written.elapsed())
    }

    pub(super) fn status_written(&self) {
        self.lock().status_written = Some(Instant::now());
    }

    /// Notes that dependents were written.
    pub(super) fn wrote(&self) {
        self.lock().wrote = Some(Instant::now());
    }

    /// How long to wait until dependents may be written again, if at all.
    pub(super) fn pause(&self, pace: Duration) -> Option<Duration> {
        let since = self.lock().wrote?.elapsed();
        pace.checked_sub(since).filter(|pause| !pause.is_zero())
    }

    /// Keeps what the last plan derived, and lets go of what the one before did.
    pub(super) fn keep_derived(&self, derived: Vec<Arc<Derived>>) {
        let former = std::mem::replace(&mut self.lock().derived, derived);
        drop(former);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writes {
    pub(super) fn is_fight(&self) -> bool {
        self.times.len() >= FIGHT
    }

    pub(super) fn add(&mut self) {
        self.times.push(Instant::now());
    }
}
