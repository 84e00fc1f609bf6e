//! `windlass node`: the drydock's node for a cluster that has none.

use anyhow::Result;
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
    let client = arguments.target.client().await?;
    eprintln!("running the node {}; Ctrl-C stops", node::NAME);
    node::run(client, Context::live(), options, signal::stop()).await;
    Ok(())
}
