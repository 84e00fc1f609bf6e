//! PodMonitors: one scrape configuration for each endpoint.

use super::Scene;
use super::relabel::{self, Rule};
use super::scrape::{self, Monitor};
use crate::assets::sanitize;
use crate::document::Document;
use crate::fault::Fault;
use crate::kinds::{Endpoint, Named as _, PodMonitor};

pub(super) fn render(scene: &Scene<'_>, monitor: &PodMonitor) -> Result<Vec<Document>, Fault> {
    let spec = &monitor.spec;
    let common = Monitor {
        name: format!("podMonitor/{}", monitor.path()),
        field: "podMetricsEndpoints",
        role: "pod",
        namespace: monitor.space(),
        namespaces: &spec.namespace_selector,
        attach: &spec.attach_metadata,
        limits: &spec.limits,
    };
    let endpoints: Vec<Endpoint> = spec.pod_metrics_endpoints.iter().map(Endpoint::from).collect();
    common.render(scene, &endpoints, |endpoint| rules(scene, monitor, endpoint))
}

fn rules(scene: &Scene<'_>, monitor: &PodMonitor, endpoint: &Endpoint) -> Result<Vec<Document>, Fault> {
    let spec = &monitor.spec;
    let named = endpoint.scrape.port.clone().filter(|port| !port.is_empty()).map(scrape::Port::Name);
    let port = named.or_else(|| scrape::port(&endpoint.scrape.target_port));

    let mut rules = vec![relabel::job_name().into()];
    if endpoint.scrape.filter_running == Some(true) {
        rules.push(scrape::running());
    }
    rules.extend(relabel::selector("pod", &spec.selector)?);
    rules.extend(port.as_ref().map(|port| Document::from(port.keep())));
    rules.extend(scrape::origins());
    rules.extend(spec.pod_target_labels.iter().map(|label| relabel::copy("pod", label, &sanitize(label))));
    rules.push(Rule::constant("job", &monitor.path()).into());
    if let Some(label) = spec.job_label.as_deref().filter(|label| !label.is_empty()) {
        rules.push(relabel::copy("pod", label, "job"));
    }
    rules.extend(port.map(|port| Document::from(Rule::constant("endpoint", &port.title()))));
    rules.extend(relabel::rules("relabelings", &endpoint.scrape.relabelings)?);
    scrape::enforce(scene, monitor.space(), &mut rules);
    rules.extend(scrape::shard(scene, "__address__"));
    Ok(rules)
}
