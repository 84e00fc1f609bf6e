//! Objects by kind and name, with revisions and a log of changes.
//!
//! Objects are kept as encoded JSON, without `apiVersion` and `kind` (the reader of one version puts its own in
//! front). Every change gets the next revision of the whole store and an entry in its table's log. A watch is a
//! cursor on that log: it is woken only by changes of the namespace or the object it looks at, and an idle one
//! costs nothing. The store knows nothing of requests, schemas or kinds.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

mod snapshot;

pub use snapshot::Snapshot;

/// How many changes of one table are remembered for watches that start in the past.
const LOG_LENGTH: usize = 4096;
/// How many tables can be asked for their newest change without waiting for writers.
const MARKED: usize = 512;

/// A point in the store's history.
pub type Revision = u64;

/// A table: all objects of one kind, whatever version they are read in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(usize);

/// Where an object is within its table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace; empty for cluster-wide objects.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of an object.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// An object at one revision.
#[derive(Debug)]
pub struct Stored {
    /// Where it is.
    pub key: Key,
    /// The revision that wrote it.
    pub revision: Revision,
    /// Its JSON, without `apiVersion` and `kind`.
    pub body: Bytes,
    /// Its labels, so that selectors need not read the JSON.
    pub labels: Box<[(Box<str>, Box<str>)]>,
}

impl Stored {
    /// The value of a label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(key, _)| **key == *name).map(|(_, value)| &**value)
    }
}

/// One change.
#[derive(Debug)]
pub struct Change {
    /// The revision it made.
    pub revision: Revision,
    /// The object before it, if there was one.
    pub before: Option<Arc<Stored>>,
    /// The object after it; for a deletion its last state, at the deletion's revision.
    pub after: Arc<Stored>,
    /// Whether it removed the object.
    pub deleted: bool,
}

/// What a write expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No object of that name.
    Absent,
    /// The object at that revision.
    At(Revision),
}

/// What a write found instead.
#[derive(Debug)]
pub struct Mismatch(pub Option<Arc<Stored>>);

/// History before that revision is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted(pub Revision);

/// Which objects of a table a reader looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All.
    All,
    /// Those of a namespace.
    Namespace(Arc<str>),
    /// One.
    Object(Key),
}

impl Scope {
    fn holds(&self, key: &Key) -> bool {
        match self {
            Scope::All => true,
            Scope::Namespace(namespace) => key.namespace == *namespace,
            Scope::Object(object) => key == object,
        }
    }
}

/// The store. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Mutex<Inner>>,
    /// The revision of each table's newest change. Every request asks for some of them.
    marks: Arc<[AtomicU64]>,
}

impl Default for Store {
    fn default() -> Self {
        Self { inner: Arc::default(), marks: (0..MARKED).map(|_| AtomicU64::default()).collect() }
    }
}

#[derive(Debug, Default)]
struct Inner {
    revision: Revision,
    tables: Vec<Table>,
    names: HashMap<Box<str>, TableId>,
}

#[derive(Debug, Default)]
struct Table {
    objects: BTreeMap<Key, Arc<Stored>>,
    log: VecDeque<Arc<Change>>,
    /// The revision of the newest change.
    newest: Revision,
    /// The newest revision that fell off the log.
    trimmed: Revision,
    topics: HashMap<Scope, Topic>,
}

/// What wakes the watches of one scope.
#[derive(Debug)]
struct Topic {
    /// Wakes in the order of arrival, so that two runs with one seed are equal; tokio's `watch` does not.
    changed: Arc<Notify>,
    /// The newest revision of this scope that fell off the log.
    trimmed: Revision,
}

impl Store {
    /// The table of that name, made where it is new.
    #[must_use]
    pub fn table(&self, name: &str) -> TableId {
        let mut inner = self.lock();
        if let Some(id) = inner.names.get(name) {
            return *id;
        }
        let id = TableId(inner.tables.len());
        inner.tables.push(Table::default());
        inner.names.insert(name.into(), id);
        id
    }

