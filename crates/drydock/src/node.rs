//! The node: one that registers itself, a scheduler that binds pods to it, and the life of pods on it.
//!
//! Like the controllers it is an ordinary client of the API. By default nothing is really run: containers are
//! [`runtime::Simulated`], and a table of [`Behaviours`] makes images fail to pull, crash or hang. A pod all of
//! whose images are in the table of [`Images`] is run as processes of this machine. The node never writes when
//! nothing happens; the heartbeat, which a real cluster's controllers want, is off unless asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::FutureExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use windlass_machinery::Context;

use crate::controllers::events::Recorder;
use crate::controllers::informer::{Informer, Outline};
use crate::controllers::informers::Handle;
use crate::controllers::{self, Selection, Setup};
use crate::logs::Logs;

mod behaviour;
mod container;
mod image_name;
mod images;
mod log_port;
mod pod;
mod process;
mod references;
mod registration;
pub mod runtime;
pub(crate) mod scheduler;
mod status;

pub use behaviour::{Behaviour, Behaviours, UnknownBehaviour};
pub use images::{Images, Program};
pub use process::ApiAddress;

/// The node's name.
pub const NAME: &str = "drydock";
/// The node's address.
pub const ADDRESS: &str = "192.168.127.2";

/// What the node needs to be told.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// How simulated containers behave.
    pub behaviours: Behaviours,
    /// Which images are programs of this machine. Their processes need real time: do not pause tokio's.
    pub images: Images,
    /// Where those programs find the API; [`crate::serve::serve`] sets it.
    pub api: ApiAddress,
    /// How long simulated containers take to be ready.
    pub ready_after: Duration,
    /// How long simulated containers run that are to end, as those of Jobs are.
    pub completes_after: Duration,
    /// Whether to renew the node's Lease every ten seconds. Needed where a node lifecycle controller runs.
    pub heartbeat: bool,
    /// What runs containers, instead of the simulation.
    pub runtime: Option<Arc<dyn runtime::Runtime>>,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            behaviours: Behaviours::default(),
            images: Images::default(),
            api: ApiAddress::default(),
            ready_after: Duration::ZERO,
            completes_after: Duration::from_secs(1),
            heartbeat: false,
            runtime: None,
        }
    }
}

/// What a cluster needs beside kube-apiserver and kube-controller-manager to run pods.
const PARTS: &str = "scheduler,node,persistentvolume-binder-controller";

/// Runs the node for a cluster that has none, until `shutdown` resolves: it registers itself, binds pods to itself,
/// makes their volumes and lives their lives. kube-controller-manager must leave volumes alone
/// (`--controllers=*,-persistentvolume-binder-controller`).
pub async fn run(client: Client, context: Context, options: NodeOptions, shutdown: impl Future<Output = ()>) {
    // A cluster with a node lifecycle controller taints nodes that give no sign of life.
    let node = NodeOptions { heartbeat: true, ..options };
    let options = controllers::Options { node, ..controllers::Options::default() };
    let parts = Selection::parse(PARTS).unwrap_or_default();
    controllers::run(move |_: &str| client.clone(), context, parts, options, shutdown).await;
}

/// What the workers of pods share.
struct Kubelet {
    pods: Handle<Pod>,
    config_maps: Arc<Informer<Outline<ConfigMap>>>,
    secrets: Arc<Informer<Outline<Secret>>>,
    /// Counts changes of ConfigMaps and Secrets, for pods that wait for one.
    references: watch::Sender<u64>,
    runtime: Arc<dyn runtime::Runtime>,
    logs: Logs,
    recorder: Recorder,
    context: Context,
    addresses: Mutex<Addresses>,
}

#[derive(Default)]
struct Addresses {
    taken: BTreeSet<u32>,
    last: u32,
}

