//! What the runtime knows of the cluster, shared by all controllers of the process.
//!
//! One [`Store`] per kind, filled by one watch, or by one for each namespace that the runtime is limited to. It is
//! closed some time after the last plan that read the kind has stopped to. A store keeps whole objects only of what some
//! primary has a use for: what a record names, what an operator of this process made, what an owner of ours owns. Of all
//! else it keeps a hash of the name, so that memory follows what operators use and not what the cluster holds. If a
//! record later names one of those, it is [fetched](Command::Fetch).
//!
//! Reading and recording are one step under one lock, so that no change falls between them. Nothing here does I/O.

mod delivered;
mod delivery;
mod fact;
mod few;
mod index;
mod labels;
mod read;
mod share;
mod store;
mod stored;
mod survey;
mod undecodable;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

pub(crate) use delivered::Delivered;
use index::Index;
pub(crate) use index::PrimaryKey;
pub(crate) use labels::Labels;
pub(crate) use read::{Read, Reads};
pub(crate) use share::{Share, Shares};
use store::{Store, Watched};
pub(crate) use stored::Stored;
pub(crate) use survey::Survey;
pub(crate) use undecodable::Undecodable;
pub(crate) use watch::{fetch, watch};

use crate::explain::Cause;
use crate::queue::Queue;
use crate::world::Glimpse;
use crate::{Kind, ObjectName};

/// What a lookup by name finds.
#[derive(Clone, Debug)]
pub(crate) enum Lookup {
    /// Not known yet; whoever asked is queued again when it is.
    Loading,
    /// It could not be looked at, for this reason; whoever asked is queued again when it could.
    Failed(String),
    Absent,
    Present(Arc<Stored>),
}

/// What one watch of a kind covers: a namespace, or all of them and what is in none.
pub(crate) type Scope = Option<Arc<str>>;

/// A watch that no plan needs any more stays open for so long: what was wanted once is often wanted again.
const LINGER: Duration = Duration::from_secs(600);

/// What the cache asks of the runtime.
#[derive(Debug)]
pub(crate) enum Command {
    /// Start to watch a kind, in each of these scopes.
    Watch(Kind, Vec<Scope>),
    /// Ask after this time whether somebody still [uses](Cache::close_unused) a kind.
    Linger(Kind, Duration),
    /// Stop to watch a kind.
    Close(Kind),
    /// Tell people that a kind cannot be watched, for this reason.
    Tell(Kind, String),
    /// Get one object that exists but was not kept.
    Fetch(Kind, ObjectName),
}

/// The cache of one runtime.
pub(crate) struct Cache {
    inner: Mutex<Inner>,
    queue: Arc<Queue<PrimaryKey>>,
    commands: mpsc::UnboundedSender<Command>,
    shares: Shares,
    /// The namespaces that the runtime is limited to; all of them, if there is none.
    namespaces: Vec<Arc<str>>,
}

struct Inner {
    stores: BTreeMap<Kind, Store>,
    index: Index,
    /// Kinds that are watched whether or not some plan reads them.
    open: BTreeSet<Kind>,
    /// Since when nobody reads a kind that is watched.
    unused: BTreeMap<Kind, Instant>,
    /// Hashes of the statuses that we wrote last.
    statuses: BTreeMap<PrimaryKey, u64>,
}

impl Cache {
    /// `primaries` are the kinds of the controllers, in their order; `operators` the names of field managers.
    pub(crate) fn new(
        queue: Arc<Queue<PrimaryKey>>,
        commands: mpsc::UnboundedSender<Command>,
        primaries: Vec<Kind>,
        operators: BTreeSet<String>,
    ) -> Self {
        let (stores, open, unused, statuses) = Default::default();
        let inner = Inner { stores, index: Index::new(primaries), open, unused, statuses };
        let shares = Shares::new(operators);
        Self { inner: Mutex::new(inner), queue, commands, shares, namespaces: Vec::new() }
    }

    /// Looks only at these namespaces, if there are any, and at what is in none.
    pub(crate) fn within(self, namespaces: &BTreeSet<String>) -> Self {
        Self { namespaces: namespaces.iter().map(|name| name.as_str().into()).collect(), ..self }
    }

