//! What the watches deliver, and whom it concerns.

use std::sync::Arc;
use std::time::Duration;

use super::{Cache, Command, Delivered, Inner, Scope, Stored};
use crate::explain::Cause;
use crate::queue::Urgency;
use crate::{Kind, ObjectName};

/// Changes of statuses within so long are looked at together.
const TOGETHER: Duration = Duration::from_millis(25);
/// The same while more primaries than [`CROWD`] wait for that: what is gained is time for all.
const TOGETHER_IN_A_CROWD: Duration = Duration::from_millis(250);
const CROWD: usize = 50;

impl Cache {
    /// Takes in an object that the watch delivered, and queues whoever it concerns.
    pub(super) fn arrived(&self, kind: &Kind, object: &Delivered) {
        if !self.is_news(kind, object) {
            return;
        }
        let stored = Arc::new(Stored::new(object, &self.shares));
        let mut inner = self.lock();
        let Inner { stores, index, statuses, .. } = &mut *inner;
        let Some(store) = stores.get_mut(kind) else { return };
        // Meanwhile we may have written it ourselves.
        if !store.is_news(&stored.name, stored.resource_version) {
            return;
        }
        let old = store.entries.get(&stored.name).cloned();
        if store.keep_all || index.concerns(kind, &stored) || self.shares.made_here(&stored) {
            store.put(Arc::clone(&stored));
        } else {
            store.put_aside(&stored.name);
        }
        if old.as_ref().is_some_and(|old| old.same_content(&stored)) {
            return;
        }
        let listing = store.is_listing(&stored.name);
        let only_status = old.as_ref().is_some_and(|old| old.same_but_status(&stored));
        for key in index.touched(kind, old.as_deref(), Some(&stored)) {
            let own_write = only_status && statuses.get(&key) == Some(&stored.status_hash());
            if own_write && index.is_primary(&key, kind, &stored.name) {
                continue;
            }
            tracing::trace!(primary = %key.name, ?kind, name = %stored.name, only_status, "changed");
            self.queue.note(&key, Cause::Changed(kind.clone(), stored.name.clone()));
            match (listing, only_status) {
                // A list holds what was there before.
                (true, _) => self.queue.add_with(key, Urgency::Routine),
                // A status is the work of some controller, which seldom writes only one.
                (false, true) => {
                    let crowd = self.queue.is_crowded(TOGETHER_IN_A_CROWD, CROWD);
                    self.queue.add_after(key, if crowd { TOGETHER_IN_A_CROWD } else { TOGETHER });
                }
                (false, false) => self.queue.add_with(key, Urgency::Change),
            }
        }
    }

    /// Notes that an object was delivered; whether it is newer than what is known.
    fn is_news(&self, kind: &Kind, object: &Delivered) -> bool {
        let mut inner = self.lock();
        let Some(store) = inner.stores.get_mut(kind) else { return false };
        let name = object.name();
        store.seen(&name);
        store.is_news(&name, object.version())
    }

    /// Removes an object that the watch says is gone, and queues whoever it concerns.
    pub(super) fn gone(&self, kind: &Kind, stored: &Stored) {
        let mut inner = self.lock();
        let Inner { stores, index, .. } = &mut *inner;
        let Some(store) = stores.get_mut(kind) else { return };
        let newer =
            |now: &Arc<Stored>| now.uid != stored.uid && now.resource_version > stored.resource_version;
        if store.entries.get(&stored.name).is_some_and(newer) {
            return;
        }
        let old = store.remove(&stored.name);
        for key in index.touched(kind, old.as_deref().or(Some(stored)), None) {
            self.queue.note(&key, Cause::Gone(kind.clone(), stored.name.clone()));
            self.queue.add_with(key, Urgency::Change);
        }
    }

    pub(super) fn list_began(&self, kind: &Kind, scope: &Scope) {
        let mut inner = self.lock();
        if let Some(watched) = inner.watched(kind, scope) {
            watched.listing = Some(Default::default());
        }
    }

