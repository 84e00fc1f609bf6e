//! `windlass run`: operators against a cluster.

use anyhow::{Context as _, Result};
use windlass::{Context, Runtime};

use crate::cluster::Target;
use crate::{catalog, signal};

/// Run operators against a cluster
///
/// They share their watches. The definitions of their kinds must be there; --install-crds installs them.
/// For example: windlass run monocle --install-crds --kubeconfig ~/.kube/config
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    /// The operators
    #[arg(required = true, value_name = "OPERATOR")]
    operators: Vec<String>,
    /// Install or update the definitions of the operators' kinds first
    #[arg(long)]
    install_crds: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let operators = catalog::select(&arguments.operators)?;
    let client = arguments.target.client().await?;
    let mut runtime = Runtime::new(client, Context::live());
    for entry in operators {
        runtime = runtime.host((entry.operator)());
    }
    if arguments.install_crds {
        runtime = runtime.install_crds();
    }
    eprintln!("running {}; Ctrl-C stops", arguments.operators.join(", "));
    runtime.run(signal::stop()).await.context("failed to run the operators")
}
