//! A record of requests, by client: how tests and benchmarks count what an operator asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// How many requests are remembered one by one.
const LIMIT: usize = 100_000;

/// One request for a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The client's user agent.
    pub client: String,
    /// The API's verb.
    pub verb: &'static str,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource.
    pub subresource: Option<String>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The object's name.
    pub name: Option<String>,
    /// The HTTP status of the answer.
    pub code: u16,
}

/// The requests a server has answered. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Record {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    counts: BTreeMap<String, BTreeMap<&'static str, u64>>,
    entries: Option<Vec<Entry>>,
}

impl Record {
    /// Remembers every request from now on, one by one, not only their number.
    pub fn keep_entries(&self) {
        self.lock().entries.get_or_insert_default();
    }

    /// The requests since [`Record::keep_entries`] that `client` made (any client where it is empty).
    #[must_use]
    pub fn entries(&self, client: &str) -> Vec<Entry> {
        let inner = self.lock();
        let entries = inner.entries.as_deref().unwrap_or_default();
        entries.iter().filter(|entry| client.is_empty() || entry.client == client).cloned().collect()
    }

    /// Everybody who has asked for something.
    #[must_use]
    pub fn clients(&self) -> BTreeSet<String> {
        self.lock().counts.keys().cloned().collect()
    }

    /// The number of requests of each verb that `client` made.
    #[must_use]
    pub fn counts(&self, client: &str) -> BTreeMap<&'static str, u64> {
        self.lock().counts.get(client).cloned().unwrap_or_default()
    }

    pub(crate) fn add(&self, client: &str, verb: &'static str, entry: impl FnOnce() -> Entry) {
        let mut inner = self.lock();
        match inner.counts.get_mut(client) {
            Some(counts) => *counts.entry(verb).or_default() += 1,
            None => {
                inner.counts.insert(client.to_owned(), BTreeMap::from([(verb, 1)]));
            }
        }
        if let Some(entries) = inner.entries.as_mut().filter(|entries| entries.len() < LIMIT) {
            entries.push(entry());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
