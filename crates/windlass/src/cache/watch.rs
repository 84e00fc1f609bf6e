//! The tasks that fill a store: one watch per kind and scope, and single fetches.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use kube::Client;
use kube::core::Status;
use kube::runtime::watcher;
use windlass_machinery::Context;

use super::{Cache, Delivered, Scope, Stored};
use crate::metrics::Metrics;
use crate::{Kind, ObjectName};

/// The longest pause after a failed watch or fetch.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A watch that has failed, and has not failed again for so long, goes on. Longer than the longest pause.
const QUIET: Duration = Duration::from_secs(60);

/// So many failures in a row are reported; fewer are the ordinary life of a watch.
const TROUBLE: u32 = 3;

/// Watches a kind in a scope for as long as it is polled, and keeps its store up to date.
pub(crate) async fn watch(
    cache: Arc<Cache>,
    client: Client,
    context: Context,
    metrics: Arc<Metrics>,
    kind: Kind,
    scope: Scope,
) {
    let events = watcher(kind.within(&client, scope.as_deref()), watcher::Config::default());
    pin_mut!(events);
    let mut failures = 0;
    loop {
        // A watch says nothing of having begun: one that does not fail again has.
        let event = match failures >= TROUBLE {
            true => tokio::time::timeout(QUIET, events.next()).await,
            false => Ok(events.next().await),
        };
        let Ok(event) = event else {
            failures = 0;
            cache.watch_recovered(&kind, &scope);
            continue;
        };
        let Some(event) = event else { return };
        cache.sign(&kind, &scope);
        match event {
            Ok(event) => {
                // `Init` comes before each attempt to list.
                if !matches!(event, watcher::Event::Init) {
                    if failures >= TROUBLE {
                        cache.watch_recovered(&kind, &scope);
                    }
                    failures = 0;
                }
                take_in(&cache, &kind, &scope, event);
            }
            Err(error) => {
                let code = status(&error).map(|status| status.code);
                let error = describe(&error);
                tracing::warn!(?kind, %error, "watch failed");
                failures += 1;
                metrics.watch_restarted(&kind);
                if failures >= TROUBLE {
                    let message = format!("failed to watch {}: {error}", kind.plural());
                    cache.watch_failed(&kind, &scope, &message, code == Some(403));
                }
                tokio::time::sleep(pause(&context, failures)).await;
            }
        }
    }
}

/// Gets one object that is known to exist but was not kept.
pub(crate) async fn fetch(cache: Arc<Cache>, client: Client, context: Context, kind: Kind, name: ObjectName) {
    for failures in 0.. {
        match kind.api(&client, &name).get_opt(&name.name).await {
            Ok(found) => {
                let stored = found.map(|object: Delivered| Stored::new(&object, cache.shares()));
                return cache.fetched(&kind, &name, stored);
            }
            Err(error) => {
                let error = said(&error);
                tracing::warn!(?kind, %name, error, "fetch failed");
                if failures >= TROUBLE {
                    cache.fetch_failed(&kind, &name, &error);
                }
                tokio::time::sleep(pause(&context, failures)).await;
            }
        }
    }
}

fn take_in(cache: &Cache, kind: &Kind, scope: &Scope, event: watcher::Event<Delivered>) {
    match event {
        watcher::Event::Init => cache.list_began(kind, scope),
        watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
            cache.arrived(kind, &object);
        }
        watcher::Event::InitDone => cache.list_done(kind, scope),
        watcher::Event::Delete(object) => cache.gone(kind, &Stored::new(&object, cache.shares())),
    }
}

/// The server's own words where it said something.
fn describe(error: &watcher::Error) -> String {
    status(error).map_or_else(|| error.to_string(), |status| status.message.clone())
}

fn status(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        _ => None,
    }
}

fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

fn pause(context: &Context, failures: u32) -> Duration {
    let longest = Duration::from_millis(200).saturating_mul(1 << failures.min(10)).min(LONGEST_PAUSE);
    let jitter = context.below(longest.as_millis() as u64 / 2);
    longest / 2 + Duration::from_millis(jitter)
}
