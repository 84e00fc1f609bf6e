//! Which cluster a command talks to.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use http::header::{HeaderValue, USER_AGENT};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// How commands name a cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    /// The kubeconfig to use; without it $KUBECONFIG, ./windlass.kubeconfig or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Who asks, as servers see it.
const USER: &str = concat!("windlass/", env!("CARGO_PKG_VERSION"));

/// Where `windlass up` leaves its kubeconfig unless told otherwise.
pub(crate) const DEFAULT_KUBECONFIG: &str = "windlass.kubeconfig";

impl Target {
    /// A client of the cluster.
    pub(crate) async fn client(&self) -> Result<Client> {
        Client::try_from(self.config().await?).context("failed to set up a client")
    }

    /// Where the cluster is, and as whom it is asked.
    pub(crate) async fn config(&self) -> Result<Config> {
        let local = PathBuf::from(DEFAULT_KUBECONFIG);
        let file = match &self.kubeconfig {
            Some(file) => Some(file.clone()),
            None if std::env::var_os("KUBECONFIG").is_none() && local.exists() => Some(local),
            None => None,
        };
        let mut config = match file {
            Some(file) => {
                let read = Kubeconfig::read_from(&file)
                    .with_context(|| format!("failed to read kubeconfig {}", file.display()))?;
                Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
                    .await
                    .with_context(|| format!("failed to use kubeconfig {}", file.display()))?
            }
            None => Config::infer().await.context(
                "found no cluster: start one with `windlass up`, or name a kubeconfig with --kubeconfig",
            )?,
        };
        // By this audit logs tell who asked.
        config.headers.push((USER_AGENT, HeaderValue::from_static(USER)));
        Ok(config)
    }
}
