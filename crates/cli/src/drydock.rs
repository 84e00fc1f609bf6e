//! `windlass drydock`: the embedded control plane alone.

use std::path::PathBuf;

use anyhow::Context as _;
use windlass_drydock::controllers::Selection;
use windlass_drydock::{Drydock, Options, serve};

/// Serves the drydock, an embedded Kubernetes control plane, on 127.0.0.1.
///
/// For developing and testing: everything is in memory and gone when it stops.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The port to listen on; 0 takes any free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Where to write the kubeconfig
    #[arg(long, value_name = "FILE", default_value = "windlass.kubeconfig")]
    kubeconfig: PathBuf,
    /// Which controllers run: `*` for all, `foo` for foo, `-foo` for not foo, '' for none
    #[arg(long, value_name = "LIST", default_value = "*", allow_hyphen_values = true)]
    controllers: String,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let controllers = Selection::parse(&arguments.controllers)?;
    let drydock = Drydock::start(Options { controllers, ..Options::live() }).await?;
    let endpoint = serve::serve(&drydock, arguments.port).await?;
    std::fs::write(&arguments.kubeconfig, &endpoint.kubeconfig)
        .with_context(|| format!("failed to write {}", arguments.kubeconfig.display()))?;
    println!("drydock ready on https://{}, kubeconfig {}", endpoint.address, arguments.kubeconfig.display());
    tokio::signal::ctrl_c().await?;
    drydock.stop().await;
    Ok(())
}
