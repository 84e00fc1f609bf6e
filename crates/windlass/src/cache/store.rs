//! The objects of one kind, as far as somebody has a use for them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use super::{Lookup, PrimaryKey, Stored};
use crate::ObjectName;

#[derive(Debug, Default)]
pub(super) struct Store {
    /// Whether all that exists has been delivered once.
    pub(super) loaded: bool,
    /// Why the watch does not get on.
    pub(super) error: Option<String>,
    /// Whole objects.
    pub(super) entries: BTreeMap<ObjectName, Arc<Stored>>,
    /// Hashes of the names of objects that exist and are not kept.
    pub(super) others: HashSet<u64>,
    /// Keep every object, since somebody selects among all of them.
    pub(super) keep_all: bool,
    /// Who wanted something that was not loaded.
    pub(super) waiting: BTreeSet<PrimaryKey>,
    /// What is being fetched.
    pub(super) fetching: BTreeSet<ObjectName>,
    /// While a list goes on: hashes of the names that have been delivered or written since it began.
    pub(super) listing: Option<HashSet<u64>>,
    by_owner: BTreeMap<Box<str>, BTreeSet<ObjectName>>,
}

impl Store {
    pub(super) fn named(&self, name: &ObjectName) -> Lookup {
        match self.entries.get(name) {
            _ if !self.loaded => Lookup::Loading,
            Some(stored) => Lookup::Present(Arc::clone(stored)),
            None if self.others.contains(&hash(name)) => Lookup::Loading,
            None => Lookup::Absent,
        }
    }

    pub(super) fn owned_by(&self, uid: &str) -> impl Iterator<Item = Arc<Stored>> {
        let names = self.by_owner.get(uid).into_iter().flatten();
        names.filter_map(|name| self.entries.get(name)).map(Arc::clone)
    }

    /// Whether an object is newer than what is known of it: watches lag behind the answers to our own writes.
    pub(super) fn is_news(&self, stored: &Stored) -> bool {
        let newer = |now: &Arc<Stored>| stored.resource_version > now.resource_version;
        stored.resource_version == 0 || self.entries.get(&stored.name).is_none_or(newer)
    }

    pub(super) fn put(&mut self, stored: Arc<Stored>) {
        self.remove(&stored.name);
        self.seen(&stored.name);
        for owner in &stored.owners {
            self.by_owner
                .entry(owner.clone())
                .or_default()
                .insert(stored.name.clone());
        }
        self.entries.insert(stored.name.clone(), stored);
    }

    /// Remembers only that the object exists.
    pub(super) fn put_aside(&mut self, name: &ObjectName) {
        self.remove(name);
        self.others.insert(hash(name));
    }

    pub(super) fn remove(&mut self, name: &ObjectName) -> Option<Arc<Stored>> {
        self.others.remove(&hash(name));
        let old = self.entries.remove(name)?;
        for owner in &old.owners {
            if let Some(names) = self.by_owner.get_mut(owner) {
                names.remove(name);
                if names.is_empty() {
                    self.by_owner.remove(owner);
                }
            }
        }
        Some(old)
    }

    pub(super) fn others_remove(&mut self, name: &ObjectName) {
        self.others.remove(&hash(name));
    }

    pub(super) fn seen(&mut self, name: &ObjectName) {
        if let Some(listing) = &mut self.listing {
            listing.insert(hash(name));
        }
    }

    /// Removes and returns what was not seen since the list began.
    pub(super) fn finish_listing(&mut self) -> Vec<Arc<Stored>> {
        let Some(seen) = self.listing.take() else {
            return Vec::new();
        };
        self.others.retain(|name| seen.contains(name));
        let gone: Vec<_> = self
            .entries
            .keys()
            .filter(|name| !seen.contains(&hash(name)))
            .cloned()
            .collect();
        gone.iter().filter_map(|name| self.remove(name)).collect()
    }
}

/// The hash of a name. Two names with one hash cost a request that finds nothing.
fn hash(name: &ObjectName) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
