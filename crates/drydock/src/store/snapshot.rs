//! The whole store at one revision, to go back to or to start another store from.
//!
//! Objects and changes are shared, not copied: a snapshot costs one pointer for each. A new store that starts from one
//! goes on with the snapshot's revisions and history. A store that is already in use goes back by changes of its own:
//! its revisions never run backwards, and its watches are told of what comes, goes and differs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::{Change, Key, Revision, Store, Stored, Table, Told};

/// All tables at one revision. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub(super) revision: Revision,
    pub(super) tables: Arc<[TableSnapshot]>,
}

#[derive(Clone, Debug)]
pub(super) struct TableSnapshot {
    name: Box<str>,
    objects: BTreeMap<Key, Arc<Stored>>,
    log: VecDeque<Arc<Change>>,
    newest: Revision,
    trimmed: Revision,
}

impl Snapshot {
    /// A snapshot of these objects by table, without a history: a watch that wants some of it is told that it is gone.
    #[must_use]
    pub fn without_history(revision: Revision, tables: Vec<(String, Vec<Stored>)>) -> Self {
        let tables = tables.into_iter().map(|(name, objects)| TableSnapshot {
            name: name.into(),
            objects: objects.into_iter().map(|stored| (stored.key.clone(), Arc::new(stored))).collect(),
            log: VecDeque::new(),
            newest: revision,
            trimmed: revision,
        });
        Self { revision, tables: tables.collect() }
    }

    /// The revision it was taken at.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The objects, by table.
    pub fn objects(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = &Arc<Stored>>)> {
        self.tables.iter().map(|table| (&*table.name, table.objects.values()))
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.iter().map(|table| table.objects.len()).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Store {
    /// Everything, as it is now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let inner = self.lock();
        let mut names: Vec<_> = inner.names.iter().collect();
        names.sort_by_key(|(_, id)| **id);
        let tables = names.into_iter().map(|(name, id)| {
            let table = &inner.tables[id.0];
            TableSnapshot {
                name: name.clone(),
                objects: table.objects.clone(),
                log: table.log.clone(),
                newest: table.newest,
                trimmed: table.trimmed,
            }
        });
        Snapshot { revision: inner.revision, tables: tables.collect() }
    }

    /// Makes a new store, which nobody has read from yet, what the snapshot holds, with its revisions and history.
    pub fn start_from(&self, snapshot: &Snapshot) {
        for from in snapshot.tables.iter() {
            let id = self.table(&from.name);
            let table = &mut self.lock().tables[id.0];
            table.objects.clone_from(&from.objects);
            table.log.clone_from(&from.log);
            (table.newest, table.trimmed) = (from.newest, from.trimmed);
            self.mark(id.0, from.newest);
        }
        self.lock().revision = snapshot.revision;
    }

    /// Goes back to the snapshot by changes of its own; objects that are as they were stay untouched. `encode` gives
    /// an object's JSON at the revision of such a change. Gives the number of changes.
    pub fn go_back(&self, snapshot: &Snapshot, encode: impl Fn(&Stored, Revision) -> Bytes) -> usize {
        let ids: Vec<_> = snapshot.tables.iter().map(|table| self.table(&table.name)).collect();
        let mut guard = self.lock();
        let inner = &mut *guard;
        let before = inner.revision;
        let empty = BTreeMap::new();
        let mut told = Vec::new();
        for at in 0..inner.tables.len() {
            let from = ids.iter().position(|id| id.0 == at);
            let wanted = from.map_or(&empty, |from| &snapshot.tables[from].objects);
            let table = &mut inner.tables[at];
            let gone: Vec<_> = table
                .objects
                .iter()
                .filter(|(key, _)| !wanted.contains_key(*key))
                .map(|(_, old)| Arc::clone(old))
                .collect();
            for old in gone {
                inner.revision += 1;
                told.push(table.go_to(&old, inner.revision, true, &encode));
            }
            for old in wanted.values() {
                let is_there = table.objects.get(&old.key).is_some_and(|now| Arc::ptr_eq(now, old));
                if !is_there {
                    inner.revision += 1;
                    told.push(table.go_to(old, inner.revision, false, &encode));
                }
            }
            self.mark(at, table.newest);
        }
        let changes = usize::try_from(inner.revision - before).unwrap_or(usize::MAX);
        drop(guard);
        told.into_iter().for_each(Told::wake);
        changes
    }
}

impl Table {
    fn go_to(
        &mut self,
        state: &Stored,
        revision: Revision,
        deleted: bool,
        encode: &impl Fn(&Stored, Revision) -> Bytes,
    ) -> Told {
        let (key, labels) = (state.key.clone(), state.labels.clone());
        let after = Arc::new(Stored { key: key.clone(), revision, body: encode(state, revision), labels });
        let before =
            if deleted { self.objects.remove(&key) } else { self.objects.insert(key, Arc::clone(&after)) };
        self.append(Change { revision, before, after, deleted })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Compacted, Expect, Scope};
    use super::*;

