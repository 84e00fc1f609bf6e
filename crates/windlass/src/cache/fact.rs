//! Facts about things outside Kubernetes: kept like objects, but looked at one by one and only when asked for.

use std::sync::Arc;

use super::{Cache, Command, Inner, PrimaryKey, Stored};
use crate::explain::Cause;
use crate::{Kind, ObjectName};

impl Cache {
    /// Takes in what was found of an external thing, and queues whoever it concerns. What was found before a write
    /// of ours, since when the fact has had another version, is out of date.
    pub(crate) fn fact(
        &self,
        kind: &Kind,
        name: &ObjectName,
        found: Result<Option<Stored>, String>,
        version: u64,
    ) {
        let mut inner = self.lock();
        let Inner { stores, index, .. } = &mut *inner;
        let Some(store) = stores.get_mut(kind) else { return };
        store.fetching.remove(name);
        if store.fact_versions.get(name).copied().unwrap_or(0) != version {
            return;
        }
        let old = store.entries.get(name).cloned();
        let was_known = old.is_some() || store.absent.contains(name);
        let failure_before = store.failed.remove(name);
        let changed = match found {
            Ok(Some(new)) => {
                store.absent.remove(name);
                let changed = old.as_ref().is_none_or(|old| !old.same_content(&new));
                if changed {
                    store.put(Arc::new(new));
                }
                changed
            }
            Ok(None) => {
                store.remove(name);
                store.absent.insert(name.clone());
                old.is_some()
            }
            // What is known stays known: a failure to look is no news about the thing.
            Err(error) if was_known => {
                tracing::debug!(?kind, %name, error, "the fact stays as it was");
                false
            }
            Err(error) => {
                let news = failure_before.as_ref() != Some(&error);
                store.failed.insert(name.clone(), error);
                if !news {
                    return;
                }
                true
            }
        };
        if changed || !was_known || failure_before.is_some() {
            for key in index.named_by(kind, name) {
                self.queue.note(&key, Cause::Changed(kind.clone(), name.clone()));
                self.queue.add(key);
            }
        }
        if index.named_by(kind, name).is_empty() {
            store.forget_fact(name);
        }
    }

    /// Takes in what a write of ours made of an external thing; `None` if it was removed.
    pub(crate) fn wrote_fact(&self, kind: &Kind, name: &ObjectName, now: Option<Stored>) {
        let mut inner = self.lock();
        let store = self.store(&mut inner, kind);
        *store.fact_versions.entry(name.clone()).or_default() += 1;
        store.failed.remove(name);
        match now {
            Some(now) => {
                store.absent.remove(name);
                store.put(Arc::new(now));
            }
            None => {
                store.remove(name);
                store.absent.insert(name.clone());
            }
        }
    }

    /// Looks again at what `reader` has read of external things.
    pub(crate) fn look_at_facts_of(&self, reader: &PrimaryKey) {
        let mut inner = self.lock();
        for (kind, name) in inner.index.facts_of(reader) {
            if self.store(&mut inner, &kind).fetching.insert(name.clone()) {
                self.send(Command::Fetch(kind, name));
            }
        }
    }

    pub(crate) fn fact_version(&self, kind: &Kind, name: &ObjectName) -> u64 {
        let inner = self.lock();
        let versions = inner.stores.get(kind).map(|store| &store.fact_versions);
        versions.and_then(|versions| versions.get(name)).copied().unwrap_or(0)
    }

    /// Whether some record names an external thing.
    pub(crate) fn is_read(&self, kind: &Kind, name: &ObjectName) -> bool {
        !self.lock().index.named_by(kind, name).is_empty()
    }

    /// The external things of a type that some record names; what no record names any more is forgotten.
    pub(crate) fn read_names(&self, kind: &Kind) -> Vec<ObjectName> {
        let mut inner = self.lock();
        let Inner { stores, index, .. } = &mut *inner;
        let names = index.names_of(kind);
        if let Some(store) = stores.get_mut(kind) {
            let known = store.entries.keys().chain(&store.absent).cloned();
            let unread: Vec<_> = known.filter(|name| !names.contains(name)).collect();
            unread.iter().for_each(|name| store.forget_fact(name));
        }
        names
    }
}
