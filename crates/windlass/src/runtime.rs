//! Runs operators: one cache, one queue and a bounded number of workers for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, ResourceExt as _};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use windlass_machinery::Context;

use crate::admission::{self, Endpoint, Keeper, Registrar, Webhooks, has_versions};
use crate::apply::Requests;
use crate::cache::{Cache, Command, fetch, watch as fill};
use crate::controller::Controller;
use crate::explain::Journal;
use crate::external::{self, Externals};
use crate::metrics::Metrics;
use crate::queue::Queue;
use crate::reconcile::Reconciler;
use crate::replica::{Arrangement, Replica};
use crate::{Kind, LeaseName, LeaseTimes, Operator, Permissions, Port, crd, server};

/// How many primaries are worked on at once, unless told otherwise.
const WORKERS: usize = 8;
/// How long what is under way may take when the runtime stops.
const DRAIN: Duration = Duration::from_secs(10);
/// So many characters of the given identity are used.
const LONGEST_IDENTITY: usize = 63;
/// By what the replicas decide which of them installs definitions.
const DEFINITIONS: &str = "definitions";

/// Hosts operators in this process.
///
/// ```no_run
/// # async fn run(operator: windlass::Operator) -> Result<(), Box<dyn std::error::Error>> {
/// let client = kube::Client::try_default().await?;
/// windlass::Runtime::new(client, windlass::Context::live())
///     .host(operator)
///     .install_crds()
///     .run(async { tokio::signal::ctrl_c().await.unwrap_or_default() })
///     .await?;
/// # Ok(())
/// # }
/// ```
pub struct Runtime {
    client: Client,
    context: Context,
    operators: Vec<Operator>,
    workers: usize,
    install: bool,
    arrangement: Arrangement,
    times: LeaseTimes,
    identity: String,
    listener: Option<TcpListener>,
    port: Port,
    webhooks: Option<Webhooks>,
    webhooks_listener: Option<TcpListener>,
    namespaces: BTreeSet<String>,
    endpoint: Endpoint,
    shared: Arc<admission::Shared>,
}

/// Why a runtime could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A definition could not be installed.
    #[error("failed to install the definition {name}: {message}")]
    Install {
        /// The definition's name.
        name: String,
        /// What the server said.
        message: String,
    },
    /// With these times two replicas could write at once.
    #[error(
        "failed to arrange replicas: {0:?} does not have retry < renew_deadline < duration, in whole seconds"
    )]
    Times(LeaseTimes),
    /// The port could not be served.
    #[error("failed to serve the operator's port")]
    Listen(#[source] std::io::Error),
    /// The webhooks could not be served.
    #[error("failed to serve webhooks: {0}")]
    Webhooks(String),
    /// No API server takes this URL of webhooks.
    #[error("failed to serve webhooks at {0:?}: use https://HOST[:PORT][/PATH]")]
    WebhookUrl(String),
    /// A kind has several versions, and nothing that converts them.
    #[error(
        "failed to install the definition {0}: it has several versions, which webhooks convert; serve them too (`Runtime::webhooks`, `--webhooks`)"
    )]
    Unconverted(String),
}

impl Runtime {
    /// A runtime for the cluster of `client`, with time and randomness from `context`.
    #[must_use]
    pub fn new(client: Client, context: Context) -> Self {
        Self {
            client,
            context,
            operators: Vec::new(),
            workers: WORKERS,
            install: false,
            arrangement: Arrangement::Alone,
            times: LeaseTimes::default(),
            identity: "windlass".into(),
            listener: None,
            port: Port::default(),
            webhooks: None,
            webhooks_listener: None,
            namespaces: BTreeSet::new(),
            endpoint: Endpoint::default(),
            shared: Arc::default(),
        }
    }

    /// Hosts an operator.
    #[must_use]
    pub fn host(mut self, operator: Operator) -> Self {
        self.operators.push(operator);
        self
    }

    /// Works on at most so many primaries at once.
    #[must_use]
    pub fn workers(self, workers: usize) -> Self {
        Self { workers: workers.max(1), ..self }
    }

    /// Installs the definitions of the operators' kinds before starting.
    #[must_use]
    pub fn install_crds(self) -> Self {
        Self { install: true, ..self }
    }