    fn put(store: &Store, name: &str, text: &str) -> Arc<Stored> {
        let (table, key) = (store.table("configmaps"), Key::new("a", name));
        let expect = store.get(table, &key).map_or(Expect::Absent, |found| Expect::At(found.revision));
        let text = text.to_owned();
        store.write(table, &key, expect, |_| (Bytes::from(text), Vec::new())).unwrap()
    }

    fn encode(stored: &Stored, _: Revision) -> Bytes {
        stored.body.clone()
    }

    fn contents(store: &Store) -> Vec<(String, Bytes)> {
        let (_, all) = store.list(store.table("configmaps"), &Scope::All);
        all.iter().map(|stored| (stored.key.name.to_string(), stored.body.clone())).collect()
    }

    #[tokio::test]
    async fn a_new_store_goes_on_where_the_snapshot_was_taken() {
        let store = Store::default();
        let first = put(&store, "x", "1");
        put(&store, "x", "2");
        let snapshot = store.snapshot();
        put(&store, "y", "later");

        let other = Store::default();
        let _ = other.table("made-first-here");
        other.start_from(&snapshot);
        assert_eq!(contents(&other), [("x".to_owned(), Bytes::from("2"))]);
        assert_eq!(other.revision(), snapshot.revision());
        let table = other.table("configmaps");
        let mut watch = other.watch(table, Scope::All, first.revision).unwrap();
        assert_eq!(watch.next().await.unwrap()[0].after.body, "2");
        assert_eq!(put(&other, "z", "3").revision, snapshot.revision() + 1);
        assert_eq!(watch.next().await.unwrap()[0].after.body, "3");
        assert_eq!(contents(&store).len(), 2, "the first is left alone");
    }

    #[tokio::test]
    async fn a_store_in_use_goes_back_by_changes_that_its_watches_see() {
        let store = Store::default();
        put(&store, "same", "1");
        put(&store, "changed", "1");
        let gone = put(&store, "gone", "1");
        let snapshot = store.snapshot();
        let table = store.table("configmaps");
        put(&store, "changed", "2");
        put(&store, "new", "2");
        store.remove(table, &gone.key, gone.revision, |_| (gone.body.clone(), Vec::new())).unwrap();
        let before = store.revision();
        let mut watch = store.watch(table, Scope::All, before).unwrap();

        assert_eq!(store.go_back(&snapshot, encode), 3);
        assert_eq!(store.revision(), before + 3);
        let seen = watch.next().await.unwrap();
        let seen: Vec<_> = seen.iter().map(|change| (&*change.after.key.name, change.deleted)).collect();
        assert_eq!(seen, [("new", true), ("changed", false), ("gone", false)]);
        assert_eq!(store.snapshot().len(), 3);
        assert_eq!(contents(&store)[0], ("changed".to_owned(), Bytes::from("1")));
        assert_eq!(store.go_back(&store.snapshot(), encode), 0);
    }

    #[test]
    fn without_a_history_the_past_is_gone() {
        let stored =
            Stored { key: Key::new("a", "x"), revision: 3, body: Bytes::from("1"), labels: Box::default() };
        let store = Store::default();
        store.start_from(&Snapshot::without_history(1000, vec![("configmaps".to_owned(), vec![stored])]));
        let table = store.table("configmaps");
        assert_eq!(store.watch(table, Scope::All, 999).map(|_| ()), Err(Compacted(1000)));
        assert!(store.watch(table, Scope::All, 1000).is_ok());
        assert_eq!(put(&store, "y", "2").revision, 1001);
    }
}
