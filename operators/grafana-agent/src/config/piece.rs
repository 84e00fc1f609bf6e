//! What one monitor or PodLogs comes to, written by itself: editing one of a thousand writes that one again.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use windlass::{Halt, Object};

use super::{Scene, entry, pod_logs, pod_monitor, probe, service_monitor};
use crate::assets::{Assets, Lookup, Used};
use crate::document::{Document, Fields, Variables};
use crate::fault::Fault;
use crate::kinds::{
    GrafanaAgent, GrafanaAgentSpec, LeftOut, LogsSubsystem, MetricsSubsystem, PodLogs, PodMonitor, Probe,
    ServiceMonitor,
};
use crate::text::Part;

/// How far to the right `scrape_configs` of an instance stand.
pub(super) const INDENT: usize = 4;

/// An object that comes to scrape configurations.
pub trait Collected: Object {
    /// Its scrape configurations.
    ///
    /// # Errors
    /// If it has to be left out.
    fn render(&self, scene: &Scene<'_>) -> Result<Vec<Document>, Fault>;
}

impl Collected for ServiceMonitor {
    fn render(&self, scene: &Scene<'_>) -> Result<Vec<Document>, Fault> {
        service_monitor::render(scene, self)
    }
}

impl Collected for PodMonitor {
    fn render(&self, scene: &Scene<'_>) -> Result<Vec<Document>, Fault> {
        pod_monitor::render(scene, self)
    }
}

impl Collected for Probe {
    fn render(&self, scene: &Scene<'_>) -> Result<Vec<Document>, Fault> {
        probe::render(scene, self).map(|document| vec![document])
    }
}

impl Collected for PodLogs {
    fn render(&self, scene: &Scene<'_>) -> Result<Vec<Document>, Fault> {
        pod_logs::render(scene, self).map(|document| vec![document])
    }
}

/// What one object comes to; nothing if it is being deleted.
pub struct Piece(pub(super) Option<Result<Part, LeftOut>>, BTreeMap<String, Used>);

impl Piece {
    /// What an object comes to.
    ///
    /// # Errors
    /// While a Secret or ConfigMap that it names is not loaded.
    pub fn of<K: Collected>(lookup: &dyn Lookup, object: &K, common: &Common) -> Result<Self, Halt> {
        #[cfg(test)]
        tests::count();
        if object.meta().deletion_timestamp.is_some() {
            return Ok(Self(None, BTreeMap::new()));
        }
        let assets = Assets::named(lookup, common.names.clone());
        let rendered = object.render(&Scene::of_one(common, &assets));
        if let Some(halt) = assets.halt() {
            return Err(halt);
        }
        let written = rendered.map(|documents| Document::items(documents, INDENT, &common.variables));
        Ok(Self(Some(written.map_err(|fault| entry(object, fault))), assets.used()))
    }

    /// The keys of Secrets and ConfigMaps that it names.
    #[must_use]
    pub fn used(&self) -> &BTreeMap<String, Used> {
        &self.1
    }
}

/// All of an agent that pieces depend on. Agents that do not differ in it share their pieces.
pub struct Common {
    pub(super) agent: GrafanaAgent,
    pub(super) api_server: Fields,
    pub(super) variables: Variables,
    names: BTreeMap<String, String>,
    /// All of it, as a text to compare it by.
    key: String,
}

impl Common {
    /// That of an agent, with other names for copies that would share one.
    #[must_use]
    pub fn of(scene: &Scene<'_>, names: &BTreeMap<String, String>) -> Arc<Self> {
        let (metrics, logs) = (&scene.agent.spec.metrics, &scene.agent.spec.logs);
        let spec = GrafanaAgentSpec {
            metrics: MetricsSubsystem {
                remote_write: Vec::new(),
                replicas: None,
                external_labels: BTreeMap::new(),
                metrics_external_label_name: None,
                replica_external_label_name: None,
                instance_selector: None,
                instance_namespace_selector: None,
                ..metrics.clone()
            },
            logs: LogsSubsystem {
                clients: Vec::new(),
                logs_external_label_name: None,
                instance_selector: None,
                instance_namespace_selector: None,
                ..logs.clone()
            },
            ..GrafanaAgentSpec::default()
        };
        let (api_server, variables) = (scene.api_server.clone(), scene.variables.clone());
        let server = Document::from(api_server.clone()).to_text(&variables);
        let spec_text = serde_json::to_string(&spec).unwrap_or_default();
        let key = format!("{spec_text}\n{server}\n{variables:?}\n{names:?}");
        let agent = GrafanaAgent::new("", spec);
        Arc::new(Self { agent, api_server, variables, names: names.clone(), key })
    }
}

impl PartialEq for Common {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Common {}

impl Hash for Common {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

#[cfg(test)]
mod tests;
