//! `windlass run`: operators against a cluster.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use windlass::{Context, LeaseName, Runtime};

use crate::cluster::Target;
use crate::{catalog, port, signal};

/// Run operators against a cluster
///
/// They share their watches. The definitions of their kinds must be there; --install-crds installs them. Metrics,
/// health, readiness and what `windlass explain` shows are served on --listen.
/// For example: windlass run monocle --install-crds --kubeconfig ~/.kube/config
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    /// The operators
    #[arg(required = true, value_name = "OPERATOR")]
    operators: Vec<String>,
    /// Install or update the definitions of the operators' kinds first; those that others installed are left alone
    #[arg(long)]
    install_crds: bool,
    /// Work only while holding a Lease: of several replicas one works, and the others stand by
    #[arg(long)]
    leader_elect: bool,
    /// Share the objects with the other replicas: each works on its part, and has a Lease
    #[arg(long, conflicts_with = "leader_elect")]
    shards: bool,
    /// The namespace of the Leases; without it, that of the pod or the kubeconfig
    #[arg(long, value_name = "NAME")]
    lease_namespace: Option<String>,
    /// The name of the Lease, the same for all replicas; without it windlass- and the operators' names
    #[arg(long, value_name = "NAME")]
    lease_name: Option<String>,
    /// What this replica is called in its Lease; without it $POD_NAME or $HOSTNAME
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// Where to serve metrics, health and explain; without it 127.0.0.1:9446 if that is free
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let operators = catalog::select(&arguments.operators)?;
    let client = arguments.target.client().await?;
    let lease = lease(&arguments, client.default_namespace());
    let mut runtime = Runtime::new(client, Context::live());
    for entry in operators {
        runtime = runtime.host((entry.operator)());
    }
    if arguments.install_crds {
        runtime = runtime.install_crds();
    }
    if let Some(identity) = identity(&arguments) {
        runtime = runtime.identity(identity);
    }
    if arguments.leader_elect {
        runtime = runtime.leader(lease);
    } else if arguments.shards {
        runtime = runtime.shards(lease);
    }
    let mut place = String::new();
    if let Some(listener) = port::bind(arguments.listen)? {
        place = format!(", metrics and explain on http://{}", listener.local_addr()?);
        runtime = runtime.listen(listener);
    }
    eprintln!("running {}{place}; Ctrl-C stops", arguments.operators.join(", "));
    runtime.run(signal::stop()).await.context("failed to run the operators")
}

fn lease(arguments: &Arguments, namespace: &str) -> LeaseName {
    let name = || format!("windlass-{}", arguments.operators.join("-"));
    LeaseName {
        namespace: arguments.lease_namespace.clone().unwrap_or_else(|| namespace.to_owned()),
        name: arguments.lease_name.clone().unwrap_or_else(name),
    }
}

fn identity(arguments: &Arguments) -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    arguments.identity.clone().or_else(|| variable("POD_NAME")).or_else(|| variable("HOSTNAME"))
}
