//! The events that were written last: all who watch the same things in the same form are sent the same bytes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::super::negotiation::{Form, View};
use super::super::registry::Resource;
use crate::store::Revision;

/// Watches are woken together, so that few events are asked for at a time.
const MOST: usize = 32;

/// Events by what makes them what they are. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Recent(Arc<Mutex<VecDeque<(Stamp, Bytes)>>>);

#[derive(Debug)]
struct Stamp {
    /// Held, so that no other comes to be in its place.
    resource: Arc<Resource>,
    revision: Revision,
    kind: &'static str,
    view: View,
    version: &'static str,
}

impl Recent {
    /// The event of that type at a revision, made where it is not there yet.
    pub(super) fn event(
        &self,
        resource: &Arc<Resource>,
        revision: Revision,
        kind: &'static str,
        form: Form,
        make: impl FnOnce() -> Bytes,
    ) -> Bytes {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = events.iter().rev().find(|(stamp, _)| {
            stamp.revision == revision
                && Arc::ptr_eq(&stamp.resource, resource)
                && stamp.kind == kind
                && stamp.view == form.view
                && stamp.version == form.version
        });
        if let Some((_, event)) = known {
            return event.clone();
        }
        let event = make();
        // One that is never asked for again is not worth its memory for long.
        if events.len() == MOST {
            events.pop_front();
        }
        let resource = Arc::clone(resource);
        let stamp = Stamp { resource, revision, kind, view: form.view, version: form.version };
        events.push_back((stamp, event.clone()));
        event
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt as _, TryStreamExt as _};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, ObjectMeta, PostParams, WatchEvent, WatchParams};

    use crate::controllers::Selection;
    use crate::{Drydock, Options};

    fn labelled(value: &str) -> ConfigMap {
        let labels = [("app".to_owned(), value.to_owned())].into();
        let metadata =
            ObjectMeta { name: Some("a".to_owned()), labels: Some(labels), ..ObjectMeta::default() };
        let data = [("key".to_owned(), value.to_owned())].into();
        ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn watches_of_one_change_are_each_told_of_it_in_their_own_way() {
        let options = Options { controllers: Selection::parse("").unwrap(), ..Options::seeded(1) };
        let drydock = Drydock::start(options).await.unwrap();
        let maps: Api<ConfigMap> = Api::default_namespaced(drydock.client("test"));
        let made = maps.create(&PostParams::default(), &labelled("one")).await.unwrap();
        let from = made.metadata.resource_version.unwrap();
        let all = WatchParams::default();
        let mut whole = maps.watch(&all, &from).await.unwrap().boxed();
        let mut again = maps.watch(&all, &from).await.unwrap().boxed();
        let mut metadata = maps.watch_metadata(&all, &from).await.unwrap().boxed();
        let mut leaves = maps.watch(&all.clone().labels("app=one"), &from).await.unwrap().boxed();
        let mut comes = maps.watch(&all.clone().labels("app=two"), &from).await.unwrap().boxed();
        maps.replace("a", &PostParams::default(), &labelled("two")).await.unwrap();

        for events in [&mut whole, &mut again] {
            let event = events.try_next().await.unwrap().unwrap();
            assert!(matches!(event, WatchEvent::Modified(map) if map.data.as_ref().unwrap()["key"] == "two"));
        }
        let event = metadata.try_next().await.unwrap().unwrap();
        assert!(
            matches!(event, WatchEvent::Modified(map) if map.types.as_ref().unwrap().kind == "PartialObjectMetadata")
        );
        let event = leaves.try_next().await.unwrap().unwrap();
        assert!(matches!(event, WatchEvent::Deleted(map) if map.data.as_ref().unwrap()["key"] == "one"));
        let event = comes.try_next().await.unwrap().unwrap();
        assert!(matches!(event, WatchEvent::Added(map) if map.data.as_ref().unwrap()["key"] == "two"));
        drydock.stop().await;
    }
}
