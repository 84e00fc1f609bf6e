//! Keeps the facts about external things up to date, as long as some plan reads them.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use windlass_machinery::Context;

use super::{AnyExternal, stored};
use crate::ObjectName;
use crate::cache::Cache;

/// The pauses after failures grow from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// Looks at what plans have read, from time to time and whenever something tells, for as long as it is polled.
pub(crate) async fn attend(cache: Arc<Cache>, external: Arc<dyn AnyExternal>) {
    let kind = external.kind();
    let mut changes = external.changes();
    let mut told = true;
    loop {
        let pause = async {
            match external.poll() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = changes.next(), if told => match changed {
                Some(id) => {
                    let name = ObjectName::new("", id);
                    if cache.is_read(&kind, &name) {
                        look(&cache, external.as_ref(), &name).await;
                    }
                }
                None => told = false,
            },
            () = pause => for name in cache.read_names(&kind) {
                look(&cache, external.as_ref(), &name).await;
            },
        }
    }
}

/// Looks at one thing for the first time, again and again until that succeeds.
pub(crate) async fn observe(
    cache: Arc<Cache>,
    context: Context,
    external: Arc<dyn AnyExternal>,
    name: ObjectName,
) {
    let mut longest = FIRST_PAUSE;
    while !look(&cache, external.as_ref(), &name).await {
        let jitter = context.below(longest.as_millis() as u64 / 2);
        tokio::time::sleep(longest - Duration::from_millis(jitter)).await;
        longest = (longest * 2).min(LONGEST_PAUSE);
        if !cache.is_read(&external.kind(), &name) {
            return;
        }
    }
}

async fn look(cache: &Cache, external: &dyn AnyExternal, name: &ObjectName) -> bool {
    let before = cache.fact_version(&external.kind(), name);
    let found = external.observe(&name.name).await;
    if let Err(error) = &found {
        tracing::warn!(kind = %external.kind(), %name, error, "failed to observe");
    }
    let succeeded = found.is_ok();
    let found = found.map(|found| found.map(|value| stored(&name.name, value)));
    cache.fact(&external.kind(), name, found, before);
    succeeded
}
