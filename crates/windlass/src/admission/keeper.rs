//! Keeps the certificates in their Secret, the same for all replicas.
//!
//! A Secret that is not there or cannot be used is made good by whichever replica is the first: creating it conflicts
//! with another's, and changing it holds only for the version that was read. What a replica has been serving comes before
//! anything new, so that a Secret that was deleted costs nothing. In good order, only the replica that may write for all
//! replaces certificates, step by step; the others take in what the Secret says.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::runtime::watcher::watch_object;
use kube::{Client, ResourceExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use windlass_machinery::Context;

use super::endpoint::{Endpoint, Trouble};
use super::keyring::Keyring;
use super::webhooks::Webhooks;
use crate::MANAGED_BY;
use crate::replica::Permit;

/// How long everybody has had the new authority before a certificate of it is served.
pub(crate) const SPREAD: Duration = Duration::from_secs(600);
/// The longest time between two looks at the clock: machines sleep.
const LOOK: Duration = Duration::from_secs(12 * 3600);
/// How long a request may take before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause after a failure, doubled with each up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What the parts of the webhooks tell each other.
pub(crate) struct Shared {
    /// The certificates in use.
    pub(crate) held: watch::Sender<Option<Arc<Keyring>>>,
    /// The bundle that all registrations have, and since when.
    pub(crate) known: watch::Sender<Option<(String, Instant)>>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { held: watch::Sender::new(None), known: watch::Sender::new(None) }
    }
}

impl Shared {
    /// The bundle that clients have to trust, once there are certificates.
    pub(crate) async fn bundle(&self) -> String {
        let mut held = self.held.subscribe();
        let keyring = held.wait_for(Option::is_some).await;
        keyring.ok().and_then(|held| held.as_ref().map(|keyring| keyring.bundle())).unwrap_or_default()
    }
}

pub(crate) struct Keeper {
    api: Api<Secret>,
    webhooks: Webhooks,
    names: Vec<String>,
    /// This replica's name: what two of them make at once must conflict.
    identity: String,
    context: Context,
    permit: Permit,
    endpoint: Endpoint,
    shared: Arc<Shared>,
}

