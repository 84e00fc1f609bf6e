//! The API server that operators are measured on: the drydock in this process, or a real one beside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use http::header::{HeaderValue, USER_AGENT};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::ObjectMeta;
use kube::{Client, Config};
use serde::Deserialize;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use windlass_drydock::node::{self, NodeOptions};
use windlass_drydock::serve::{self, Endpoint};
use windlass_drydock::{Drydock, Options};
use windlass_machinery::Context;

/// Requests by verb.
pub(crate) type Verbs = BTreeMap<String, u64>;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/control-plane.sh");
const PARALLEL: usize = 64;

/// A server that runs.
pub(crate) struct Server {
    state: PathBuf,
    kubeconfig: PathBuf,
    client: Client,
    kind: Kind,
}

enum Kind {
    Drydock { drydock: Box<Drydock>, _endpoint: Endpoint },
    Real { node: JoinHandle<()>, stop: watch::Sender<bool> },
}

/// Starts the drydock, or what is in the folder.
pub(crate) async fn start(real: Option<&Path>) -> Result<Server> {
    let state = std::env::temp_dir().join(format!("windlass-bench-{}", std::process::id()));
    std::fs::create_dir_all(&state)?;
    match real {
        None => start_drydock(state).await,
        Some(bin) => start_real(state, bin).await,
    }
}

async fn start_drydock(state: PathBuf) -> Result<Server> {
    let drydock = Drydock::start(Options::live()).await?;
    let endpoint = serve::serve(&drydock, 0).await?;
    let kubeconfig = state.join("kubeconfig");
    std::fs::write(&kubeconfig, &endpoint.kubeconfig)?;
    let client = drydock.client("bench");
    Ok(Server {
        state,
        kubeconfig,
        client,
        kind: Kind::Drydock { drydock: Box::new(drydock), _endpoint: endpoint },
    })
}

async fn start_real(state: PathBuf, bin: &Path) -> Result<Server> {
    let started = script().arg("start").arg(bin).arg(&state).env("AUDIT", "1").stdin(Stdio::null()).status();
    ensure!(started.await?.success(), "failed to start the control plane in {}", bin.display());
    let kubeconfig = state.join("kubeconfig");
    let read = Kubeconfig::read_from(&kubeconfig)?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    let client = |agent: &str| {
        let mut config = config.clone();
        config.headers.push((USER_AGENT, HeaderValue::from_str(agent)?));
        Ok::<_, anyhow::Error>(Client::try_from(config)?)
    };
    let (own, shared) = (client("bench")?, client("node-of-bench")?);
    let (stop, mut stopped) = watch::channel(false);
    let node = tokio::spawn(node::run(shared, Context::live(), NodeOptions::default(), async move {
        let _ = stopped.wait_for(|stop| *stop).await;
    }));
    Ok(Server { state, kubeconfig, client: own, kind: Kind::Real { node, stop } })
}

fn script() -> Command {
    let mut command = Command::new("bash");
    command.arg(SCRIPT);
    command
}

impl Server {
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The requests so far of clients whose user agent begins so.
    pub(crate) fn requests(&self, agent: &str) -> Result<Verbs> {
        match &self.kind {
            Kind::Drydock { drydock, .. } => {
                let mut verbs = Verbs::new();
                for client in drydock.record().clients().iter().filter(|client| client.starts_with(agent)) {
                    for (verb, count) in drydock.record().counts(client) {
                        *verbs.entry(verb.to_owned()).or_default() += count;
                    }
                }
                Ok(verbs)
            }
            Kind::Real { .. } => audited(&self.state.join("audit.log"), agent),
        }
    }

    /// How many watches such clients have begun.
    pub(crate) fn watches(&self, agent: &str) -> Result<u64> {
        Ok(self.requests(agent)?.get("watch").copied().unwrap_or(0))
    }

    /// Makes Secrets that are nothing to anybody, of a size as tokens and certificates have.
    pub(crate) async fn add_secrets(&self, count: usize) -> Result<()> {
        let data = ByteString(vec![b'x'; 1024]);
        let makes = (0..count).map(|number| {
            let secrets: Api<Secret> = Api::namespaced(self.client(), "default");
            let secret = Secret {
                metadata: ObjectMeta { name: Some(format!("unrelated-{number}")), ..ObjectMeta::default() },
                data: Some([("token".to_owned(), data.clone())].into()),
                ..Secret::default()
            };
            async move { secrets.create(&PostParams::default(), &secret).await }
        });
        let all = futures::stream::iter(makes).buffer_unordered(PARALLEL);
        all.try_for_each(|_| std::future::ready(Ok(()))).await.context("failed to make Secrets")
    }

    pub(crate) async fn stop(self) {
        match self.kind {
            Kind::Drydock { drydock, .. } => drydock.stop().await,
            Kind::Real { node, stop } => {
                stop.send_replace(true);
                let _ = node.await;
                let _ = script().arg("stop").arg(&self.state).status().await;
            }
        }
        let _ = std::fs::remove_dir_all(&self.state);
    }
}

/// One line of the audit log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Audited {
    verb: String,
    stage: String,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: Option<serde::de::IgnoredAny>,
}

fn audited(log: &Path, agent: &str) -> Result<Verbs> {
    let text = std::fs::read_to_string(log).with_context(|| format!("failed to read {}", log.display()))?;
    let mut verbs = Verbs::new();
    for line in text.lines() {
        // The last line may be half written.
        let Ok(event) = serde_json::from_str::<Audited>(line) else { continue };
        // Watches are counted when they begin, everything else when it is over.
        let counted = if event.verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
        if event.stage == counted && event.object_ref.is_some() && event.user_agent.starts_with(agent) {
            *verbs.entry(event.verb).or_default() += 1;
        }
    }
    Ok(verbs)
}
