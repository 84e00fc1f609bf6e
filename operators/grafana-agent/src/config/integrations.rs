//! The integrations of an agent.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Scene, entry};
use crate::assets::{Assets, Reference};
use crate::document::{Document, Fields};
use crate::fault::Fault;
use crate::kinds::{Integration, Named as _};

/// Where integrations run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// All of them, wherever they run.
    Anywhere,
    /// Those that run once.
    Once,
    /// Those that run on every node.
    OnNodes,
}

impl Runs {
    /// Whether an integration runs so.
    #[must_use]
    pub fn include(self, integration: &Integration) -> bool {
        let nodes = integration.spec.kind.all_nodes == Some(true);
        match self {
            Self::Anywhere => true,
            Self::Once => !nodes,
            Self::OnNodes => nodes,
        }
    }
}

/// All integrations are in lists, also those of which there is but one.
pub(super) fn render(scene: &Scene<'_>, found: &[Integration], runs: Runs) -> Fields {
    let off = Fields::new().with("autoscrape", Fields::new().with("enable", false));
    let mut lists: BTreeMap<String, Vec<Document>> = BTreeMap::new();
    let usable = usable(scene.assets, found);
    for (integration, outcome) in found.iter().zip(usable) {
        let outcome = outcome.map_err(|fault| entry(integration, fault));
        if runs.include(integration) && scene.include(&outcome).is_some() {
            let config = Document::from_json(Value::Object(integration.spec.config.clone()));
            let config = config.unwrap_or_else(|| Fields::new().into());
            lists.entry(format!("{}_configs", integration.spec.name)).or_default().push(config);
        }
    }
    let fields = Fields::new().with("metrics", off);
    lists.into_iter().fold(fields, |fields, (name, list)| fields.with(name, list))
}

/// What is wrong with each of them, among the others.
pub(crate) fn usable(assets: &Assets<'_>, found: &[Integration]) -> Vec<Result<(), Fault>> {
    let mut taken = BTreeSet::new();
    let check = |integration: &Integration| {
        let spec = &integration.spec;
        if spec.name.is_empty() {
            return Err(Fault::new("BadIntegration", "name: is empty"));
        }
        for secret in &spec.secrets {
            assets.path(Reference::secret(integration.space(), secret))?;
        }
        for map in &spec.config_maps {
            assets.path(Reference::config_map(integration.space(), map))?;
        }
        if spec.kind.unique == Some(true) && !taken.insert(spec.name.clone()) {
            let message =
                format!("another Integration of this agent is the one {} that there may be", spec.name);
            return Err(Fault::new("NotUnique", message));
        }
        Ok(())
    };
    found.iter().map(check).collect()
}
