//! What ServiceMonitors, PodMonitors and Probes have in common.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::access::Access;
use super::relabel::{self, Rule};
use super::{Scene, timing};
use crate::document::{Document, Fields};
use crate::fault::Fault;
use crate::kinds::{AttachMetadata, Endpoint, Limits, NamespaceSelector, Relabeling};

/// A ServiceMonitor or a PodMonitor, as far as they are alike.
pub(super) struct Monitor<'a> {
    /// What the names of its jobs begin with.
    pub(super) name: String,
    /// The field that its endpoints are in.
    pub(super) field: &'static str,
    /// What targets are discovered by.
    pub(super) role: &'static str,
    pub(super) namespace: &'a str,
    pub(super) namespaces: &'a Option<NamespaceSelector>,
    pub(super) attach: &'a Option<AttachMetadata>,
    pub(super) limits: &'a Limits,
}

impl Monitor<'_> {
    /// One scrape configuration for each endpoint, with the rules that `rules` makes for it.
    pub(super) fn render(
        &self,
        scene: &Scene<'_>,
        endpoints: &[Endpoint],
        rules: impl Fn(&Endpoint) -> Result<Vec<Document>, Fault>,
    ) -> Result<Vec<Document>, Fault> {
        let ignore = scene.agent.spec.metrics.ignore_namespace_selectors;
        let node = self.attach.as_ref().is_some_and(|attach| attach.node == Some(true));
        let one = |index: usize, one: &Endpoint| {
            let namespaces = namespaces(self.namespaces, self.namespace, ignore);
            let fields = endpoint(scene, self.namespace, one)?
                .with("job_name", format!("{}/{index}", self.name))
                .with("kubernetes_sd_configs", vec![discovery(scene, self.role, namespaces, node)])
                .with("relabel_configs", rules(one)?);
            Ok(limit(scene, self.limits, fields).into())
        };
        let indexed = endpoints.iter().enumerate();
        let rendered = indexed.map(|(index, endpoint)| {
            one(index, endpoint).map_err(|fault: Fault| fault.within(&format!("{}[{index}]", self.field)))
        });
        rendered.collect()
    }
}

/// Sets the limits of a monitor, none above what the agent enforces.
pub(super) fn limit(scene: &Scene<'_>, limits: &Limits, fields: Fields) -> Fields {
    let metrics = &scene.agent.spec.metrics;
    fields
        .number("sample_limit", lowest(limits.sample_limit, metrics.enforced_sample_limit))
        .number("target_limit", lowest(limits.target_limit, metrics.enforced_target_limit))
        .number("label_limit", limits.label_limit)
        .number("label_name_length_limit", limits.label_name_length_limit)
        .number("label_value_length_limit", limits.label_value_length_limit)
}

/// The lower of two limits; 0 is none.
fn lowest(user: Option<i64>, enforced: Option<i64>) -> Option<i64> {
    let positive = |limit: Option<i64>| limit.filter(|limit| *limit > 0);
    positive(user).into_iter().chain(positive(enforced)).min()
}