    /// Works only in these namespaces, with roles in them and none for the whole cluster, as far as its kinds are in
    /// namespaces. What its operators look for elsewhere is not there.
    #[must_use]
    pub fn namespaces(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.namespaces.extend(names.into_iter().map(Into::into));
        self
    }

    /// Works only while it holds this Lease, so that of several replicas one works and the others stand by with warm
    /// caches. A replica that loses it stops writing before another starts.
    #[must_use]
    pub fn leader(self, lease: LeaseName) -> Self {
        Self { arrangement: Arrangement::Leader(lease), ..self }
    }

    /// Shares the primaries with the other replicas of this group; in place of [`Runtime::leader`]. Each replica has a
    /// Lease, whose name begins with that of the group. No primary is ever written by two at once.
    #[must_use]
    pub fn shards(self, group: LeaseName) -> Self {
        Self { arrangement: Arrangement::Shards(group), ..self }
    }

    /// Other times for its Lease than the usual ones.
    #[must_use]
    pub fn lease_times(self, times: LeaseTimes) -> Self {
        Self { times, ..self }
    }

    /// What this replica is called in its Lease, such as the pod's name. Some letters that tell it from an earlier
    /// process of this name are added.
    #[must_use]
    pub fn identity(self, identity: impl Into<String>) -> Self {
        Self { identity: identity.into(), ..self }
    }

    /// Serves metrics, health, readiness and the explain records here.
    #[must_use]
    pub fn listen(self, listener: TcpListener) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// What is served there, without a socket.
    #[must_use]
    pub fn port(&self) -> Port {
        self.port.clone()
    }

    /// Has the API server ask the operators about each write of their kinds: it fills in their defaults, refuses what is
    /// invalid, and converts versions. Certificates are made here, kept in a Secret and replaced in good time; the
    /// configurations of the webhooks are kept true.
    #[must_use]
    pub fn webhooks(self, webhooks: Webhooks) -> Self {
        Self { webhooks: Some(webhooks), ..self }
    }

    /// Serves the webhooks here, over TLS.
    #[must_use]
    pub fn listen_webhooks(self, listener: TcpListener) -> Self {
        Self { webhooks_listener: Some(listener), ..self }
    }

    /// What the webhooks answer, without a socket.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    /// What it has to be allowed on the cluster, with what it hosts and as it was told to run.
    #[must_use]
    pub fn permissions(&self) -> Permissions {
        let mut all = Permissions::default().arranged(&self.arrangement);
        for operator in &self.operators {
            all = all.and(&Permissions::within(operator, &self.namespaces));
            if self.install {
                all = all.install_crds(operator);
            }
        }
        match &self.webhooks {
            Some(webhooks) => all.webhooks(&webhooks.permissions(&self.operators)),
            None => all,
        }
    }

