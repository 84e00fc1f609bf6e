//! A drydock with the operator in it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use windlass::Runtime;
use windlass_drydock::{Drydock, Options};
use windlass_monocle::Monocle;

const OPERATOR: &str = "operator-under-test";
const NAME: &str = "monocle-sample";

pub(crate) struct Harbour {
    drydock: Drydock,
    client: Client,
    stop: watch::Sender<bool>,
    running: JoinHandle<Result<(), windlass::Error>>,
}

impl Harbour {
    pub(crate) async fn start() -> Self {
        let drydock = Drydock::start(Options::seeded(1)).await.unwrap();
        drydock.record().keep_entries();
        let client = drydock.client("test");
        let (stop, running) = run(&drydock);
        let harbour = Self {
            drydock,
            client,
            stop,
            running,
        };
        harbour
            .until("the definition to be there", async || {
                harbour
                    .api::<Monocle>()
                    .list(&ListParams::default())
                    .await
                    .is_ok()
            })
            .await;
        harbour
    }

    /// Stops the operator and starts it anew.
    pub(crate) async fn restart(&mut self) {
        self.stop.send_replace(true);
        (&mut self.running).await.unwrap().unwrap();
        (self.stop, self.running) = run(&self.drydock);
    }

    pub(crate) async fn apply_sample(&mut self) {
        let sample: Value = serde_saphyr::from_str(windlass_monocle::SAMPLE).unwrap();
        let params = PatchParams::apply("test");
        self.api::<Monocle>()
            .patch(NAME, &params, &Patch::Apply(sample))
            .await
            .unwrap();
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) async fn list<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.api::<K>().list(&ListParams::default()).await.unwrap().items
    }

    pub(crate) async fn names<K>(&self) -> Vec<String>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.list::<K>()
            .await
            .iter()
            .map(|object| object.name_any())
            .collect()
    }

    /// Waits until the Monocle is ready.
    pub(crate) async fn ready(&self) {
        self.condition("Ready", "True").await;
    }

    /// Waits until a condition of the Monocle has a status, for its newest generation.
    pub(crate) async fn condition(&self, kind: &str, status: &str) -> Value {
        let found = async || {
            let monocle = serde_json::to_value(self.api::<Monocle>().get(NAME).await.ok()?).ok()?;
            let current = monocle["status"]["observedGeneration"] == monocle["metadata"]["generation"];
            let conditions = monocle["status"]["conditions"].as_array()?.clone();
            let found = conditions
                .into_iter()
                .find(|one| one["type"] == kind && one["status"] == status);
            found.filter(|_| current)
        };
        self.until(&format!("{kind} to be {status}"), async || {
            found().await.is_some()
        })
        .await;
        found().await.unwrap()
    }

    /// Lets everything that is under way come to an end.
    pub(crate) async fn settle(&self) {
        let mut before = self.revision();
        loop {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let now = self.revision();
            if now == before {
                return;
            }
            before = now;
        }
    }

    /// The newest revision of the cluster: it moves with every write.
    pub(crate) fn revision(&self) -> u64 {
        self.drydock.server().store.revision()
    }

    /// The operator's requests, other than lists and watches, and than installing its definition, which is done
    /// once for all Monocles.
    pub(crate) fn requests(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for entry in self.drydock.record().entries(OPERATOR) {
            if !matches!(entry.verb, "list" | "watch") && entry.resource != "customresourcedefinitions" {
                *counts.entry(format!("{} {}", entry.verb, entry.resource)).or_default() += 1;
            }
        }
        counts
    }

    /// How often each Deployment was rolled out.
    pub(crate) async fn revisions(&self) -> BTreeMap<String, u64> {
        let deployments = self.list::<Deployment>().await;
        deployments
            .iter()
            .map(|deployment| {
                let revision = &deployment.annotations()["deployment.kubernetes.io/revision"];
                (deployment.name_any(), revision.parse().unwrap())
            })
            .collect()
    }

    async fn until(&self, what: &str, condition: impl AsyncFn() -> bool) {
        for _ in 0..10_000 {
            if condition().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let monocles = self.api::<Monocle>().list(&ListParams::default()).await;
        panic!(
            "waited in vain for {what}; {}",
            serde_json::to_string_pretty(&monocles.unwrap().items).unwrap()
        );
    }
}

fn run(drydock: &Drydock) -> (watch::Sender<bool>, JoinHandle<Result<(), windlass::Error>>) {
    let (stop, mut stopped) = watch::channel(false);
    let runtime = Runtime::new(drydock.client(OPERATOR), drydock.context().clone())
        .install_crds()
        .host(windlass_monocle::operator());
    let running = tokio::spawn(runtime.run(async move {
        let _ = stopped.wait_for(|stop| *stop).await;
    }));
    (stop, running)
}
