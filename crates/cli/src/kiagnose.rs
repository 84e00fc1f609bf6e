//! The programs of the Kiagnose image: the operator, and the checkup controller that it installs.
//!
//! They are for containers and stay out of the help; people use `windlass run`.

use anyhow::{Context as _, Result};
use windlass::{Context, Operator, Runtime};

use crate::cluster::Target;
use crate::signal;

/// The names by which this program is called where an image holds it under them, each that of a command.
pub(crate) const PROGRAMS: &[&str] = &["kiagnose", "checkup-controller", "echo-checkup"];

/// One of the programs of the Kiagnose image
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
}

/// Installs and keeps the checkup controller.
pub(crate) async fn operator(arguments: Arguments) -> Result<()> {
    run(arguments, windlass_kiagnose::operator()).await
}

/// Runs Checkups.
pub(crate) async fn controller(arguments: Arguments) -> Result<()> {
    run(arguments, windlass_kiagnose::controller()).await
}

async fn run(arguments: Arguments, operator: Operator) -> Result<()> {
    let client = arguments.target.client().await?;
    let runtime = Runtime::new(client, Context::live()).host(operator);
    runtime.run(signal::stop()).await.context("failed to run")
}