    /// Starts the watch of a kind, if there is none, and keeps it open.
    pub(crate) fn open(&self, kind: &Kind) {
        let mut inner = self.lock();
        inner.open.insert(kind.clone());
        self.store(&mut inner, kind);
    }

    /// Takes in what stands for a primary that is no object of the cluster, and queues it.
    pub(crate) fn stand(&self, kind: &Kind, stored: Stored) {
        let mut inner = self.lock();
        let touched = inner.index.touched(kind, None, Some(&stored));
        self.store(&mut inner, kind).put(Arc::new(stored));
        for key in touched {
            self.queue.note(&key, Cause::Granted);
            self.queue.add(key);
        }
    }

    /// Whether these kinds are loaded, as far as they can be. If not, `reader` is queued when the next one is.
    pub(crate) fn is_loaded(&self, reader: &PrimaryKey, kinds: &[Kind]) -> bool {
        let mut inner = self.lock();
        for kind in kinds {
            let store = self.store(&mut inner, kind);
            let coming = |watched: &Watched| !watched.loaded && watched.error.is_none();
            if store.watches_of(None).any(coming) {
                store.waiting.insert(reader.clone());
                return false;
            }
        }
        true
    }

    /// The object of this name, recorded as read by `reader`.
    pub(crate) fn named(&self, reader: &PrimaryKey, kind: &Kind, name: &ObjectName) -> Lookup {
        let mut inner = self.lock();
        let lookup = self.store(&mut inner, kind).named(name);
        // One copy of the name, as long as there is an object of it.
        let known = if let Lookup::Present(stored) = &lookup { &stored.name } else { name };
        inner.index.add(reader, &Read::named(kind.clone(), known.clone()));
        let store = self.store(&mut inner, kind);
        // A fact queues those who have read it by name.
        if matches!(lookup, Lookup::Loading | Lookup::Failed(_)) && !store.on_demand {
            store.waiting.insert(reader.clone());
        }
        let loaded = store.is_loaded(Some(&name.namespace));
        if matches!(lookup, Lookup::Loading) && loaded && store.fetching.insert(name.clone()) {
            self.send(Command::Fetch(kind.clone(), name.clone()));
        }
        lookup
    }

    /// What a read selects, recorded as read by `reader`; `None` while the kind is not loaded.
    pub(crate) fn selected(&self, reader: &PrimaryKey, read: &Read) -> Option<Vec<Arc<Stored>>> {
        let mut inner = self.lock();
        inner.index.add(reader, read);
        let covered = self.shares.covers(read);
        let store = self.store(&mut inner, read.kind());
        if !covered && !store.keep_all {
            // Only hashes of names were kept so far: list again, and keep all from now on.
            store.keep_all = true;
            if store.has_others() {
                store.watches.values_mut().for_each(|watched| watched.loaded = false);
                self.send(Command::Watch(read.kind().clone(), store.watches.keys().cloned().collect()));
            }
        }
        if !store.is_loaded(read.namespace()) {
            store.waiting.insert(reader.clone());
            return None;
        }
        Some(store.entries.values().filter(|stored| read.matches(stored)).cloned().collect())
    }

    /// Whether all that was looked at is as it was, as far as it was looked at.
    pub(crate) fn holds(&self, glimpses: &mut [Glimpse]) -> bool {
        let found: Option<Vec<Found>> = {
            let inner = self.lock();
            glimpses.iter().map(|glimpse| inner.found(glimpse.read())).collect()
        };
        let Some(found) = found else { return false };
        glimpses.iter_mut().zip(found).all(|(glimpse, found)| match found {
            Found::One(now) => glimpse.holds(now.as_deref()),
            Found::All(now) => glimpse.holds_for_all(&now),
        })
    }

