//! The watch of one kind's metadata, for the graph.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::{ObjectList, Request};
use tokio::sync::oneshot;

use super::super::Error;
use super::super::discovery::Kind;
use super::Collector;
use super::head::Seen;

/// Lists and watches a kind until the task is dropped. Tells when the first list is in, or could not be had.
pub(super) async fn run(collector: Arc<Collector>, kind: Kind, synced: oneshot::Sender<()>) {
    let kind = Arc::new(kind);
    let mut synced = Some(synced);
    let mut from = None;
    let mut failures = 0u32;
    loop {
        let revision = match from.take() {
            Some(revision) => Ok(revision),
            None => list(&collector, &kind).await,
        };
        if let Some(synced) = synced.take() {
            let _ = synced.send(());
        }
        let ended = match revision {
            Ok(revision) => watch(&collector, &kind, revision, &mut failures).await,
            Err(error) => Err(error),
        };
        match ended {
            Ok(revision) => from = Some(revision),
            Err(error) => {
                tracing::debug!(kind = %kind.resource.kind, %error, "watch ended, listing again");
                tokio::time::sleep(Duration::from_millis(100) * 2u32.pow(failures.min(8))).await;
                failures += 1;
            }
        }
    }
}

async fn list(collector: &Collector, kind: &Arc<Kind>) -> Result<String, Error> {
    let request = Request::new(kind.path(None));
    let mut params = ListParams::default().limit(500);
    let mut gone = collector.graph().of_kind(&kind.path(None));
    loop {
        let request = request.list_metadata(&params).map_err(Error::build)?;
        let page: ObjectList<Seen> = collector.client.request(request).await?;
        for object in page.items {
            gone.remove(&object.metadata.uid);
            collector.observe(kind, object);
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => {
                for uid in gone {
                    collector.observe_deleted(&uid);
                }
                return Ok(page.metadata.resource_version.unwrap_or_default());
            }
        }
    }
}

async fn watch(
    collector: &Collector,
    kind: &Arc<Kind>,
    mut revision: String,
    failures: &mut u32,
) -> Result<String, Error> {
    let request = Request::new(kind.path(None));
    let request = request.watch_metadata(&WatchParams::default(), &revision).map_err(Error::build)?;
    let mut events = std::pin::pin!(collector.client.request_events::<Seen>(request).await?);
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                revision.clone_from(&object.metadata.resource_version);
                collector.observe(kind, object);
            }
            WatchEvent::Deleted(object) => {
                collector.observe_deleted(&object.metadata.uid);
                revision = object.metadata.resource_version;
            }
            WatchEvent::Bookmark(bookmark) => revision = bookmark.metadata.resource_version,
            WatchEvent::Error(status) => return Err(Error::Kube(kube::Error::Api(status))),
        }
        *failures = 0;
    }
    Ok(revision)
}
