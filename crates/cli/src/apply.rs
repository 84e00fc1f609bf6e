//! `windlass apply`: manifests into a cluster.

use std::io::Read as _;

use anyhow::{Context as _, Result};

use crate::cluster::Target;
use crate::manifest;

/// Apply manifests by server-side apply
///
/// For example: windlass apply -f monocle.yaml
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    /// The files to apply; `-` reads standard input
    #[arg(short, long = "filename", value_name = "FILE", required = true)]
    files: Vec<String>,
    /// The namespace of objects that name none
    #[arg(short, long, default_value = "default")]
    namespace: String,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let client = arguments.target.client().await?;
    for file in &arguments.files {
        for object in manifest::read(&text(file)?, file)? {
            let outcome = manifest::apply(&client, &object, &arguments.namespace).await?;
            println!("{} {outcome}", manifest::title(&object));
        }
    }
    Ok(())
}

/// The text of a file, or of standard input.
pub(crate) fn text(file: &str) -> Result<String> {
    if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("failed to read standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(file).with_context(|| format!("failed to read {file}"))
}
