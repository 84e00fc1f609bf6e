//! Which objects an agent has: found by selectors, through up to three hops.
//!
//! A label selector that is absent selects nothing, an empty one everything; a namespace selector that is absent
//! means the parent's namespace, an empty one all. Whatever is read here is watched, so each object that enters or
//! leaves, and each label of a namespace, plans the agent again.
//!
//! Instances and integrations are few, and are looked at as a whole. Monitors and PodLogs may be thousands: each is
//! turned into a [`Piece`] by itself.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;
use windlass::{Halt, Object, Query, World};

use crate::config::{Collected, Common, Piece};
use crate::kinds::{
    GrafanaAgent, Integration, LogsInstance, MetricsInstance, Named, PodLogs, PodMonitor, Probe,
    ServiceMonitor,
};

/// Where objects are found.
pub trait Find {
    /// The objects that are chosen, ordered by namespace and name.
    ///
    /// # Errors
    /// While they are not loaded.
    fn select<K: Object>(&self, choice: &Choice) -> Result<Vec<K>, Halt>;

    /// What those that are chosen come to, ordered by namespace and name.
    ///
    /// # Errors
    /// While they, or what they name, are not loaded.
    fn pieces<K: Collected>(&self, choice: &Choice, common: &Arc<Common>) -> Result<Vec<Arc<Piece>>, Halt>;
}

impl Find for World {
    fn select<K: Object>(&self, choice: &Choice) -> Result<Vec<K>, Halt> {
        World::select(self, &choice.query())
    }

    fn pieces<K: Collected>(&self, choice: &Choice, common: &Arc<Common>) -> Result<Vec<Arc<Piece>>, Halt> {
        self.derive(&choice.query(), common, |world: &World, object: &K, common: &Arc<Common>| {
            Piece::of(world, object, common)
        })
    }
}

/// Which objects are selected.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Those with such labels.
    pub labels: Selector,
    /// In these namespaces.
    pub namespaces: Namespaces,
}

/// In which namespaces objects are selected.
#[derive(Clone, Debug)]
pub enum Namespaces {
    /// In that of the object that selects.
    Parent(String),
    /// In all.
    All,
    /// In those with such labels.
    Labelled(Selector),
}

/// An agent and all that it selects, ordered by namespace and name.
#[derive(Clone, Default)]
pub struct Discovery {
    /// The instances of metrics.
    pub metrics: Vec<Metrics>,
    /// The instances of logs.
    pub logs: Vec<Logs>,
    /// The integrations.
    pub integrations: Vec<Integration>,
    /// Selectors that make no sense, with the object that has them.
    pub faults: Vec<String>,
}

/// An instance of metrics, and what it selects.
#[derive(Clone)]
pub struct Metrics {
    /// The instance.
    pub instance: MetricsInstance,
    /// What its ServiceMonitors, PodMonitors and Probes come to.
    pub pieces: Vec<Arc<Piece>>,
}

/// An instance of logs, and what it selects.
#[derive(Clone)]
pub struct Logs {
    /// The instance.
    pub instance: LogsInstance,
    /// What its PodLogs come to.
    pub pieces: Vec<Arc<Piece>>,
}