/// The fields of one endpoint, other than where its targets are and how they are relabeled.
pub(super) fn endpoint(scene: &Scene<'_>, namespace: &str, endpoint: &Endpoint) -> Result<Fields, Fault> {
    let metrics = &scene.agent.spec.metrics;
    let scrape = &endpoint.scrape;
    timing::check(&scrape.interval, &scrape.scrape_timeout, &metrics.scrape_interval)?;
    deny_files(scene, endpoint)?;
    let access = Access::strict(scene.assets, namespace);
    let token = access.value(&scrape.bearer_token_secret)?;
    let basic_auth = access.basic_auth(&scrape.basic_auth)?;
    let authorization = access.authorization(&scrape.authorization)?;
    let oauth2 = access.oauth2(&scrape.oauth2)?;
    let file = endpoint.bearer_token_file.as_deref().is_some_and(|file| !file.is_empty());
    one_of(&[
        ("basicAuth", basic_auth.is_some()),
        ("oauth2", oauth2.is_some()),
        ("authorization", authorization.is_some()),
        ("bearerTokenSecret", token.is_some()),
        ("bearerTokenFile", file),
    ])?;
    let honor_labels = scrape.honor_labels == Some(true) && metrics.override_honor_labels != Some(true);
    let params =
        scrape.params.iter().map(|(name, values)| (name.clone().into(), values.clone().into())).collect();
    let fields = Fields::new()
        .with("honor_labels", honor_labels)
        .maybe("honor_timestamps", honor_timestamps(scene, scrape.honor_timestamps))
        .text("scrape_interval", &scrape.interval)
        .text("scrape_timeout", &scrape.scrape_timeout)
        .text("metrics_path", &scrape.path)
        .text("proxy_url", &scrape.proxy_url)
        .filled("params", Document::Map(params))
        .text("scheme", &scrape.scheme)
        .maybe("follow_redirects", scrape.follow_redirects)
        .maybe("enable_http2", scrape.enable_http2.filter(|enabled| !enabled))
        .maybe("tls_config", access.tls(&endpoint.tls_config)?)
        .text("bearer_token_file", &endpoint.bearer_token_file)
        .maybe("bearer_token", token)
        .maybe("basic_auth", basic_auth)
        .maybe("authorization", authorization)
        .maybe("oauth2", oauth2);
    let relabelings = metric_rules(scene, namespace, honor_labels, &scrape.metric_relabelings)?;
    Ok(fields.filled("metric_relabel_configs", relabelings))
}

/// Whether times of samples are taken over; nothing where nobody says anything.
pub(super) fn honor_timestamps(scene: &Scene<'_>, honor: Option<bool>) -> Option<bool> {
    match scene.agent.spec.metrics.override_honor_timestamps {
        Some(true) => Some(false),
        _ => honor,
    }
}

/// The user's rules for samples. Where they, or labels of the samples, could change the enforced label, it is set
/// once more at the end.
pub(super) fn metric_rules(
    scene: &Scene<'_>,
    namespace: &str,
    honor_labels: bool,
    relabelings: &[Relabeling],
) -> Result<Vec<Document>, Fault> {
    let mut rules = relabel::rules("metricRelabelings", relabelings)?;
    if let Some(label) = enforced_label(scene) {
        let indexed = relabelings.iter().zip(rules);
        rules = indexed
            .filter(|(relabeling, _)| relabeling.target_label.as_deref() != Some(label))
            .map(|(_, rule)| rule)
            .collect();
        if honor_labels || !rules.is_empty() {
            rules.push(Rule::constant(label, namespace).into());
        }
    }
    Ok(rules)
}

/// The label that always holds the namespace of the monitor.
pub(super) fn enforced_label<'a>(scene: &'a Scene<'_>) -> Option<&'a str> {
    scene.agent.spec.metrics.enforced_namespace_label.as_deref().filter(|label| !label.is_empty())
}

/// The rules at the end of every list: the enforced label, which comes after what the user says.
pub(super) fn enforce(scene: &Scene<'_>, namespace: &str, rules: &mut Vec<Document>) {
    if let Some(label) = enforced_label(scene) {
        rules.push(Rule::constant(label, namespace).into());
    }
}

/// The rules that leave each target to one shard, by the hash of a label.
pub(super) fn shard(scene: &Scene<'_>, label: &str) -> [Document; 2] {
    let hash = Rule::of(&[label]).target("__tmp_hash").modulus(shards(scene)).action("hashmod");
    [hash.into(), Rule::of(&["__tmp_hash"]).keep("$(SHARD)").into()]
}

/// How many shards there are.
pub(super) fn shards(scene: &Scene<'_>) -> i64 {
    scene.agent.spec.metrics.shards.unwrap_or(1).max(1).into()
}