    /// The newest revision.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.lock().revision
    }

    /// The revision of a table's newest change.
    #[must_use]
    pub fn newest(&self, table: TableId) -> Revision {
        match self.marks.get(table.0) {
            Some(mark) => mark.load(Ordering::Acquire),
            None => self.lock().tables[table.0].newest,
        }
    }

    /// Whether there has ever been an object in a table; costs less than a look at them.
    #[must_use]
    pub fn is_used(&self, table: TableId) -> bool {
        self.newest(table) > 0
    }

    fn mark(&self, table: usize, newest: Revision) {
        if let Some(mark) = self.marks.get(table) {
            mark.store(newest, Ordering::Release);
        }
    }

    /// The object of that name.
    #[must_use]
    pub fn get(&self, table: TableId, key: &Key) -> Option<Arc<Stored>> {
        self.lock().tables[table.0].objects.get(key).cloned()
    }

    /// The objects of a scope in order of their keys, and the revision they are as of.
    #[must_use]
    pub fn list(&self, table: TableId, scope: &Scope) -> (Revision, Vec<Arc<Stored>>) {
        let inner = self.lock();
        (inner.revision, inner.tables[table.0].scan(scope))
    }

    /// The objects of a scope as they were at a revision.
    ///
    /// # Errors
    /// When that is too long ago.
    pub fn list_at(
        &self,
        table: TableId,
        scope: &Scope,
        revision: Revision,
    ) -> Result<Vec<Arc<Stored>>, Compacted> {
        let inner = self.lock();
        let table = &inner.tables[table.0];
        if revision < table.trimmed {
            return Err(Compacted(table.trimmed));
        }
        let mut objects: BTreeMap<Key, Arc<Stored>> =
            table.scan(scope).into_iter().map(|stored| (stored.key.clone(), stored)).collect();
        for change in table.log.iter().rev().take_while(|change| change.revision > revision) {
            if scope.holds(&change.after.key) {
                match &change.before {
                    Some(before) => objects.insert(before.key.clone(), Arc::clone(before)),
                    None => objects.remove(&change.after.key),
                };
            }
        }
        Ok(objects.into_values().collect())
    }

    /// Writes an object. `encode` gets the revision and gives the JSON and labels to keep.
    ///
    /// # Errors
    /// When the object is not as expected.
    pub fn write(
        &self,
        table: TableId,
        key: &Key,
        expect: Expect,
        encode: impl FnOnce(Revision) -> (Bytes, Vec<(String, String)>),
    ) -> Result<Arc<Stored>, Mismatch> {
        self.change(table, key, expect, false, encode)
    }

    /// Removes an object. `encode` gets the revision and gives the last state that watches are told.
    ///
    /// # Errors
    /// When the object is not as expected.
    pub fn remove(
        &self,
        table: TableId,
        key: &Key,
        at: Revision,
        encode: impl FnOnce(Revision) -> (Bytes, Vec<(String, String)>),
    ) -> Result<Arc<Stored>, Mismatch> {
        self.change(table, key, Expect::At(at), true, encode)
    }

    fn change(
        &self,
        table: TableId,
        key: &Key,
        expect: Expect,
        deleted: bool,
        encode: impl FnOnce(Revision) -> (Bytes, Vec<(String, String)>),
    ) -> Result<Arc<Stored>, Mismatch> {
        let mut guard = self.lock();
        let inner = &mut *guard;
        let before = inner.tables[table.0].objects.get(key).cloned();
        let found = before.as_ref().map(|stored| stored.revision);
        let wanted = match expect {
            Expect::Absent => None,
            Expect::At(revision) => Some(revision),
        };
        if found != wanted {
            return Err(Mismatch(before));
        }
        inner.revision += 1;
        let revision = inner.revision;
        let (body, labels) = encode(revision);
        let labels = labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        // An object's states share its key.
        let key = before.as_ref().map_or(key, |before| &before.key);
        let after = Arc::new(Stored { key: key.clone(), revision, body, labels });
        let id = table.0;
        let table = &mut inner.tables[id];
        if deleted {
            table.objects.remove(key);
        } else if let Some(there) = table.objects.get_mut(key) {
            *there = Arc::clone(&after);
        } else {
            table.objects.insert(after.key.clone(), Arc::clone(&after));
        }
        let told = table.append(Change { revision, before, after: Arc::clone(&after), deleted });
        self.mark(id, revision);
        drop(guard);
        told.wake();
        Ok(after)
    }

    /// Gives the store a revision of its own without a change, as an allocation does in a real one.
    pub fn skip_revision(&self) {
        self.lock().revision += 1;
    }

    /// Starts a watch of the changes after a revision.
    ///
    /// # Errors
    /// When that is too long ago.
    pub fn watch(&self, table: TableId, scope: Scope, after: Revision) -> Result<Watch, Compacted> {
        let mut inner = self.lock();
        let entry = &mut inner.tables[table.0];
        if after < entry.trimmed {
            return Err(Compacted(entry.trimmed));
        }
        let trimmed = entry.trimmed;
        let topic =
            entry.topics.entry(scope.clone()).or_insert_with(|| Topic { changed: Arc::default(), trimmed });
        let changed = Arc::clone(&topic.changed);
        Ok(Watch { store: self.clone(), table, scope, cursor: after, changed })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn scan(&self, scope: &Scope) -> Vec<Arc<Stored>> {
        match scope {
            Scope::All => self.objects.values().cloned().collect(),
            Scope::Namespace(namespace) => {
                let first = Key { namespace: Arc::clone(namespace), name: "".into() };
                self.objects
                    .range((Bound::Included(first), Bound::Unbounded))
                    .take_while(|(key, _)| key.namespace == *namespace)
                    .map(|(_, stored)| Arc::clone(stored))
                    .collect()
            }
            Scope::Object(key) => self.objects.get(key).cloned().into_iter().collect(),
        }
    }

    #[must_use = "watches have to be told, once the store is not locked any more"]
    fn append(&mut self, change: Change) -> Told {
        self.newest = change.revision;
        let scopes = Self::scopes(&change.after.key);
        self.log.push_back(Arc::new(change));
        let mut told = Told::default();
        if self.log.len() > LOG_LENGTH
            && let Some(old) = self.log.pop_front()
        {
            self.trimmed = old.revision;
            for scope in Self::scopes(&old.after.key) {
                if let Some(topic) = self.topics.get_mut(&scope) {
                    topic.trimmed = old.revision;
                }
            }
            told.forgotten = Some(old);
        }
        for (scope, topic) in scopes.iter().zip(&mut told.topics) {
            if let Some(known) = self.topics.get(scope) {
                // Only watches hold on to it besides the topic itself.
                if Arc::strong_count(&known.changed) == 1 {
                    self.topics.remove(scope);
                } else {
                    *topic = Some(Arc::clone(&known.changed));
                }
            }
        }
        told
    }

    fn scopes(key: &Key) -> [Scope; 3] {
        [Scope::All, Scope::Namespace(Arc::clone(&key.namespace)), Scope::Object(key.clone())]
    }
}

