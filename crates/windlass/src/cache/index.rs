//! Who has read what, the other way round: from a changed object to the primaries it concerns.

use std::collections::{BTreeMap, BTreeSet};

use super::few::Few;
use super::{Read, Reads, Stored};
use crate::hash::seeded;
use crate::queue::Tenant;
use crate::{Kind, ObjectName};

/// A primary: the controller, by its place in the runtime, and the object's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PrimaryKey {
    pub(crate) controller: usize,
    pub(crate) name: ObjectName,
}

impl Tenant for PrimaryKey {
    fn tenant(&self) -> &str {
        &self.name.namespace
    }
}

#[derive(Debug)]
pub(super) struct Index {
    /// The kind of each controller.
    primaries: Vec<Kind>,
    by_name: BTreeMap<Kind, BTreeMap<ObjectName, Few<PrimaryKey>>>,
    selectors: BTreeMap<Kind, BTreeMap<PrimaryKey, Few<Read>>>,
    /// By a hash of the uid.
    by_uid: BTreeMap<u64, Few<PrimaryKey>>,
    records: BTreeMap<PrimaryKey, Record>,
}

#[derive(Debug, Default)]
struct Record {
    /// A hash of it.
    uid: u64,
    reads: Reads,
    unwatched: BTreeSet<(Kind, ObjectName)>,
}

impl Record {
    fn ignores(&self, kind: &Kind, name: &ObjectName) -> bool {
        !self.unwatched.is_empty() && self.unwatched.contains(&(kind.clone(), name.clone()))
    }
}

impl Index {
    pub(super) fn new(primaries: Vec<Kind>) -> Self {
        let (by_name, selectors, by_uid, records) = Default::default();
        Self { primaries, by_name, selectors, by_uid, records }
    }

    /// The kind of each controller.
    pub(super) fn primaries(&self) -> &[Kind] {
        &self.primaries
    }

    /// Records one read at once, so that a change that comes while the plan runs is not missed.
    pub(super) fn add(&mut self, reader: &PrimaryKey, read: &Read) {
        let known = self.records.get(reader).is_some_and(|record| record.reads.contains(read));
        if known {
            return;
        }
        self.records.entry(reader.clone()).or_default().reads.insert(read.clone());
        match read {
            Read::Named { kind, name } => {
                let names = self.by_name.entry(kind.clone()).or_default();
                names.entry(name.clone()).or_default().insert(reader.clone());
            }
            Read::Selected(selection) => {
                let readers = self.selectors.entry(selection.kind.clone()).or_default();
                readers.entry(reader.clone()).or_default().insert(read.clone());
            }
        }
    }

    /// A read as it is recorded.
    pub(super) fn known(&self, reader: &PrimaryKey, read: &Read) -> Option<Read> {
        self.records.get(reader)?.reads.get(read).cloned()
    }

    /// Replaces a record by that of the plan just made.
    pub(super) fn replace(&mut self, reader: &PrimaryKey, uid: &str, reads: &Reads) {
        let uid = seeded(uid);
        let record = self.records.entry(reader.clone()).or_default();
        if record.uid != uid {
            let old = std::mem::replace(&mut record.uid, uid);
            remove(&mut self.by_uid, &old, reader);
            self.by_uid.entry(uid).or_default().insert(reader.clone());
        }
        let record = self.records.entry(reader.clone()).or_default();
        let stale: Vec<Read> = record.reads.difference(reads).cloned().collect();
        for read in &stale {
            self.drop_read(reader, read);
        }
        for read in reads {
            self.add(reader, read);
        }
    }

    pub(super) fn forget(&mut self, reader: &PrimaryKey) {
        let Some(record) = self.records.remove(reader) else {
            return;
        };
        remove(&mut self.by_uid, &record.uid, reader);
        for read in &record.reads {
            self.drop_read(reader, read);
        }
    }

    /// Whether some primary has a use for the whole object.
    pub(super) fn concerns(&self, kind: &Kind, stored: &Stored) -> bool {
        self.primaries.contains(kind) || !self.readers(kind, stored).is_empty()
    }

