//! Several replicas of one operator on one drydock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use windlass::{LeaseName, Permissions, Port, Runtime};
use windlass_drydock::record::Entry;
use windlass_drydock::{Drydock, Options};
use windlass_testkit::account;

use crate::boat::{Boat, BoatSpec, Marina};

/// The account of all replicas.
const ACCOUNT: &str = "boatman";

pub(crate) struct Fleet {
    pub(crate) drydock: Drydock,
    pub(crate) marina: Marina,
}

/// A process with the operator.
pub(crate) struct Process {
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), windlass::Error>>,
    pub(crate) port: Port,
}

impl Process {
    pub(crate) fn start(runtime: Runtime) -> Self {
        let (stop, mut stopped) = watch::channel(false);
        let port = runtime.port();
        let task = tokio::spawn(runtime.install_crds().run(async move {
            let _ = stopped.wait_for(|stop| *stop).await;
        }));
        Self { stop, task, port }
    }

    pub(crate) async fn stop(self) {
        self.stop.send_replace(true);
        self.task.await.unwrap().unwrap();
    }

    pub(crate) fn kill(self) {
        self.task.abort();
    }
}

pub(crate) fn lease() -> LeaseName {
    LeaseName { namespace: "default".into(), name: "boatman".into() }
}

impl Fleet {
    pub(crate) async fn start() -> Self {
        let drydock = Drydock::start(Options::seeded(1)).await.unwrap();
        drydock.record().keep_entries();
        let fleet = Self { drydock, marina: Marina::default() };
        let permissions = |runtime: Runtime| runtime.install_crds().permissions();
        let leading = permissions(fleet.runtime("").leader(lease()));
        fleet.grant(&leading.and(&permissions(fleet.runtime("").shards(lease())))).await;
        fleet
    }

    pub(crate) fn runtime(&self, name: &str) -> Runtime {
        let (client, context) =
            (account::client(&self.drydock, ACCOUNT, name), self.drydock.context().clone());
        Runtime::new(client, context).identity(name).host(self.marina.operator()())
    }

    /// Lets the replicas do what a runtime needs.
    pub(crate) async fn grant(&self, permissions: &Permissions) {
        account::grant(&self.drydock, ACCOUNT, permissions).await;
    }

    pub(crate) fn leader(&self, name: &str) -> Process {
        Process::start(self.runtime(name).leader(lease()))
    }

    pub(crate) fn member(&self, name: &str) -> Process {
        Process::start(self.runtime(name).shards(lease()))
    }

    /// Applies so many Boats.
    pub(crate) async fn boats(&self, count: usize, text: &str) {
        let api: Api<Boat> = Api::namespaced(self.drydock.client("test"), "default");
        for number in 0..count {
            let spec = BoatSpec { text: text.to_owned(), ..BoatSpec::default() };
            let name = format!("boat-{number}");
            let metadata = json!({"name": name});
            let body =
                json!({"apiVersion": "example.org/v1", "kind": "Boat", "metadata": metadata, "spec": spec});
            let params = PatchParams::apply("test").force();
            for attempt in 0.. {
                match api.patch(&name, &params, &Patch::Apply(&body)).await {
                    Ok(_) => break,
                    // The operator may not have installed the definition yet.
                    Err(_) if attempt < 60 => sleep(Duration::from_secs(1)).await,
                    Err(error) => panic!("{name}: {error}"),
                }
            }
        }
    }

    /// How many ConfigMaps have this text.
    pub(crate) async fn done(&self, text: &str) -> usize {
        let api: Api<ConfigMap> = Api::namespaced(self.drydock.client("test"), "default");
        let maps = api.list(&ListParams::default()).await.unwrap().items;
        let has = |map: &&ConfigMap| {
            map.data.as_ref().is_some_and(|data| data.get("text").is_some_and(|t| t == text))
        };
        maps.iter().filter(has).count()
    }

    /// Waits until so many ConfigMaps have this text, and nothing more is written.
    pub(crate) async fn until_done(&self, count: usize, text: &str) {
        let start = Instant::now();
        while self.done(text).await < count {
            assert!(
                start.elapsed() < Duration::from_secs(900),
                "{} of {count} are {text}",
                self.done(text).await
            );
            sleep(Duration::from_millis(200)).await;
        }
        sleep(Duration::from_secs(30)).await;
    }

    /// The operator's writes, those of Leases apart, as client and object.
    pub(crate) fn writes(&self) -> Vec<(String, String)> {
        let entries = self.drydock.record().entries("").into_iter();
        let writes =
            entries.filter(|entry| is_write(entry) && is_replica(entry) && entry.resource != "leases");
        writes
            .map(|entry| (entry.client, format!("{} {}", entry.resource, entry.name.unwrap_or_default())))
            .collect()
    }

    /// Of whom each object was written.
    pub(crate) fn writers(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut writers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (client, object) in self.writes() {
            writers.entry(object).or_default().insert(client);
        }
        writers
    }

    /// Whoever wrote was, at that point of the server's record, the last to have written the Lease.
    pub(crate) fn assert_only_holders_wrote(&self) {
        let mut holder = None;
        for entry in
            self.drydock.record().entries("").into_iter().filter(|entry| is_write(entry) && is_replica(entry))
        {
            if entry.resource != "leases" {
                assert_eq!(holder.as_deref(), Some(entry.client.as_str()), "{entry:?}");
            } else if entry.code < 300 {
                holder = Some(entry.client);
            }
        }
    }

    /// The requests of a client that are neither watches nor about Leases.
    pub(crate) fn requests(&self, client: &str) -> usize {
        let entries = self.drydock.record().entries(client).into_iter();
        entries.filter(|entry| entry.verb != "watch" && entry.resource != "leases").count()
    }
}

fn is_write(entry: &Entry) -> bool {
    matches!(entry.verb, "create" | "update" | "patch" | "delete")
}

fn is_replica(entry: &Entry) -> bool {
    entry.client.starts_with("replica-")
}
