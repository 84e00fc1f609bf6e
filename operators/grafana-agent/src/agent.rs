//! A GrafanaAgent and what should exist for one.
//!
//! Discovery and rendering come first and are pure; each object that is made has a file of its own below.

mod integrations;
mod labels;
mod logs_daemon_set;
mod pod;
mod secrets;
mod service;
mod stateful_set;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service};
use windlass::{Halt, Invalid, Kind, Object, Plan, Primary, Query, Status, World};

pub(crate) use self::pod::IMAGES;
use crate::assets::{Contents, Lookup};
use crate::config::Runs;
use crate::kinds::{
    AgentStatus, GrafanaAgent, Integration, LeftOut, LogsInstance, MetricsInstance, Named as _, PodLogs,
    PodMonitor, Probe, ServiceMonitor,
};
use crate::outcome::Outcome;

/// Longest name whose children's names still fit: `<name>-shard-NN-<hash>` is a label's value.
const LONGEST_NAME: usize = 43;

/// So many troubles are named; more are counted.
const NAMED_TROUBLES: usize = 20;
/// So many are listed in the status.
const LISTED: usize = 100;

impl Primary for GrafanaAgent {
    fn owns() -> Vec<Kind> {
        vec![
            Kind::of::<Secret>(),
            Kind::of::<Service>(),
            Kind::of::<StatefulSet>(),
            Kind::of::<DaemonSet>(),
            Kind::of::<Deployment>(),
        ]
    }

    fn reads() -> Vec<Kind> {
        vec![
            Kind::of::<MetricsInstance>(),
            Kind::of::<LogsInstance>(),
            Kind::of::<PodLogs>(),
            Kind::of::<Integration>(),
            Kind::of::<ServiceMonitor>(),
            Kind::of::<PodMonitor>(),
            Kind::of::<Probe>(),
            Kind::of::<Namespace>(),
            Kind::of::<ConfigMap>(),
        ]
    }

    /// A monitor that is edited is in the configuration at once; what follows closely is written together.
    fn pace() -> Duration {
        Duration::from_millis(500)
    }

    fn validity(&self) -> Vec<Invalid> {
        let mut invalid = Vec::new();
        if self.title().len() > LONGEST_NAME {
            let message =
                format!("is too long for the names of its children; use at most {LONGEST_NAME} letters");
            invalid.push(Invalid::new("metadata.name", message));
        }
        invalid
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        if self.spec.paused == Some(true) {
            return keep_all(self, world, plan);
        }
        let outcome = Arc::new(Outcome::of(self, world)?);

        plan.add(secrets::copies(self, &outcome));
        if let Some(metrics) = &outcome.metrics {
            plan.add(secrets::config(self, "config", metrics.text.packed(world)));
            plan.add(service::build(self));
            for shard in 0..stateful_set::shards(self) {
                let made = world.get::<StatefulSet>(&stateful_set::name(self, shard))?;
                let (set, problem) = stateful_set::build(self, shard, made.as_ref());
                plan.add(set).ready();
                problem.into_iter().for_each(|problem| plan.fail("StorageFixed", problem));
            }
        }
        if let Some(logs) = &outcome.logs {
            plan.add(secrets::config(self, "logs-config", logs.text.packed(world)));
            plan.add(logs_daemon_set::build(self)).ready();
        }
        if let Some(once) = &outcome.once {
            plan.add(secrets::config(self, "integrations-deploy-config", once.text.packed(world)));
            plan.add(integrations::deployment(self, &outcome, Runs::Once)).ready();
        }
        if let Some(nodes) = &outcome.nodes {
            plan.add(secrets::config(self, "integrations-ds-config", nodes.text.packed(world)));
            plan.add(integrations::daemon_set(self, &outcome, Runs::OnNodes)).ready();
        }

        report(plan, &outcome);
        // A second plan of the same object finds the first one's there, and the same.
        let _ = self.spec.memo.0.set(outcome);
        Ok(())
    }

    fn own_status(&self, _: &World, _: &Status, status: &mut AgentStatus) -> Result<(), Halt> {
        // While something is being loaded, and while the agent is paused, the last word stands.
        let Some(outcome) = self.spec.memo.0.get() else { return Ok(()) };
        status.metrics = outcome.metrics_counts();
        status.logs = outcome.logs_counts();
        status.integrations = outcome.integrations_counts();
        status.left_out = outcome.troubles().into_iter().take(LISTED).cloned().collect();
        Ok(())
    }
}

impl Lookup for World {
    fn secret(&self, namespace: &str, name: &str) -> Result<Option<Contents>, Halt> {
        let found = self.get_in::<Secret>(namespace, name)?;
        Ok(found.map(|secret| secret.data.unwrap_or_default()))
    }

    fn config_map(&self, namespace: &str, name: &str) -> Result<Option<Contents>, Halt> {
        let found = self.get_in::<ConfigMap>(namespace, name)?;
        Ok(found.map(|map| {
            let mut contents = map.binary_data.unwrap_or_default();
            let texts = map.data.unwrap_or_default().into_iter();
            contents.extend(texts.map(|(key, text)| (key, k8s_openapi::ByteString(text.into_bytes()))));
            contents
        }))
    }
}

fn report(plan: &mut Plan, outcome: &Outcome) {
    outcome.faults.iter().for_each(|fault| plan.fail("BadSelector", fault.clone()));
    let troubles = outcome.troubles();
    for trouble in troubles.iter().take(NAMED_TROUBLES) {
        let LeftOut { kind, namespace, name, reason, message } = trouble;
        plan.fail(reason.clone(), format!("{kind} {namespace}/{name}: {message}"));
    }
    if let Some(more) = troubles.len().checked_sub(NAMED_TROUBLES).filter(|more| *more > 0) {
        plan.fail("LeftOut", format!("and {more} more"));
    }
}

/// Leaves everything as it is.
fn keep_all(agent: &GrafanaAgent, world: &World, plan: &mut Plan) -> Result<(), Halt> {
    keep::<Secret>(agent, world, plan)?;
    keep::<Service>(agent, world, plan)?;
    keep::<StatefulSet>(agent, world, plan)?;
    keep::<DaemonSet>(agent, world, plan)?;
    keep::<Deployment>(agent, world, plan)
}

fn keep<K: Object>(agent: &GrafanaAgent, world: &World, plan: &mut Plan) -> Result<(), Halt> {
    let mine = world.select::<K>(&Query::labels([(labels::NAME, agent.title())]))?;
    let owned = |object: &&K| {
        object
            .meta()
            .owner_references
            .iter()
            .flatten()
            .any(|owner| Some(&owner.uid) == agent.metadata.uid.as_ref())
    };
    mine.iter().filter(owned).for_each(|object| drop(plan.keep(object)));
    Ok(())
}
