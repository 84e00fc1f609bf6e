//! Measures operators for Monocles from outside: each on a fresh API server of the same kind, with the same objects.
//!
//! What is counted: CPU time and peak memory of the operator's process, the time until every Monocle is ready,
//! requests as the server has them, those made at rest, and writes after a restart. See `bench/README.md`.

mod contender;
mod life;
mod limits;
mod server;

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;

use contender::Contender;
use life::Figures;

/// Compare operators for Monocles
#[derive(Parser)]
struct Arguments {
    /// An operator: its name, which its user agent begins with, and its program; the first is held to the limits
    #[arg(long = "operator", value_name = "NAME=PROGRAM", required = true, value_parser = Contender::parse)]
    operators: Vec<Contender>,
    /// How many Monocles
    #[arg(long, default_value_t = 2000)]
    count: usize,
    /// Seconds at rest
    #[arg(long, default_value_t = 30)]
    rest: u64,
    /// How many unrelated Secrets the first operator is tried with; 0 leaves that out
    #[arg(long, default_value_t = 100_000)]
    secrets: usize,
    /// A folder with kube-apiserver, etcd and kube-controller-manager, to be used in place of the drydock
    #[arg(long, value_name = "BIN")]
    real: Option<PathBuf>,
    /// Where to write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut all: Vec<Figures> = Vec::new();
    for (place, contender) in arguments.operators.iter().enumerate() {
        let secrets = if place == 0 { arguments.secrets } else { 0 };
        let plan = life::Plan { count: arguments.count, rest: arguments.rest, secrets };
        let server = server::start(arguments.real.as_deref()).await?;
        let figures = life::run(contender, &server, &plan)
            .await
            .with_context(|| format!("failed to measure {}", contender.name));
        server.stop().await;
        all.push(figures?);
    }
    limits::table(&all);
    if let Some(file) = &arguments.json {
        let text = serde_json::to_string_pretty(&all)?;
        std::fs::write(file, text).with_context(|| format!("failed to write {}", file.display()))?;
    }
    let missed = limits::missed(&all);
    missed.iter().for_each(|limit| eprintln!("missed: {limit}"));
    ensure!(missed.is_empty(), "{} limits were missed", missed.len());
    Ok(())
}
