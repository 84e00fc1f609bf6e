//! The commands and their help.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::{
    apply, delete, drydock, explain, get, grafana_agent, kiagnose, manifests, node, olm, output, plan, run,
    telemetry, up,
};

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
    Manifests(manifests::Arguments),
    Bundle(olm::bundle::Arguments),
    Catalog(olm::catalog::Arguments),
    Drydock(drydock::Arguments),
    Node(node::Arguments),
    Get(get::Arguments),
    Apply(apply::Arguments),
    Delete(delete::Arguments),
    GrafanaAgent(grafana_agent::Arguments),
    #[command(hide = true)]
    CheckupController(kiagnose::Arguments),
    /// The echo checkup, as the container of a Checkup's Job
    #[command(hide = true)]
    EchoCheckup,
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
    let arguments = Arguments::parse_from(words(std::env::args_os()));
    let telemetry = match telemetry::start() {
        Ok(telemetry) => telemetry,
        Err(error) => {
            eprintln!("error: {}", output::describe(&error));
            return ExitCode::FAILURE;
        }
    };
    let outcome = match arguments.command {
        Command::Up(arguments) => up::run(arguments).await,
        Command::Run(arguments) => run::run(arguments).await.map(|()| ExitCode::SUCCESS),
        Command::Plan(arguments) => plan::run(arguments).await,
        Command::Explain(arguments) => explain::run(arguments).await.map(|()| ExitCode::SUCCESS),
        Command::Manifests(arguments) => manifests::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Bundle(arguments) => olm::bundle::run(arguments).await,
        Command::Catalog(arguments) => olm::catalog::run(arguments).await,
        Command::Drydock(arguments) => drydock::run(arguments).await.map(|()| ExitCode::SUCCESS),
        Command::Node(arguments) => node::run(arguments).await.map(|()| ExitCode::SUCCESS),
        Command::Get(arguments) => get::run(arguments).await.map(|()| ExitCode::SUCCESS),
        Command::Apply(arguments) => apply::run(arguments).await.map(|()| ExitCode::SUCCESS),
        Command::Delete(arguments) => delete::run(arguments).await.map(|()| ExitCode::SUCCESS),
        Command::GrafanaAgent(arguments) => grafana_agent::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::CheckupController(arguments) => {
            kiagnose::controller(arguments).await.map(|()| ExitCode::SUCCESS)
        }
        Command::EchoCheckup => {
            windlass_checkup_echo::run().await.map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "windlass", &mut script);
            output::print(script).map(|()| ExitCode::SUCCESS)
        }
    };
    telemetry.finish().await;
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {}", output::describe(&error));
        ExitCode::FAILURE
    })
}

/// The command line. Called by the name of one of the programs that an image holds, this program is that.
pub(crate) fn words(words: impl IntoIterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut words = words.into_iter();
    let called = words.next().unwrap_or_default();
    let name = Path::new(&called).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stands_for = kiagnose::PROGRAMS.iter().find(|(program, _)| *program == name).map(|(_, words)| *words);
    let command = stands_for.unwrap_or_default().iter().map(OsString::from);
    std::iter::once(called).chain(command).chain(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        Arguments::command().debug_assert();
    }
}
