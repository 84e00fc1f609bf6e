//! `windlass catalog`: a file-based catalog of bundles, as `opm` reads it.
//!
//! `DIR/PACKAGE/catalog.yaml` holds the documents of a package: the package, its channels, its bundles. They are made from
//! bundles; nothing is said twice.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use serde_json::{Value, json};

use super::facts::Facts;
use super::version::Version;
use super::{directory, graph, validate};

const FILE: &str = "catalog.yaml";

/// Keep a catalog of OLM bundles
///
/// A catalog is a directory with a file for each package: its channels and the way up through its bundles. Built into an
/// image, OLM installs and upgrades from it.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a bundle to a catalog, which is made if it is not there
    ///
    /// Package, channels and what the bundle replaces are what the bundle says. Nothing is written if the way up through
    /// the bundles would be broken. For example:
    /// windlass catalog add bundles/kiagnose-operator/0.1.0 --bundle-image quay.io/example/kiagnose-bundle:v0.1.0
    Add {
        /// The directory of the bundle
        #[arg(value_name = "BUNDLE")]
        bundle: PathBuf,
        /// The image that was built of the bundle
        #[arg(long, value_name = "IMAGE")]
        bundle_image: String,
        /// The directory of the catalog
        #[arg(long, value_name = "DIR", default_value = "catalog")]
        catalog: PathBuf,
    },
    /// Check that a catalog is whole, and that one way leads up through each channel
    ///
    /// Exits with 1 if not. For example: windlass catalog validate catalog
    Validate {
        /// The directory of the catalog
        #[arg(value_name = "DIR", default_value = "catalog")]
        catalog: PathBuf,
    },
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode> {
    match arguments.command {
        Command::Add { bundle, bundle_image, catalog } => add(&bundle, &bundle_image, &catalog).await,
        Command::Validate { catalog } => {
            let problems = graph::problems(&read(&catalog)?);
            problems.iter().for_each(|problem| println!("error: {problem}"));
            if problems.is_empty() {
                println!("{} is good", catalog.display());
            }
            Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

async fn add(bundle: &Path, image: &str, catalog: &Path) -> Result<ExitCode> {
    let files = directory::read(bundle)?;
    let (report, facts) = validate::facts(files).await?;
    if report.errors() > 0 {
        print!("{report}");
        bail!("{} is no good bundle; the catalog is as it was", bundle.display());
    }
    let facts = facts.with_context(|| format!("{} has no ClusterServiceVersion", bundle.display()))?;
    let path = catalog.join(&facts.package).join(FILE);
    let mut documents = if path.exists() { documents(&path)? } else { Vec::new() };
    if !insert(&mut documents, &facts, image)? {
        println!("{} is in {} already", facts.name(), path.display());
        return Ok(ExitCode::SUCCESS);
    }
    let problems = graph::problems(&documents);
    if !problems.is_empty() {
        bail!("the catalog is as it was, since it would be broken:\n  {}", problems.join("\n  "));
    }
    directory::write(&path, &crate::manifests::yaml(&documents)?)?;
    let dockerfile = dockerfile_of(catalog);
    if !dockerfile.exists() {
        directory::write(&dockerfile, &dockerfile_text(catalog))?;
    }
    println!("added {} to {}", facts.name(), path.display());
    let context =
        dockerfile.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    eprintln!("next: docker build -f {} -t CATALOG_IMAGE {}", dockerfile.display(), context.display());
    Ok(ExitCode::SUCCESS)
}

/// Adds a bundle to the documents of its package; whether it was not there yet.
fn insert(documents: &mut Vec<Value>, facts: &Facts, image: &str) -> Result<bool> {
    let document = facts.document(image);
    let same = |known: &&Value| known["schema"] == "olm.bundle" && known["name"] == document["name"];
    match documents.iter().find(same) {
        Some(known) if *known == document => return Ok(false),
        Some(_) => bail!(
            "{} is in the catalog with other content: what is published stays as it is, so raise the version",
            facts.name()
        ),
        None => {}
    }
    let version = facts.version()?;
    let newest = versions(documents).iter().all(|known| *known < version);
    let position = documents.iter().position(|known| known["schema"] == "olm.package");
    match position.and_then(|index| documents.get_mut(index)) {
        // What people see of a package is what its newest version says.
        Some(package) if newest => *package = package_document(facts, package["defaultChannel"].as_str()),
        Some(_) => {}
        None => documents.insert(0, package_document(facts, None)),
    }
    for name in &facts.channels {
        let is_it = |known: &&mut Value| known["schema"] == "olm.channel" && known["name"] == name.as_str();
        match documents.iter_mut().find(is_it).and_then(|channel| channel["entries"].as_array_mut()) {
            Some(entries) => entries.push(facts.entry()),
            None => {
                let channel = json!({"schema": "olm.channel", "package": facts.package, "name": name, "entries": [facts.entry()]});
                // Before the bundles, where one looks for it.
                let at = documents.iter().position(|known| known["schema"] == "olm.bundle");
                documents.insert(at.unwrap_or(documents.len()), channel);
            }
        }
    }
    documents.push(document);
    Ok(true)
}

fn package_document(facts: &Facts, default: Option<&str>) -> Value {
    let default = facts.default_channel.as_deref().or(default).or(facts.channels.first().map(String::as_str));
    let mut package = json!({
        "schema": "olm.package", "name": facts.package, "defaultChannel": default,
        "description": facts.spec("description"),
    });
    let icon = &facts.spec("icon")[0];
    if !icon.is_null() {
        package["icon"] = icon.clone();
    }
    package
}

fn versions(documents: &[Value]) -> Vec<Version> {
    let bundles = documents.iter().filter(|known| known["schema"] == "olm.bundle");
    let properties = bundles.flat_map(|bundle| bundle["properties"].as_array().into_iter().flatten());
    let of_package = properties.filter(|property| property["type"] == "olm.package");
    of_package.filter_map(|property| Version::parse(property["value"]["version"].as_str()?).ok()).collect()
}

/// The documents of all packages.
fn read(catalog: &Path) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for name in directory::read(catalog)?.into_keys() {
        if [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end)) {
            all.extend(documents(&catalog.join(name))?);
        }
    }
    if all.is_empty() {
        bail!("there is no catalog in {}", catalog.display());
    }
    Ok(all)
}

fn documents(path: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).with_context(|| format!("{} is no YAML", path.display()))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Beside the directory, as `opm generate dockerfile` has it.
fn dockerfile_of(catalog: &Path) -> PathBuf {
    let mut name = catalog.file_name().unwrap_or_default().to_owned();
    name.push(".Dockerfile");
    catalog.with_file_name(name)
}

fn dockerfile_text(catalog: &Path) -> String {
    let name = catalog.file_name().and_then(|name| name.to_str()).unwrap_or("catalog");
    format!(
        "FROM quay.io/operator-framework/opm:latest AS builder\n\
         ADD {name} /configs\n\
         RUN [\"/bin/opm\", \"serve\", \"/configs\", \"--cache-dir=/tmp/cache\", \"--cache-only\"]\n\n\
         FROM quay.io/operator-framework/opm:latest\n\
         ENTRYPOINT [\"/bin/opm\"]\n\
         CMD [\"serve\", \"/configs\", \"--cache-dir=/tmp/cache\"]\n\
         COPY --from=builder /configs /configs\n\
         COPY --from=builder /tmp/cache /tmp/cache\n\
         LABEL operators.operatorframework.io.index.configs.v1=/configs\n"
    )
}

#[cfg(test)]
mod tests;
