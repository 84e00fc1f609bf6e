//! A drydock with an operator in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use windlass::{Operator, Permissions, Runtime};
use windlass_drydock::node::Behaviours;
use windlass_drydock::{Drydock, Options, Snapshot};

use crate::account;
use crate::conditions::{are_established, condition_of};
use crate::world::World;

/// The name under which the operator's requests are recorded, and by which faults find it.
pub const OPERATOR: &str = "operator-under-test";

/// How long anything is waited for, in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A drydock with an operator in it, which runs with the permissions that it needs and no others.
pub struct Harbour {
    drydock: Drydock,
    client: Client,
    operator: Box<dyn Fn() -> Operator + Send + Sync>,
    behaviours: Behaviours,
    running: Option<Running>,
    objects: Vec<DynamicObject>,
}

struct Running {
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), windlass::Error>>,
}

impl Harbour {
    /// Starts a drydock with the operator, and waits until the operator's kinds are there.
    pub async fn start(operator: impl Fn() -> Operator + Send + Sync + 'static) -> Self {
        Self::seeded(operator, 1).await
    }

    /// As [`Harbour::start`], with another seed.
    pub async fn seeded(operator: impl Fn() -> Operator + Send + Sync + 'static, seed: u64) -> Self {
        Self::of(operator, Options::seeded(seed)).await
    }

    /// As [`Harbour::start`], in a cluster as it was when the snapshot was taken. What was applied before is there, and
    /// nobody waits for it.
    pub async fn restored(
        operator: impl Fn() -> Operator + Send + Sync + 'static,
        snapshot: &Snapshot,
    ) -> Self {
        Self::of(operator, Options::restored(snapshot)).await
    }

    async fn of(operator: impl Fn() -> Operator + Send + Sync + 'static, options: Options) -> Self {
        let behaviours = options.node.behaviours.clone();
        let drydock = Drydock::start(options).await.unwrap();
        // Paused time goes on only when nobody has anything to do: what is left of an earlier harbour cannot change the
        // order of what comes.
        tokio::time::sleep(Duration::from_millis(1)).await;
        drydock.record().keep_entries();
        let client = drydock.client("test");
        let operator = Box::new(operator);
        let mut harbour = Self { drydock, client, operator, behaviours, running: None, objects: Vec::new() };
        let permissions = harbour.runtime().permissions();
        account::grant(&harbour.drydock, OPERATOR, &permissions).await;
        harbour.run();
        let (client, operator) = (harbour.client(), (harbour.operator)());
        let established = async || are_established(&client, &operator).await;
        harbour.until("the operator's kinds to be there", established).await;
        harbour
    }

    /// Starts the operator where it does not run.
    pub fn run(&mut self) {
        if self.running.is_some() {
            return;
        }
        let (stop, mut stopped) = watch::channel(false);
        let task = tokio::spawn(self.runtime().run(async move {
            let _ = stopped.wait_for(|stop| *stop).await;
        }));
        self.running = Some(Running { stop, task });
    }

    /// Which of the operator's permissions it has made no use of so far, as `delete secrets`. Those for installing its
    /// definitions do not count: on a cluster somebody else does that.
    #[must_use]
    pub fn unused_permissions(&self) -> BTreeSet<String> {
        let permissions = Permissions::of(&(self.operator)());
        account::unused(self.drydock.record(), OPERATOR, &permissions)
    }

    /// The operator as a service account that may do what the operator needs and nothing else.
    fn runtime(&self) -> Runtime {
        Runtime::new(account::client(&self.drydock, OPERATOR, OPERATOR), self.drydock.context().clone())
            .install_crds()
            .host((self.operator)())
    }

