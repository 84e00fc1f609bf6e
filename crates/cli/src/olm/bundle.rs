//! `windlass bundle`: an OLM bundle of an operator, and whether a bundle is good.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use serde_json::Value;
use windlass::olm::{File, Package, Release};

use super::version::{Version, check_range};
use super::{directory, validate};
use crate::catalog;
use crate::manifests::Deployed;

/// Write an OLM bundle of an operator, or check one
///
/// A directory with all that the Operator Lifecycle Manager needs of one version: the definitions, the permissions that the
/// operator needs and no others, its Deployment, and what a catalog shows of it. It is checked as `bundle validate` does.
/// The same version of the same code gives the same files. For example:
/// windlass bundle kiagnose --version 0.1.0 --image quay.io/example/windlass:0.1.0
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_version_flag = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The operator
    #[arg(value_name = "OPERATOR", required = true)]
    operator: Option<String>,
    /// The version of the bundle, such as 1.2.3
    #[arg(long, value_name = "X.Y.Z", required = true)]
    version: Option<String>,
    /// Where to write it; without it bundles/PACKAGE/VERSION
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The channels that it is published in, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "candidate")]
    channels: Vec<String>,
    /// The channel of those who choose none; without it the first of --channels
    #[arg(long, value_name = "NAME")]
    default_channel: Option<String>,
    /// The version before it, or the name of that bundle: who has that one gets this one
    #[arg(long, value_name = "VERSION")]
    replaces: Option<String>,
    /// Versions, or names of bundles, that are passed over on the way to it, separated by commas
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    skips: Vec<String>,
    /// The versions from which one gets to it in one step, such as ">=1.0.0 <1.2.3"
    #[arg(long, value_name = "RANGE")]
    skip_range: Option<String>,
    /// When it was made, in RFC 3339, for catalogs to show; without it nothing is said
    #[arg(long, value_name = "TIME")]
    created_at: Option<String>,
    #[command(flatten)]
    deployed: Deployed,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check a bundle by the rules of OLM and OperatorHub
    ///
    /// Each violation names the file, the field and the way out. Exits with 1 if one of them is an error; --strict counts
    /// warnings as errors. For example: windlass bundle validate bundles/kiagnose-operator/0.1.0
    Validate {
        /// The directory of the bundle
        #[arg(value_name = "DIR", required_unless_present = "rules")]
        directory: Option<PathBuf>,
        /// Count warnings as errors
        #[arg(long)]
        strict: bool,
        /// Print the rules instead
        #[arg(long)]
        rules: bool,
    },
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode> {
    match &arguments.command {
        Some(Command::Validate { rules: true, .. }) => {
            print!("{}", validate::rules());
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Validate { directory, strict, .. }) => {
            check(directory.as_deref().unwrap_or(Path::new(".")), *strict).await
        }
        None => {
            let (default, files) = files(&arguments)?;
            let output = arguments.output.clone().unwrap_or(default);
            directory::write_bundle(&output, &files)?;
            let place = output.display();
            eprintln!("wrote {} files to {place}", files.len());
            let outcome = check(&output, false).await?;
            eprintln!("next: docker build -f {place}/bundle.Dockerfile -t BUNDLE_IMAGE {place}");
            eprintln!("then: windlass catalog add {place} --bundle-image BUNDLE_IMAGE");
            Ok(outcome)
        }
    }
}

async fn check(directory: &Path, strict: bool) -> Result<ExitCode> {
    let report = validate::validate(directory::read(directory)?).await?;
    print!("{report}");
    let good = report.errors() == 0 && (!strict || report.warnings() == 0);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where a bundle goes by default, and its files.
fn files(arguments: &Arguments) -> Result<(PathBuf, BTreeMap<String, File>)> {
    let name = arguments.operator.as_deref().unwrap_or_default();
    let version = arguments.version.as_deref().unwrap_or_default();
    Version::parse(version).map_err(anyhow::Error::msg).context("--version")?;
    let entries = catalog::select(&[name.to_owned()])?;
    let Some(entry) = entries.first() else { bail!("there is no operator {name:?}") };
    let (operator, setup) = arguments.deployed.resolve_bundled(name)?;
    let kinds = (entry.kinds)();
    let samples = samples(&[entry.samples, entry.examples].concat())?;
    let package = Package {
        operator: &operator,
        kinds: &kinds,
        setup: &setup,
        listing: entry.listing,
        samples: &samples,
    };
    let files = package.bundle(&release(arguments, version, &package)?);
    Ok((Path::new("bundles").join(operator.name()).join(version), files))
}

fn release(arguments: &Arguments, version: &str, package: &Package<'_>) -> Result<Release> {
    // A version stands for the bundle of that version.
    let named = |text: &String| match Version::parse(text) {
        Ok(_) => package.name(text),
        Err(_) => text.clone(),
    };
    if let Some(range) = &arguments.skip_range {
        check_range(range).map_err(anyhow::Error::msg).context("--skip-range")?;
    }
    let default = arguments.default_channel.as_ref().or(arguments.channels.first());
    if let Some(default) = default.filter(|default| !arguments.channels.contains(default)) {
        bail!("--default-channel {default} is none of --channels {}", arguments.channels.join(","));
    }
    let replaces = arguments.replaces.as_ref().map(named);
    if replaces.as_deref() == Some(&package.name(version)) {
        bail!("--replaces names the bundle itself");
    }
    Ok(Release {
        version: version.to_owned(),
        channels: arguments.channels.clone(),
        default_channel: default.cloned(),
        replaces,
        skips: arguments.skips.iter().map(named).collect(),
        skip_range: arguments.skip_range.clone(),
        created_at: arguments.created_at.clone(),
    })
}

fn samples(texts: &[&str]) -> Result<Vec<Value>> {
    let mut samples = Vec::new();
    for text in texts {
        samples.extend(serde_saphyr::from_multiple::<Value>(text).context("a sample is no YAML")?);
    }
    Ok(samples)
}

#[cfg(test)]
pub(super) mod tests;
