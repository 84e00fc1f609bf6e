//! The objects of an informer and their indexes. Revisions decide what is newer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Change, Kind, ObjectKey};

pub(super) struct Store<K> {
    pub(super) objects: BTreeMap<ObjectKey, Arc<K>>,
    /// Whether the indexes below are kept.
    pub(super) indexed: bool,
    /// By the uid of the controlling owner; by `/namespace` where there is none.
    pub(super) by_controller: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// By namespace and one label.
    pub(super) by_label: BTreeMap<(String, String, String), BTreeSet<ObjectKey>>,
    /// The revision up to which the watch has been read.
    pub(super) seen: u64,
}

impl<K: Kind> Store<K> {
    pub(super) fn new(indexed: bool) -> Self {
        Self {
            objects: BTreeMap::new(),
            indexed,
            by_controller: BTreeMap::new(),
            by_label: BTreeMap::new(),
            seen: 0,
        }
    }

    /// Puts an object in, unless a newer one is held.
    pub(super) fn put(&mut self, object: K) -> Vec<Change<K>> {
        let key = ObjectKey::of(object.meta());
        let mut changes = Vec::new();
        if let Some(held) = self.objects.get(&key) {
            if revision_of(held.meta()) >= revision_of(object.meta()) {
                return changes;
            }
            if held.meta().uid != object.meta().uid {
                changes.extend(self.take(&key));
            }
        }
        changes.push(self.insert(key, object));
        changes
    }

    /// Puts in the last state of an object that is gone, until the watch says so. It has the revision of the state
    /// before it.
    pub(super) fn replace_last(&mut self, object: K) -> Vec<Change<K>> {
        let key = ObjectKey::of(object.meta());
        let is_it = self.objects.get(&key).is_some_and(|held| {
            held.meta().uid == object.meta().uid && revision_of(held.meta()) <= revision_of(object.meta())
        });
        is_it.then(|| self.insert(key, object)).into_iter().collect()
    }

    fn insert(&mut self, key: ObjectKey, object: K) -> Change<K> {
        let new = Arc::new(object);
        let old = self.objects.insert(key.clone(), new.clone());
        if let Some(old) = &old {
            self.unindex(&key, old.meta());
        }
        if !self.indexed {
            return Change { old, new: Some(new) };
        }
        self.by_controller.entry(controller_index(new.meta())).or_default().insert(key.clone());
        for (label, value) in new.meta().labels.iter().flatten() {
            let index = (key.namespace.clone(), label.clone(), value.clone());
            self.by_label.entry(index).or_default().insert(key.clone());
        }
        Change { old, new: Some(new) }
    }

    /// Removes an object that the watch says is gone, unless what is held is a later one of that name.
    pub(super) fn delete(&mut self, last: K) -> Vec<Change<K>> {
        let key = ObjectKey::of(last.meta());
        match self.objects.get(&key) {
            Some(held) if revision_of(held.meta()) <= revision_of(last.meta()) => {
                self.take(&key).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn take(&mut self, key: &ObjectKey) -> Option<Change<K>> {
        let old = self.objects.remove(key)?;
        self.unindex(key, old.meta());
        Some(Change { old: Some(old), new: None })
    }

    fn unindex(&mut self, key: &ObjectKey, meta: &ObjectMeta) {
        if !self.indexed {
            return;
        }
        let index = controller_index(meta);
        if let Some(keys) = self.by_controller.get_mut(&index) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_controller.remove(&index);
            }
        }
        for (label, value) in meta.labels.iter().flatten() {
            let index = (key.namespace.clone(), label.clone(), value.clone());
            if let Some(keys) = self.by_label.get_mut(&index) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_label.remove(&index);
                }
            }
        }
    }

    pub(super) fn of_index(&self, index: &str) -> Vec<Arc<K>> {
        let keys = self.by_controller.get(index).into_iter().flatten();
        keys.filter_map(|key| self.objects.get(key)).cloned().collect()
    }
}

fn controller_index(meta: &ObjectMeta) -> String {
    let owner = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    match owner {
        Some(owner) => owner.uid.clone(),
        None => format!("/{}", meta.namespace.as_deref().unwrap_or_default()),
    }
}

pub(crate) fn revision_of(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
}
