//! ServiceMonitors: one scrape configuration for each endpoint.

use super::Scene;
use super::relabel::{self, Rule};
use super::scrape::{self, Monitor};
use crate::assets::sanitize;
use crate::document::Document;
use crate::fault::Fault;
use crate::kinds::{Endpoint, Named as _, ServiceMonitor};

pub(super) fn render(scene: &Scene<'_>, monitor: &ServiceMonitor) -> Result<Vec<Document>, Fault> {
    let spec = &monitor.spec;
    let common = Monitor {
        name: format!("serviceMonitor/{}", monitor.path()),
        field: "endpoints",
        role: "endpoints",
        namespace: monitor.space(),
        namespaces: &spec.namespace_selector,
        attach: &spec.attach_metadata,
        limits: &spec.limits,
    };
    common.render(scene, &spec.endpoints, |endpoint| rules(scene, monitor, endpoint))
}

fn rules(scene: &Scene<'_>, monitor: &ServiceMonitor, endpoint: &Endpoint) -> Result<Vec<Document>, Fault> {
    let spec = &monitor.spec;
    let named = endpoint.scrape.port.as_deref().filter(|port| !port.is_empty());
    let port = scrape::port(&endpoint.scrape.target_port);
    let target = |kind: &str, label: &str| {
        let source = [
            "__meta_kubernetes_endpoint_address_target_kind",
            "__meta_kubernetes_endpoint_address_target_name",
        ];
        let rule = Rule::of(&source).separator(";").regex(&format!("{kind};(.*)")).target(label);
        Document::from(rule.replacement("$1"))
    };

    let mut rules = vec![relabel::job_name().into()];
    rules.extend(relabel::selector("service", &spec.selector)?);
    match (named, &port) {
        (Some(name), _) => rules.push(Rule::of(&["__meta_kubernetes_endpoint_port_name"]).keep(name).into()),
        (None, Some(port)) => rules.push(port.keep().into()),
        (None, None) => {}
    }
    rules.extend([target("Node", "node"), target("Pod", "pod")]);
    rules.extend(scrape::origins());
    if endpoint.scrape.filter_running == Some(true) {
        rules.push(scrape::running());
    }
    rules.extend(spec.target_labels.iter().map(|label| relabel::copy("service", label, &sanitize(label))));
    rules.extend(spec.pod_target_labels.iter().map(|label| relabel::copy("pod", label, &sanitize(label))));
    rules.push(Rule::of(&["__meta_kubernetes_service_name"]).target("job").replacement("$1").into());
    if let Some(label) = spec.job_label.as_deref().filter(|label| !label.is_empty()) {
        rules.push(relabel::copy("service", label, "job"));
    }
    let title = named.map(str::to_owned).or_else(|| port.as_ref().map(scrape::Port::title));
    rules.extend(title.map(|title| Document::from(Rule::constant("endpoint", &title))));
    rules.extend(relabel::rules("relabelings", &endpoint.scrape.relabelings)?);
    scrape::enforce(scene, monitor.space(), &mut rules);
    rules.extend(scrape::shard(scene, "__address__"));
    Ok(rules)
}
