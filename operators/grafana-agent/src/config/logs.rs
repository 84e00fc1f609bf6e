//! The logs of an agent: the instances, and where their lines go.

use std::collections::BTreeMap;

use windlass::Object;

use super::access::Access;
use super::{DATA, Scene, metrics};
use crate::discovery::Logs;
use crate::document::{Document, Fields};
use crate::fault::Fault;
use crate::kinds::{LogsClient, LogsInstance, Named as _};

/// For the agents that follow logs.
pub(super) fn render(scene: &Scene<'_>, found: &[Logs]) -> Fields {
    let instances: Vec<Document> = found.iter().map(|found| instance(scene, found).into()).collect();
    Fields::new().with("positions_directory", DATA).filled("configs", instances)
}

/// For the agents that run integrations: where to send, but nothing to follow.
pub(super) fn for_integrations(scene: &Scene<'_>, found: &[Logs]) -> Fields {
    let instances: Vec<Document> =
        found.iter().map(|found| settings(scene, &found.instance).into()).collect();
    Fields::new().with("positions_directory", DATA).filled("configs", instances)
}

/// Says what is wrong with an instance, whatever it selects.
pub(super) fn check(scene: &Scene<'_>, instance: &LogsInstance) {
    settings(scene, instance);
    more(scene, instance);
}

fn instance(scene: &Scene<'_>, found: &Logs) -> Fields {
    let instance = &found.instance;
    let scrapes = scene.scrapes(&found.pieces, more(scene, instance));
    settings(scene, instance).filled("scrape_configs", scrapes)
}

/// The scrape configurations of the user's own.
fn more(scene: &Scene<'_>, instance: &LogsInstance) -> Vec<Document> {
    let more = metrics::additional(scene, instance.space(), &instance.spec.additional_scrape_configs);
    let more = scene.part(instance, more.map_err(|fault| fault.within("spec.additionalScrapeConfigs")));
    more.unwrap_or_default()
}

/// What an instance says apart from what it follows.
fn settings(scene: &Scene<'_>, instance: &LogsInstance) -> Fields {
    let spec = &instance.spec;
    let clients = match spec.clients.as_slice() {
        [] => clients(scene, scene.agent, "spec.logs.clients", &scene.agent.spec.logs.clients),
        own => clients(scene, instance, "spec.clients", own),
    };
    let target =
        spec.target_config.as_ref().map(|target| Fields::new().text("sync_period", &target.sync_period));
    Fields::new().with("name", instance.path()).filled("clients", clients).maybe("target_config", target)
}

fn clients<K: Object>(scene: &Scene<'_>, owner: &K, field: &str, clients: &[LogsClient]) -> Vec<Document> {
    let mut rendered = Vec::new();
    for (index, one) in clients.iter().enumerate() {
        let place = format!("{field}[{index}]");
        let tell = |fault: Fault| {
            scene.part::<_, ()>(owner, Err(fault.within(&place)));
        };
        let access = Access::lenient(scene.assets, owner.space(), &tell);
        let one = client(scene, access, one).map_err(|fault| fault.within(&place));
        rendered.extend(scene.part(owner, one));
    }
    rendered
}

fn client(scene: &Scene<'_>, access: Access<'_>, client: &LogsClient) -> Result<Document, Fault> {
    let backoff = client.backoff_config.as_ref().map(|backoff| {
        Fields::new()
            .text("min_period", &backoff.min_period)
            .text("max_period", &backoff.max_period)
            .number("max_retries", backoff.max_retries)
    });
    let fields = Fields::new()
        .with("url", client.url.as_str())
        .maybe("tls_config", access.tls(&client.tls_config)?)
        .text("proxy_url", &client.proxy_url)
        .text("tenant_id", &client.tenant_id)
        .text("timeout", &client.timeout)
        .text("batchwait", &client.batch_wait)
        .number("batchsize", client.batch_size)
        .maybe("basic_auth", access.basic_auth(&client.basic_auth)?)
        .maybe("oauth2", access.oauth2(&client.oauth2)?)
        .text("bearer_token", &client.bearer_token)
        .text("bearer_token_file", &client.bearer_token_file)
        .maybe("backoff_config", backoff)
        .filled("external_labels", &external_labels(scene, client));
    Ok(fields.into())
}

fn external_labels(scene: &Scene<'_>, client: &LogsClient) -> BTreeMap<String, String> {
    let name = scene.agent.spec.logs.logs_external_label_name.as_deref().unwrap_or("cluster");
    let mut labels = BTreeMap::new();
    if !name.is_empty() {
        labels.insert(name.to_owned(), scene.agent.path());
    }
    labels.extend(client.external_labels.clone());
    labels
}
