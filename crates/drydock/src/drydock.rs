//! A whole control plane in one value.

use std::sync::Arc;

use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response};
use kube::Client;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tower::ServiceExt as _;
use windlass_machinery::Context;

use crate::api::auth::User;
use crate::api::options::WriteOptions;
use crate::api::registry::LoadError;
use crate::api::server::{Body, Server};
use crate::api::write::Write;
use crate::api::write::body::without_type;
use crate::controllers::{self, Selection};
use crate::faults::Faults;
use crate::node::{ApiAddress, NodeOptions};
use crate::pki::{Authority, PkiError};
use crate::record::Record;
use crate::snapshot::Snapshot;
use crate::webhook::Webhooks;

const BOOTSTRAP: &str = include_str!("../data/bootstrap.json");

/// How a drydock starts.
#[derive(Debug)]
pub struct Options {
    /// Time, randomness and ids.
    pub context: Context,
    /// Which controllers run.
    pub controllers: Selection,
    /// How the node behaves.
    pub node: NodeOptions,
    /// What to start from, instead of from what a new cluster holds.
    pub from: Option<Snapshot>,
}

impl Options {
    /// Real time and all controllers. Call it within a tokio runtime.
    #[must_use]
    pub fn live() -> Self {
        Self {
            context: Context::live(),
            controllers: Selection::all(),
            node: NodeOptions::default(),
            from: None,
        }
    }

    /// From a snapshot, with its time and randomness, and all controllers. Call it within a tokio runtime.
    #[must_use]
    pub fn restored(snapshot: &Snapshot) -> Self {
        Self { context: snapshot.context(), from: Some(snapshot.clone()), ..Self::live() }
    }

    /// Seeded, with all controllers. Call it within a tokio runtime.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { context: Context::seeded(seed), ..Self::live() }
    }
}

/// Why a drydock did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its tables.
    #[error(transparent)]
    Tables(#[from] LoadError),
    /// Its certificates.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// What a new cluster holds.
    #[error("failed to create what a new cluster holds: {0}")]
    Bootstrap(String),
}

/// A running control plane. Dropping it stops its controllers and ends the processes of its pods.
#[derive(Debug)]
pub struct Drydock {
    server: Server,
    authority: Arc<Authority>,
    api: ApiAddress,
    stop: watch::Sender<bool>,
    controllers: JoinHandle<()>,
}

impl Drydock {
    /// Starts a control plane.
    ///
    /// # Errors
    /// When it cannot be, which a build of the crate never has.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let (server, authority) = match &options.from {
            Some(snapshot) => snapshot.unpack(options.context.clone()),
            None => {
                let server = Server::new(options.context.clone())?;
                bootstrap(&server).await?;
                (server, Arc::new(Authority::new(&options.context)?))
            }
        };
        let (stop, mut stopped) = watch::channel(false);
        let clients = server.clone();
        let api = options.node.api.clone();
        let settings = controllers::Options {
            root_ca: authority.certificate_pem(),
            node: options.node,
            logs: server.logs.clone(),
        };
        let controllers = tokio::spawn(controllers::run(
            move |name: &str| {
                client_of(&clients, &User::master(&format!("system:{name}")), &controllers::user_agent(name))
            },
            options.context,
            options.controllers,
            settings,
            async move {
                let _ = stopped.wait_for(|stop| *stop).await;
            },
        ));
        Ok(Self { server, authority, api, stop, controllers })
    }

    /// A client in this process, with no socket, that may do everything. `user_agent` is the name it is recorded
    /// under, and the owner of the fields it sets.
    #[must_use]
    pub fn client(&self, user_agent: &str) -> Client {
        client_of(&self.server, &User::master("admin"), user_agent)
    }

    /// A client in this process for a user, who may do what the roles in the cluster say; a service account is
    /// [`User::service_account`].
    #[must_use]
    pub fn client_as(&self, user: &User, user_agent: &str) -> Client {
        client_of(&self.server, user, user_agent)
    }

    /// The server itself, to call without a client.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Where pods that really run find the API.
    #[must_use]
    pub fn api_address(&self) -> &ApiAddress {
        &self.api
    }

    /// What signs the cluster's certificates.
    #[must_use]
    pub fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// Who asked for what.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.server.record
    }

    /// What goes wrong, where a test wants it to.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.server.faults
    }

    /// The way to webhooks, to serve some of them in this process.
    #[must_use]
    pub fn webhooks(&self) -> &Webhooks {
        &self.server.webhooks
    }

    /// The source of time and ids.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.server.context
    }

    /// The whole cluster as it is now: objects, history, keys, time and randomness. What containers run and wrote is
    /// no part of it.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.server, &self.authority)
    }

    /// Goes back to a snapshot of this cluster while it runs. Watches are told of what comes, goes and differs; time
    /// and revisions go on. Gives the number of changes that were made for it.
    pub fn restore(&self, snapshot: &Snapshot) -> usize {
        snapshot.put_back(&self.server)
    }

    /// Stops the controllers and waits for them.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if let Err(error) = (&mut self.controllers).await {
            tracing::warn!(%error, "the controllers did not stop in order");
        }
    }
}

impl Drop for Drydock {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

fn client_of(server: &Server, user: &User, user_agent: &str) -> Client {
    let user = Arc::new(user.clone());
    let agent = HeaderValue::from_str(user_agent).unwrap_or_else(|_| HeaderValue::from_static("windlass"));
    let service = server.clone().map_request(move |mut request: Request<kube::client::Body>| {
        request.extensions_mut().insert(Arc::clone(&user));
        request.headers_mut().insert(USER_AGENT, agent.clone());
        request
    });
    let service = tower::service_fn(move |request| {
        let service = service.clone();
        async move { service.oneshot(request).await as Result<Response<Body>, _> }
    });
    Client::new(service, "default")
}

/// Creates what a new cluster holds.
async fn bootstrap(server: &Server) -> Result<(), StartError> {
    let failed = |error: String| StartError::Bootstrap(error);
    let objects: Vec<Value> = serde_json::from_str(BOOTSTRAP).map_err(|error| failed(error.to_string()))?;
    let user = User::master("system:apiserver");
    let registry = server.registry();
    for object in objects {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let (version, kind) = (text("apiVersion"), text("kind"));
        let Some(resource) = registry.of_kind(&version, &kind) else {
            return Err(failed(format!("there is no {kind} in {version}")));
        };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let mut options = WriteOptions::internal();
        if resource.group == "flowcontrol.apiserver.k8s.io" {
            options.manager = "api-priority-and-fairness-config-producer-v1".to_owned();
        }
        let mut write = Write {
            server,
            resource,
            subresource: None,
            namespace: &namespace,
            user: &user,
            options,
            warnings: Vec::new(),
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if let Err(failure) = write.create(without_type(object)).await {
            return Err(failed(format!("{kind} {name}: {}", failure.message)));
        }
    }
    Ok(())
}
