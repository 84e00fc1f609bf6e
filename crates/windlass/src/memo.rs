//! Values that plans derived from what they read, kept for the next plan.
//!
//! A plan stays a pure function: a value is handed out again only if everything that it was derived from is the same
//! as then, and what it was derived from counts as read by whoever gets it. A value lives for as long as some
//! primary's last plan has used it; the table itself keeps none alive.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::cache::{Lookup, Read, Stored};
use crate::world::Source;

/// The values of one runtime, shared by all its primaries.
#[derive(Default)]
pub(crate) struct Memo(Mutex<Table>);

#[derive(Default)]
struct Table {
    values: HashMap<Key, Vec<Weak<Derived>>>,
    /// How many there were after the last time that dead ones were cleared away.
    alive: usize,
}

/// What kind of derivation it is, and a hash of what is given to it.
pub(crate) type Key = (TypeId, u64);

/// A value, and what it was derived from.
pub(crate) struct Derived {
    pub(crate) with: Box<dyn Any + Send + Sync>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) value: Arc<dyn Any + Send + Sync>,
}

/// One thing that was read, and how it was.
#[derive(Clone)]
pub(crate) enum Seen {
    /// This very object.
    Object(Arc<Stored>),
    /// What was asked for, and what was found.
    Named(Read, Option<Arc<Stored>>),
    Selected(Read, Vec<Arc<Stored>>),
}

/// The key of a derivation of type `D` from these things.
pub(crate) fn key<D: 'static>(inputs: impl Hash) -> Key {
    let mut hasher = DefaultHasher::new();
    inputs.hash(&mut hasher);
    (TypeId::of::<D>(), hasher.finish())
}

impl Memo {
    /// The value that was derived from the same things, if there is one.
    pub(crate) fn find(&self, key: Key, matches: impl Fn(&Derived) -> bool) -> Option<Arc<Derived>> {
        let candidates: Vec<Arc<Derived>> = {
            let table = self.lock();
            table.values.get(&key)?.iter().filter_map(Weak::upgrade).collect()
        };
        candidates.into_iter().find(|derived| matches(derived))
    }

    pub(crate) fn insert(&self, key: Key, derived: &Arc<Derived>) {
        let mut table = self.lock();
        let slot = table.values.entry(key).or_default();
        slot.retain(|known| known.strong_count() > 0);
        slot.push(Arc::downgrade(derived));
        if table.values.len() > 64 + 2 * table.alive {
            table.values.retain(|_, slot| {
                slot.retain(|known| known.strong_count() > 0);
                !slot.is_empty()
            });
            table.alive = table.values.len();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Derived {
    /// Whether all that it was derived from is as it was.
    pub(crate) fn holds(&self, source: &dyn Source) -> bool {
        self.seen.iter().all(|seen| seen.holds(source))
    }
}

impl Seen {
    fn holds(&self, source: &dyn Source) -> bool {
        match self {
            // Looked at by whoever has it in hand.
            Self::Object(_) => true,
            Self::Named(Read::Named { kind, name }, before) => match (source.named(kind, name), before) {
                (Lookup::Absent, None) => true,
                (Lookup::Present(now), Some(before)) => same(&now, before),
                _ => false,
            },
            Self::Named(..) => false,
            Self::Selected(read, before) => source.selected(read).is_some_and(|now| {
                now.len() == before.len() && now.iter().zip(before).all(|(now, before)| same(now, before))
            }),
        }
    }
}

/// Whether nothing that anybody reads differs.
pub(crate) fn same(a: &Arc<Stored>, b: &Arc<Stored>) -> bool {
    Arc::ptr_eq(a, b) || (a.name == b.name && a.deleting == b.deleting && a.same_content(b))
}

#[cfg(test)]
mod tests;