    /// Whom a change from `old` to `new` concerns.
    pub(super) fn touched(
        &self,
        kind: &Kind,
        old: Option<&Stored>,
        new: Option<&Stored>,
    ) -> BTreeSet<PrimaryKey> {
        let mut touched = BTreeSet::new();
        for stored in [old, new].into_iter().flatten() {
            touched.extend(self.readers(kind, stored));
        }
        if let Some(stored) = new.or(old) {
            for (controller, primary) in self.primaries.iter().enumerate() {
                if primary == kind {
                    touched.insert(PrimaryKey { controller, name: stored.name.clone() });
                }
            }
        }
        touched
    }

    /// Whether the object is this very primary.
    pub(super) fn is_primary(&self, key: &PrimaryKey, kind: &Kind, name: &ObjectName) -> bool {
        key.name == *name && self.primaries.get(key.controller) == Some(kind)
    }

    /// Who has read this object by its name.
    pub(super) fn named_by(&self, kind: &Kind, name: &ObjectName) -> BTreeSet<PrimaryKey> {
        let names = self.by_name.get(kind);
        names.and_then(|names| names.get(name)).into_iter().flatten().cloned().collect()
    }

    /// The objects of a kind that somebody has read by their names.
    pub(super) fn names_of(&self, kind: &Kind) -> Vec<ObjectName> {
        self.by_name.get(kind).into_iter().flat_map(|names| names.keys().cloned()).collect()
    }

    /// Whether some record names the kind.
    pub(super) fn is_read(&self, kind: &Kind) -> bool {
        let by_name = self.by_name.get(kind).is_some_and(|names| !names.is_empty());
        by_name || self.selectors.get(kind).is_some_and(|readers| !readers.is_empty())
    }

    /// The external things that a primary has read.
    pub(super) fn facts_of(&self, reader: &PrimaryKey) -> Vec<(Kind, ObjectName)> {
        let reads = self.records.get(reader).into_iter().flat_map(|record| &record.reads);
        let facts = reads.filter_map(|read| match read {
            Read::Named { kind, name } if kind.is_external() => Some((kind.clone(), name.clone())),
            _ => None,
        });
        facts.collect()
    }

    /// Says of which objects this primary does not want to hear, although it owns them.
    pub(super) fn unwatch(&mut self, reader: &PrimaryKey, unwatched: BTreeSet<(Kind, ObjectName)>) {
        self.records.entry(reader.clone()).or_default().unwatched = unwatched;
    }

    fn readers(&self, kind: &Kind, stored: &Stored) -> BTreeSet<PrimaryKey> {
        let mut readers = BTreeSet::new();
        if let Some(keys) = self.by_name.get(kind).and_then(|names| names.get(&stored.name)) {
            readers.extend(keys.iter().cloned());
        }
        for (key, reads) in self.selectors.get(kind).into_iter().flatten() {
            if reads.iter().any(|read| read.matches(stored)) {
                readers.insert(key.clone());
            }
        }
        for owner in &stored.owners {
            let owners = self.by_uid.get(owner).into_iter().flatten();
            let wants = |key: &&PrimaryKey| {
                let record = self.records.get(*key);
                record.is_none_or(|record| !record.ignores(kind, &stored.name))
            };
            readers.extend(owners.filter(wants).cloned());
        }
        readers
    }

    fn drop_read(&mut self, reader: &PrimaryKey, read: &Read) {
        if let Some(record) = self.records.get_mut(reader) {
            record.reads.remove(read);
        }
        match read {
            Read::Named { kind, name } => {
                if let Some(names) = self.by_name.get_mut(kind) {
                    remove(names, name, reader);
                }
            }
            Read::Selected(selection) => {
                if let Some(readers) = self.selectors.get_mut(&selection.kind)
                    && let Some(reads) = readers.get_mut(reader)
                {
                    reads.remove(read);
                    if reads.is_empty() {
                        readers.remove(reader);
                    }
                }
            }
        }
    }
}

/// Removes a value from a set in a map, and the set once it is empty.
fn remove<K: Ord, V: Ord>(sets: &mut BTreeMap<K, Few<V>>, key: &K, value: &V) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}
