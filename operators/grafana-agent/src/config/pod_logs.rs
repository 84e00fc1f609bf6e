//! PodLogs: one scrape configuration each.

use super::relabel::{self, Rule};
use super::{Scene, scrape, stages};
use crate::assets::sanitize;
use crate::document::{Document, Fields};
use crate::fault::Fault;
use crate::kinds::{Named as _, PodLogs};

pub(super) fn render(scene: &Scene<'_>, logs: &PodLogs) -> Result<Document, Fault> {
    let (spec, overall) = (&logs.spec, &scene.agent.spec.logs);
    let namespaces =
        scrape::namespaces(&spec.namespace_selector, logs.space(), overall.ignore_namespace_selectors);
    let enforced = overall.enforced_namespace_label.as_deref().filter(|label| !label.is_empty());

    let mut stages = stages::render("pipelineStages", &spec.pipeline_stages)?;
    if let Some(label) = enforced
        && !stages.is_empty()
    {
        // Stages can drop and set labels: the enforced one is set once more after them.
        let labels = Fields::new().with(label.to_owned(), logs.space());
        stages.push(Fields::new().with("static_labels", labels).into());
    }

    let mut rules = vec![relabel::job_name().into()];
    rules.extend(relabel::selector("pod", &spec.selector)?);
    rules.extend(scrape::origins());
    rules.extend(spec.pod_target_labels.iter().map(|label| relabel::copy("pod", label, &sanitize(label))));
    rules.push(Rule::constant("job", &logs.path()).into());
    if let Some(label) = spec.job_label.as_deref().filter(|label| !label.is_empty()) {
        rules.push(relabel::copy("pod", label, "job"));
    }
    // The kubelet keeps logs in directories named after the pod's uid and the container.
    let files = Rule::of(&["__meta_kubernetes_pod_uid", "__meta_kubernetes_pod_container_name"]);
    let files = files.target("__path__").separator("/").replacement("/var/log/pods/*$1/*.log");
    rules.push(files.into());
    rules.extend(relabel::rules("relabelings", &spec.relabelings)?);
    rules.extend(enforced.map(|label| Document::from(Rule::constant(label, logs.space()))));

    let fields = Fields::new()
        .with("job_name", format!("podLogs/{}", logs.path()))
        .with("kubernetes_sd_configs", vec![scrape::discovery(scene, "pod", namespaces, false)])
        .filled("pipeline_stages", stages)
        .with("relabel_configs", rules);
    Ok(fields.into())
}