/// What is left to do after a change when the store is not locked any more: ten thousand watches take their time.
#[derive(Debug, Default)]
struct Told {
    topics: [Option<Arc<Notify>>; 3],
    /// What fell off the log; it may be large.
    forgotten: Option<Arc<Change>>,
}

impl Told {
    fn wake(self) {
        for topic in self.topics.iter().flatten() {
            topic.notify_waiters();
        }
        drop(self.forgotten);
    }
}

/// A cursor on a table's log.
#[derive(Debug)]
pub struct Watch {
    store: Store,
    table: TableId,
    scope: Scope,
    cursor: Revision,
    changed: Arc<Notify>,
}

impl Watch {
    /// The next changes of the scope, at least one; waits for them.
    ///
    /// # Errors
    /// When the reader was so slow that changes it has not seen are forgotten.
    pub async fn next(&mut self) -> Result<Vec<Arc<Change>>, Compacted> {
        let changed = Arc::clone(&self.changed);
        loop {
            // Made before looking, it also hears of what comes in between.
            let wake = changed.notified();
            let changes = self.poll()?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            wake.await;
        }
    }

    /// The revision up to which everything has been seen.
    #[must_use]
    pub fn seen(&self) -> Revision {
        let inner = self.store.lock();
        let pending =
            inner.tables[self.table.0].log.back().is_some_and(|change| change.revision > self.cursor);
        if pending { self.cursor } else { inner.revision }
    }

