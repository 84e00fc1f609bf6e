//! The metrics of an agent: what holds for all instances, and the instances.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::SecretKeySelector;
use serde_json::Value;
use windlass::Object;

use super::access::Access;
use super::scrape::{shard, shards};
use super::{DATA, Scene, remote_write, timing};
use crate::assets::Reference;
use crate::discovery::Metrics;
use crate::document::{Document, Fields};
use crate::fault::Fault;
use crate::kinds::{MetricsInstance, Named as _, RemoteWrite};

/// For the agents that scrape.
pub(super) fn render(scene: &Scene<'_>, found: &[Metrics]) -> Fields {
    check_timing(scene);
    let instances: Vec<Document> = found.iter().map(|found| instance(scene, found).into()).collect();
    section(scene, true).filled("configs", instances)
}

/// For the agents that run integrations: where to send, but nothing to scrape, for that is done elsewhere. They have
/// no replicas either.
pub(super) fn for_integrations(scene: &Scene<'_>, found: &[Metrics]) -> Fields {
    let instances: Vec<Document> =
        found.iter().map(|found| settings(scene, &found.instance).into()).collect();
    section(scene, false).filled("configs", instances)
}

/// Says what is wrong with an instance, whatever it selects.
pub(super) fn check(scene: &Scene<'_>, instance: &MetricsInstance) {
    settings(scene, instance);
    more(scene, instance);
}

fn section(scene: &Scene<'_>, replicated: bool) -> Fields {
    let (agent, metrics) = (scene.agent, &scene.agent.spec.metrics);
    let global = Fields::new()
        .filled("external_labels", &external_labels(scene, replicated))
        .text("scrape_interval", &metrics.scrape_interval)
        .text("scrape_timeout", &metrics.scrape_timeout)
        .filled("remote_write", writes(scene, agent, "spec.metrics.remoteWrite", &metrics.remote_write));
    Fields::new().with("wal_directory", DATA).with("global", global)
}

fn external_labels(scene: &Scene<'_>, replicated: bool) -> BTreeMap<String, String> {
    let metrics = &scene.agent.spec.metrics;
    let mut labels = BTreeMap::new();
    let mut set = |name: &Option<String>, default: &str, value: String| {
        let name = name.as_deref().unwrap_or(default);
        if !name.is_empty() {
            labels.insert(name.to_owned(), value);
        }
    };
    set(&metrics.metrics_external_label_name, "cluster", scene.agent.path());
    for (name, value) in &metrics.external_labels {
        set(&Some(name.clone()), "", value.clone());
    }
    if replicated {
        let replica = "replica-$(STATEFULSET_ORDINAL_NUMBER)".to_owned();
        set(&metrics.replica_external_label_name, "__replica__", replica);
    }
    labels
}

fn instance(scene: &Scene<'_>, found: &Metrics) -> Fields {
    let scrapes = scene.scrapes(&found.pieces, more(scene, &found.instance));
    settings(scene, &found.instance).filled("scrape_configs", scrapes)
}

/// The scrape configurations of the user's own.
fn more(scene: &Scene<'_>, instance: &MetricsInstance) -> Vec<Document> {
    let more = additional(scene, instance.space(), &instance.spec.additional_scrape_configs);
    let more = scene.part(instance, more.map_err(|fault| fault.within("spec.additionalScrapeConfigs")));
    more.into_iter().flatten().map(|config| sharded(scene, config)).collect()
}

/// What an instance says apart from what it scrapes.
fn settings(scene: &Scene<'_>, instance: &MetricsInstance) -> Fields {
    let spec = &instance.spec;
    Fields::new()
        .with("name", instance.path())
        .text("wal_truncate_frequency", &spec.wal_truncate_frequency)
        .text("min_wal_time", &spec.min_wal_time)
        .text("max_wal_time", &spec.max_wal_time)
        .text("remote_flush_deadline", &spec.remote_flush_deadline)
        .flag("write_stale_on_shutdown", spec.write_stale_on_shutdown)
        .filled("remote_write", writes(scene, instance, "spec.remoteWrite", &spec.remote_write))
}

fn writes<K: Object>(scene: &Scene<'_>, owner: &K, field: &str, writes: &[RemoteWrite]) -> Vec<Document> {
    let mut rendered = Vec::new();
    for (index, write) in writes.iter().enumerate() {
        let place = format!("{field}[{index}]");
        let tell = |fault: Fault| {
            scene.part::<_, ()>(owner, Err(fault.within(&place)));
        };
        let access = Access::lenient(scene.assets, owner.space(), &tell);
        let write = remote_write::render(access, write).map_err(|fault| fault.within(&place));
        rendered.extend(scene.part(owner, write));
    }
    rendered
}

/// The scrape configurations that a key of a Secret holds.
pub(super) fn additional(
    scene: &Scene<'_>,
    namespace: &str,
    selector: &Option<SecretKeySelector>,
) -> Result<Vec<Document>, Fault> {
    let reference = selector.as_ref().and_then(|selector| Reference::secret(namespace, selector));
    let Some(text) = scene.assets.text(reference)? else { return Ok(Vec::new()) };
    // The parser's own words would show a piece of the Secret.
    let bad = |what: &str| Err(Fault::new("BadScrapeConfigs", what.to_owned()));
    let Ok(configs) = serde_saphyr::from_str::<Option<Vec<Value>>>(&text) else {
        return bad("is no YAML list of scrape configurations");
    };
    let configs = configs.unwrap_or_default();
    let mut jobs = BTreeSet::new();
    for config in &configs {
        match config.get("job_name").and_then(Value::as_str) {
            None => return bad("one of the scrape configurations has no job_name"),
            Some(job) if !jobs.insert(job) => {
                return bad("two of the scrape configurations have one job_name");
            }
            Some(_) => {}
        }
    }
    Ok(configs.into_iter().filter_map(Document::from_json).collect())
}

/// A scrape configuration of the user's own, left to one shard for each target, unless it sees to that itself.
fn sharded(scene: &Scene<'_>, config: Document) -> Document {
    let Document::Map(mut fields) = config else { return config };
    if shards(scene) > 1 {
        let rules = fields.entry("relabel_configs".into()).or_insert_with(|| Document::List(Vec::new()));
        if let Document::List(rules) = rules
            && !rules.iter().any(names_shard)
        {
            rules.extend(shard(scene, "__address__"));
        }
    }
    Document::Map(fields)
}

fn names_shard(rule: &Document) -> bool {
    let Document::Map(fields) = rule else { return false };
    matches!(fields.get("regex"), Some(Document::Text(regex)) if regex.contains("$(SHARD)"))
}

/// The agent refuses to start with a timeout beyond the interval.
fn check_timing(scene: &Scene<'_>) {
    let metrics = &scene.agent.spec.metrics;
    let outcome = timing::check(&metrics.scrape_interval, &metrics.scrape_timeout, &None);
    scene.part(scene.agent, outcome.map_err(|fault| fault.within("spec.metrics")));
}
