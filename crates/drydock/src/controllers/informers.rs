//! The informers of a process, one per kind, and the handles through which controllers read and write.

use std::any::{Any, TypeId};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{BoxFuture, FutureExt as _};
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Request;
use serde::Serialize;
use tokio::task::JoinSet;

use super::Error;
use super::informer::{Informer, Kind, ObjectKey, Outline};

/// The informers that the selected controllers asked for.
pub(crate) struct Informers {
    client: Client,
    entries: Mutex<Vec<Entry>>,
}

struct Entry {
    kind: TypeId,
    name: Option<&'static str>,
    informer: Arc<dyn Any + Send + Sync>,
    run: Box<dyn Fn(Client) -> BoxFuture<'static, ()> + Send>,
    synced: Box<dyn Fn() -> BoxFuture<'static, ()> + Send>,
}

impl Informers {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, entries: Mutex::default() }
    }

    /// The informer of a kind; the same for all who ask.
    pub(crate) fn of<K: Kind>(&self) -> Arc<Informer<K>> {
        self.informer(None, true)
    }

    /// The informer of the outlines of a kind. They have nothing to be indexed by.
    pub(crate) fn outlines<K: Kind>(&self) -> Arc<Informer<Outline<K>>> {
        self.informer(None, false)
    }

    /// The informer of all objects of a kind that have that name.
    pub(crate) fn named<K: Kind>(&self, name: &'static str) -> Arc<Informer<K>> {
        self.informer(Some(name), true)
    }

    fn informer<K: Kind>(&self, name: Option<&'static str>, indexed: bool) -> Arc<Informer<K>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = TypeId::of::<K>();
        let known = entries.iter().find(|entry| entry.kind == kind && entry.name == name);
        if let Some(informer) = known.and_then(|entry| entry.informer.clone().downcast::<Informer<K>>().ok())
        {
            return informer;
        }
        let informer = Arc::new(Informer::<K>::new(name, indexed));
        let (runs, syncs) = (informer.clone(), informer.clone());
        entries.push(Entry {
            kind,
            name,
            informer: informer.clone(),
            run: Box::new(move |client| runs.clone().run(client).boxed()),
            synced: Box::new(move || {
                let informer = syncs.clone();
                async move { informer.synced().await }.boxed()
            }),
        });
        informer
    }

    /// Reads and writes of a kind as one client.
    pub(crate) fn handle<K: Kind>(&self, client: &Client) -> Handle<K> {
        Handle { informer: self.of::<K>(), client: client.clone() }
    }

    /// Reads and writes of the objects of a kind that have that name.
    pub(crate) fn handle_of<K: Kind>(&self, name: &'static str, client: &Client) -> Handle<K> {
        Handle { informer: self.named::<K>(name), client: client.clone() }
    }

    /// Starts all informers asked for so far.
    pub(crate) fn start(&self, tasks: &mut JoinSet<()>) {
        for entry in self.entries.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            tasks.spawn((entry.run)(self.client.clone()));
        }
    }

    /// Resolves once every informer has its first list.
    pub(crate) fn synced(&self) -> BoxFuture<'static, ()> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<_> = entries.iter().map(|entry| (entry.synced)()).collect();
        async move {
            futures::future::join_all(all).await;
        }
        .boxed()
    }
}

/// A kind's cache together with a client: every write goes into the cache when it is answered.
pub(crate) struct Handle<K> {
    pub(crate) informer: Arc<Informer<K>>,
    client: Client,
}

impl<K> Clone for Handle<K> {
    fn clone(&self) -> Self {
        Self { informer: self.informer.clone(), client: self.client.clone() }
    }
}

impl<K> std::ops::Deref for Handle<K> {
    type Target = Informer<K>;

    fn deref(&self) -> &Informer<K> {
        &self.informer
    }
}

impl<K: Kind> Handle<K> {
    pub(crate) async fn create(&self, object: &K) -> Result<K, Error> {
        let request = request_of::<K>(object.meta().namespace.as_deref());
        let request =
            request.create(&PostParams::default(), serde_json::to_vec(object)?).map_err(Error::build)?;
        self.taken_in(self.client.request(request).await?)
    }

    pub(crate) async fn update(&self, object: &K) -> Result<K, Error> {
        let key = ObjectKey::of(object.meta());
        let request = request_of::<K>(object.meta().namespace.as_deref());
        let body = serde_json::to_vec(object)?;
        let request = request.replace(&key.name, &PostParams::default(), body).map_err(Error::build)?;
        self.taken_in(self.client.request(request).await?)
    }

    pub(crate) async fn update_status(&self, object: &K) -> Result<K, Error> {
        self.replace_part(object, "status").await
    }

    pub(crate) async fn replace_part(&self, object: &K, part: &str) -> Result<K, Error> {
        let key = ObjectKey::of(object.meta());
        let request = request_of::<K>(object.meta().namespace.as_deref());
        let body = serde_json::to_vec(object)?;
        let request = request.replace_subresource(part, &key.name, &PostParams::default(), body);
        self.taken_in(self.client.request(request.map_err(Error::build)?).await?)
    }

    pub(crate) async fn patch<P: Serialize + std::fmt::Debug>(
        &self,
        key: &ObjectKey,
        patch: &Patch<P>,
    ) -> Result<K, Error> {
        let request = request_of::<K>(namespace_of(key)).patch(&key.name, &PatchParams::default(), patch);
        self.taken_in(self.client.request(request.map_err(Error::build)?).await?)
    }

    pub(crate) async fn patch_status<P: Serialize + std::fmt::Debug>(
        &self,
        key: &ObjectKey,
        patch: &Patch<P>,
    ) -> Result<K, Error> {
        let request = request_of::<K>(namespace_of(key));
        let request = request.patch_subresource("status", &key.name, &PatchParams::default(), patch);
        self.taken_in(self.client.request(request.map_err(Error::build)?).await?)
    }

    /// Deletes exactly this object, not another of its name. One that is gone already is no error.
    pub(crate) async fn delete(&self, object: &K) -> Result<(), Error> {
        self.delete_with(object, DeleteParams::default()).await
    }

    pub(crate) async fn delete_with(&self, object: &K, mut params: DeleteParams) -> Result<(), Error> {
        let meta = object.meta();
        params.preconditions = Some(Preconditions { uid: meta.uid.clone(), resource_version: None });
        let key = ObjectKey::of(meta);
        let request = request_of::<K>(namespace_of(&key)).delete(&key.name, &params).map_err(Error::build)?;
        match self.client.request_status::<K>(request).await {
            Ok(answer) => {
                if let Some(object) = answer.left() {
                    self.observe(object);
                }
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads from the API, past the cache. `None` if there is none.
    pub(crate) async fn read(&self, key: &ObjectKey) -> Result<Option<K>, Error> {
        let request =
            request_of::<K>(namespace_of(key)).get(&key.name, &Default::default()).map_err(Error::build)?;
        match self.client.request::<K>(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn taken_in(&self, mut object: K) -> Result<K, Error> {
        object.meta_mut().managed_fields = None;
        self.observe(object.clone());
        Ok(object)
    }
}

fn namespace_of(key: &ObjectKey) -> Option<&str> {
    Some(key.namespace.as_str()).filter(|namespace| !namespace.is_empty())
}

fn request_of<K: Kind>(namespace: Option<&str>) -> Request {
    Request::new(K::url_path(&(), namespace))
}