    fn poll(&mut self) -> Result<Vec<Arc<Change>>, Compacted> {
        let inner = self.store.lock();
        let table = &inner.tables[self.table.0];
        if let Some(topic) = table.topics.get(&self.scope)
            && topic.trimmed > self.cursor
        {
            return Err(Compacted(topic.trimmed));
        }
        let start = table.log.partition_point(|change| change.revision <= self.cursor);
        let changes = table
            .log
            .range(start..)
            .filter(|change| self.scope.holds(&change.after.key))
            .cloned()
            .collect::<Vec<_>>();
        if let Some(newest) = table.log.back() {
            self.cursor = self.cursor.max(newest.revision);
        }
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str) -> impl FnOnce(Revision) -> (Bytes, Vec<(String, String)>) {
        let text = text.to_owned();
        move |_| (Bytes::from(text), Vec::new())
    }

    #[test]
    fn writes_are_refused_unless_the_object_is_as_expected() {
        let store = Store::default();
        let (table, key) = (store.table("configmaps"), Key::new("a", "x"));
        let first = store.write(table, &key, Expect::Absent, body("1")).unwrap();
        assert!(store.write(table, &key, Expect::Absent, body("2")).is_err());
        assert!(store.write(table, &key, Expect::At(first.revision + 1), body("2")).is_err());
        let second = store.write(table, &key, Expect::At(first.revision), body("2")).unwrap();
        assert_eq!(store.get(table, &key).unwrap().body, "2");
        store.remove(table, &key, second.revision, body("3")).unwrap();
        assert!(store.get(table, &key).is_none());
    }

    #[tokio::test]
    async fn a_watch_sees_its_scope_in_order_and_nothing_else() {
        let store = Store::default();
        let table = store.table("configmaps");
        let mut watch = store.watch(table, Scope::Namespace("a".into()), 0).unwrap();
        for (namespace, name) in [("a", "1"), ("b", "2"), ("a", "3")] {
            store.write(table, &Key::new(namespace, name), Expect::Absent, body(name)).unwrap();
        }
        let seen = watch.next().await.unwrap();
        assert_eq!(seen.iter().map(|change| &*change.after.key.name).collect::<Vec<_>>(), ["1", "3"]);
        store.write(table, &Key::new("b", "4"), Expect::Absent, body("4")).unwrap();
        assert!(watch.poll().unwrap().is_empty());
    }

    #[test]
    fn the_past_can_be_listed_until_it_is_forgotten() {
        let store = Store::default();
        let (table, key) = (store.table("configmaps"), Key::new("a", "x"));
        let mut at = store.write(table, &key, Expect::Absent, body("first")).unwrap().revision;
        let start = at;
        at = store.write(table, &key, Expect::At(at), body("second")).unwrap().revision;
        assert_eq!(store.list_at(table, &Scope::All, start).unwrap()[0].body, "first");
        assert!(store.list_at(table, &Scope::All, 0).unwrap().is_empty());
        for _ in 0..LOG_LENGTH {
            at = store.write(table, &key, Expect::At(at), body("later")).unwrap().revision;
        }
        assert!(store.list_at(table, &Scope::All, start).is_err());
        assert!(store.watch(table, Scope::All, start).is_err());
    }
}
