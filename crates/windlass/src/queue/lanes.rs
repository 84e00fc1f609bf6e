//! What is ready to be given out: two lanes by urgency, and in each the tenants in turn.

use std::collections::{BTreeMap, VecDeque};

use super::{Tenant, Urgency};

/// After so many changes in a row a routine key gets its turn, so that none waits for ever.
const PATIENCE: u32 = 8;

pub(super) struct Lanes<K> {
    changes: Lane<K>,
    routine: Lane<K>,
    /// Where each key waits.
    queued: BTreeMap<K, Urgency>,
    /// Changes given out in a row while routine keys waited.
    passed: u32,
}

/// The keys of each tenant in order, and the tenants in turn. A key that was raised to the other lane stays behind
/// as a stale entry, and is skipped.
struct Lane<K> {
    tenants: BTreeMap<String, VecDeque<K>>,
    turns: VecDeque<String>,
}

impl<K> Default for Lanes<K> {
    fn default() -> Self {
        Self { changes: Lane::default(), routine: Lane::default(), queued: BTreeMap::new(), passed: 0 }
    }
}

impl<K> Default for Lane<K> {
    fn default() -> Self {
        Self { tenants: BTreeMap::new(), turns: VecDeque::new() }
    }
}

impl<K: Clone + Ord + Tenant> Lanes<K> {
    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.queued.len()
    }

    pub(super) fn push(&mut self, key: K, urgency: Urgency) {
        match self.queued.get(&key) {
            Some(waiting) if *waiting >= urgency => return,
            _ => self.queued.insert(key.clone(), urgency),
        };
        match urgency {
            Urgency::Change => self.changes.push(key),
            Urgency::Routine => self.routine.push(key),
        }
    }

    pub(super) fn pop(&mut self) -> Option<K> {
        let order = if self.passed >= PATIENCE {
            [Urgency::Routine, Urgency::Change]
        } else {
            [Urgency::Change, Urgency::Routine]
        };
        for urgency in order {
            if let Some(key) = self.pop_from(urgency) {
                self.passed = match urgency {
                    Urgency::Change => self.passed + 1,
                    Urgency::Routine => 0,
                };
                return Some(key);
            }
        }
        None
    }

    fn pop_from(&mut self, urgency: Urgency) -> Option<K> {
        let lane = match urgency {
            Urgency::Change => &mut self.changes,
            Urgency::Routine => &mut self.routine,
        };
        while let Some(key) = lane.pop() {
            if self.queued.get(&key) == Some(&urgency) {
                self.queued.remove(&key);
                return Some(key);
            }
        }
        None
    }
}

impl<K: Tenant> Lane<K> {
    fn push(&mut self, key: K) {
        match self.tenants.get_mut(key.tenant()) {
            Some(keys) => keys.push_back(key),
            None => {
                let tenant = key.tenant().to_owned();
                self.turns.push_back(tenant.clone());
                self.tenants.insert(tenant, VecDeque::from([key]));
            }
        }
    }

    fn pop(&mut self) -> Option<K> {
        let tenant = self.turns.pop_front()?;
        let keys = self.tenants.get_mut(&tenant)?;
        let key = keys.pop_front();
        if keys.is_empty() {
            self.tenants.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        key
    }
}
