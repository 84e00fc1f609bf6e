//! The controllers of the control plane, as ordinary clients of the API.
//!
//! Each is named after, and behaves as, the one of kube-controller-manager. All share one informer per kind; each
//! writes with a client of its own. They never touch the store: pointed at a real kube-apiserver they do the same.
//! A controller is one file (or a file and a folder); [`informer`], [`informers`], [`queue`], [`events`] and
//! [`ownership`] are what they are built of.

use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Client;
use tokio::task::JoinSet;
use windlass_machinery::Context;

use crate::logs::Logs;
use crate::node::NodeOptions;

mod clusterrole_aggregation;
mod cronjob;
mod daemonset;
mod deployment;
pub(crate) mod discovery;
mod disruption;
mod endpoint_slices;
mod endpoints;
pub(crate) mod events;
mod garbage_collector;
pub(crate) mod gate;
pub(crate) mod informer;
pub(crate) mod informers;
mod job;
mod namespace;
pub(crate) mod ownership;
pub(crate) mod pods;
pub(crate) mod queue;
mod replicaset;
mod resource_quota;
mod root_ca;
pub(crate) mod selection;
mod serviceaccount;
mod statefulset;
mod template_hash;
mod ttl_after_finished;
mod volumes;

pub use selection::{NAMES, Selection, UnknownController};

use events::Recorder;
use informer::ObjectKey;
use informers::Informers;
use queue::Queue;

/// Workers of each controller, as kube-controller-manager has by default.
const WORKERS: usize = 5;

/// What went wrong in a controller or on the node; it is logged and tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API refused or did not answer.
    #[error(transparent)]
    Kube(#[from] kube::Error),
    /// An object could not be written as JSON.
    #[error("failed to encode an object: {0}")]
    Encode(#[from] serde_json::Error),
    /// Something else that will be tried again.
    #[error("{0}")]
    Other(String),
}

impl Error {
    fn build(error: kube::core::request::Error) -> Self {
        Self::Kube(kube::Error::BuildRequest(error))
    }

    /// The API's answer, where it is one.
    pub(crate) fn status(&self) -> Option<&kube::core::Status> {
        match self {
            Self::Kube(kube::Error::Api(status)) => Some(status),
            _ => None,
        }
    }

    pub(crate) fn has_reason(&self, reason: &str) -> bool {
        self.status().is_some_and(|status| status.reason == reason)
    }

    /// What the API said, as Go's errors print it.
    pub(crate) fn message(&self) -> String {
        self.status().map_or_else(|| self.to_string(), |status| status.message.clone())
    }

    /// Whether a create failed because its namespace is being deleted: then nothing more can be done there.
    pub(crate) fn namespace_terminating(&self) -> bool {
        let causes = self.status().and_then(|status| status.details.as_ref()).map(|details| &details.causes);
        causes.into_iter().flatten().any(|cause| cause.reason == "NamespaceTerminating")
    }
}

/// What the controllers need to be told.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The certificate of the API server's authority, published to every namespace as `kube-root-ca.crt`.
    pub root_ca: String,
    /// The node.
    pub node: NodeOptions,
    /// Where the node's containers write.
    pub logs: Logs,
}

/// Runs the selected controllers, the scheduler and the node until `shutdown` resolves.
///
/// `client_for` gives the client of each by its name, and the one of the shared watches as `shared-informers`.
pub async fn run(
    client_for: impl Fn(&str) -> Client,
    context: Context,
    selection: Selection,
    options: Options,
    shutdown: impl Future<Output = ()>,
) {
    let mut tasks = JoinSet::new();
    let mut ends = Vec::new();
    let informers = Arc::new(Informers::new(client_for("shared-informers")));
    for name in NAMES.iter().copied().filter(|name| selection.contains(name)) {
        let mut setup = Setup {
            name,
            client: client_for(name),
            context: context.clone(),
            informers: informers.clone(),
            tasks: &mut tasks,
            ends: &mut ends,
        };
        start(&mut setup, &options);
    }
    informers.start(&mut tasks);
    shutdown.await;
    tasks.shutdown().await;
    futures::future::join_all(ends).await;
}

/// The user agent of a controller, the scheduler or the node: as in a real cluster, its first part owns the fields
/// they set; the second tells them apart.
#[must_use]
pub fn user_agent(name: &str) -> String {
    let program = match name {
        selection::SCHEDULER => "kube-scheduler",
        selection::NODE => "kubelet",
        _ => "kube-controller-manager",
    };
    format!("{program}/{name}")
}

