//! `windlass node`: the drydock's node for a cluster that has none.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use kube::{Client, Config};
use windlass::Context;
use windlass_drydock::node::{self, NodeOptions};

use crate::cluster::Target;
use crate::images::ImageArguments;
use crate::signal;

/// Be the node of a cluster that has none, such as a kube-apiserver that was started for tests
///
/// Pods are bound to it and simulated, or run as programs of this machine. Never for production. For example:
/// windlass node --kubeconfig state/kubeconfig
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    images: ImageArguments,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let options = NodeOptions::default();
    arguments.images.apply(&options)?;
    let config = arguments.target.config().await?;
    // Programs find the API where the node does.
    options.api.set(address(&config).await?);
    let client = Client::try_from(config).context("failed to set up a client")?;
    // A node without a cluster would wait in silence.
    let version = client.apiserver_version().await.context("failed to reach the cluster")?;
    eprintln!("running the node {} of Kubernetes {}; Ctrl-C stops", node::NAME, version.git_version);
    node::run(client, Context::live(), options, signal::stop()).await;
    Ok(())
}

/// The address of the API server.
async fn address(config: &Config) -> Result<SocketAddr> {
    let host = config.cluster_url.host().context("the kubeconfig names no server")?.trim_matches(['[', ']']);
    let port = config.cluster_url.port_u16().unwrap_or(443);
    let mut found = tokio::net::lookup_host((host, port))
        .await
        .with_context(|| format!("failed to look up the server {host}"))?;
    found.next().with_context(|| format!("the server {host} has no address"))
}
