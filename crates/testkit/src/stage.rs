//! An operator and a namespace of its own on a [`Cluster`]: for tests that must pass on any.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use windlass::{LeaseName, Operator, Runtime};

use crate::cluster::Cluster;
use crate::conditions::{are_established, condition_of};

/// What is written all the time, or long after the fact, and says nothing of an operator.
const RESTLESS: [&str; 3] = ["Event", "Lease", "EndpointSlice"];

/// An operator and a namespace of its own on a cluster. [`play`] makes one and clears it away.
pub struct Stage {
    cluster: Cluster,
    client: Client,
    namespace: String,
    operator: Box<dyn Fn() -> Operator + Send + Sync>,
    replicas: BTreeMap<String, Replica>,
    /// What can be in a namespace, once somebody asked.
    kinds: OnceCell<Vec<ApiResource>>,
}

struct Replica {
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), windlass::Error>>,
}

/// Runs a test on the drydock, or on the real cluster that [`KUBECONFIG`](crate::KUBECONFIG) names, with the
/// operator running; clears away what it leaves, also if it fails. Use it with `#[tokio::test]`.
///
/// ```no_run
/// # async fn example(operator: fn() -> windlass::Operator) {
/// windlass_testkit::play(operator, async |stage| {
///     stage.apply("{apiVersion: example.org/v1, kind: Greeting, metadata: {name: hello}}").await;
///     stage.settle().await;
/// })
/// .await;
/// # }
/// ```
pub async fn play(
    operator: impl Fn() -> Operator + Send + Sync + 'static,
    test: impl AsyncFnOnce(&mut Stage),
) {
    let mut stage = Stage::open(operator).await;
    let outcome = AssertUnwindSafe(test(&mut stage)).catch_unwind().await;
    stage.close().await;
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

impl Stage {
    async fn open(operator: impl Fn() -> Operator + Send + Sync + 'static) -> Self {
        let cluster = Cluster::start().await;
        let client = cluster.client("test");
        let namespace = format!("e2e-{}", cluster.context().name_suffix());
        let body = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &body).await.unwrap();
        let operator = Box::new(operator);
        let mut stage =
            Self { cluster, client, namespace, operator, replicas: BTreeMap::new(), kinds: OnceCell::new() };
        stage.run();
        let (client, operator) = (stage.client(), (stage.operator)());
        let established = async || are_established(&client, &operator).await;
        stage.until("the operator's kinds to be there", established).await;
        stage
    }

    /// Deletes the namespace while the operator runs, so that it can take its finalizers away.
    async fn close(mut self) {
        self.stop_all().await;
        self.run();
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let _ = namespaces.delete(&self.namespace, &DeleteParams::default()).await;
        let gone = async {
            while namespaces.get_opt(&self.namespace).await.ok().flatten().is_some() {
                sleep(Duration::from_millis(200)).await;
            }
        };
        if timeout(self.cluster.patience(), gone).await.is_err() {
            eprintln!("namespace {} is left over", self.namespace);
        }
        self.stop_all().await;
    }

    /// Starts the operator where it does not run, without leader election.
    pub fn run(&mut self) {
        let runtime = self.runtime("operator-under-test");
        self.start("", runtime);
    }

    /// Starts a replica of the operator, which works while it holds the Lease `operator` in the namespace. Its writes
    /// are made under its name.
    pub fn replica(&mut self, name: &str) {
        let lease = LeaseName { namespace: self.namespace.clone(), name: "operator".into() };
        let runtime = self.runtime(name).identity(name).leader(lease);
        self.start(name, runtime);
    }

    fn runtime(&self, client: &str) -> Runtime {
        Runtime::new(self.cluster.client(client), self.cluster.context().clone())
            .install_crds()
            .host((self.operator)())
    }

    fn start(&mut self, name: &str, runtime: Runtime) {
        self.replicas.entry(name.to_owned()).or_insert_with(|| {
            let (stop, mut stopped) = watch::channel(false);
            let task = tokio::spawn(runtime.run(async move {
                let _ = stopped.wait_for(|stop| *stop).await;
            }));
            Replica { stop, task }
        });
    }

    /// Stops the operator that [`Stage::run`] started, in good order.
    pub async fn stop(&mut self) {
        self.stop_replica("").await;
    }

    /// Stops a replica in good order.
    pub async fn stop_replica(&mut self, name: &str) {
        if let Some(replica) = self.replicas.remove(name) {
            replica.stop.send_replace(true);
            replica.task.await.unwrap().unwrap();
        }
    }

    /// Ends a replica where it stands, as a kill would.
    pub fn kill_replica(&mut self, name: &str) {
        if let Some(replica) = self.replicas.remove(name) {
            replica.task.abort();
        }
    }

    async fn stop_all(&mut self) {
        for name in self.replicas.keys().cloned().collect::<Vec<_>>() {
            self.stop_replica(&name).await;
        }
    }

    /// The cluster.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// A client that may do everything.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The namespace of this test.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The API of a kind in the test's namespace.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// All objects of a kind in the test's namespace.
    pub async fn list<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.api::<K>().list(&ListParams::default()).await.unwrap().items
    }

    /// The names of all objects of a kind in the test's namespace.
    pub async fn names<K>(&self) -> Vec<String>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.list::<K>().await.iter().map(|object| object.name_any()).collect()
    }

    /// Applies an object to the test's namespace; the answer, or why it was refused.
    pub async fn try_apply(&self, manifest: &str) -> Result<DynamicObject, kube::Error> {
        let object: DynamicObject = serde_saphyr::from_str(manifest).unwrap();
        let types = object.types.clone().unwrap();
        let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
        let kind = GroupVersionKind::gvk(group, version, &types.kind);
        let (resource, capabilities) = kube::discovery::pinned_kind(&self.client, &kind).await?;
        let api: Api<DynamicObject> = match capabilities.scope {
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), &self.namespace, &resource),
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
        };
        api.patch(&object.name_any(), &PatchParams::apply("test").force(), &Patch::Apply(&object)).await
    }

    /// Applies an object to the test's namespace.
    pub async fn apply(&self, manifest: &str) {
        self.try_apply(manifest).await.unwrap();
    }

    /// Merges a change into an object.
    pub async fn change<K>(&self, name: &str, change: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    }

    /// Waits until an object is ready in its newest generation.
    pub async fn ready<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        self.condition::<K>(name, "Ready", "True").await;
    }

    /// Waits until a condition of an object has a status in its newest generation; gives the condition.
    pub async fn condition<K>(&self, name: &str, kind: &str, status: &str) -> Value
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let resource = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &self.namespace, &resource);
        let found = async || {
            let object = api.get(name).await.ok()?;
            let current = object.data["status"]["observedGeneration"].as_i64() == object.metadata.generation;
            condition_of(&object, kind).filter(|one| current && one["status"] == status)
        };
        let start = Instant::now();
        loop {
            if let Some(found) = found().await {
                return found;
            }
            if start.elapsed() > self.cluster.patience() {
                let seen = api.get(name).await.map(|object| object.data["status"].clone());
                panic!("waited in vain for {kind} of {name} to be {status}: {seen:#?}");
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until a condition holds.
    pub async fn until(&self, what: &str, condition: impl AsyncFn() -> bool) {
        let start = Instant::now();
        while !condition().await {
            assert!(start.elapsed() < self.cluster.patience(), "waited in vain for {what}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Expects that something holds now and for a while.
    pub async fn holds(&self, what: &str, condition: impl AsyncFn() -> bool) {
        let start = Instant::now();
        while start.elapsed() < self.cluster.rest() {
            assert!(condition().await, "it did not last: {what}");
            sleep(self.cluster.rest() / 16).await;
        }
    }

    /// Waits until nothing changes in the namespace; gives the objects with their resourceVersions.
    pub async fn settle(&self) -> BTreeMap<String, String> {
        let mut before = self.objects().await;
        loop {
            sleep(self.cluster.rest()).await;
            let now = self.objects().await;
            if now == before {
                return now;
            }
            before = now;
        }
    }

    /// The objects in the namespace, as kind and name, with their resourceVersions.
    pub async fn objects(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for resource in self.kinds.get_or_init(|| self.discover()).await {
            let api: Api<DynamicObject> =
                Api::namespaced_with(self.client.clone(), &self.namespace, resource);
            // A definition may have gone away.
            let Ok(list) = api.list_metadata(&ListParams::default()).await else { continue };
            for object in list {
                let version = object.resource_version().unwrap_or_default();
                found.insert(format!("{} {}", resource.kind, object.name_any()), version);
            }
        }
        found
    }

    async fn discover(&self) -> Vec<ApiResource> {
        let discovery = Discovery::new(self.client.clone()).run().await.unwrap();
        let all = discovery.groups().flat_map(|group| group.recommended_resources());
        let of_use = all.filter(|(resource, can)| {
            can.scope == Scope::Namespaced
                && can.supports_operation(verbs::LIST)
                && !RESTLESS.contains(&resource.kind.as_str())
        });
        of_use.map(|(resource, _)| resource).collect()
    }
}
