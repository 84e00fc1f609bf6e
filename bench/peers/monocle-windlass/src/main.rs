//! The Monocle operator as a program of its own, as its peers are: what a user of the framework ships.

use std::path::PathBuf;

use clap::Parser;
use http::header::{HeaderValue, USER_AGENT};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use windlass::{Context, Runtime};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Run the Monocle operator written with Windlass
#[derive(Parser)]
struct Arguments {
    /// The cluster
    #[arg(long)]
    kubeconfig: PathBuf,
}

// An operator waits most of its time; one thread does, and hands nothing over to others.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let read = Kubeconfig::read_from(&arguments.kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    config.headers.push((USER_AGENT, HeaderValue::from_static("monocle-windlass")));
    Runtime::new(Client::try_from(config)?, Context::live())
        .host(windlass_monocle::operator())
        .run(async { tokio::signal::ctrl_c().await.unwrap_or_default() })
        .await?;
    Ok(())
}