    /// These objects, each if it is there. Not recorded reads. Nothing if that cannot be told of one of them.
    pub(crate) fn peek<'a>(
        &self,
        names: impl Iterator<Item = (&'a Kind, &'a ObjectName)>,
    ) -> Option<Vec<Option<Arc<Stored>>>> {
        let inner = self.lock();
        names.map(|(kind, name)| inner.peek(kind, name)).collect()
    }

    /// An object of a controller's own kind. Not a recorded read: a primary is always queued for its own changes.
    pub(crate) fn primary(&self, kind: &Kind, name: &ObjectName) -> Option<Arc<Stored>> {
        self.lock().stores.get(kind)?.entries.get(name).cloned()
    }

    /// Objects of these kinds that `uid` owns, as far as the kinds are loaded. When one of the others is, its
    /// objects queue their owner.
    pub(crate) fn owned(&self, kinds: &[Kind], uid: &str) -> Vec<(Kind, Arc<Stored>)> {
        let inner = self.lock();
        let mut found = Vec::new();
        for kind in kinds {
            if let Some(store) = inner.stores.get(kind) {
                let owned = store.owned_by(uid).filter(|one| store.is_loaded(Some(&one.name.namespace)));
                found.extend(owned.map(|stored| (kind.clone(), stored)));
            }
        }
        found
    }

    /// Why a kind cannot be loaded or followed, in a namespace or anywhere, if its watch is failing; `reader` is queued
    /// when that is over.
    pub(crate) fn trouble(
        &self,
        reader: &PrimaryKey,
        kind: &Kind,
        namespace: Option<&str>,
    ) -> Option<String> {
        let mut inner = self.lock();
        let store = inner.stores.get_mut(kind)?;
        let failing = |watched: &&Watched| watched.error.is_some() && (!watched.loaded || watched.forbidden);
        let error = store.watches_of(namespace).find(failing)?.error.clone()?;
        store.waiting.insert(reader.clone());
        Some(error)
    }

    /// A read as `reader` is recorded to have made it.
    pub(crate) fn known(&self, reader: &PrimaryKey, read: Read) -> Read {
        self.lock().index.known(reader, &read).unwrap_or(read)
    }

    /// Replaces what `reader` is recorded to have read.
    pub(crate) fn record(&self, reader: &PrimaryKey, uid: &str, reads: &Reads) {
        let mut inner = self.lock();
        inner.index.replace(reader, uid, reads);
        self.note_unused(&mut inner);
    }

    /// Says of which of its own `reader` does not want to hear.
    pub(crate) fn unwatch(&self, reader: &PrimaryKey, unwatched: BTreeSet<(Kind, ObjectName)>) {
        self.lock().index.unwatch(reader, unwatched);
    }

    /// Forgets a primary that is gone.
    pub(crate) fn forget(&self, reader: &PrimaryKey) {
        let mut inner = self.lock();
        inner.index.forget(reader);
        inner.statuses.remove(reader);
        self.note_unused(&mut inner);
    }

    /// Closes the watch of a kind that nobody has used for a while.
    pub(crate) fn close_unused(&self, kind: &Kind) {
        let mut inner = self.lock();
        let Some(since) = inner.unused.get(kind) else { return };
        let left = LINGER.saturating_sub(since.elapsed());
        if !left.is_zero() {
            self.send(Command::Linger(kind.clone(), left));
            return;
        }
        inner.unused.remove(kind);
        inner.stores.remove(kind);
        self.send(Command::Close(kind.clone()));
    }

    /// Finds out which kinds nobody uses any more, and which are used again.
    fn note_unused(&self, inner: &mut Inner) {
        let Inner { stores, index, open, unused, .. } = inner;
        unused.retain(|kind, _| !index.is_read(kind));
        let idle = |kind: &&Kind| !open.contains(kind) && !kind.is_external() && !index.is_read(kind);
        for kind in stores.keys().filter(idle) {
            if !unused.contains_key(kind) {
                unused.insert(kind.clone(), Instant::now());
                self.send(Command::Linger(kind.clone(), LINGER));
            }
        }
    }

    /// Takes in the answer to a write that `writer` made, so that its next plan sees it. Others whom the change
    /// concerns are queued here, since the watch will bring them nothing new.
    pub(crate) fn wrote(&self, writer: &PrimaryKey, kind: &Kind, object: &Delivered) -> Arc<Stored> {
        let stored = Arc::new(Stored::new(object, &self.shares));
        let mut inner = self.lock();
        self.store(&mut inner, kind);
        let Inner { stores, index, .. } = &mut *inner;
        let Some(store) = stores.get_mut(kind) else { return stored };
        if !store.is_news(&stored.name, stored.resource_version) {
            return stored;
        }
        let old = store.entries.get(&stored.name).cloned();
        store.put(Arc::clone(&stored));
        if old.as_ref().is_none_or(|old| !old.same_content(&stored)) {
            let mut touched = index.touched(kind, old.as_deref(), Some(&stored));
            touched.remove(writer);
            for key in touched {
                self.queue.note(&key, Cause::Written(kind.clone(), stored.name.clone()));
                self.queue.add(key);
            }
        }
        stored
    }

    /// Notes which status is about to be written, so that its arrival does not plan again.
    pub(crate) fn writing_status(&self, writer: &PrimaryKey, hash: u64) {
        self.lock().statuses.insert(writer.clone(), hash);
    }

    /// Takes in the answer to a write of a primary's status. The primary is queued if something other than its
    /// status has changed meanwhile.
    pub(crate) fn wrote_status(&self, writer: &PrimaryKey, kind: &Kind, object: &Delivered) {
        let before = self.primary(kind, &writer.name);
        let stored = self.wrote(writer, kind, object);
        if before.is_some_and(|before| {
            before.resource_version < stored.resource_version && !before.same_but_status(&stored)
        }) {
            self.queue.note(writer, Cause::Changed(kind.clone(), writer.name.clone()));
            self.queue.add(writer.clone());
        }
    }

    /// Marks an object that we deleted, until its watch says that it is gone.
    pub(crate) fn deleted(&self, kind: &Kind, stored: &Stored) {
        let mut inner = self.lock();
        let store = self.store(&mut inner, kind);
        if store.entries.get(&stored.name).is_some_and(|now| now.uid == stored.uid) {
            store.put(Arc::new(stored.marked_deleting()));
        }
    }

    pub(crate) fn shares(&self) -> &Shares {
        &self.shares
    }

    fn store<'a>(&self, inner: &'a mut MutexGuard<'_, Inner>, kind: &Kind) -> &'a mut Store {
        let scopes = || -> Vec<Scope> {
            match self.namespaces.is_empty() || !kind.namespaced() {
                true => vec![None],
                false => self.namespaces.iter().cloned().map(Some).collect(),
            }
        };
        if !inner.stores.contains_key(kind) {
            self.send(Command::Watch(kind.clone(), scopes()));
        }
        inner.stores.entry(kind.clone()).or_insert_with(|| Store::of(kind, scopes()))
    }

    fn send(&self, command: Command) {
        // The receiver is gone only when the runtime stops.
        let _ = self.commands.send(command);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a read finds now.
enum Found {
    One(Option<Arc<Stored>>),
    All(Vec<Arc<Stored>>),
}

impl Inner {
    /// What a read finds now, if that can be told.
    fn found(&self, read: &Read) -> Option<Found> {
        match read {
            Read::Named { kind, name } => self.peek(kind, name).map(Found::One),
            Read::Selected(selection) => {
                let store = self.stores.get(&selection.kind)?;
                let known = store.goes_well(read.namespace());
                let matching = || store.entries.values().filter(|stored| read.matches(stored)).cloned();
                known.then(|| Found::All(matching().collect()))
            }
        }
    }

    /// The object of this name, if it is there; nothing if that cannot be told.
    fn peek(&self, kind: &Kind, name: &ObjectName) -> Option<Option<Arc<Stored>>> {
        let store = self.stores.get(kind)?;
        match store.named(name) {
            Lookup::Present(stored) if store.goes_well(Some(&name.namespace)) => Some(Some(stored)),
            Lookup::Absent if store.goes_well(Some(&name.namespace)) => Some(None),
            _ => None,
        }
    }

    /// A watch that is open.
    fn watched(&mut self, kind: &Kind, scope: &Scope) -> Option<&mut Watched> {
        self.stores.get_mut(kind)?.watches.get_mut(scope)
    }
}

#[cfg(test)]
mod tests;
