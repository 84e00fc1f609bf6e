//! Tells the API server of the webhooks, and keeps that true: who has changed it by hand finds it changed back.
//!
//! Only the replica that may write for all does this. Of each object only our own fields are applied; whatever else
//! somebody has set there (a selector, a match condition) stays.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::SelectAll;
use kube::Client;
use kube::runtime::watcher::watch_object;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::endpoint::{Endpoint, Trouble};
use super::keeper::{Shared, pause};
use super::webhooks::{Registration, Webhooks};
use crate::Operator;
use crate::apply::{ApplyError, Requests, difference};
use crate::cache::{Delivered, Shares, Stored};
use crate::replica::{Permit, Replica};

/// By what the replicas decide which of them does this.
pub(crate) const KEY: &str = "webhooks";
/// The least time between two corrections of one object; after a few doubled each time up to the longest, while somebody
/// insists.
const PACE: Duration = Duration::from_secs(1);
const A_FEW: u32 = 5;
const SLOWEST: Duration = Duration::from_secs(300);
/// After so long without a correction the pace is as at first.
const CALM: Duration = Duration::from_secs(600);

pub(crate) struct Registrar {
    client: Client,
    webhooks: Webhooks,
    operators: Vec<Operator>,
    replica: Replica,
    permit: Permit,
    endpoint: Endpoint,
    shared: Arc<Shared>,
}

/// What is known of one object.
struct Watched {
    registration: Registration,
    shares: Shares,
    /// Nothing until the first event.
    observed: Option<Option<Stored>>,
    written: Option<Instant>,
    /// How often it was written without a time of calm.
    corrections: u32,
}

impl Registrar {
    pub(crate) fn new(
        client: Client,
        webhooks: &Webhooks,
        operators: &[Operator],
        replica: Replica,
        endpoint: Endpoint,
        shared: Arc<Shared>,
    ) -> Self {
        let permit = replica.permit(KEY);
        Self {
            client,
            webhooks: webhooks.clone(),
            operators: operators.to_vec(),
            replica,
            permit,
            endpoint,
            shared,
        }
    }

    /// Keeps the registrations for as long as it is polled, whenever this replica may.
    pub(crate) async fn keep(&self) {
        loop {
            self.replica.granted(KEY).await;
            let _ = self.permit.while_valid(self.attend()).await;
            self.shared.known.send_replace(None);
            self.endpoint.note(Trouble::Registration, None);
            // Whoever may write in this replica's place has not begun yet.
            sleep(PACE).await;
        }
    }

