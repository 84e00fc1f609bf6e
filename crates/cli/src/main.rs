//! The `windlass` program.

mod drydock;

use clap::{Parser, Subcommand};

/// Builds and runs Kubernetes operators.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Drydock(drydock::Arguments),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    match Arguments::parse().command {
        Command::Drydock(arguments) => drydock::run(arguments).await,
    }
}
