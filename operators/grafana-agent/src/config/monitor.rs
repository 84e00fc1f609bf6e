//! What is wrong with one monitor by itself: the same rendering, for an agent that allows everything.

use super::{Scene, pod_logs, pod_monitor, probe, service_monitor};
use crate::assets::Assets;
use crate::fault::Fault;
use crate::kinds::{GrafanaAgent, PodLogs, PodMonitor, Probe, ServiceMonitor};

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

pub(crate) fn check_pod_logs(
    agent: &GrafanaAgent,
    assets: &Assets<'_>,
    logs: &PodLogs,
) -> Result<(), Fault> {
    pod_logs::render(&Scene::new(agent, assets), logs).map(drop)
}
