//! Runs operators: one cache, one queue and a bounded number of workers for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use kube::Client;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use windlass_machinery::Context;

use crate::apply::Requests;
use crate::cache::{Cache, Command, fetch, watch};
use crate::queue::Queue;
use crate::reconcile::Reconciler;
use crate::{Kind, Operator, crd};

/// How many primaries are worked on at once, unless told otherwise.
const WORKERS: usize = 8;

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
        Self {
            workers: workers.max(1),
            ..self
        }
    }

    /// Installs the definitions of the operators' kinds before starting.
    #[must_use]
    pub fn install_crds(self) -> Self {
        Self {
            install: true,
            ..self
        }
    }

    /// Runs until `shutdown` completes.
    ///
    /// # Errors
    /// If definitions are to be installed and cannot be. Once it runs, nothing stops it but `shutdown`.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        tokio::pin!(shutdown);
        if self.install {
            for operator in &self.operators {
                let requests = Requests::new(self.client.clone(), operator.name().into());
                tokio::select! {
                    () = &mut shutdown => return Ok(()),
                    installed = crd::install(&self.client, &requests, operator) => installed?,
                }
            }
        }
        let (commands, mut inbox) = mpsc::unbounded_channel();
        let controllers: Vec<_> = self
            .operators
            .iter()
            .flat_map(|operator| operator.controllers().iter().cloned())
            .collect();
        let names: BTreeSet<String> = self
            .operators
            .iter()
            .map(|operator| operator.name().into())
            .collect();
        let queue = Arc::new(Queue::new(self.context.clone()));
        let primaries = controllers
            .iter()
            .map(|controller| controller.kind().clone())
            .collect();
        let cache = Arc::new(Cache::new(Arc::clone(&queue), commands, primaries, names.clone()));
        for controller in &controllers {
            cache.open(controller.kind());
            controller.owns().iter().for_each(|kind| cache.open(kind));
        }
        let requests = names
            .into_iter()
            .map(|name| (name.clone(), Requests::new(self.client.clone(), name)))
            .collect();
        let reconciler = Arc::new(Reconciler {
            cache: Arc::clone(&cache),
            queue,
            context: self.context.clone(),
            controllers,
            requests,
            memories: Default::default(),
        });

        // Dropping the set stops all of them.
        let mut tasks = JoinSet::new();
        for _ in 0..self.workers {
            tasks.spawn(Arc::clone(&reconciler).work());
        }
        let mut watches: BTreeMap<Kind, AbortHandle> = BTreeMap::new();
        loop {
            let command = tokio::select! {
                () = &mut shutdown => return Ok(()),
                Some(command) = inbox.recv() => command,
                Some(ended) = tasks.join_next() => {
                    if let Err(error) = ended
                        && error.is_panic()
                    {
                        tracing::error!(%error, "a task of the runtime panicked; its object waits for a restart");
                        tasks.spawn(Arc::clone(&reconciler).work());
                    }
                    continue;
                }
            };
            let (cache, client, context) = (Arc::clone(&cache), self.client.clone(), self.context.clone());
            match command {
                Command::Watch(kind) => {
                    let task = tasks.spawn(watch(cache, client, context, kind.clone()));
                    if let Some(former) = watches.insert(kind, task) {
                        former.abort();
                    }
                }
                Command::Fetch(kind, name) => {
                    tasks.spawn(fetch(cache, client, context, kind, name));
                }
            }
        }
    }
}
