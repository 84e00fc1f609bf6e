//! The records of all objects, as packed text, within a budget: the oldest go first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Pass, Trace};
use crate::cache::PrimaryKey;
use crate::packed::{Models, Packed};

/// So many passes are kept of one object.
const PASSES: usize = 8;
/// So many bytes are kept of all objects.
const BUDGET: usize = 1 << 20;
/// What a pass takes beside its text.
const BESIDE: usize = 128;

/// The records of all objects.
#[derive(Debug)]
pub(crate) struct Journal {
    inner: Mutex<Inner>,
    budget: usize,
    models: Models,
}

#[derive(Debug, Default)]
struct Inner {
    /// The passes of each object, with their numbers.
    objects: BTreeMap<PrimaryKey, VecDeque<(u64, Packed)>>,
    /// Whose each pass is, by its number.
    order: BTreeMap<u64, PrimaryKey>,
    number: u64,
    bytes: usize,
}

impl Default for Journal {
    fn default() -> Self {
        Self::with_budget(BUDGET)
    }
}

impl Journal {
    fn with_budget(budget: usize) -> Self {
        Self { inner: Mutex::default(), budget, models: Models::default() }
    }

    /// Adds a pass that is over.
    pub(crate) fn add(&self, key: &PrimaryKey, trace: &Trace) {
        let Ok(text) = serde_json::to_string(&trace.finish()) else { return };
        let packed = self.models.pack("pass", &text);
        let mut inner = self.lock();
        inner.bytes += packed.size() + BESIDE;
        inner.number += 1;
        let number = inner.number;
        inner.order.insert(number, key.clone());
        let passes = inner.objects.entry(key.clone()).or_default();
        passes.push_back((number, packed));
        if passes.len() > PASSES {
            inner.drop_oldest_of(key);
        }
        while inner.bytes > self.budget
            && let Some((_, key)) = inner.order.first_key_value()
        {
            let key = key.clone();
            inner.drop_oldest_of(&key);
        }
    }

    /// The last passes over an object.
    pub(crate) fn passes(&self, key: &PrimaryKey) -> Vec<Pass> {
        let inner = self.lock();
        let texts = inner.objects.get(key).into_iter().flatten();
        texts.filter_map(|(_, text)| serde_json::from_str(&text.text()).ok()).collect()
    }

    /// The bytes kept.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn drop_oldest_of(&mut self, key: &PrimaryKey) {
        let Some(passes) = self.objects.get_mut(key) else { return };
        if let Some((number, text)) = passes.pop_front() {
            self.order.remove(&number);
            self.bytes -= text.size() + BESIDE;
        }
        if passes.is_empty() {
            self.objects.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObjectName;

    fn key(name: &str) -> PrimaryKey {
        PrimaryKey { controller: 0, name: ObjectName::new("team", name) }
    }

    fn trace(result: &str) -> Trace {
        Trace::new(Pass { result: result.to_owned(), ..Pass::default() })
    }

    #[test]
    fn the_last_passes_of_an_object_are_kept() {
        let journal = Journal::default();
        for number in 0..20 {
            journal.add(&key("a"), &trace(&number.to_string()));
        }
        let results: Vec<_> = journal.passes(&key("a")).into_iter().map(|pass| pass.result).collect();
        assert_eq!(results, ["12", "13", "14", "15", "16", "17", "18", "19"]);
        assert_eq!(journal.lock().order.len(), PASSES);
    }

    #[test]
    fn the_oldest_of_all_make_room() {
        let journal = Journal::with_budget(1000);
        for number in 0..500 {
            journal.add(&key(&number.to_string()), &trace("settled"));
            assert!(journal.bytes() <= 1000);
        }
        assert!(journal.passes(&key("0")).is_empty());
        assert_eq!(journal.passes(&key("499")).len(), 1);
        let inner = journal.lock();
        assert_eq!(inner.objects.len(), inner.order.len());
    }
}
