//! Runs the Grafana Agent operator as a process of its own over many monitors, and measures it from outside.

// Measuring is what the clock is for here.
#![allow(clippy::disallowed_methods)]

mod process;
mod scene;
mod secret;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::process::Process;
use crate::scene::Scene;
use crate::secret::Follower;

/// Measure the Grafana Agent operator
#[derive(Parser)]
struct Arguments {
    /// The cluster to run it against; its namespaces bench-* are made anew
    kubeconfig: PathBuf,
    /// The `windlass` program
    #[arg(long, default_value = "target/release/windlass")]
    windlass: PathBuf,
    /// ServiceMonitors, of two endpoints each
    #[arg(long, default_value_t = 1000)]
    monitors: usize,
    /// The namespaces that they are in
    #[arg(long, default_value_t = 50)]
    namespaces: usize,
    /// GrafanaAgents that share all of them, in a second part; 0 leaves it out
    #[arg(long, default_value_t = 500)]
    agents: usize,
}

/// How long nothing may happen for things to be settled.
const CALM: Duration = Duration::from_secs(3);
const EDITS: usize = 20;
const BURST: usize = 100;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let read = Kubeconfig::read_from(&arguments.kubeconfig).context("failed to read the kubeconfig")?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let scene = Scene::set(client, arguments.monitors, arguments.namespaces).await?;
    let jobs = 2 * arguments.monitors;

    let mut follower = Follower::of(&scene, "bench").await?;
    let began = Instant::now();
    let process = Process::start(&arguments.windlass, &arguments.kubeconfig)?;
    follower.until(|text| text.matches("job_name: serviceMonitor/").count() == jobs).await?;
    row("first complete configuration", millis(began.elapsed()));
    row("  CPU until then", millis(process.cpu()?));
    tokio::time::sleep(CALM).await;
    row("  CPU until all is calm", millis(process.cpu()?));
    row("  peak memory", format!("{} MB", process.peak_memory()?));
    row("  configuration", format!("{} kB, {} kB packed", follower.plain / 1024, follower.packed / 1024));

    let mut times = Vec::new();
    let cpu = process.cpu()?;
    for edit in 0..EDITS {
        let began = Instant::now();
        let mark = scene.edit(edit * 7, edit).await?;
        follower.until(|text| text.contains(&mark)).await?;
        times.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    times.sort();
    row(
        "one edit, to the Secret",
        format!("{} (worst {})", millis(times[EDITS / 2]), millis(times[EDITS - 1])),
    );
    row("  CPU of one", millis((process.cpu()? - cpu) / EDITS as u32));

    tokio::time::sleep(CALM).await;
    follower.catch_up().await?;
    let (cpu, writes) = (process.cpu()?, follower.seen);
    let began = Instant::now();
    let mut marks = Vec::new();
    for edit in 0..BURST {
        marks.push(scene.edit(edit * 9, 1000 + edit).await?);
    }
    let made = began.elapsed();
    follower.until(|text| marks.iter().all(|mark| text.contains(mark))).await?;
    row(
        &format!("burst of {BURST} edits"),
        format!("{} (the edits took {})", millis(began.elapsed()), millis(made)),
    );
    row("  CPU", millis(process.cpu()? - cpu));
    row("  writes of the Secret", (follower.seen - writes).to_string());
    row("  peak memory", format!("{} MB", process.peak_memory()?));

    if arguments.agents > 0 {
        let cpu = process.cpu()?;
        let began = Instant::now();
        let last = scene.agents(arguments.agents).await?;
        let made = began.elapsed();
        let all = |text: &str| text.matches("job_name: serviceMonitor/").count() == jobs;
        secret::until_all(&scene, &last, all).await?;
        row(
            &format!("{} agents that share them", arguments.agents),
            format!("{} (making them took {})", millis(began.elapsed()), millis(made)),
        );
        row("  CPU", millis(process.cpu()? - cpu));
        row("  peak memory", format!("{} MB", process.peak_memory()?));
        tokio::time::sleep(CALM).await;
        let cpu = process.cpu()?;
        let began = Instant::now();
        let mark = scene.edit(3, 5000).await?;
        secret::until_all(&scene, &last, |text| text.contains(&mark)).await?;
        row("  one edit, to all Secrets", millis(began.elapsed()));
        row("  CPU", millis(process.cpu()? - cpu));
        row("  memory now", format!("{} MB", process.memory()?));
    }
    Ok(())
}

fn row(what: &str, figure: String) {
    println!("{what:32} {figure}");
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
