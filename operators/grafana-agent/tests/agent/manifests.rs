//! Rendering without a cluster: what is said of manifests that are not as they should be.

use windlass_grafana_agent::manifests::{Error, Manifests, Rendered, Type};

const AGENT: &str =
    "{apiVersion: monitoring.grafana.com/v1alpha1, kind: GrafanaAgent, metadata: {name: a}}\n---\n";

fn render(texts: &[&str]) -> Result<Rendered, Error> {
    let mut manifests = Manifests::default();
    for (index, text) in texts.iter().enumerate() {
        manifests.add(text, &format!("{index}.yaml"))?;
    }
    manifests.render(Type::Metrics)
}

fn error(text: &str) -> String {
    render(&[AGENT, text]).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn what_cannot_be_decoded_is_named_with_its_field() {
    let logs =
        "{apiVersion: monitoring.grafana.com/v1alpha1, kind: PodLogs, metadata: {name: p, namespace: space},
        spec: {selector: {}, pipelineStages: [{docker: {}}, {regex: {}}]}}";
    assert_eq!(
        error(logs),
        "failed to decode PodLogs space/p: spec.pipelineStages[1].regex.expression: is missing"
    );
    let monitor = "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: m},
        spec: {selector: {}, targetLabels: app, endpoints: [{port: 80}]}}";
    assert_eq!(
        error(monitor),
        "failed to decode ServiceMonitor default/m: spec.endpoints[0].port: is 80, and has to be a text; \
         spec.targetLabels: is \"app\", and has to be a list"
    );
    // YAML takes a bare y for true.
    let labelled = "{apiVersion: monitoring.coreos.com/v1, kind: Probe, metadata: {name: m, labels: {a: y}}}";
    let message = "failed to decode Probe default/m: metadata.labels.a: is true, and has to be a text";
    assert_eq!(error(labelled), message);
    assert!(error("a: [").starts_with("failed to read 1.yaml: "));
}

#[test]
fn exactly_one_agent_is_rendered() {
    let other = AGENT.replace("name: a", "name: b");
    let many = render(&[AGENT, &other]).err().unwrap().to_string();
    assert_eq!(many, "there are 2 GrafanaAgents (default/a, default/b); exactly one can be rendered");
    let none = render(&["{}"]).err().unwrap().to_string();
    assert_eq!(none, "there are 0 GrafanaAgents; exactly one can be rendered");
}

#[test]
fn what_is_not_taken_as_it_is_written_is_said() {
    let monitor = "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: m},
        spec: {selector: {}, endpoint: [], endpoints: []}}";
    let old = monitor.replace("com/v1", "com/v1alpha1");
    let rendered = render(&[AGENT, monitor, monitor, &old, "a: b", "kind: Deployment"]).unwrap();
    assert_eq!(
        rendered.faults,
        [
            "ServiceMonitor default/m is given twice; the one in 2.yaml counts",
            "ServiceMonitor default/m: is ignored, for its apiVersion monitoring.coreos.com/v1alpha1 is unknown; \
             use monitoring.coreos.com/v1",
            "4.yaml: what has no apiVersion, kind or metadata.name is no object; ignored",
            "5.yaml: what has no apiVersion, kind or metadata.name is no object; ignored",
            "ServiceMonitor default/m: spec.endpoint is no field of it; ignored",
        ]
    );
}