    /// Runs until `shutdown` completes; then finishes what it is at, for a moment at most, and releases its Lease.
    ///
    /// # Errors
    /// If it cannot start, or definitions are to be installed and cannot be. Once it runs, nothing stops it but
    /// `shutdown`.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let replica = self.replica()?;
        // Dropping a set stops all that is in it.
        let mut keepers = JoinSet::new();
        if let Some(listener) = self.listener.take() {
            let listener = server::adopt(listener).map_err(Error::Listen)?;
            keepers.spawn(self.port.clone().serve(listener));
        }
        let keeping = replica.clone();
        keepers.spawn(async move { keeping.keep().await });
        let mut serving = self.serve_webhooks(&replica, &mut keepers)?;
        let outcome = self.work(&replica, shutdown).await;
        // It ends by itself, after what is under way.
        self.endpoint.stop();
        while serving.join_next().await.is_some() {}
        keepers.shutdown().await;
        replica.release().await;
        outcome
    }

    fn replica(&self) -> Result<Replica, Error> {
        if matches!(self.arrangement, Arrangement::Alone) {
            return Ok(Replica::Only);
        }
        if !self.times.is_safe() {
            return Err(Error::Times(self.times));
        }
        // Part of the name of an object, where there is a Lease for each replica.
        let letter =
            |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
        let identity: String = self.identity.chars().map(letter).take(LONGEST_IDENTITY).collect();
        let identity = format!("{}-{}", identity.trim_matches('-'), self.context.name_suffix());
        let (client, context) = (self.client.clone(), self.context.clone());
        Ok(Replica::new(&self.arrangement, client, context, self.times, identity))
    }

    /// Starts what the webhooks need, if there are any; gives what serves them.
    fn serve_webhooks(&mut self, replica: &Replica, keepers: &mut JoinSet<()>) -> Result<JoinSet<()>, Error> {
        let mut serving = JoinSet::new();
        let Some(webhooks) = &self.webhooks else { return Ok(serving) };
        let webhooks = &webhooks.clone().within(&self.namespaces);
        self.endpoint.open(self.operators.clone()).map_err(|error| Error::Webhooks(error.to_string()))?;
        let (endpoint, shared) = (self.endpoint.clone(), Arc::clone(&self.shared));
        let permit = replica.permit(admission::KEY);
        let (client, context) = (self.client.clone(), self.context.clone());
        let keeper = Keeper::new(client, webhooks, context, permit, endpoint.clone(), Arc::clone(&shared));
        keepers.spawn(async move { keeper.keep().await });
        let (client, replica) = (self.client.clone(), replica.clone());
        let registrar = Registrar::new(client, webhooks, &self.operators, replica, endpoint.clone(), shared);
        keepers.spawn(async move { registrar.keep().await });
        if let Some(listener) = self.webhooks_listener.take() {
            let listener = server::adopt(listener).map_err(|error| Error::Webhooks(error.to_string()))?;
            serving.spawn(endpoint.serve(listener));
        }
        Ok(serving)
    }

    async fn work(&self, replica: &Replica, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        tokio::pin!(shutdown);
        let metrics = Arc::new(Metrics::default());
        let mut installing = pin!(self.install_definitions(replica));
        let mut installed = !self.install;
        if self.install {
            tokio::select! {
                () = &mut shutdown => return Ok(()),
                done = &mut installing => {
                    done?;
                    installed = true;
                }
                // Another replica has installed them, and this one can warm up.
                () = crd::established(&self.client, &self.operators), if !matches!(replica, Replica::Only) => {}
            }
        }
        let (commands, mut inbox) = mpsc::unbounded_channel();
        let mut controllers: Vec<_> =
            self.operators.iter().flat_map(|operator| operator.controllers().iter().cloned()).collect();
        let standing: Vec<_> = self.operators.iter().flat_map(|operator| operator.standing()).collect();
        controllers.extend(standing.iter().map(|one| Arc::new((*one).clone()) as Arc<dyn Controller>));
        let names: BTreeSet<String> = self.operators.iter().map(|operator| operator.name().into()).collect();
        let externals: Externals = self
            .operators
            .iter()
            .flat_map(|operator| operator.connected(&self.client))
            .map(|external| (external.kind(), external))
            .collect();
        let queue = Arc::new(Queue::new(self.context.clone()));
        let primaries = controllers.iter().map(|controller| controller.kind().clone()).collect();
        let cache = Cache::new(Arc::clone(&queue), commands, primaries, names.clone());
        let cache = Arc::new(cache.within(&self.namespaces));
        for controller in &controllers {
            cache.open(controller.kind());
            controller.declared().written.iter().for_each(|kind| cache.open(kind));
        }
        standing.iter().for_each(|one| cache.stand(one.kind(), one.stored()));
        let requests = names
            .into_iter()
            .map(|name| {
                let requests = Requests::new(self.client.clone(), name.clone());
                (name, requests.counted(Arc::clone(&metrics)))
            })
            .collect();
        let reconciler = Arc::new(Reconciler {
            cache: Arc::clone(&cache),
            queue,
            context: self.context.clone(),
            controllers,
            requests,
            memories: Default::default(),
            memo: Arc::default(),
            externals: externals.clone(),
            replica: replica.clone(),
            journal: Journal::default(),
            metrics: Arc::clone(&metrics),
            webhooks: self.endpoint.clone(),
        });
        self.port.open(Arc::clone(&reconciler));

        // Dropping a set stops all that is in it.
        let mut tasks = JoinSet::new();
        let mut workers = JoinSet::new();
        let stopping = watch::Sender::new(false);
        let employ = |workers: &mut JoinSet<()>, count: usize| {
            for _ in 0..count {
                workers.spawn(Arc::clone(&reconciler).work(stopping.subscribe()));
            }
        };
        // A leader works only once it has installed them; of members that share the work one does that for all.
        let mut employed = installed || matches!(replica, Replica::Member(_));
        if employed {
            employ(&mut workers, self.workers);
        }
        let mut grants = replica.grants();
        let mut watches: BTreeMap<Kind, Vec<AbortHandle>> = BTreeMap::new();
        loop {
            let command = tokio::select! {
                () = &mut shutdown => break,
                Some(command) = inbox.recv() => command,
                done = &mut installing, if !installed => {
                    done?;
                    installed = true;
                    if !employed {
                        employed = true;
                        employ(&mut workers, self.workers);
                    }
                    continue;
                }
                () = granted(&mut grants) => {
                    cache.queue_primaries();
                    continue;
                }
                Some(ended) = workers.join_next() => {
                    if let Err(error) = ended
                        && error.is_panic()
                    {
                        tracing::error!(%error, "a worker panicked; its object waits for a restart");
                        employ(&mut workers, 1);
                    }
                    continue;
                }
                Some(ended) = tasks.join_next() => {
                    if let Err(error) = ended
                        && error.is_panic()
                    {
                        tracing::error!(%error, "a task of the runtime panicked");
                    }
                    continue;
                }
            };
            let (cache, client, context) = (Arc::clone(&cache), self.client.clone(), self.context.clone());
            match command {
                Command::Watch(kind, _) if kind.is_external() => {
                    if let Some(external) = externals.get(&kind) {
                        tasks.spawn(external::attend(cache, Arc::clone(external)));
                    }
                }
                Command::Fetch(kind, name) if kind.is_external() => {
                    if let Some(external) = externals.get(&kind) {
                        tasks.spawn(external::observe(cache, context, Arc::clone(external), name));
                    }
                }
                Command::Watch(kind, scopes) => {
                    let mut open = Vec::new();
                    for scope in scopes {
                        let (cache, client, context) = (Arc::clone(&cache), client.clone(), context.clone());
                        let metrics = Arc::clone(&metrics);
                        open.push(tasks.spawn(fill(cache, client, context, metrics, kind.clone(), scope)));
                    }
                    watches.insert(kind, open).into_iter().flatten().for_each(|former| former.abort());
                }
                Command::Linger(kind, pause) => {
                    tasks.spawn(async move {
                        tokio::time::sleep(pause).await;
                        cache.close_unused(&kind);
                    });
                }
                Command::Close(kind) => {
                    watches.remove(&kind).into_iter().flatten().for_each(|watch| watch.abort());
                }
                Command::Tell(kind, why) => {
                    tracing::error!("{why}");
                    let reconciler = Arc::clone(&reconciler);
                    tasks.spawn(async move { reconciler.tell_blind(&kind, &why).await });
                }
                Command::Fetch(kind, name) => {
                    tasks.spawn(fetch(cache, client, context, kind, name));
                }
            }
        }
        stopping.send_replace(true);
        let drained = async { while workers.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN, drained).await.is_err() {
            tracing::warn!("stopped in the midst of work");
        }
        Ok(())
    }

    /// Installs the definitions, once this replica may.
    async fn install_definitions(&self, replica: &Replica) -> Result<(), Error> {
        let permit = replica.permit(DEFINITIONS);
        for operator in &self.operators {
            let requests = Requests::new(self.client.clone(), operator.name().into());
            let requests = requests.under(permit.clone(), None);
            let bundle = match operator.crds().iter().find(|crd| has_versions(crd)) {
                Some(crd) if self.webhooks.is_none() => return Err(Error::Unconverted(crd.name_any())),
                Some(_) => self.shared.bundle().await,
                None => String::new(),
            };
            let conversion = |crd: &CustomResourceDefinition| {
                let webhooks = self.webhooks.as_ref().filter(|_| has_versions(crd));
                webhooks.map(|webhooks| webhooks.conversion(operator, crd, &bundle))
            };
            loop {
                replica.granted(DEFINITIONS).await;
                match crd::install(&self.client, &requests, operator, conversion).await {
                    Err(_) if !permit.is_valid() => {}
                    Err(error) => return Err(error),
                    Ok(()) => break,
                }
            }
        }
        Ok(())
    }
}

/// Resolves when this replica may write more than before; never, if it is the only one.
async fn granted(grants: &mut Option<watch::Receiver<u64>>) {
    if let Some(grants) = grants
        && grants.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}
