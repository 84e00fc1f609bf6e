//! A bundle of an operator for the Operator Lifecycle Manager, made from the operator itself: what OLM installs
//! (definitions, permissions, Deployment), and what a catalog shows of it. Pure: files as trees and texts.
//!
//! The format is `registry+v1`: `manifests/` with a ClusterServiceVersion, `metadata/annotations.yaml`, the
//! configuration of the scorecard and a `bundle.Dockerfile`. The same input gives the same files.
//!
//! OLM's own webhooks (`webhookdefinitions`) are not used: OLM would make the certificates and hand them over as files,
//! while an operator keeps its own. The Service of its webhooks is in the bundle, and it registers them by itself.

mod csv;
mod descriptors;
mod metadata;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::manifests::{self, Setup};
use crate::{ObjectName, Operator};

/// What a catalog shows of an operator, and what its code cannot tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// What people call it.
    pub display_name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it is and does, in Markdown.
    pub description: &'static str,
    /// Where catalogs file it; OperatorHub has a list of categories.
    pub categories: &'static [&'static str],
    /// How much it does by itself, in OperatorHub's words: from `Basic Install` to `Auto Pilot`.
    pub capabilities: &'static str,
    /// What it is found by.
    pub keywords: &'static [&'static str],
    /// How far it is, such as `alpha`.
    pub maturity: &'static str,
    /// The oldest Kubernetes that it runs on.
    pub min_kube_version: &'static str,
    /// Who publishes it: name and URL.
    pub provider: (&'static str, &'static str),
    /// Who looks after it: names and addresses.
    pub maintainers: &'static [(&'static str, &'static str)],
    /// Where to read on: names and URLs.
    pub links: &'static [(&'static str, &'static str)],
    /// The source.
    pub repository: &'static str,
    /// A drawing of its own, as SVG.
    pub icon: &'static str,
    /// Images that it deploys by default: names and images.
    pub images: &'static [(&'static str, &'static str)],
    /// Groups of kinds that it works with and that another package defines: OLM sees to that package.
    pub required_groups: &'static [&'static str],
}

/// One version of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// The version, as in `1.2.3`.
    pub version: String,
    /// The channels that it is published in.
    pub channels: Vec<String>,
    /// The channel of those who choose none.
    pub default_channel: Option<String>,
    /// The release that it is the next of, as in `monocle-operator.v1.2.2`.
    pub replaces: Option<String>,
    /// Releases that nobody needs to have had on the way to it.
    pub skips: Vec<String>,
    /// The versions from which one can go to it in one step, as in `>=1.0.0 <1.2.3`.
    pub skip_range: Option<String>,
    /// When it was made. Without it, the same code gives the same files at any time.
    pub created_at: Option<String>,
}

/// An operator that is to be bundled.
#[derive(Clone, Copy)]
pub struct Package<'a> {
    /// The operator. Its name is the package's.
    pub operator: &'a Operator,
    /// The operator whose kinds come with the bundle: mostly the same; another where the first one installs it.
    pub kinds: &'a Operator,
    /// How it is deployed. The namespace is the one that is proposed; the arguments must not name it, since OLM chooses
    /// it.
    pub setup: &'a Setup,
    /// What a catalog shows.
    pub listing: &'a Listing,
    /// Objects to try it with. Those of its own kinds are shown as examples.
    pub samples: &'a [Value],
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq)]
pub enum File {
    /// Of one document, in YAML or JSON.
    Tree(Value),
    /// Any other.
    Text(String),
}

impl Package<'_> {
    /// The name of a release, which is that of its ClusterServiceVersion.
    #[must_use]
    pub fn name(&self, version: &str) -> String {
        format!("{}.v{version}", self.operator.name())
    }

    /// The files of a release, by their paths.
    #[must_use]
    pub fn bundle(&self, release: &Release) -> BTreeMap<String, File> {
        let name = self.operator.name();
        let mut files = BTreeMap::new();
        let mut manifest = |file: String, tree: Value| {
            files.insert(format!("manifests/{file}"), File::Tree(tree));
        };
        manifest(format!("{name}.clusterserviceversion.yaml"), csv::csv(self, release));
        for definition in self.owned() {
            let of = |field: &str| definition["spec"][field].as_str().unwrap_or_default().to_owned();
            let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
            manifest(format!("{}_{plural}.yaml", of("group")), definition.clone());
        }
        if self.setup.webhooks {
            // OLM puts it in the namespace of the operator.
            let service = manifests::service(&ObjectName::new("", name));
            manifest(format!("{name}_v1_service.yaml"), service);
        }
        let annotations = metadata::annotations(name, release);
        files.insert("bundle.Dockerfile".into(), File::Text(metadata::dockerfile(&annotations)));
        files.insert("metadata/annotations.yaml".into(), File::Tree(json!({"annotations": annotations})));
        files.insert("tests/scorecard/config.yaml".into(), File::Tree(metadata::scorecard()));
        files
    }

    /// The definitions that come with the bundle.
    fn owned(&self) -> Vec<Value> {
        let (_, owned) = self.definitions();
        owned
    }

    /// The definitions that another package has to bring, and those that come with the bundle.
    fn definitions(&self) -> (Vec<Value>, Vec<Value>) {
        let all = manifests::definitions(self.kinds).into_iter();
        all.partition(|definition| {
            definition["spec"]["group"]
                .as_str()
                .is_some_and(|group| self.listing.required_groups.contains(&group))
        })
    }
}

#[cfg(test)]
mod tests;