/// All that an agent selects.
///
/// # Errors
/// While something is not loaded.
pub fn discover(find: &impl Find, agent: &GrafanaAgent, common: &Arc<Common>) -> Result<Discovery, Halt> {
    let mut found = Discovery::default();
    let spec = &agent.spec;
    let metrics = &spec.metrics;
    let instances: Vec<MetricsInstance> =
        found.select(find, agent, &metrics.instance_selector, &metrics.instance_namespace_selector)?;
    for instance in instances {
        let spec = &instance.spec;
        let mut of = Gathering { found: &mut found, find, parent: &instance, common, pieces: Vec::new() };
        of.gather::<ServiceMonitor>(
            &spec.service_monitor_selector,
            &spec.service_monitor_namespace_selector,
        )?;
        of.gather::<PodMonitor>(&spec.pod_monitor_selector, &spec.pod_monitor_namespace_selector)?;
        of.gather::<Probe>(&spec.probe_selector, &spec.probe_namespace_selector)?;
        let pieces = of.pieces;
        found.metrics.push(Metrics { instance, pieces });
    }
    let logs = &spec.logs;
    let instances: Vec<LogsInstance> =
        found.select(find, agent, &logs.instance_selector, &logs.instance_namespace_selector)?;
    for instance in instances {
        let spec = &instance.spec;
        let mut of = Gathering { found: &mut found, find, parent: &instance, common, pieces: Vec::new() };
        of.gather::<PodLogs>(&spec.pod_logs_selector, &spec.pod_logs_namespace_selector)?;
        let pieces = of.pieces;
        found.logs.push(Logs { instance, pieces });
    }
    let integrations = &spec.integrations;
    found.integrations =
        found.select(find, agent, &integrations.selector, &integrations.namespace_selector)?;
    Ok(found)
}

/// The pieces of one instance.
struct Gathering<'a, F, P> {
    found: &'a mut Discovery,
    find: &'a F,
    parent: &'a P,
    common: &'a Arc<Common>,
    pieces: Vec<Arc<Piece>>,
}

impl<F: Find, P: Object> Gathering<'_, F, P> {
    fn gather<K: Collected>(
        &mut self,
        labels: &Option<LabelSelector>,
        namespaces: &Option<LabelSelector>,
    ) -> Result<(), Halt> {
        if let Some(choice) = self.found.choice(self.parent, labels, namespaces) {
            self.pieces.extend(self.find.pieces::<K>(&choice, self.common)?);
        }
        Ok(())
    }
}

impl Discovery {
    fn select<K: Object, P: Object>(
        &mut self,
        find: &impl Find,
        parent: &P,
        labels: &Option<LabelSelector>,
        namespaces: &Option<LabelSelector>,
    ) -> Result<Vec<K>, Halt> {
        let Some(choice) = self.choice(parent, labels, namespaces) else { return Ok(Vec::new()) };
        let mut selected: Vec<K> = find.select(&choice)?;
        selected.retain(|object| object.meta().deletion_timestamp.is_none());
        Ok(selected)
    }

    /// What two selectors of an object choose; what is wrong with them is noted.
    fn choice<P: Object>(
        &mut self,
        parent: &P,
        labels: &Option<LabelSelector>,
        namespaces: &Option<LabelSelector>,
    ) -> Option<Choice> {
        Choice::of(parent.space(), labels, namespaces).unwrap_or_else(|problem| {
            let kind = windlass::Kind::of::<P>();
            self.faults.push(format!("{kind} {}: {problem}", parent.path()));
            None
        })
    }
}

impl Choice {
    fn query(&self) -> Query {
        let query = Query::matching(self.labels.clone());
        match self.namespaces.clone() {
            Namespaces::Parent(name) => query.in_namespaces([name]),
            Namespaces::All => query.everywhere(),
            Namespaces::Labelled(labels) => query.in_namespaces_matching(labels),
        }
    }

    /// What two selectors come to; nothing if they select nothing.
    ///
    /// # Errors
    /// If a selector has an unknown operator.
    pub fn of(
        parent: &str,
        labels: &Option<LabelSelector>,
        namespaces: &Option<LabelSelector>,
    ) -> Result<Option<Self>, String> {
        let Some(labels) = labels else { return Ok(None) };
        let selector = |selector: &LabelSelector| {
            Selector::try_from(selector.clone())
                .map_err(|error| format!("a selector makes no sense: {error}"))
        };
        let namespaces = match namespaces {
            None => Namespaces::Parent(parent.to_owned()),
            Some(namespaces) if is_everything(namespaces) => Namespaces::All,
            Some(namespaces) => Namespaces::Labelled(selector(namespaces)?),
        };
        Ok(Some(Self { labels: selector(labels)?, namespaces }))
    }
}

fn is_everything(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(|labels| labels.is_empty())
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}
