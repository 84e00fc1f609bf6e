//! The objects of one kind, as far as somebody has a use for them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use tokio::time::Instant;

use super::few::Few;
use super::{Lookup, PrimaryKey, Scope, Stored};
use crate::hash::seeded;
use crate::{Kind, ObjectName};

#[derive(Debug, Default)]
pub(super) struct Store {
    /// What fills it: one watch, or one for each namespace that the runtime is limited to.
    pub(super) watches: BTreeMap<Scope, Watched>,
    /// Whole objects.
    pub(super) entries: BTreeMap<ObjectName, Arc<Stored>>,
    /// Keep every object, since somebody selects among all of them.
    pub(super) keep_all: bool,
    /// Who wanted something that was not loaded.
    pub(super) waiting: BTreeSet<PrimaryKey>,
    /// What is being fetched.
    pub(super) fetching: BTreeSet<ObjectName>,
    /// Nothing is delivered by itself: what is not known has to be looked at.
    pub(super) on_demand: bool,
    /// On demand: what is known not to be there.
    pub(super) absent: BTreeSet<ObjectName>,
    /// What could not be looked at, and why.
    pub(super) failed: BTreeMap<ObjectName, String>,
    /// On demand: how often we have written each.
    pub(super) fact_versions: BTreeMap<ObjectName, u64>,
    /// By a hash of the owner's uid.
    by_owner: BTreeMap<u64, Few<ObjectName>>,
}

/// One watch, and what it has brought.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// Whether all that exists has been delivered once.
    pub(super) loaded: bool,
    /// Why it does not get on.
    pub(super) error: Option<String>,
    /// Whether that is because it is not allowed: then what is loaded gets out of date.
    pub(super) forbidden: bool,
    /// Hashes of the names of objects that exist and are not kept.
    others: HashSet<u64>,
    /// While a list goes on: hashes of the names that have been delivered or written since it began.
    pub(super) listing: Option<HashSet<u64>>,
    /// When it last gave a sign of life.
    pub(super) sign: Sign,
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
    pub(super) fn of(kind: &Kind, scopes: impl IntoIterator<Item = Scope>) -> Self {
        if kind.is_external() {
            return Self { on_demand: true, ..Self::default() };
        }
        let watches = scopes.into_iter().map(|scope| (scope, Watched::default())).collect();
        Self { watches, ..Self::default() }
    }

    /// The watches that bring the objects of a namespace, or all of them.
    pub(super) fn watches_of(&self, namespace: Option<&str>) -> impl Iterator<Item = &Watched> {
        let covers = move |scope: &Scope| match (scope, namespace) {
            (Some(scope), Some(namespace)) => **scope == *namespace,
            _ => true,
        };
        self.watches.iter().filter(move |(scope, _)| covers(scope)).map(|(_, watched)| watched)
    }

    /// Whether all that exists in a namespace, or in all of them, has been delivered once.
    pub(super) fn is_loaded(&self, namespace: Option<&str>) -> bool {
        self.watches_of(namespace).all(|watched| watched.loaded)
    }

    /// Whether what is known of a namespace, or of all of them, is all there is, and kept up to date.
    pub(super) fn goes_well(&self, namespace: Option<&str>) -> bool {
        self.watches_of(namespace).all(|watched| watched.loaded && watched.error.is_none())
    }

    /// Whether some objects exist that are not kept.
    pub(super) fn has_others(&self) -> bool {
        self.watches.values().any(|watched| !watched.others.is_empty())
    }

    pub(super) fn named(&self, name: &ObjectName) -> Lookup {
        let failed = || self.failed.get(name).map_or(Lookup::Loading, |error| Lookup::Failed(error.clone()));
        let watched = self.watched(name);
        match self.entries.get(name) {
            _ if watched.is_some_and(|watched| !watched.loaded) => Lookup::Loading,
            Some(stored) => Lookup::Present(Arc::clone(stored)),
            None if self.on_demand && !self.absent.contains(name) => failed(),
            None if self.on_demand => Lookup::Absent,
            None if watched.is_some_and(|watched| watched.others.contains(&hash(name))) => failed(),
            None if watched.is_some() => Lookup::Absent,
            None => Lookup::Failed(format!("the operator does not work in namespace {}", name.namespace)),
        }
    }

    /// The watch that brings an object of this name.
    fn watched(&self, name: &ObjectName) -> Option<&Watched> {
        self.watches.get(&None).or_else(|| self.watches.get(&Some(name.namespace.as_str().into())))
    }

    fn watched_mut(&mut self, name: &ObjectName) -> Option<&mut Watched> {
        let scope =
            if self.watches.contains_key(&None) { None } else { Some(name.namespace.as_str().into()) };
        self.watches.get_mut(&scope)
    }

    pub(super) fn owned_by(&self, uid: &str) -> impl Iterator<Item = Arc<Stored>> {
        let names = self.by_owner.get(&seeded(uid)).into_iter().flatten();
        names.filter_map(|name| self.entries.get(name)).map(Arc::clone)
    }

    /// Whether an object is newer than what is known of it: watches lag behind the answers to our own writes.
    pub(super) fn is_news(&self, name: &ObjectName, version: u64) -> bool {
        version == 0 || self.entries.get(name).is_none_or(|now| version > now.resource_version)
    }

    pub(super) fn put(&mut self, stored: Arc<Stored>) {
        self.remove(&stored.name);
        self.seen(&stored.name);
        for owner in &stored.owners {
            self.by_owner.entry(*owner).or_default().insert(stored.name.clone());
        }
        self.entries.insert(stored.name.clone(), stored);
    }

    /// Remembers only that the object exists.
    pub(super) fn put_aside(&mut self, name: &ObjectName) {
        self.remove(name);
        if let Some(watched) = self.watched_mut(name) {
            watched.others.insert(hash(name));
        }
    }

    pub(super) fn remove(&mut self, name: &ObjectName) -> Option<Arc<Stored>> {
        self.others_remove(name);
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
        if let Some(watched) = self.watched_mut(name) {
            watched.others.remove(&hash(name));
        }
    }

    pub(super) fn seen(&mut self, name: &ObjectName) {
        if let Some(listing) = self.watched_mut(name).and_then(|watched| watched.listing.as_mut()) {
            listing.insert(hash(name));
        }
    }

    /// Whether a list is going on that an object of this name is part of.
    pub(super) fn is_listing(&self, name: &ObjectName) -> bool {
        self.watched(name).is_some_and(|watched| watched.listing.is_some())
    }

    /// Removes and returns what was not seen since the list of a watch began.
    pub(super) fn finish_listing(&mut self, scope: &Scope) -> Vec<Arc<Stored>> {
        let Some(watched) = self.watches.get_mut(scope) else { return Vec::new() };
        let Some(seen) = watched.listing.take() else { return Vec::new() };
        watched.others.retain(|name| seen.contains(name));
        let covered = |name: &&ObjectName| scope.as_ref().is_none_or(|scope| **scope == *name.namespace);
        let gone = self.entries.keys().filter(covered).filter(|name| !seen.contains(&hash(name)));
        let gone: Vec<_> = gone.cloned().collect();
        gone.iter().filter_map(|name| self.remove(name)).collect()
    }
}

/// The hash of a name. Two names with one hash cost a request that finds nothing.
fn hash(name: &ObjectName) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