impl Keeper {
    pub(crate) fn new(
        client: Client,
        webhooks: &Webhooks,
        context: Context,
        permit: Permit,
        endpoint: Endpoint,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            api: Api::namespaced(client, &webhooks.secret_name().namespace),
            webhooks: webhooks.clone(),
            names: webhooks.names(),
            identity: format!("windlass-webhooks-{}", context.name_suffix()),
            context,
            permit,
            endpoint,
            shared,
        }
    }

    /// Keeps them for as long as it is polled.
    pub(crate) async fn keep(&self) {
        let name = self.webhooks.secret_name();
        let mut events = pin!(watch_object(self.api.clone(), &name.name));
        let mut known = self.shared.known.subscribe();
        // Nothing is known of the Secret until the first event.
        let mut latest: Option<Option<Secret>> = None;
        let mut failures: u32 = 0;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(seen)) if is_older(&seen, &latest) => continue,
                    Some(Ok(seen)) => latest = Some(seen),
                    Some(Err(error)) => {
                        failures += 1;
                        self.note(failures, &format!("failed to watch Secret {name}: {error}"));
                        sleep(pause(failures)).await;
                        continue;
                    }
                    None => return,
                },
                _ = known.changed() => {}
                () = sleep(self.look_again(failures)) => {}
            }
            while let Some(secret) = &latest {
                match self.see_to(secret.as_ref()).await {
                    Ok(Some(written)) => {
                        latest = Some(Some(written));
                        continue;
                    }
                    Ok(None) => {
                        failures = 0;
                        self.endpoint.note(Trouble::Certificates, None);
                    }
                    Err(error) => {
                        failures += 1;
                        self.note(
                            failures,
                            &format!("failed to keep certificates in Secret {name}: {error}"),
                        );
                    }
                }
                break;
            }
        }
    }

    /// Takes in what the Secret says and does the next step, if one is due; gives the Secret as it was written.
    async fn see_to(&self, secret: Option<&Secret>) -> Result<Option<Secret>, String> {
        let now = self.context.now();
        let read = match secret {
            Some(secret) => Keyring::read(secret, &self.names, now).map_err(|error| error.to_string()),
            None => Err("it is not there".to_owned()),
        };
        let wanted = match (read, secret) {
            (Ok(keyring), Some(secret)) => {
                self.take_in(&keyring)?;
                if !self.permit.is_valid() {
                    return Ok(None);
                }
                let next = self.step(&keyring, now)?;
                let as_written = secret.data.as_ref() == Some(&keyring.data());
                match next {
                    None if as_written => return Ok(None),
                    next => next.unwrap_or(keyring),
                }
            }
            (Ok(_), None) => return Ok(None),
            (Err(why), _) => {
                let held = self.shared.held.borrow().clone();
                let usable = held.filter(|held| held.check(&self.names, now).is_ok());
                tracing::info!(secret = %self.webhooks.secret_name(), why, kept = usable.is_some(), "makes the certificates of webhooks good");
                match usable {
                    Some(held) => Keyring::clone(&held),
                    None => Keyring::make(&self.names, now).map_err(|error| error.to_string())?,
                }
            }
        };
        self.write(secret, &wanted).await
    }

    /// What is to be done next about certificates in good order.
    fn step(&self, keyring: &Keyring, now: Timestamp) -> Result<Option<Keyring>, String> {
        if keyring.next.is_some() {
            return Ok((self.time_to_succeed(keyring) == Some(Duration::ZERO)).then(|| keyring.succeeded()));
        }
        if now < keyring.serving.due() {
            return Ok(None);
        }
        keyring.with_next(&self.names, now).map(Some).map_err(|error| error.to_string())
    }

    /// How long the successor still has to wait, if all registrations have its authority.
    fn time_to_succeed(&self, keyring: &Keyring) -> Option<Duration> {
        let known = self.shared.known.borrow();
        let (_, since) = known.as_ref().filter(|(bundle, _)| *bundle == keyring.bundle())?;
        Some(SPREAD.saturating_sub(since.elapsed()))
    }

    fn take_in(&self, keyring: &Keyring) -> Result<(), String> {
        let held = self.shared.held.borrow().clone();
        if held.as_deref() == Some(keyring) {
            return Ok(());
        }
        if held.is_none_or(|held| held.serving != keyring.serving) {
            self.endpoint.present(&keyring.serving).map_err(|error| error.to_string())?;
            tracing::info!(until = %keyring.serving.ends, "webhooks have a certificate");
        }
        self.shared.held.send_replace(Some(Arc::new(keyring.clone())));
        Ok(())
    }

    /// Writes the Secret, if it is still as it was read; nothing if another was faster.
    async fn write(&self, before: Option<&Secret>, keyring: &Keyring) -> Result<Option<Secret>, String> {
        let name = self.webhooks.secret_name();
        let request = async {
            let Some(before) = before else {
                // A role can allow this for one name, which it cannot for a post.
                let secret = Secret {
                    metadata: ObjectMeta {
                        name: Some(name.name.clone()),
                        namespace: Some(name.namespace.clone()),
                        labels: Some([(MANAGED_BY.to_owned(), "windlass".to_owned())].into()),
                        ..ObjectMeta::default()
                    },
                    type_: Some("kubernetes.io/tls".into()),
                    data: Some(keyring.data()),
                    ..Secret::default()
                };
                let params = PatchParams::apply(&self.identity);
                return self.api.patch(&name.name, &params, &Patch::Apply(&secret)).await;
            };
            let secret = Secret { data: Some(keyring.data()), string_data: None, ..before.clone() };
            let params = PostParams { field_manager: Some(self.identity.clone()), ..PostParams::default() };
            self.api.replace(&name.name, &params, &secret).await
        };
        match timeout(PATIENCE, request).await {
            Ok(Ok(written)) => Ok(Some(written)),
            // The watch brings what the other has written.
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => Ok(None),
            Ok(Err(kube::Error::Api(status))) => Err(status.message.clone()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer from the API server within {} s", PATIENCE.as_secs())),
        }
    }

    fn look_again(&self, failures: u32) -> Duration {
        if failures > 0 {
            return pause(failures);
        }
        let held = self.shared.held.borrow().clone();
        let Some(keyring) = held else { return LOOK };
        let now = self.context.now();
        let until = |time: Timestamp| Duration::try_from(time.duration_since(now)).unwrap_or_default();
        let due = match keyring.next {
            None if self.permit.is_valid() => until(keyring.serving.due()),
            None => until(keyring.serving.ends),
            Some(_) => self.time_to_succeed(&keyring).unwrap_or(LOOK).min(until(keyring.serving.ends)),
        };
        due.clamp(PAUSE, LOOK)
    }

    /// Fewer failures than three in a row are the ordinary life of a client.
    fn note(&self, failures: u32, what: &str) {
        if failures >= 3 {
            self.endpoint.note(Trouble::Certificates, Some(what.to_owned()));
        }
    }
}

/// Whether a watch shows what was there before something we have seen already.
fn is_older(seen: &Option<Secret>, latest: &Option<Option<Secret>>) -> bool {
    let version = |secret: &Secret| secret.resource_version().and_then(|version| version.parse::<u64>().ok());
    match (seen, latest) {
        (Some(seen), Some(Some(latest))) => version(seen) < version(latest),
        _ => false,
    }
}

pub(crate) fn pause(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST_PAUSE)
}
