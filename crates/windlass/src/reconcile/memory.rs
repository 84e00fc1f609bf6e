//! What is remembered of a primary between passes, and lost with the process without harm.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use windlass_machinery::Context;

use crate::cache::{PrimaryKey, Share};
use crate::memo::Derived;
use crate::plan::Dependent;
use crate::{Condition, Kind, ObjectName};

const LETTERS_AND_DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// So many writes of one and the same content to an object within the [window](WINDOW) are a fight.
pub(super) const FIGHT: usize = 5;
const WINDOW: Duration = Duration::from_secs(600);

/// The memories of all primaries.
#[derive(Default)]
pub(crate) struct Memories {
    all: Mutex<BTreeMap<PrimaryKey, Arc<Memory>>>,
    /// Those of whose progress something is still to be written.
    moving: Mutex<BTreeSet<PrimaryKey>>,
}

impl Memories {
    pub(super) fn of(&self, key: &PrimaryKey) -> Arc<Memory> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(key.clone()).or_default())
    }

    pub(super) fn forget(&self, key: &PrimaryKey) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        self.said(key);
    }

    /// Notes that something is still to be written of a primary's progress; of how many primaries that is so.
    pub(super) fn unsaid(&self, key: &PrimaryKey) -> usize {
        let mut moving = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        moving.insert(key.clone());
        moving.len()
    }

    /// Notes that a primary's status is as it should be.
    pub(super) fn said(&self, key: &PrimaryKey) {
        self.moving.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// The memory of one primary.
#[derive(Default)]
pub(super) struct Memory(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    randoms: BTreeMap<(Box<str>, String), String>,
    writes: BTreeMap<(Kind, ObjectName), Writes>,
    agreements: Vec<Agreement>,
    status_written: Option<Instant>,
    wrote: Option<Instant>,
    derived: Vec<Arc<Derived>>,
    forced: Option<String>,
    said: String,
}

/// A dependent that was found as planned. As long as neither the plan nor the object changes there is nothing to
/// compare.
#[derive(Clone)]
pub(super) struct Agreement {
    pub(super) kind: Kind,
    pub(super) name: ObjectName,
    /// A hash of all that the plan says of it.
    pub(super) planned: u64,
    /// How it was observed.
    pub(super) content: u64,
    pub(super) share: Option<Arc<Share>>,
    /// A hash of the status, and what was said of it then by the rule for its kind, unless it was ready.
    pub(super) judged: Option<(u64, Option<Box<Condition>>)>,
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
    pub(super) fn at_peace(&self, kind: &Kind, name: &ObjectName) {
        let mut inner = self.lock();
        if !inner.writes.is_empty()
            && let Some(writes) = inner.writes.get_mut(&(kind.clone(), name.clone()))
        {
            writes.conflict = None;
        }
    }

    /// Remembers how a dependent is that is as planned.
    pub(super) fn agreed(&self, agreement: Agreement) {
        let mut inner = self.lock();
        match inner.agreements.iter_mut().find(|known| known.is_of(&agreement.kind, &agreement.name)) {
            Some(known) => *known = agreement,
            None => inner.agreements.push(agreement),
        }
    }

    /// How a dependent was when it was last found as planned.
    pub(super) fn agreement(&self, kind: &Kind, name: &ObjectName) -> Option<Agreement> {
        self.lock().agreements.iter().find(|known| known.is_of(kind, name)).cloned()
    }

    /// Forgets all dependents but these.
    pub(super) fn keep_agreements(&self, planned: &[Dependent]) {
        let mut inner = self.lock();
        if inner.agreements.len() > planned.len() {
            inner.agreements.retain(|known| {
                planned.iter().any(|dependent| known.is_of(&dependent.kind, &dependent.name))
            });
        }
    }

    /// Whether something is other than what was said last; nothing, where all is well.
    pub(super) fn is_news(&self, message: &str) -> bool {
        let mut inner = self.lock();
        let news = inner.said != message;
        if news {
            inner.said = message.to_owned();
        }
        news
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

impl Agreement {
    fn is_of(&self, kind: &Kind, name: &ObjectName) -> bool {
        self.name == *name && self.kind == *kind
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
