//! `windlass grafana-agent`: what the Grafana Agent operator would do, without a cluster.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Subcommand, ValueEnum};
use windlass_grafana_agent::manifests::{Manifests, Type};

use crate::apply;

/// Render configurations of Grafana agents
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print a configuration of the one GrafanaAgent in some manifests, without a cluster
    ///
    /// What is left out of it, and why, goes to standard error. Values of Secrets are part of the configuration.
    ///
    /// For example: windlass grafana-agent render --input manifests/ --type metrics
    Render {
        /// A file of manifests, or a directory with such files; `-` reads standard input
        #[arg(long, value_name = "DIR|FILE")]
        input: PathBuf,
        /// Which of its configurations
        #[arg(long = "type", value_name = "TYPE", default_value = "metrics")]
        which: Which,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Which {
    /// What the agents that scrape get
    Metrics,
    /// What the agents that follow logs get
    Logs,
    /// What the agents that run integrations get
    Integrations,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Command::Render { input, which } = &arguments.command;
    let mut manifests = Manifests::default();
    for file in files(input)? {
        let name = file.display().to_string();
        manifests.add(&apply::text(&name)?, &name)?;
    }
    let rendered = manifests.render(match which {
        Which::Metrics => Type::Metrics,
        Which::Logs => Type::Logs,
        Which::Integrations => Type::Integrations,
    })?;
    for trouble in &rendered.troubles {
        eprintln!("{} {}/{}: {}", trouble.kind, trouble.namespace, trouble.name, trouble.message);
    }
    rendered.faults.iter().for_each(|fault| eprintln!("{fault}"));
    print!("{}", rendered.yaml);
    Ok(())
}

/// The file, or the manifests of the directory and those below it, in order.
fn files(input: &Path) -> Result<Vec<PathBuf>> {
    if !input.is_dir() {
        return Ok(vec![input.to_owned()]);
    }
    let mut files = Vec::new();
    collect(input, &mut files)?;
    files.sort();
    if files.is_empty() {
        bail!("there are no manifests (*.yaml, *.yml, *.json) in {}", input.display());
    }
    Ok(files)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("failed to read {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        let is_manifest = path
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known));
        if path.is_dir() {
            collect(&path, files)?;
        } else if is_manifest {
            files.push(path);
        }
    }
    Ok(())
}
