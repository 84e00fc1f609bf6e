//! `windlass drydock`: the embedded control plane alone.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use windlass_drydock::controllers::Selection;
use windlass_drydock::serve::{self, Endpoint};
use windlass_drydock::{Drydock, Options, Snapshot};

use crate::cluster::DEFAULT_KUBECONFIG;
use crate::images::ImageArguments;
use crate::signal;

/// Serve the drydock alone: an embedded Kubernetes control plane
///
/// It listens on 127.0.0.1 only and prints one line when it is ready. For developing and testing, never for
/// production: everything is in memory and gone when it stops.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The port to listen on; 0 takes any free one
    #[arg(long, default_value_t = 0, value_name = "N")]
    port: u16,
    /// Where to write the kubeconfig
    #[arg(long, value_name = "FILE", default_value = DEFAULT_KUBECONFIG)]
    kubeconfig: PathBuf,
    /// Which controllers run: `*` for all, `foo` for foo, `-foo` for all but foo with `*`, '' for none
    #[arg(long, value_name = "LIST", default_value = "*", allow_hyphen_values = true)]
    controllers: String,
    /// Start from a snapshot of a drydock, instead of from a new cluster
    #[arg(long, value_name = "FILE")]
    restore: Option<PathBuf>,
    /// Write a snapshot when stopped; it holds the cluster's Secrets and private keys
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    #[command(flatten)]
    images: ImageArguments,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let controllers = Selection::parse(&arguments.controllers)?;
    let mut options = Options { controllers, ..Options::live() };
    if let Some(file) = &arguments.restore {
        let bytes = std::fs::read(file).with_context(|| format!("failed to read {}", file.display()))?;
        let snapshot =
            Snapshot::from_bytes(&bytes, &options.context).with_context(|| file.display().to_string())?;
        options.from = Some(snapshot);
    }
    arguments.images.apply(&options.node)?;
    let (drydock, endpoint) = start(options, arguments.port, &arguments.kubeconfig).await?;
    println!(
        "drydock ready on https://{} with kubeconfig {}",
        endpoint.address,
        arguments.kubeconfig.display()
    );
    signal::stop().await;
    drop(endpoint);
    let snapshot = drydock.snapshot();
    drydock.stop().await;
    if let Some(file) = &arguments.snapshot {
        write_private(file, &snapshot.to_bytes()?)
            .with_context(|| format!("failed to write snapshot {}", file.display()))?;
    }
    Ok(())
}

/// Starts a drydock, serves it and writes its kubeconfig.
pub(crate) async fn start(options: Options, port: u16, kubeconfig: &Path) -> Result<(Drydock, Endpoint)> {
    let drydock = Drydock::start(options).await?;
    let endpoint = serve::serve(&drydock, port).await?;
    write_private(kubeconfig, endpoint.kubeconfig.as_bytes())
        .with_context(|| format!("failed to write kubeconfig {}", kubeconfig.display()))?;
    Ok((drydock, endpoint))
}

/// Writes a file that only its owner can read, whole or not at all.
fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder)?;
    }
    let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
    name.push(format!(".{}", std::process::id()));
    let temporary = path.with_file_name(name);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(&temporary)?.write_all(content)?;
    std::fs::rename(&temporary, path)
}
