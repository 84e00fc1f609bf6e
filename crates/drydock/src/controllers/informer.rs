//! A shared informer: one list and watch of a kind, kept in memory with indexes, for all who read it.
//!
//! The cache is the watch **plus this process's own writes**: what a write returned is in the cache at once, so a
//! reconciler never acts on a cache older than its own last write, and nothing is made twice. Revisions decide:
//! an answer that the watch has already passed is not put back, an event older than what is held is skipped.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::{ObjectList, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Error;
use super::gate::Gate;

mod outline;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use outline::Outline;
use store::Store;
pub(crate) use store::revision_of;

/// The kinds an informer can hold: the typed ones.
pub(crate) trait Kind:
    kube::Resource<DynamicType = ()> + Clone + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Kind for K where
    K: kube::Resource<DynamicType = ()>
        + Clone
        + fmt::Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// An object's namespace (empty for cluster-wide kinds) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectKey {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ObjectKey {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return f.write_str(&self.name);
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A change of one object: what was held before, and what is held now.
#[derive(Debug)]
pub(crate) struct Change<K> {
    pub(crate) old: Option<Arc<K>>,
    pub(crate) new: Option<Arc<K>>,
}

impl<K> Change<K> {
    /// The newest that is known of the object, also of a deleted one.
    pub(crate) fn latest(&self) -> &K {
        match (&self.new, &self.old) {
            (Some(object), _) | (None, Some(object)) => object,
            (None, None) => unreachable!("a change has an old or a new object"),
        }
    }
}

/// Whether a write has removed the object that it answers with: nothing keeps it any more.
fn is_gone(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
        && meta.deletion_grace_period_seconds.unwrap_or_default() == 0
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
}

type Handler<K> = Arc<dyn Fn(&Change<K>) + Send + Sync>;

/// The shared cache of one kind.
pub(crate) struct Informer<K> {
    store: Mutex<Store<K>>,
    handlers: Mutex<Vec<Handler<K>>>,
    /// The name of the objects that are held; none for all.
    name: Option<&'static str>,
    synced: Gate,
}

impl<K: Kind> Informer<K> {
    /// Of all objects of the kind, or of those with that name; with indexes by owner and label, or without.
    pub(crate) fn new(name: Option<&'static str>, indexed: bool) -> Self {
        Self {
            store: Mutex::new(Store::new(indexed)),
            handlers: Mutex::default(),
            name,
            synced: Gate::default(),
        }
    }

    /// Calls `handler` on every change, own writes included. To be called before the informer runs.
    pub(crate) fn on_change(&self, handler: impl Fn(&Change<K>) + Send + Sync + 'static) {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(handler));
    }

    /// Resolves once the first list is in.
    pub(crate) async fn synced(&self) {
        self.synced.wait().await;
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.lock().objects.get(key).cloned()
    }

    /// All objects, in order of namespace and name.
    pub(crate) fn all(&self) -> Vec<Arc<K>> {
        self.lock().objects.values().cloned().collect()
    }