    /// Watches the objects and corrects them, until this replica may no more.
    async fn attend(&self) {
        let mut held = self.shared.held.subscribe();
        let mut all = self.registrations(&self.shared.bundle().await);
        let mut events = SelectAll::new();
        for (index, one) in all.iter().enumerate() {
            let api = one.registration.kind.api(&self.client, &one.registration.name);
            let events_of_one = watch_object(api, &one.registration.name.name);
            events.push(events_of_one.map(move |event| (index, event)).boxed());
        }
        let mut failures: u32 = 0;
        let mut again = Duration::MAX;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some((index, Ok(object))) => all[index].saw(object),
                    Some((index, Err(error))) => {
                        failures += 1;
                        self.note(failures, &format!("failed to watch {}: {error}", all[index].title()));
                        sleep(pause(failures)).await;
                        continue;
                    }
                    None => return,
                },
                _ = held.changed() => {
                    let bundle = self.shared.bundle().await;
                    for (one, wanted) in all.iter_mut().zip(self.registrations(&bundle)) {
                        one.registration = wanted.registration;
                    }
                }
                () = sleep(again) => {}
            }
            match self.correct(&mut all).await {
                Ok(wait) => {
                    failures = 0;
                    self.endpoint.note(Trouble::Registration, None);
                    again = wait.unwrap_or(Duration::MAX);
                }
                Err((_, ApplyError::Deposed(_))) => return,
                Err((title, error)) => {
                    failures += 1;
                    self.note(failures, &format!("failed to apply {title}: {error}"));
                    again = pause(failures);
                }
            }
        }
    }

    /// Corrects what is not as it should be; gives when to come back for what has to wait.
    async fn correct(&self, all: &mut [Watched]) -> Result<Option<Duration>, (String, ApplyError)> {
        let mut wait: Option<Duration> = None;
        let mut failed = None;
        for one in all.iter_mut() {
            let Some(body) = one.correction() else { continue };
            if let Some(rest) = one.rest() {
                wait = Some(wait.map_or(rest, |wait| wait.min(rest)));
                continue;
            }
            let Registration { kind, name, manager, .. } = &one.registration;
            let requests =
                Requests::new(self.client.clone(), manager.clone()).under(self.permit.clone(), None);
            match requests.patch(kind, name, &body, true).await {
                Ok(object) => one.wrote(object),
                Err(error) => failed = Some((one.title(), error)),
            }
        }
        let all_known = all.iter().all(|one| one.observed.is_some() && one.correction().is_none());
        let bundle = self.shared.bundle().await;
        self.shared.known.send_if_modified(|known| {
            let same = known.as_ref().is_some_and(|(known, _)| all_known && *known == bundle);
            let changed = !same && (all_known || known.is_some());
            if changed {
                *known = all_known.then(|| (bundle, Instant::now()));
            }
            changed
        });
        failed.map_or(Ok(wait), Err)
    }

    fn registrations(&self, bundle: &str) -> Vec<Watched> {
        let of = |operator: &Operator| self.webhooks.registrations(operator, bundle);
        let all = self.operators.iter().flat_map(of);
        all.map(|registration| Watched {
            shares: Shares::new([registration.manager.clone()].into()),
            registration,
            observed: None,
            written: None,
            corrections: 0,
        })
        .collect()
    }

    /// Fewer failures than three in a row are the ordinary life of a client.
    fn note(&self, failures: u32, what: &str) {
        if failures >= 3 {
            self.endpoint.note(Trouble::Registration, Some(what.to_owned()));
        }
    }
}

impl Watched {
    fn title(&self) -> String {
        format!("{} {}", self.registration.kind, self.registration.name)
    }

    fn saw(&mut self, object: Option<Delivered>) {
        let seen = object.map(|object| Stored::new(&object, &self.shares));
        let version = |stored: &Stored| stored.resource_version;
        let older = match (&seen, &self.observed) {
            (Some(seen), Some(Some(known))) => seen.uid == known.uid && version(seen) < version(known),
            _ => false,
        };
        if !older {
            self.observed = Some(seen);
        }
    }

    fn wrote(&mut self, object: Delivered) {
        let now = Instant::now();
        let calm = self.written.is_none_or(|written| now - written >= CALM);
        self.corrections = if calm { 1 } else { self.corrections.saturating_add(1) };
        self.written = Some(now);
        self.saw(Some(object));
    }

    /// How long to wait before the next correction.
    fn rest(&self) -> Option<Duration> {
        let doubled = 1 << self.corrections.saturating_sub(A_FEW).min(10);
        let pace = (PACE * doubled).min(SLOWEST);
        let rest = pace.checked_sub(self.written?.elapsed())?;
        (!rest.is_zero()).then_some(rest)
    }

    /// What has to be applied, if anything.
    fn correction(&self) -> Option<Value> {
        let mut body = self.registration.body.clone();
        let Some(observed) = self.observed.as_ref()? else {
            // A definition that is not there has no conversions.
            return (!self.registration.part).then_some(body);
        };
        let nothing = Value::Null;
        let share = observed.share.as_ref().map_or(&nothing, |share| &share.fields);
        difference(&body, &observed.value(), share)?;
        // The very object that was compared; where it is gone, none is made of our part of it.
        body["metadata"]["uid"] = Value::from(&*observed.uid);
        Some(body)
    }
}
