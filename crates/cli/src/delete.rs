//! `windlass delete`: objects out of a cluster.

use anyhow::{Context as _, Result, bail};
use kube::api::DeleteParams;
use kube::{Client, ResourceExt as _};

use crate::cluster::Target;
use crate::{apply, get, manifest};

/// Delete objects, with all that belongs to them
///
/// For example: windlass delete monocle monocle-sample
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    /// The type of the objects, by any of its names
    #[arg(required_unless_present = "files")]
    kind: Option<String>,
    /// The objects' names
    names: Vec<String>,
    /// Delete what these files describe instead
    #[arg(short, long = "filename", value_name = "FILE", conflicts_with = "kind")]
    files: Vec<String>,
    /// The namespace
    #[arg(short, long, default_value = "default")]
    namespace: String,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let client = arguments.target.client().await?;
    for file in &arguments.files {
        for object in manifest::read(&apply::text(file)?, file)? {
            let (api, _) = manifest::api(&client, &object, &arguments.namespace).await?;
            api.delete(&object.name_any(), &DeleteParams::background())
                .await
                .with_context(|| format!("failed to delete {}", manifest::title(&object)))?;
            println!("{} deleted", manifest::title(&object));
        }
    }
    match &arguments.kind {
        Some(kind) => by_name(&client, kind, &arguments).await,
        None => Ok(()),
    }
}

async fn by_name(client: &Client, kind: &str, arguments: &Arguments) -> Result<()> {
    if arguments.names.is_empty() {
        bail!("name the {kind} to delete, such as `windlass delete {kind} my-{kind}`");
    }
    let resource = get::find(client, kind).await?;
    let api = get::api(client, &resource, Some(&arguments.namespace));
    for name in &arguments.names {
        api.delete(name, &DeleteParams::background())
            .await
            .with_context(|| format!("failed to delete {kind} {name}"))?;
        println!("{}/{name} deleted", resource.0.kind.to_lowercase());
    }
    Ok(())
}
