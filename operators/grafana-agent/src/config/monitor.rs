//! What is wrong with one object by itself: the same rendering, for a given agent.

use super::{Collected, Scene, logs, metrics};
use crate::assets::Assets;
use crate::fault::Fault;
use crate::kinds::{GrafanaAgent, LogsInstance, MetricsInstance};

pub(crate) fn check_one(agent: &GrafanaAgent, assets: &Assets<'_>, object: &impl Collected) -> Vec<Fault> {
    object.render(&Scene::new(agent, assets)).err().into_iter().collect()
}

pub(crate) fn check_metrics_instance(
    agent: &GrafanaAgent,
    assets: &Assets<'_>,
    instance: &MetricsInstance,
) -> Vec<Fault> {
    let scene = Scene::new(agent, assets);
    metrics::check(&scene, instance);
    faults(scene)
}

pub(crate) fn check_logs_instance(
    agent: &GrafanaAgent,
    assets: &Assets<'_>,
    instance: &LogsInstance,
) -> Vec<Fault> {
    let scene = Scene::new(agent, assets);
    logs::check(&scene, instance);
    faults(scene)
}

fn faults(scene: Scene<'_>) -> Vec<Fault> {
    let complaints = scene.into_findings().complaints;
    complaints.into_iter().map(|complaint| Fault::new(complaint.reason, complaint.message)).collect()
}
