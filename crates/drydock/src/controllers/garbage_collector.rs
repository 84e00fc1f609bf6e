//! `garbage-collector-controller`: deletes what nobody owns any more.
//!
//! It watches the metadata of every kind the API serves and keeps the [`graph`] of owners. A dependent whose owners
//! are all gone is deleted in the background; an owner that is deleted in the foreground waits for its dependents;
//! an owner with the `orphan` finalizer lets them go. An owner is held for absent only after the API itself said so,
//! and every deletion names the uid it means. New kinds are found when a CustomResourceDefinition changes, not by
//! asking now and then: at rest this makes no request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, Preconditions};
use kube::core::Request;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use super::discovery::{Kind, discover};
use super::gate::Gate;
use super::queue::Queue;
use super::{Error, Setup, WORKERS};

mod graph;
mod head;
mod monitor;

use graph::{Graph, Item, Work};
use head::Seen;

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";
/// An owner's news may come a little later than its dependent's: they are different watches.
const PATIENCE: Duration = Duration::from_millis(500);
/// Between a change of a CustomResourceDefinition and the look at what is served now.
const SETTLE: Duration = Duration::from_millis(100);
/// At most this many uids of gone objects are remembered.
const MOST_ABSENT: usize = 10_000;
/// Between tries to find out what is served.
const RETRY: Duration = Duration::from_secs(1);

pub(crate) fn start(setup: &mut Setup<'_>) {
    let collector = Arc::new(Collector {
        client: setup.client.clone(),
        graph: Mutex::default(),
        queue: Queue::new(),
        kinds: Mutex::default(),
        absent: Mutex::default(),
    });
    let definitions = setup.informers.of::<CustomResourceDefinition>();
    let changed = Arc::new(Notify::new());
    let notify = changed.clone();
    definitions.on_change(move |_| notify.notify_one());

    let ready = Arc::new(Gate::default());
    for _ in 0..WORKERS {
        let (collector, ready) = (collector.clone(), ready.clone());
        setup.tasks.spawn(async move {
            ready.wait().await;
            collector.work().await;
        });
    }
    setup.tasks.spawn(async move {
        definitions.synced().await;
        collector.follow(changed, ready).await;
    });
}

struct Collector {
    client: Client,
    graph: Mutex<Graph>,
    queue: Queue<Work>,
    kinds: Mutex<Vec<Kind>>,
    /// Uids that the API said do not exist. Uids never come back.
    absent: Mutex<BTreeSet<String>>,
}

/// What an object's owners are like.
#[derive(Default)]
struct Owners {
    solid: Vec<OwnerReference>,
    dangling: Vec<OwnerReference>,
    /// Being deleted, and waiting for their dependents.
    waiting: Vec<OwnerReference>,
}

