//! Which objects an agent has: found by selectors, through up to three hops.
//!
//! A label selector that is absent selects nothing, an empty one everything; a namespace selector that is absent
//! means the parent's namespace, an empty one all. Whatever is read here is watched, so each object that enters or
//! leaves, and each label of a namespace, plans the agent again.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;
use windlass::{Halt, Object, Query, World};

use crate::kinds::{
    GrafanaAgent, Integration, LogsInstance, MetricsInstance, Named, PodLogs, PodMonitor, Probe,
    ServiceMonitor,
};

/// Where objects are found.
pub trait Find {
    /// The objects that are chosen.
    ///
    /// # Errors
    /// While they are not loaded.
    fn select<K: Object>(&self, choice: &Choice) -> Result<Vec<K>, Halt>;
}

impl Find for World {
    fn select<K: Object>(&self, choice: &Choice) -> Result<Vec<K>, Halt> {
        let query = Query::matching(choice.labels.clone());
        World::select(
            self,
            &match choice.namespaces.clone() {
                Namespaces::Parent(name) => query.in_namespaces([name]),
                Namespaces::All => query.everywhere(),
                Namespaces::Labelled(labels) => query.in_namespaces_matching(labels),
            },
        )
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
#[derive(Clone, Debug, Default)]
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

/// An instance of metrics, and the monitors that it selects.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// The instance.
    pub instance: MetricsInstance,
    /// Its ServiceMonitors.
    pub service_monitors: Vec<ServiceMonitor>,
    /// Its PodMonitors.
    pub pod_monitors: Vec<PodMonitor>,
    /// Its Probes.
    pub probes: Vec<Probe>,
}

/// An instance of logs, and the PodLogs that it selects.
#[derive(Clone, Debug)]
pub struct Logs {
    /// The instance.
    pub instance: LogsInstance,
    /// Its PodLogs.
    pub pod_logs: Vec<PodLogs>,
}

/// All that an agent selects.
///
/// # Errors
/// While something is not loaded.
pub fn discover(find: &impl Find, agent: &GrafanaAgent) -> Result<Discovery, Halt> {
    let mut found = Discovery::default();
    let spec = &agent.spec;
    let metrics = &spec.metrics;
    let instances: Vec<MetricsInstance> =
        found.select(find, agent, &metrics.instance_selector, &metrics.instance_namespace_selector)?;
    for instance in instances {
        let spec = &instance.spec;
        let service_monitors = found.select(
            find,
            &instance,
            &spec.service_monitor_selector,
            &spec.service_monitor_namespace_selector,
        )?;
        let pod_monitors = found.select(
            find,
            &instance,
            &spec.pod_monitor_selector,
            &spec.pod_monitor_namespace_selector,
        )?;
        let probes = found.select(find, &instance, &spec.probe_selector, &spec.probe_namespace_selector)?;
        found.metrics.push(Metrics { instance, service_monitors, pod_monitors, probes });
    }
    let logs = &spec.logs;
    let instances: Vec<LogsInstance> =
        found.select(find, agent, &logs.instance_selector, &logs.instance_namespace_selector)?;
    for instance in instances {
        let spec = &instance.spec;
        let pod_logs =
            found.select(find, &instance, &spec.pod_logs_selector, &spec.pod_logs_namespace_selector)?;
        found.logs.push(Logs { instance, pod_logs });
    }
    let integrations = &spec.integrations;
    found.integrations =
        found.select(find, agent, &integrations.selector, &integrations.namespace_selector)?;
    Ok(found)
}

impl Discovery {
    fn select<K: Object, P: Object>(
        &mut self,
        find: &impl Find,
        parent: &P,
        labels: &Option<LabelSelector>,
        namespaces: &Option<LabelSelector>,
    ) -> Result<Vec<K>, Halt> {
        match Choice::of(parent.space(), labels, namespaces) {
            Ok(Some(choice)) => {
                let mut selected: Vec<K> = find.select(&choice)?;
                selected.retain(|object| object.meta().deletion_timestamp.is_none());
                selected.sort_by_key(|object| (object.space().to_owned(), object.title().to_owned()));
                Ok(selected)
            }
            Ok(None) => Ok(Vec::new()),
            Err(problem) => {
                let kind = windlass::Kind::of::<P>();
                self.faults.push(format!("{kind} {}: {problem}", parent.path()));
                Ok(Vec::new())
            }
        }
    }
}

impl Choice {
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
