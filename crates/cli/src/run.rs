//! `windlass run`: operators against a cluster.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use windlass::{Context, LeaseName, ObjectName, Operator, Runtime};
use windlass_grafana_agent::kubelet::KubeletService;

use crate::cluster::Target;
use crate::webhooks::WebhookArguments;
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
    /// Keep a Service with the kubelets of all nodes, for a ServiceMonitor to select; for grafana-agent
    #[arg(long, value_name = "NAMESPACE/NAME")]
    kubelet_service: Option<KubeletService>,
    #[command(flatten)]
    webhooks: WebhookArguments,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let operators = catalog::select(&arguments.operators)?;
    let client = arguments.target.client().await?;
    let lease = lease(&arguments, client.default_namespace());
    let group = ObjectName::new(lease.namespace.clone(), lease.name.clone());
    let mut runtime = Runtime::new(client, Context::live());
    for operator in hosted(&operators, arguments.kubelet_service.as_ref())? {
        runtime = runtime.host(operator);
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
    let (runtime, webhooks) = arguments.webhooks.apply(runtime, &group)?;
    eprintln!("running {}{place}{webhooks}; Ctrl-C stops", arguments.operators.join(", "));
    runtime.run(signal::stop()).await.context("failed to run the operators")
}

/// The operators, with the Service of kubelets where one is asked for.
pub(crate) fn hosted(
    entries: &[&catalog::Entry],
    kubelets: Option<&KubeletService>,
) -> Result<Vec<Operator>> {
    let keepers = entries.iter().filter(|entry| entry.kubelet_service.is_some()).count();
    if kubelets.is_some() && keepers == 0 {
        bail!("none of these operators keeps a Service of kubelets; --kubelet-service is for grafana-agent");
    }
    let operators = entries.iter().map(|entry| match (entry.kubelet_service, kubelets) {
        (Some(with), Some(service)) => with((entry.operator)(), service.clone()),
        _ => (entry.operator)(),
    });
    Ok(operators.collect())
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