impl Collector {
    /// Watches every kind that is served, and follows what is served.
    async fn follow(self: Arc<Self>, changed: Arc<Notify>, ready: Arc<Gate>) {
        let mut tasks = JoinSet::new();
        let mut monitors: BTreeMap<String, AbortHandle> = BTreeMap::new();
        loop {
            match discover(&self.client).await {
                Ok(kinds) => {
                    self.watch_all(kinds, &mut monitors, &mut tasks).await;
                    ready.open();
                    changed.notified().await;
                    tokio::time::sleep(SETTLE).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "failed to discover what the API serves");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    async fn watch_all(
        self: &Arc<Self>,
        kinds: Vec<Kind>,
        monitors: &mut BTreeMap<String, AbortHandle>,
        tasks: &mut JoinSet<()>,
    ) {
        // Events own nothing and are owned by nothing, and there are many.
        let wanted: Vec<Kind> = kinds
            .iter()
            .filter(|kind| kind.supports(&["list", "watch", "delete"]) && kind.resource.plural != "events")
            .cloned()
            .collect();
        *self.kinds.lock().unwrap_or_else(PoisonError::into_inner) = kinds;
        monitors.retain(|path, task| {
            let kept = wanted.iter().any(|kind| kind.path(None) == *path);
            if !kept {
                task.abort();
                self.graph().forget_kind(path);
            }
            kept
        });
        let mut synced = Vec::new();
        for kind in wanted {
            if !monitors.contains_key(&kind.path(None)) {
                let (sender, receiver) = tokio::sync::oneshot::channel();
                let path = kind.path(None);
                monitors.insert(path, tasks.spawn(monitor::run(self.clone(), kind, sender)));
                synced.push(receiver);
            }
        }
        futures::future::join_all(synced).await;
    }

    async fn work(&self) {
        loop {
            let work = self.queue.next().await;
            let done = match &work {
                Work::Collect(uid) => self.collect(uid).await,
                Work::Orphan(uid) => self.orphan_dependents(uid).await,
            };
            match done {
                Ok(()) => self.queue.forget(&work),
                // Somebody changed it meanwhile; the news of that is on its way.
                Err(error) => {
                    tracing::debug!(?work, %error, "failed, will try again");
                    self.queue.add_failed(work.clone());
                }
            }
            self.queue.done(&work);
        }
    }

    /// Looks at one object: whether it may go, and what holds it.
    async fn collect(&self, uid: &str) -> Result<(), Error> {
        let Some(item) = self.graph().item(uid) else {
            return Ok(());
        };
        if item.is_waiting() {
            return self.wait_for_dependents(&item).await;
        }
        if item.deleting || item.owners.is_empty() {
            return Ok(());
        }
        let owners = self.classify(&item).await?;
        if !owners.solid.is_empty() {
            if owners.dangling.is_empty() && owners.waiting.is_empty() {
                return Ok(());
            }
            let gone: BTreeSet<&str> =
                owners.dangling.iter().chain(&owners.waiting).map(|owner| owner.uid.as_str()).collect();
            return self.drop_owners(&item, &gone).await;
        }
        let has_dependents = !self.graph().dependents(uid).is_empty();
        let params = if !owners.waiting.is_empty() && has_dependents {
            DeleteParams::foreground()
        } else if item.finalizers.iter().any(|finalizer| finalizer == ORPHAN) {
            DeleteParams::orphan()
        } else if item.finalizers.iter().any(|finalizer| finalizer == FOREGROUND) {
            DeleteParams::foreground()
        } else {
            DeleteParams::background()
        };
        self.delete(&item, params).await
    }

    /// An owner deleted in the foreground: its blocking dependents first, then its finalizer.
    async fn wait_for_dependents(&self, item: &Item) -> Result<(), Error> {
        let blocking = self.graph().blocking_dependents(&item.uid);
        if blocking.is_empty() {
            return self.drop_finalizer(item, FOREGROUND).await;
        }
        for dependent in blocking {
            self.queue.add(Work::Collect(dependent));
        }
        Ok(())
    }

    async fn orphan_dependents(&self, uid: &str) -> Result<(), Error> {
        let Some(item) = self.graph().item(uid) else {
            return Ok(());
        };
        if !item.deleting || !item.finalizers.iter().any(|finalizer| finalizer == ORPHAN) {
            return Ok(());
        }
        let dependents = self.graph().dependents(uid);
        for dependent in dependents {
            let Some(dependent) = self.graph().item(&dependent) else {
                continue;
            };
            self.drop_owners(&dependent, &BTreeSet::from([uid])).await?;
        }
        self.drop_finalizer(&item, ORPHAN).await
    }

    async fn classify(&self, item: &Item) -> Result<Owners, Error> {
        let mut owners = Owners::default();
        for owner in &item.owners {
            let known = self.graph().item(&owner.uid);
            let waiting = match known {
                Some(known) => Some(known.is_waiting()),
                None => self.look_for(item, owner).await?,
            };
            match waiting {
                Some(true) => owners.waiting.push(owner.clone()),
                Some(false) => owners.solid.push(owner.clone()),
                None => owners.dangling.push(owner.clone()),
            }
        }
        Ok(owners)
    }

    /// Asks the API for an owner that no watch has shown: whether it waits for dependents, or `None` if it is gone.
    async fn look_for(&self, item: &Item, owner: &OwnerReference) -> Result<Option<bool>, Error> {
        if self.absent.lock().unwrap_or_else(PoisonError::into_inner).contains(&owner.uid) {
            return Ok(None);
        }
        let kind = self
            .kinds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .find(|kind| {
                kind.resource.kind == owner.kind
                    && group(&kind.resource.api_version) == group(&owner.api_version)
            })
            .cloned();
        let Some(kind) = kind else {
            let (kind, version) = (&owner.kind, &owner.api_version);
            return Err(Error::Other(format!("no matches for kind {kind:?} in version {version:?}")));
        };
        if kind.namespaced && item.namespace.is_none() {
            return Err(Error::Other("a cluster-wide object cannot have an owner in a namespace".to_owned()));
        }
        let request = Request::new(kind.path(item.namespace.as_deref()));
        let request = request.get_metadata(&owner.name, &GetParams::default()).map_err(Error::build)?;
        match self.client.request::<Seen>(request).await {
            Ok(found) if found.metadata.uid == owner.uid => {
                let finalizers = found.metadata.finalizers.unwrap_or_default();
                let deleting = found.metadata.deletion_timestamp.is_some();
                Ok(Some(deleting && finalizers.iter().any(|finalizer| finalizer == FOREGROUND)))
            }
            Ok(_) => {
                self.note_absent(&owner.uid);
                Ok(None)
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.note_absent(&owner.uid);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Remembers a uid that the API said is gone, in an answer or in a watch.
    fn note_absent(&self, uid: &str) {
        let mut absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        if absent.len() >= MOST_ABSENT {
            absent.clear();
        }
        absent.insert(uid.to_owned());
    }

    async fn drop_owners(&self, item: &Item, gone: &BTreeSet<&str>) -> Result<(), Error> {
        let kept: Vec<&OwnerReference> =
            item.owners.iter().filter(|owner| !gone.contains(owner.uid.as_str())).collect();
        self.patch_metadata(item, json!({"ownerReferences": kept})).await
    }

    async fn drop_finalizer(&self, item: &Item, finalizer: &str) -> Result<(), Error> {
        if !item.finalizers.iter().any(|have| have == finalizer) {
            return Ok(());
        }
        let kept: Vec<&String> = item.finalizers.iter().filter(|have| *have != finalizer).collect();
        self.patch_metadata(item, json!({"finalizers": kept})).await
    }

    async fn patch_metadata(&self, item: &Item, mut metadata: Value) -> Result<(), Error> {
        metadata["uid"] = json!(item.uid);
        metadata["resourceVersion"] = json!(item.resource_version);
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let request = Request::new(item.path());
        let request =
            request.patch_metadata(&item.name, &PatchParams::default(), &patch).map_err(Error::build)?;
        match self.client.request::<Seen>(request).await {
            Ok(object) => {
                self.observe(&item.kind, object);
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn delete(&self, item: &Item, mut params: DeleteParams) -> Result<(), Error> {
        params.preconditions = Some(Preconditions {
            uid: Some(item.uid.clone()),
            resource_version: Some(item.resource_version.clone()),
        });
        let request = Request::new(item.path()).delete(&item.name, &params).map_err(Error::build)?;
        match self.client.request::<Value>(request).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes in an object's metadata, and queues what that makes worth a look.
    fn observe(&self, kind: &Arc<Kind>, object: Seen) {
        let work = self.graph().put(kind, object.metadata);
        self.add(work);
    }

    fn observe_deleted(&self, uid: &str) {
        self.note_absent(uid);
        let work = self.graph().remove(uid);
        self.add(work);
    }

    fn add(&self, work: Vec<(Work, bool)>) {
        for (work, patiently) in work {
            if patiently {
                self.queue.add_after(work, PATIENCE);
            } else {
                self.queue.add(work);
            }
        }
    }

    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