/// One of `kubernetes_sd_configs`.
pub(super) fn discovery(scene: &Scene<'_>, role: &str, namespaces: Vec<String>, node: bool) -> Document {
    let names = Fields::new().filled("names", namespaces);
    let discovery = scene.api_server.clone().with("role", role);
    let discovery = if names.is_empty() { discovery } else { discovery.with("namespaces", names) };
    match node {
        true => discovery.with("attach_metadata", Fields::new().with("node", true)).into(),
        false => discovery.into(),
    }
}

/// The namespaces in which targets are looked for; all if there is none.
pub(super) fn namespaces(
    selector: &Option<NamespaceSelector>,
    own: &str,
    ignore: Option<bool>,
) -> Vec<String> {
    let own = vec![own.to_owned()];
    match selector {
        _ if ignore == Some(true) => own,
        Some(selector) if selector.any == Some(true) => Vec::new(),
        Some(selector) if !selector.match_names.is_empty() => selector.match_names.clone(),
        _ => own,
    }
}

/// The name or number of a port; nothing if it is neither.
pub(super) fn port(port: &Option<IntOrString>) -> Option<Port> {
    match port {
        Some(IntOrString::String(name)) if !name.is_empty() => Some(Port::Name(name.clone())),
        Some(IntOrString::Int(number)) if *number != 0 => Some(Port::Number(*number)),
        _ => None,
    }
}

/// A port of a container.
pub(super) enum Port {
    Name(String),
    Number(i32),
}

impl Port {
    /// The rule that keeps targets of this port.
    pub(super) fn keep(&self) -> Rule {
        match self {
            Self::Name(name) => Rule::of(&["__meta_kubernetes_pod_container_port_name"]).keep(name),
            Self::Number(number) => {
                Rule::of(&["__meta_kubernetes_pod_container_port_number"]).keep(&number.to_string())
            }
        }
    }

    pub(super) fn title(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Number(number) => number.to_string(),
        }
    }
}

/// Drops pods that have failed or finished.
pub(super) fn running() -> Document {
    Rule::of(&["__meta_kubernetes_pod_phase"]).drop("(Failed|Succeeded)").into()
}

/// Namespace, service, pod and container as labels.
pub(super) fn origins() -> [Document; 4] {
    [
        ("namespace", "namespace"),
        ("service_name", "service"),
        ("pod_name", "pod"),
        ("pod_container_name", "container"),
    ]
    .map(|(meta, label)| Rule::of(&[&format!("__meta_kubernetes_{meta}")]).target(label).into())
}

/// The agent refuses two kinds of authentication at once.
pub(super) fn one_of(kinds: &[(&str, bool)]) -> Result<(), Fault> {
    let given: Vec<&str> = kinds.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    match given.len() {
        0 | 1 => Ok(()),
        _ => {
            let message = format!("{} exclude one another; keep one of them", given.join(" and "));
            Err(Fault::new("AmbiguousAuthentication", message))
        }
    }
}

fn deny_files(scene: &Scene<'_>, endpoint: &Endpoint) -> Result<(), Fault> {
    let denied = scene.agent.spec.metrics.file_access.as_ref().and_then(|access| access.deny);
    if denied != Some(true) {
        return Ok(());
    }
    let tls = endpoint.tls_config.as_ref();
    let files = [
        ("bearerTokenFile", &endpoint.bearer_token_file),
        ("tlsConfig.caFile", &tls.and_then(|tls| tls.ca_file.clone())),
        ("tlsConfig.certFile", &tls.and_then(|tls| tls.cert_file.clone())),
        ("tlsConfig.keyFile", &tls.and_then(|tls| tls.key_file.clone())),
    ];
    match files.iter().find(|(_, file)| file.as_deref().is_some_and(|file| !file.is_empty())) {
        Some((field, _)) => {
            let message =
                format!("{field} names a file of the agent, which arbitraryFSAccessThroughSMs denies");
            Err(Fault::new("FileAccessDenied", message))
        }
        None => Ok(()),
    }
}
