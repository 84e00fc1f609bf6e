//! What is wrong with one object by itself: the same rendering, for a given agent.

use super::{Scene, logs, metrics, pod_logs, pod_monitor, probe, service_monitor};
use crate::assets::Assets;
use crate::fault::Fault;
use crate::kinds::{GrafanaAgent, LogsInstance, MetricsInstance, PodLogs, PodMonitor, Probe, ServiceMonitor};

pub(crate) fn check_service_monitor(
    agent: &GrafanaAgent,
    assets: &Assets<'_>,
    monitor: &ServiceMonitor,
) -> Result<(), Fault> {
    service_monitor::render(&Scene::new(agent, assets), monitor).map(drop)
}

pub(crate) fn check_pod_monitor(
    agent: &GrafanaAgent,
    assets: &Assets<'_>,
    monitor: &PodMonitor,
) -> Result<(), Fault> {
    pod_monitor::render(&Scene::new(agent, assets), monitor).map(drop)
}

pub(crate) fn check_probe(agent: &GrafanaAgent, assets: &Assets<'_>, probe: &Probe) -> Result<(), Fault> {
    probe::render(&Scene::new(agent, assets), probe).map(drop)
}

pub(crate) fn check_pod_logs(agent: &GrafanaAgent, assets: &Assets<'_>, logs: &PodLogs) -> Result<(), Fault> {
    pod_logs::render(&Scene::new(agent, assets), logs).map(drop)
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
