//! The `windlass` program: run, look, plan, package. Each command is a module.

mod apply;
mod catalog;
mod cluster;
mod command;
mod delete;
mod drydock;
mod explain;
mod get;
mod grafana_agent;
mod images;
mod kiagnose;
mod manifest;
mod manifests;
mod node;
mod olm;
mod output;
mod plan;
mod port;
mod progress;
mod run;
mod serving;
mod signal;
mod telemetry;
mod up;
mod webhooks;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    command::main().await
}