    /// Stops the operator in good order.
    pub async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop.send_replace(true);
            running.task.await.unwrap().unwrap();
        }
    }

    /// Ends the operator where it stands, as a kill would.
    pub fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.task.abort();
        }
    }

    /// Stops the operator and starts it anew.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.run();
    }

    /// Applies a manifest of one or more objects to the namespace `default`. [`Harbour::ready`] waits for them.
    pub async fn apply(&mut self, manifest: &str) {
        for object in self.put(manifest).await {
            self.objects.retain(|known| known.name_any() != object.name_any() || known.types != object.types);
            self.objects.push(object);
        }
    }

    /// Applies a manifest as [`Harbour::apply`] does, of objects that nobody waits for: they have no conditions, or
    /// only when something is wrong.
    pub async fn put(&self, manifest: &str) -> Vec<DynamicObject> {
        let documents: Vec<Value> = serde_saphyr::from_multiple(manifest).unwrap();
        let mut objects = Vec::new();
        for document in documents.into_iter().filter(|document| !document.is_null()) {
            let object: DynamicObject = serde_json::from_value(document).unwrap();
            let api = self.api_of(&object);
            api.patch(&object.name_any(), &PatchParams::apply("test"), &Patch::Apply(&object)).await.unwrap();
            objects.push(object);
        }
        objects
    }

    /// The drydock.
    #[must_use]
    pub fn drydock(&self) -> &Drydock {
        &self.drydock
    }

    /// How the node treats images: what cannot be pulled, crashes or hangs.
    #[must_use]
    pub fn behaviours(&self) -> &Behaviours {
        &self.behaviours
    }

    /// A client that may do everything.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The API of a kind in the namespace `default`.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), "default")
    }

    /// All objects of a kind in the namespace `default`.
    pub async fn list<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.api::<K>().list(&ListParams::default()).await.unwrap().items
    }

    /// The names of all objects of a kind in the namespace `default`.
    pub async fn names<K>(&self) -> Vec<String>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.list::<K>().await.iter().map(|object| object.name_any()).collect()
    }

    /// Waits until everything that was applied is ready.
    pub async fn ready(&self) {
        self.condition("Ready", "True").await;
    }

    /// Waits until a condition of everything that was applied has a status, for its newest generation; gives the
    /// condition of the last.
    pub async fn condition(&self, kind: &str, status: &str) -> Value {
        let mut last = Value::Null;
        for object in &self.objects {
            let api = self.api_of(object);
            let name = object.name_any();
            let found = async || {
                let object = api.get(&name).await.ok()?;
                let current =
                    object.data["status"]["observedGeneration"].as_i64() == object.metadata.generation;
                condition_of(&object, kind).filter(|one| current && one["status"] == status)
            };
            let what = format!("{kind} of {name} to be {status}");
            self.until(&what, async || found().await.is_some()).await;
            last = found().await.unwrap_or_default();
        }
        last
    }

    /// Waits until nothing has been written for two minutes.
    pub async fn settle(&self) {
        let mut before = self.revision();
        loop {
            tokio::time::sleep(Duration::from_secs(120)).await;
            let now = self.revision();
            if now == before {
                return;
            }
            before = now;
        }
    }

    /// Waits until a condition holds.
    pub async fn until(&self, what: &str, condition: impl AsyncFn() -> bool) {
        let start = tokio::time::Instant::now();
        while start.elapsed() < PATIENCE {
            if condition().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let mut seen = Vec::new();
        for object in &self.objects {
            if let Ok(object) = self.api_of(object).get(&object.name_any()).await {
                seen.push(serde_json::to_string_pretty(&object.data["status"]).unwrap_or_default());
            }
        }
        panic!("waited in vain for {what}; status: {}", seen.join("\n"));
    }

    /// The newest revision of the cluster: it moves with every write, whoever makes it.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.drydock.server().store.revision()
    }

    /// The operator's requests by verb and resource, other than lists and watches and than installing its
    /// definitions, which is done once and not for each object.
    #[must_use]
    pub fn requests(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for entry in self.drydock.record().entries(OPERATOR) {
            if !matches!(entry.verb, "list" | "watch") && entry.resource != "customresourcedefinitions" {
                *counts.entry(format!("{} {}", entry.verb, entry.resource)).or_default() += 1;
            }
        }
        counts
    }

    /// What the operator has made.
    #[must_use]
    pub fn world(&self) -> World {
        World::of(&self.drydock, (self.operator)().name())
    }

    fn api_of(&self, object: &DynamicObject) -> Api<DynamicObject> {
        let types = object.types.as_ref().unwrap();
        let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
        self.dynamic(&types.api_version, &types.kind, Some(&namespace))
    }

    fn dynamic(&self, api_version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let registry = self.drydock.server().registry();
        let resource = registry.of_kind(api_version, kind);
        let resource = resource.unwrap_or_else(|| panic!("the drydock knows no {kind} in {api_version}"));
        let (group, version) = (resource.group.as_str(), resource.version.as_str());
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let described = kube::core::ApiResource::from_gvk_with_plural(&gvk, &resource.plural);
        match namespace.filter(|_| resource.namespaced) {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &described),
            None => Api::all_with(self.client.clone(), &described),
        }
    }
}

impl Drop for Harbour {
    fn drop(&mut self) {
        self.kill();
    }
}
