//! The cache as seen from outside: how much it holds, how its watches are, and all primaries.

use std::time::Duration;

use super::{Cache, Inner, PrimaryKey, Scope};
use crate::Kind;
use crate::explain::Cause;

/// A watch that has neither delivered nor failed for so long before it was loaded will not do it any more.
const STUCK: Duration = Duration::from_secs(600);

/// How things are with one kind.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) kind: Kind,
    /// Objects kept whole.
    pub(crate) objects: usize,
    /// The text of them.
    pub(crate) bytes: usize,
    pub(crate) loaded: bool,
    /// Why the watch does not get on.
    pub(crate) error: Option<String>,
    /// It gives no sign of life.
    pub(crate) stuck: bool,
}

impl Cache {
    /// How things are with each kind that is watched.
    pub(crate) fn survey(&self) -> Vec<Survey> {
        let inner = self.lock();
        let watched = inner.stores.iter().filter(|(_, store)| !store.on_demand);
        let survey = |(kind, store): (&Kind, &super::Store)| Survey {
            kind: kind.clone(),
            objects: store.entries.len(),
            bytes: store.entries.values().map(|stored| stored.size()).sum(),
            loaded: store.is_loaded(None),
            error: store.watches_of(None).find_map(|watched| watched.error.clone()),
            stuck: store.watches_of(None).any(|watched| !watched.loaded && watched.sign.0.elapsed() > STUCK),
        };
        watched.map(survey).collect()
    }

    /// Notes that a watch lives.
    pub(super) fn sign(&self, kind: &Kind, scope: &Scope) {
        if let Some(watched) = self.lock().watched(kind, scope) {
            watched.sign = super::store::Sign::default();
        }
    }

    /// Queues every primary: this replica may write what it could not before.
    pub(crate) fn queue_primaries(&self) {
        for key in self.lock().all_primaries() {
            self.queue.note(&key, Cause::Granted);
            self.queue.add(key);
        }
    }
}

impl Inner {
    pub(super) fn all_primaries(&self) -> Vec<PrimaryKey> {
        let kinds = self.index.primaries().iter().enumerate();
        kinds
            .flat_map(|(controller, kind)| {
                let names = self.stores.get(kind).into_iter().flat_map(|store| store.entries.keys());
                names.map(move |name| PrimaryKey { controller, name: name.clone() })
            })
            .collect()
    }
}
