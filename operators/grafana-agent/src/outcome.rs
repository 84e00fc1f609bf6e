//! All that an agent comes to: its configurations, what is copied for them, and what was left out.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use windlass::Halt;

use crate::assets::{Assets, Lookup};
use crate::config::{Common, Findings, Runs, Scene};
use crate::discovery::{Discovery, Find, discover};
use crate::document::Document;
use crate::kinds::{GrafanaAgent, Integration, LeftOut, Subsystem};
use crate::text::Text;

/// What an agent comes to.
#[derive(Clone)]
pub struct Outcome {
    /// The metrics, if there is an instance of them.
    pub metrics: Option<Configuration>,
    /// The logs, if there is an instance of them.
    pub logs: Option<Configuration>,
    /// The integrations that run once, if there is one.
    pub once: Option<Configuration>,
    /// The integrations that run on every node, if there is one.
    pub nodes: Option<Configuration>,
    /// The integrations that are in.
    pub integrations: Vec<Integration>,
    /// What the agent's own Secret holds: copies of keys that configurations name.
    pub copies: BTreeMap<String, ByteString>,
    /// The names of those copies, by the path of what was copied.
    pub names: BTreeMap<String, String>,
    /// Instances of metrics and logs.
    pub instances: (usize, usize),
    /// What is wrong otherwise.
    pub faults: Vec<String>,
}

/// One configuration.
#[derive(Clone)]
pub struct Configuration {
    /// As YAML. It may hold values of Secrets.
    pub text: Text,
    /// What came of it otherwise.
    pub findings: Findings,
}

impl Outcome {
    /// Finds and renders everything.
    ///
    /// # Errors
    /// While something is not loaded.
    pub fn of(agent: &GrafanaAgent, source: &(impl Find + Lookup)) -> Result<Self, Halt> {
        rendered(agent, source, |found, assets| Self::render(agent, found, assets))
    }

    fn render(agent: &GrafanaAgent, found: &Discovery, assets: &Assets<'_>) -> Self {
        let configuration = |there: bool, render: &dyn Fn(&Scene<'_>) -> Document| {
            there.then(|| {
                let scene = Scene::new(agent, assets);
                let document = render(&scene);
                Configuration { text: scene.text_of(&document), findings: scene.into_findings() }
            })
        };
        let some = |runs: Runs| found.integrations.iter().any(|integration| runs.include(integration));
        let metrics = configuration(!found.metrics.is_empty(), &|scene| scene.metrics(found));
        let logs = configuration(!found.logs.is_empty(), &|scene| scene.logs(found));
        let once = configuration(some(Runs::Once), &|scene| scene.integrations(found, Runs::Once));
        let nodes = configuration(some(Runs::OnNodes), &|scene| scene.integrations(found, Runs::OnNodes));
        let usable = crate::config::usable_integrations(assets, &found.integrations);
        let usable = found.integrations.iter().zip(usable).filter(|(_, outcome)| outcome.is_ok());
        Self {
            metrics,
            logs,
            once,
            nodes,
            integrations: usable.map(|(integration, _)| integration.clone()).collect(),
            copies: assets.copies(),
            names: assets.names(),
            instances: (found.metrics.len(), found.logs.len()),
            faults: found.faults.clone(),
        }
    }

    /// All that was left out, and what is wrong with what is in nevertheless.
    #[must_use]
    pub fn troubles(&self) -> Vec<&LeftOut> {
        let all = [&self.metrics, &self.logs, &self.once, &self.nodes];
        let findings = all.into_iter().flatten().map(|configuration| &configuration.findings);
        let mut troubles: Vec<&LeftOut> =
            findings.flat_map(|findings| findings.left_out.iter().chain(&findings.complaints)).collect();
        troubles.sort();
        troubles.dedup();
        troubles
    }

    /// The counts of metrics.
    #[must_use]
    pub fn metrics_counts(&self) -> Option<Subsystem> {
        counts(Some(self.instances.0), &[&self.metrics])
    }

    /// The counts of logs.
    #[must_use]
    pub fn logs_counts(&self) -> Option<Subsystem> {
        counts(Some(self.instances.1), &[&self.logs])
    }

    /// The counts of integrations.
    #[must_use]
    pub fn integrations_counts(&self) -> Option<Subsystem> {
        counts(None, &[&self.once, &self.nodes])
    }
}

/// What `render` makes of all that an agent selects. Where two references would share a name in the copies, it is asked
/// once more, with names that tell them apart.
///
/// # Errors
/// While something is not loaded.
pub(crate) fn rendered<T>(
    agent: &GrafanaAgent,
    source: &(impl Find + Lookup),
    render: impl Fn(&Discovery, &Assets<'_>) -> T,
) -> Result<T, Halt> {
    let mut names = BTreeMap::new();
    loop {
        let assets = Assets::named(source, names.clone());
        let common = Common::of(&Scene::new(agent, &assets), &names);
        let found = discover(source, agent, &common)?;
        let rendered = render(&found, &assets);
        if let Some(halt) = assets.halt() {
            return Err(halt);
        }
        match assets.collisions() {
            Some(others) => names = others,
            None => return Ok(rendered),
        }
    }
}

fn counts(instances: Option<usize>, configurations: &[&Option<Configuration>]) -> Option<Subsystem> {
    let findings: Vec<&Findings> =
        configurations.iter().filter_map(|one| one.as_ref()).map(|one| &one.findings).collect();
    let included = findings.iter().map(|findings| findings.included).sum();
    let left_out = findings.iter().map(|findings| findings.left_out.len()).sum();
    (!findings.is_empty()).then(|| Subsystem::new(instances, included, left_out))
}
