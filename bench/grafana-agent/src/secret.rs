//! The Secrets with configurations, followed by watches.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use flate2::read::MultiGzDecoder;
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::Api;
use kube::runtime::{WatchStreamExt as _, watcher};

use crate::scene::{HOME, Scene};

const PATIENCE: Duration = Duration::from_secs(300);

type Events = Pin<Box<dyn Stream<Item = Result<Secret, watcher::Error>> + Send>>;

/// The configuration of one agent as it is written.
pub(crate) struct Follower {
    events: Events,
    /// How often it was written.
    pub(crate) seen: usize,
    /// Its length.
    pub(crate) plain: usize,
    /// Its length in the Secret.
    pub(crate) packed: usize,
}

impl Follower {
    pub(crate) async fn of(scene: &Scene, agent: &str) -> Result<Self> {
        let api: Api<Secret> = Api::namespaced(scene.client.clone(), HOME);
        let config = watcher::Config::default().fields(&format!("metadata.name={agent}-config"));
        let events = Box::pin(watcher(api, config).applied_objects());
        Ok(Self { events, seen: 0, plain: 0, packed: 0 })
    }

    /// Waits until the configuration is such.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&str) -> bool) -> Result<()> {
        loop {
            let secret = tokio::time::timeout(PATIENCE, self.events.next()).await;
            let secret =
                secret.context("waited in vain for a configuration")?.context("the watch ended")??;
            if wanted(&self.take(&secret)?) {
                return Ok(());
            }
        }
    }

    /// Takes in what has been written already.
    pub(crate) async fn catch_up(&mut self) -> Result<()> {
        while let Ok(Some(secret)) =
            tokio::time::timeout(Duration::from_millis(200), self.events.next()).await
        {
            self.take(&secret?)?;
        }
        Ok(())
    }

    fn take(&mut self, secret: &Secret) -> Result<String> {
        let (text, packed) = text(secret)?;
        (self.plain, self.packed) = (text.len(), packed);
        self.seen += 1;
        Ok(text)
    }
}

/// Waits until the configurations of all these agents are such.
pub(crate) async fn until_all(scene: &Scene, agents: &[String], wanted: impl Fn(&str) -> bool) -> Result<()> {
    let api: Api<Secret> = Api::namespaced(scene.client.clone(), HOME);
    let mut missing: BTreeSet<String> = agents.iter().map(|agent| format!("{agent}-config")).collect();
    let mut events: Events = Box::pin(watcher(api, watcher::Config::default()).applied_objects());
    while !missing.is_empty() {
        let secret = tokio::time::timeout(PATIENCE, events.next()).await;
        let Ok(secret) = secret else { bail!("waited in vain for {} configurations", missing.len()) };
        let secret = secret.context("the watch ended")??;
        if missing.contains(&secret.name_any()) && wanted(&text(&secret)?.0) {
            missing.remove(&secret.name_any());
        }
    }
    Ok(())
}

fn text(secret: &Secret) -> Result<(String, usize)> {
    let data = secret.data.as_ref().and_then(|data| data.get("agent.yml"));
    let bytes = &data.context("the Secret has no agent.yml")?.0;
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut text)?;
    } else {
        text = String::from_utf8(bytes.clone())?;
    }
    Ok((text, bytes.len()))
}