pub(crate) fn start(setup: &mut Setup<'_>, options: &NodeOptions, logs: &Logs) {
    let (config_maps, secrets) = (setup.informers.outlines(), setup.informers.outlines());
    let references = watch::channel(0).0;
    let runtime = options.runtime.clone().unwrap_or_else(|| {
        Arc::new(process::Processes::new(process::Parts {
            simulated: runtime::Simulated {
                behaviours: options.behaviours.clone(),
                ready_after: options.ready_after,
                completes_after: options.completes_after,
            },
            images: options.images.clone(),
            client: setup.client.clone(),
            api: options.api.clone(),
            config_maps: Arc::clone(&config_maps),
            secrets: Arc::clone(&secrets),
            references: references.subscribe(),
            context: setup.context.clone(),
        }))
    });
    let ends = Arc::clone(&runtime);
    setup.ends.push(async move { ends.end().await }.boxed());
    let kubelet = Arc::new(Kubelet {
        pods: setup.handle(),
        config_maps,
        secrets,
        references,
        runtime,
        logs: logs.clone(),
        recorder: setup.recorder("kubelet", Some(NAME)),
        context: setup.context.clone(),
        addresses: Mutex::default(),
    });
    let told = kubelet.clone();
    kubelet.config_maps.on_change(move |_| told.references.send_modify(|count| *count += 1));
    let told = kubelet.clone();
    kubelet.secrets.on_change(move |_| told.references.send_modify(|count| *count += 1));

    let (sender, changes) = mpsc::unbounded_channel();
    kubelet.pods.on_change(move |change| {
        let mine =
            |pod: &&Arc<Pod>| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(NAME));
        if let Some(pod) = change.new.as_ref().filter(mine) {
            let _ = sender.send((pod.metadata.uid.clone().unwrap_or_default(), Some(pod.clone())));
        } else if let Some(pod) = change.old.as_ref().filter(mine) {
            let _ = sender.send((pod.metadata.uid.clone().unwrap_or_default(), None));
        }
    });
    let nodes: Handle<Node> = setup.handle();
    let leases = setup.handle();
    let (context, informers, heartbeat) = (setup.context.clone(), setup.informers.clone(), options.heartbeat);
    let port = log_port::LogPort { pods: setup.handle(), logs: logs.clone(), context: context.clone() };
    setup.tasks.spawn(async move {
        informers.synced().await;
        if !heartbeat {
            registration::register(&nodes, &context, None).await;
            return;
        }
        // The server of another cluster cannot read the logs by itself.
        match port.open().await {
            Ok((number, serving)) => {
                registration::register(&nodes, &context, Some(number)).await;
                tokio::join!(registration::beat(&leases, &context), serving);
            }
            Err(error) => {
                tracing::warn!(%error, "failed to serve logs");
                registration::register(&nodes, &context, None).await;
                registration::beat(&leases, &context).await;
            }
        }
    });
    let informers = setup.informers.clone();
    setup.tasks.spawn(async move {
        informers.synced().await;
        dispatch(kubelet, changes).await;
    });
}

/// Gives every pod of this node a worker, and the worker what changes.
async fn dispatch(kubelet: Arc<Kubelet>, mut changes: mpsc::UnboundedReceiver<(String, Option<Arc<Pod>>)>) {
    let mut workers: BTreeMap<String, watch::Sender<Arc<Pod>>> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    while let Some((uid, pod)) = changes.recv().await {
        while tasks.try_join_next().is_some() {}
        match pod {
            Some(pod) => match workers.get(&uid) {
                Some(worker) => {
                    worker.send_replace(pod);
                }
                None => {
                    let (sender, receiver) = watch::channel(pod);
                    workers.insert(uid, sender);
                    tasks.spawn(pod::run(kubelet.clone(), receiver));
                }
            },
            None => {
                workers.remove(&uid);
            }
        }
    }
}

impl Kubelet {
    /// The time in whole seconds, as the API keeps it: what comes back is what was written.
    fn now(&self) -> Timestamp {
        let now = self.context.now();
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }

    /// An address that no other pod here has; `known` is the one a pod had before a restart.
    fn take_address(&self, known: Option<&str>) -> String {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.and_then(|text| text.parse::<std::net::Ipv4Addr>().ok()) {
            addresses.taken.insert(number.to_bits());
            return number.to_string();
        }
        let base = std::net::Ipv4Addr::new(10, 244, 0, 0).to_bits();
        loop {
            addresses.last = (addresses.last + 1) % 0xffff;
            let number = base + 1 + addresses.last;
            if addresses.taken.insert(number) {
                return std::net::Ipv4Addr::from_bits(number).to_string();
            }
        }
    }

    fn give_back_address(&self, address: &str) {
        if let Ok(number) = address.parse::<std::net::Ipv4Addr>() {
            self.addresses.lock().unwrap_or_else(PoisonError::into_inner).taken.remove(&number.to_bits());
        }
    }
}
