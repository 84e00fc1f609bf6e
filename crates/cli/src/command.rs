//! The commands and their help.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::{apply, delete, drydock, explain, get, grafana_agent, plan, run, up};

/// Build and run Kubernetes operators.
///
/// `windlass up` starts everything on this machine, with nothing but this program: an embedded control plane
/// (the drydock), the operators and their samples.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::Arguments),
    Run(run::Arguments),
    Plan(plan::Arguments),
    Explain(explain::Arguments),
    Drydock(drydock::Arguments),
    Get(get::Arguments),
    Apply(apply::Arguments),
    Delete(delete::Arguments),
    GrafanaAgent(grafana_agent::Arguments),
    /// Print the completions of a shell
    ///
    /// For example: windlass completions bash > /etc/bash_completion.d/windlass
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Runs the command that the arguments name.
pub(crate) async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let outcome = match arguments.command {
        Command::Up(arguments) => up::run(arguments).await,
        Command::Run(arguments) => run::run(arguments).await.map(|()| ExitCode::SUCCESS),
        Command::Plan(arguments) => plan::run(arguments).await,
        Command::Explain(arguments) => explain::run(arguments).await.map(|()| ExitCode::SUCCESS),
        Command::Drydock(arguments) => drydock::run(arguments).await.map(|()| ExitCode::SUCCESS),
        Command::Get(arguments) => get::run(arguments).await.map(|()| ExitCode::SUCCESS),
        Command::Apply(arguments) => apply::run(arguments).await.map(|()| ExitCode::SUCCESS),
        Command::Delete(arguments) => delete::run(arguments).await.map(|()| ExitCode::SUCCESS),
        Command::GrafanaAgent(arguments) => grafana_agent::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Arguments::command(), "windlass", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        Arguments::command().debug_assert();
    }
}
