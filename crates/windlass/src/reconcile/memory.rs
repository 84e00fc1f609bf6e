//! What is remembered of a primary between passes, and lost with the process without harm.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use windlass_machinery::Context;

use super::settlement::{Line, Settlement};
use crate::cache::PrimaryKey;
use crate::memo::Derived;
use crate::status::Outcome;
use crate::world::Glimpse;
use crate::{Kind, ObjectName};

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

    /// Whether something is still to be written of a primary's progress.
    pub(super) fn is_unsaid(&self, key: &PrimaryKey) -> bool {
        self.moving.lock().unwrap_or_else(PoisonError::into_inner).contains(key)
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
    randoms: Vec<Random>,
    writes: BTreeMap<(Kind, ObjectName), Writes>,
    lines: Vec<Line>,
    settlement: Option<Settlement>,
    told: Option<((u64, u64), Vec<Glimpse>)>,
    status_written: Option<Instant>,
    wrote: Option<Instant>,
    derived: Vec<Arc<Derived>>,
    forced: Option<String>,
    said: String,
}

/// Random text that was handed out.
struct Random {
    uid: Box<str>,
    key: Box<str>,
    text: Box<str>,
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
        if let Some(known) = inner.randoms.iter().find(|known| *known.uid == *uid && *known.key == *key) {
            return known.text.to_string();
        }
        let text = context.text_of(LETTERS_AND_DIGITS, length);
        inner.randoms.reserve_exact(1);
        inner.randoms.push(Random { uid: uid.into(), key: key.into(), text: text.as_str().into() });
        text
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

    /// What was found of a dependent in the last pass.
    pub(super) fn line(&self, kind: &Kind, name: &ObjectName) -> Option<Line> {
        self.lock().lines.iter().find(|line| line.is_of(kind, name)).cloned()
    }

    /// What was found of all dependents, in the order of the plan; whoever takes it gives it back.
    pub(super) fn take_lines(&self) -> Vec<Line> {
        std::mem::take(&mut self.lock().lines)
    }

    /// What is to be told of all dependents of a primary in this namespace.
    pub(super) fn outcomes(&self, namespace: &str) -> Vec<Outcome> {
        self.lock().lines.iter().map(|line| line.outcome(namespace)).collect()
    }

    /// Remembers what was found of all dependents.
    pub(super) fn keep_lines(&self, mut lines: Vec<Line>) {
        lines.shrink_to_fit();
        self.lock().lines = lines;
    }

    /// What the last pass rests on, if that is still to be told; whoever takes it gives it back.
    pub(super) fn take_settlement(&self) -> Option<Settlement> {
        self.lock().settlement.take()
    }

    /// After how long to plan again even if nothing changes.
    pub(super) fn again(&self) -> Option<Duration> {
        let again = self.lock().settlement.as_ref()?.again?;
        Some(again.saturating_duration_since(Instant::now()))
    }

    /// Notes what the operator's own part of the status looked at, for a primary with these hashes; nothing, if it cannot
    /// be told when that changes.
    pub(super) fn told(&self, primary: (u64, u64), glimpses: Option<Vec<Glimpse>>) {
        self.lock().told = glimpses.map(|mut glimpses| {
            glimpses.shrink_to_fit();
            (primary, glimpses)
        });
    }

    /// What the operator's own part of the status looked at; whoever takes it gives it back.
    pub(super) fn take_told(&self) -> Option<((u64, u64), Vec<Glimpse>)> {
        self.lock().told.take()
    }

    pub(super) fn keep_settlement(&self, settlement: Settlement) {
        self.lock().settlement = Some(settlement);
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

    /// Notes that a status with this hash was written.
    pub(super) fn status_written(&self, hash: u64) {
        let mut inner = self.lock();
        if let Some((primary, _)) = &mut inner.told {
            primary.1 = hash;
        }
        inner.status_written = Some(Instant::now());
        // The plan may read the status.
        inner.settlement = None;
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
