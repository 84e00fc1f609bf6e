//! PodMonitors: one scrape configuration for each endpoint.

use super::Scene;
use super::relabel::{self, Rule};
use super::scrape;
use crate::assets::sanitize;
use crate::document::Document;
use crate::fault::Fault;
use crate::kinds::{Endpoint, Named as _, PodMonitor};

pub(super) fn render(scene: &Scene<'_>, monitor: &PodMonitor) -> Result<Vec<Document>, Fault> {
    let endpoints = monitor.spec.pod_metrics_endpoints.iter().enumerate();
    endpoints
        .map(|(index, endpoint)| {
            render_endpoint(scene, monitor, index, &endpoint.into())
                .map_err(|fault| fault.within(&format!("podMetricsEndpoints[{index}]")))
        })
        .collect()
}

fn render_endpoint(
    scene: &Scene<'_>,
    monitor: &PodMonitor,
    index: usize,
    endpoint: &Endpoint,
) -> Result<Document, Fault> {
    let (spec, namespace) = (&monitor.spec, monitor.space());
    let ignore = scene.agent.spec.metrics.ignore_namespace_selectors;
    let namespaces = scrape::namespaces(&spec.namespace_selector, namespace, ignore);
    let node = spec.attach_metadata.as_ref().is_some_and(|attach| attach.node == Some(true));
    let fields = scrape::endpoint(scene, namespace, endpoint)?
        .with("job_name", format!("podMonitor/{}/{index}", monitor.path()))
        .with("kubernetes_sd_configs", vec![scrape::discovery(scene, "pod", namespaces, node)])
        .with("relabel_configs", rules(scene, monitor, endpoint)?);
    Ok(scrape::limit(scene, &spec.limits, fields).into())
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
