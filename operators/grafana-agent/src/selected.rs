//! The kinds that agents select. Nothing is made for them; each is told by itself what is wrong with it, whether an
//! agent selects it or not.

use windlass::{Halt, Kind, Plan, Primary, World};

use crate::assets::Assets;
use crate::config;
use crate::fault::Fault;
use crate::kinds::{
    GrafanaAgent, GrafanaAgentSpec, Integration, LogsInstance, MetricsInstance, MetricsSubsystem, PodLogs,
    PodMonitor, Probe, ServiceMonitor,
};

macro_rules! selected {
    ($($kind:ty: $check:expr;)*) => {$(
        impl Primary for $kind {
            fn owns() -> Vec<Kind> {
                Vec::new()
            }

            fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
                let assets = Assets::new(world);
                let check: fn(&GrafanaAgent, &Assets<'_>, &Self) -> Vec<Fault> = $check;
                let faults = check(&anybody(), &assets, self);
                if let Some(halt) = assets.halt() {
                    return Err(halt);
                }
                faults.into_iter().for_each(|fault| plan.fail(fault.reason, fault.message));
                Ok(())
            }
        }
    )*};
}

selected! {
    ServiceMonitor: |agent, assets, monitor| one(config::check_service_monitor(agent, assets, monitor));
    PodMonitor: |agent, assets, monitor| one(config::check_pod_monitor(agent, assets, monitor));
    Probe: |agent, assets, probe| one(config::check_probe(agent, assets, probe));
    PodLogs: |agent, assets, logs| one(config::check_pod_logs(agent, assets, logs));
    MetricsInstance: config::check_metrics_instance;
    LogsInstance: config::check_logs_instance;
    Integration: |_, assets, integration| {
        let outcome = config::usable_integrations(assets, std::slice::from_ref(integration));
        outcome.into_iter().filter_map(Result::err).collect()
    };
}

fn one(outcome: Result<(), Fault>) -> Vec<Fault> {
    outcome.err().into_iter().collect()
}

/// An agent that allows everything, so that only the object itself is judged.
fn anybody() -> GrafanaAgent {
    let spec = GrafanaAgentSpec {
        metrics: MetricsSubsystem { scrape_interval: Some("100y".into()), ..MetricsSubsystem::default() },
        ..GrafanaAgentSpec::default()
    };
    GrafanaAgent::new("", spec)
}