    /// All that exists has been delivered: what was not is gone.
    pub(super) fn list_done(&self, kind: &Kind, scope: &Scope) {
        let mut inner = self.lock();
        let Inner { stores, index, .. } = &mut *inner;
        let Some(store) = stores.get_mut(kind) else { return };
        for old in store.finish_listing(scope) {
            for key in index.touched(kind, Some(&old), None) {
                self.queue.note(&key, Cause::Gone(kind.clone(), old.name.clone()));
                self.queue.add(key);
            }
        }
        if let Some(watched) = store.watches.get_mut(scope) {
            watched.loaded = true;
        }
        self.goes_on(&mut inner, kind, scope);
    }

    pub(super) fn watch_failed(&self, kind: &Kind, scope: &Scope, error: &str, forbidden: bool) {
        let mut inner = self.lock();
        let Some(watched) = inner.watched(kind, scope) else { return };
        let news = watched.error.as_deref() != Some(error);
        watched.error = Some(error.to_owned());
        watched.forbidden = forbidden;
        let loaded = watched.loaded;
        if !news || loaded && !forbidden {
            return;
        }
        if forbidden {
            self.send(Command::Tell(kind.clone(), error.to_owned()));
        }
        // What was loaded before concerns whoever uses it.
        let waiting = inner.stores.get(kind).map(|store| store.waiting.iter().cloned().collect());
        let concerned = if loaded { inner.all_primaries() } else { waiting.unwrap_or_default() };
        for key in concerned {
            self.queue.note(&key, Cause::Unwatchable(kind.clone()));
            self.queue.add(key);
        }
    }

    /// A watch goes on, without a new list: what was loaded is up to date again.
    pub(super) fn watch_recovered(&self, kind: &Kind, scope: &Scope) {
        let mut inner = self.lock();
        if inner.watched(kind, scope).is_some_and(|watched| watched.loaded) {
            self.goes_on(&mut inner, kind, scope);
        }
    }

    /// A watch does what it should. Whoever waits for its kind is queued once all of its watches do.
    fn goes_on(&self, inner: &mut Inner, kind: &Kind, scope: &Scope) {
        let Some(store) = inner.stores.get_mut(kind) else { return };
        if let Some(watched) = store.watches.get_mut(scope) {
            watched.error = None;
            watched.forbidden = false;
        }
        if !store.is_loaded(None) {
            return;
        }
        for key in std::mem::take(&mut store.waiting) {
            self.queue.note(&key, Cause::Loaded(kind.clone()));
            self.queue.add(key);
        }
    }

    /// A fetch has failed, and will be tried again.
    pub(super) fn fetch_failed(&self, kind: &Kind, name: &ObjectName, error: &str) {
        let mut inner = self.lock();
        let Some(store) = inner.stores.get_mut(kind) else { return };
        if store.failed.insert(name.clone(), error.to_owned()).is_none_or(|before| before != error) {
            for key in &store.waiting {
                self.queue.note(key, Cause::Unwatchable(kind.clone()));
                self.queue.add(key.clone());
            }
        }
    }

    /// A fetch is over; `None` if there is no such object after all.
    pub(super) fn fetched(&self, kind: &Kind, name: &ObjectName, stored: Option<Stored>) {
        let mut inner = self.lock();
        let Some(store) = inner.stores.get_mut(kind) else { return };
        store.fetching.remove(name);
        store.failed.remove(name);
        match stored.map(Arc::new) {
            Some(stored) if store.is_news(name, stored.resource_version) => store.put(stored),
            Some(_) => {}
            None => store.others_remove(name),
        }
        for key in std::mem::take(&mut store.waiting) {
            self.queue.note(&key, Cause::Changed(kind.clone(), name.clone()));
            self.queue.add(key);
        }
    }
}