fn start(setup: &mut Setup<'_>, options: &Options) {
    match setup.name {
        "namespace-controller" => namespace::start(setup),
        "clusterrole-aggregation-controller" => clusterrole_aggregation::start(setup),
        "serviceaccount-controller" => serviceaccount::start(setup),
        "root-ca-certificate-publisher-controller" => root_ca::start(setup, &options.root_ca),
        "garbage-collector-controller" => garbage_collector::start(setup),
        "deployment-controller" => deployment::start(setup),
        "replicaset-controller" => replicaset::start(setup),
        "job-controller" => job::start(setup),
        "cronjob-controller" => cronjob::start(setup),
        "ttl-after-finished-controller" => ttl_after_finished::start(setup),
        "disruption-controller" => disruption::start(setup),
        "endpoints-controller" => endpoints::start(setup),
        "endpointslice-controller" => endpoint_slices::start(setup),
        "persistentvolume-binder-controller" => volumes::start(setup),
        "persistentvolumeclaim-protection-controller" => volumes::protection::start_for_claims(setup),
        "persistentvolume-protection-controller" => volumes::protection::start_for_volumes(setup),
        "resourcequota-controller" => resource_quota::start(setup),
        "daemonset-controller" => daemonset::start(setup),
        "statefulset-controller" => statefulset::start(setup),
        selection::SCHEDULER => crate::node::scheduler::start(setup, &options.node),
        selection::NODE => crate::node::start(setup, &options.node, &options.logs),
        _ => {}
    }
}

/// What a controller is started with.
pub(crate) struct Setup<'a> {
    pub(crate) name: &'static str,
    pub(crate) client: Client,
    pub(crate) context: Context,
    pub(crate) informers: Arc<Informers>,
    pub(crate) tasks: &'a mut JoinSet<()>,
    /// What is left to do once all tasks have ended.
    pub(crate) ends: &'a mut Vec<BoxFuture<'static, ()>>,
}

impl Setup<'_> {
    pub(crate) fn handle<K: informer::Kind>(&self) -> informers::Handle<K> {
        self.informers.handle(&self.client)
    }

    pub(crate) fn recorder(&mut self, component: &'static str, host: Option<&'static str>) -> Recorder {
        Recorder::start(self.tasks, self.client.clone(), self.context.clone(), component, host)
    }

    /// Starts the workers of a controller; they wait for the informers.
    pub(crate) fn work<R: Reconciler>(&mut self, queue: &Queue<ObjectKey>, reconciler: R) {
        let reconciler = Arc::new(reconciler);
        for _ in 0..WORKERS {
            let (queue, reconciler, name) = (queue.clone(), reconciler.clone(), self.name);
            let informers = self.informers.clone();
            self.tasks.spawn(async move {
                // Informers asked for by later controllers are in the list by the time this is polled.
                informers.synced().await;
                loop {
                    let key = queue.next().await;
                    match reconciler.reconcile(&key).await {
                        Ok(()) => queue.forget(&key),
                        // Nothing can be made any more where everything is being deleted.
                        Err(error) if error.namespace_terminating() => queue.forget(&key),
                        Err(error) => {
                            tracing::debug!(controller = name, %key, %error, "failed, will try again");
                            queue.add_failed(key.clone());
                        }
                    }
                    queue.done(&key);
                }
            });
        }
    }
}

/// Brings one object, named by its key, to where it should be.
pub(crate) trait Reconciler: Send + Sync + 'static {
    fn reconcile(&self, key: &ObjectKey) -> impl Future<Output = Result<(), Error>> + Send;
}

/// A queue that gets the key of every object of a kind that changes.
pub(crate) fn queue_of<K: informer::Kind>(informer: &informer::Informer<K>) -> Queue<ObjectKey> {
    let queue = Queue::new();
    let adds = queue.clone();
    informer.on_change(move |change| adds.add(ObjectKey::of(change.latest().meta())));
    queue
}

/// A number as Go writes it where zero is left out.
pub(crate) fn nonzero(number: i32) -> Option<i32> {
    Some(number).filter(|number| *number != 0)
}

/// A number, or a percentage of a total.
pub(crate) fn scaled(value: Option<&IntOrString>, total: i32, up: bool) -> i32 {
    match value {
        None => 0,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(text)) => {
            let percent: i32 = text.trim_end_matches('%').parse().unwrap_or_default();
            (percent * total + if up { 99 } else { 0 }) / 100
        }
    }
}

/// Whether things can still be made in a namespace.
fn is_active_namespace(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_none()
}

#[cfg(test)]
mod tests;
