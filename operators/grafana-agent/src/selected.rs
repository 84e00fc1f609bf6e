//! The kinds that agents select. Nothing is made for them; each is told by itself what is wrong with it, whether an
//! agent selects it or not.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass::{Halt, Kind, Plan, Primary, World};

use crate::assets::Assets;
use crate::config;
use crate::fault::Fault;
use crate::kinds::{
    GrafanaAgent, GrafanaAgentSpec, Integration, LogsInstance, MetricsInstance, MetricsSubsystem, PodLogs,
    PodMonitor, Probe, ServiceMonitor,
};

macro_rules! selected {
    ($($voice:ident $kind:ty: $check:expr;)*) => {$(
        impl Primary for $kind {
            fn owns() -> Vec<Kind> {
                Vec::new()
            }

            fn reads() -> Vec<Kind> {
                vec![Kind::of::<Secret>(), Kind::of::<ConfigMap>()]
            }

            fn quiet() -> bool {
                stringify!($voice) == "quiet"
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
    loud MetricsInstance: config::check_metrics_instance;
    loud LogsInstance: config::check_logs_instance;
    loud PodLogs: config::check_one;
    loud Integration: |_, assets, integration| {
        let outcome = config::usable_integrations(assets, std::slice::from_ref(integration));
        outcome.into_iter().filter_map(Result::err).collect()
    };
    // The Prometheus Operator's kinds, of which there may be thousands: they hear of us only if something is wrong.
    quiet ServiceMonitor: config::check_one;
    quiet PodMonitor: config::check_one;
    quiet Probe: config::check_one;
}

/// An agent that allows everything, so that only the object itself is judged.
fn anybody() -> GrafanaAgent {
    let spec = GrafanaAgentSpec {
        metrics: MetricsSubsystem { scrape_interval: Some("100y".into()), ..MetricsSubsystem::default() },
        ..GrafanaAgentSpec::default()
    };
    GrafanaAgent::new("", spec)
}
