//! The objects of one kind, as far as somebody has a use for them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use tokio::time::Instant;

use super::{Lookup, PrimaryKey, Stored};
use crate::{Kind, ObjectName};

#[derive(Debug, Default)]
pub(super) struct Store {
    /// Whether all that exists has been delivered once.
    pub(super) loaded: bool,
    /// Why the watch does not get on.
    pub(super) error: Option<String>,
    /// Whether that is because it is not allowed: then what is loaded gets out of date.
    pub(super) forbidden: bool,
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
    /// Nothing is delivered by itself: what is not known has to be looked at.
    pub(super) on_demand: bool,
    /// On demand: what is known not to be there.
    pub(super) absent: BTreeSet<ObjectName>,
    /// What could not be looked at, and why.
    pub(super) failed: BTreeMap<ObjectName, String>,
    /// On demand: how often we have written each.
    pub(super) fact_versions: BTreeMap<ObjectName, u64>,
    /// When the watch last gave a sign of life.
    pub(super) sign: Sign,
    by_owner: BTreeMap<Box<str>, BTreeSet<ObjectName>>,
}

/// A point in time; now, unless told otherwise.
#[derive(Debug)]
pub(super) struct Sign(pub(super) Instant);

impl Default for Sign {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Store {
    pub(super) fn of(kind: &Kind) -> Self {
        Self { on_demand: kind.is_external(), loaded: kind.is_external(), ..Self::default() }
    }

    pub(super) fn named(&self, name: &ObjectName) -> Lookup {
        match self.entries.get(name) {
            _ if !self.loaded => Lookup::Loading,
            Some(stored) => Lookup::Present(Arc::clone(stored)),
            None if self.on_demand && !self.absent.contains(name) => match self.failed.get(name) {
                Some(error) => Lookup::Failed(error.clone()),
                None => Lookup::Loading,
            },
            None if self.others.contains(&hash(name)) => match self.failed.get(name) {
                Some(error) => Lookup::Failed(error.clone()),
                None => Lookup::Loading,
            },
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
            self.by_owner.entry(owner.clone()).or_default().insert(stored.name.clone());
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
        self.failed.remove(name);
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

    pub(super) fn forget_fact(&mut self, name: &ObjectName) {
        self.remove(name);
        self.absent.remove(name);
        self.failed.remove(name);
        self.fact_versions.remove(name);
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
        let gone: Vec<_> = self.entries.keys().filter(|name| !seen.contains(&hash(name))).cloned().collect();
        gone.iter().filter_map(|name| self.remove(name)).collect()
    }
}

/// The hash of a name. Two names with one hash cost a request that finds nothing.
fn hash(name: &ObjectName) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
