//! `windlass run`: operators against a cluster.

use anyhow::{Context as _, Result, bail};
use windlass::{Context, ObjectName, Operator, Runtime};
use windlass_grafana_agent::kubelet::KubeletService;

use crate::cluster::Target;
use crate::serving::ServingArguments;
use crate::webhooks::WebhookArguments;
use crate::{catalog, signal, up};

/// Run operators against a cluster
///
/// They share their watches. The definitions of their kinds must be there; --install-crds installs them. Metrics,
/// health, readiness and what `windlass explain` shows are served on --listen.
///
/// For example: windlass run monocle --install-crds --kubeconfig ~/.kube/config
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    /// The operators
    #[arg(required = true, value_name = "OPERATOR")]
    operators: Vec<String>,
    /// Install or update the definitions of the operators' kinds first; those that others installed are left alone
    ///
    /// What else an operator has to find is made too, where it is not there: for kiagnose a namespace and the role that
    /// owns what it installs.
    #[arg(long)]
    install_crds: bool,
    /// Run as installed from an OLM bundle: the definitions came with it, and are left alone
    #[arg(long, conflicts_with = "install_crds")]
    bundled: bool,
    #[command(flatten)]
    serving: ServingArguments,
    /// Keep a Service with the kubelets of all nodes, for a ServiceMonitor to select; for grafana-agent
    #[arg(long, value_name = "NAMESPACE/NAME")]
    kubelet_service: Option<KubeletService>,
    #[command(flatten)]
    webhooks: WebhookArguments,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let operators = catalog::select(&arguments.operators)?;
    let client = arguments.target.client().await?;
    let names: Vec<&str> = operators.iter().map(|entry| entry.name).collect();
    let lease = arguments.serving.lease(client.default_namespace(), &names);
    let group = ObjectName::new(lease.namespace.clone(), lease.name.clone());
    let mut runtime = Runtime::new(client.clone(), Context::live());
    for operator in hosted(&operators, arguments.bundled, arguments.kubelet_service.as_ref())? {
        runtime = runtime.host(operator);
    }
    if arguments.install_crds {
        up::prepare(&operators, &client).await?;
        runtime = runtime.install_crds();
    }
    let (runtime, place) = arguments.serving.apply(runtime, lease)?;
    let (runtime, webhooks) = arguments.webhooks.apply(runtime, &group)?;
    eprintln!("running {}{place}{webhooks}; Ctrl-C stops", arguments.operators.join(", "));
    let port = runtime.port();
    runtime.run(signal::stop()).await.context("failed to run the operators")?;
    // Whoever stops it because nothing happened should learn why.
    let readiness = port.get("/readyz");
    if readiness.status != 200 {
        eprintln!("it was not ready when it was stopped:\n{}", readiness.body.trim_end());
    }
    Ok(())
}

/// The operators, with the Service of kubelets where one is asked for.
pub(crate) fn hosted(
    entries: &[&catalog::Entry],
    bundled: bool,
    kubelets: Option<&KubeletService>,
) -> Result<Vec<Operator>> {
    let keepers = entries.iter().filter(|entry| entry.kubelet_service.is_some()).count();
    if kubelets.is_some() && keepers == 0 {
        bail!("none of these operators keeps a Service of kubelets; --kubelet-service is for grafana-agent");
    }
    let operators = entries.iter().map(|entry| {
        let operator = entry.bundled.filter(|_| bundled).unwrap_or(entry.operator)();
        match (entry.kubelet_service, kubelets) {
            (Some(with), Some(service)) => with(operator, service.clone()),
            _ => operator,
        }
    });
    Ok(operators.collect())
}