    /// The objects of a namespace, in order of name.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let start = ObjectKey::new(namespace, "");
        let store = self.lock();
        store
            .objects
            .range(start..)
            .take_while(|(k, _)| k.namespace == namespace)
            .map(|(_, o)| o.clone())
            .collect()
    }

    /// The objects whose controlling owner has this uid.
    pub(crate) fn controlled_by(&self, uid: &str) -> Vec<Arc<K>> {
        self.lock().of_index(uid)
    }

    /// The objects of a namespace that nobody controls.
    pub(crate) fn orphans(&self, namespace: &str) -> Vec<Arc<K>> {
        self.lock().of_index(&format!("/{namespace}"))
    }

    /// The objects of a namespace that carry all these labels. No label at all selects nothing.
    pub(crate) fn labelled(&self, namespace: &str, labels: &BTreeMap<String, String>) -> Vec<Arc<K>> {
        let Some((key, value)) = labels.first_key_value() else {
            return Vec::new();
        };
        let store = self.lock();
        let index = (namespace.to_owned(), key.clone(), value.clone());
        let keys = store.by_label.get(&index).into_iter().flatten();
        keys.filter_map(|key| store.objects.get(key))
            .filter(|object| {
                let have = object.meta().labels.as_ref();
                labels.iter().all(|(k, v)| have.and_then(|have| have.get(k)) == Some(v))
            })
            .cloned()
            .collect()
    }

    /// Takes in what an own write returned.
    pub(crate) fn observe(&self, object: K) {
        let object = trimmed(object);
        let revision = revision_of(object.meta());
        let mut store = self.lock();
        let changes = if is_gone(object.meta()) {
            store.replace_last(object)
        } else if revision <= store.seen {
            return;
        } else {
            store.put(object)
        };
        drop(store);
        self.dispatch(&changes);
    }

    /// Lists and watches until the task is dropped.
    pub(crate) async fn run(self: Arc<Self>, client: Client) {
        let mut failures = 0;
        let mut from = None;
        loop {
            let revision = match from.take() {
                Some(revision) => Ok(revision),
                None => self.list(&client).await,
            };
            let ended = match revision {
                Ok(revision) => self.watch(&client, revision, &mut failures).await,
                Err(error) => Err(error),
            };
            match ended {
                // The server ends watches after a while: go on where it stopped.
                Ok(revision) => from = Some(revision),
                Err(error) => {
                    tracing::debug!(kind = %K::kind(&()), %error, "watch ended, listing again");
                    tokio::time::sleep(Duration::from_millis(100) * 2u32.pow(failures.min(8))).await;
                    failures += 1;
                }
            }
        }
    }

    async fn list(&self, client: &Client) -> Result<String, Error> {
        let request = Request::new(K::url_path(&(), None));
        let mut params = ListParams { field_selector: self.selector(), ..ListParams::default().limit(500) };
        let mut fresh = BTreeMap::new();
        let revision = loop {
            let page: ObjectList<K> = client.request(request.list(&params).map_err(Error::build)?).await?;
            for object in page.items {
                let object = trimmed(object);
                fresh.insert(ObjectKey::of(object.meta()), object);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => break page.metadata.resource_version.unwrap_or_default(),
            }
        };
        let seen = revision.parse().unwrap_or_default();
        let mut store = self.lock();
        store.seen = store.seen.max(seen);
        let gone: Vec<ObjectKey> = store
            .objects
            .iter()
            .filter(|(key, held)| !fresh.contains_key(key) && revision_of(held.meta()) <= seen)
            .map(|(key, _)| key.clone())
            .collect();
        let mut changes: Vec<_> = gone.iter().filter_map(|key| store.take(key)).collect();
        for (_, object) in fresh {
            changes.extend(store.put(object));
        }
        drop(store);
        self.dispatch(&changes);
        self.synced.open();
        Ok(revision)
    }

    async fn watch(
        &self,
        client: &Client,
        mut revision: String,
        failures: &mut u32,
    ) -> Result<String, Error> {
        let request = Request::new(K::url_path(&(), None));
        let params = WatchParams { field_selector: self.selector(), ..WatchParams::default() };
        let request = request.watch(&params, &revision).map_err(Error::build)?;
        let mut events = std::pin::pin!(client.request_events::<K>(request).await?);
        while let Some(event) = events.next().await {
            let changes = match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    let object = trimmed(object);
                    revision = object.meta().resource_version.clone().unwrap_or_default();
                    let mut store = self.lock();
                    store.seen = store.seen.max(revision.parse().unwrap_or_default());
                    store.put(object)
                }
                WatchEvent::Deleted(object) => {
                    revision = object.meta().resource_version.clone().unwrap_or_default();
                    let mut store = self.lock();
                    store.seen = store.seen.max(revision.parse().unwrap_or_default());
                    store.delete(object)
                }
                WatchEvent::Bookmark(bookmark) => {
                    revision = bookmark.metadata.resource_version;
                    let mut store = self.lock();
                    store.seen = store.seen.max(revision.parse().unwrap_or_default());
                    Vec::new()
                }
                WatchEvent::Error(status) => return Err(Error::Kube(kube::Error::Api(status))),
            };
            *failures = 0;
            self.dispatch(&changes);
        }
        Ok(revision)
    }

    fn selector(&self) -> Option<String> {
        self.name.map(|name| format!("metadata.name={name}"))
    }

    fn dispatch(&self, changes: &[Change<K>]) {
        if changes.is_empty() {
            return;
        }
        let handlers = self.handlers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for change in changes {
            for handler in &handlers {
                handler(change);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Store<K>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody here reads who manages which field.
fn trimmed<K: Kind>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}
