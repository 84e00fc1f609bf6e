//! Events as kube-controller-manager and the kubelet write them: in the background, repeats counted, floods cut.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use kube::Client;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Request;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use windlass_machinery::Context;

use super::informer::Kind;

/// Repeats within this time are counted on the first Event.
const REPEAT_WINDOW: Duration = Duration::from_secs(600);
/// From this many different messages of one reason about one object on, they share an Event.
const SIMILAR: usize = 10;
/// One object gets this many Events at once, and then one more each [`REFILL`].
const BURST: u32 = 25;
const REFILL: Duration = Duration::from_secs(300);

/// Writes the Events of one component.
#[derive(Clone)]
pub(crate) struct Recorder {
    sender: mpsc::UnboundedSender<Note>,
}

struct Note {
    about: ObjectReference,
    kind: &'static str,
    reason: Cow<'static, str>,
    message: String,
    /// What was done, in Events of the newer style.
    action: Option<&'static str>,
}

impl Recorder {
    /// Starts the background writer of a component; `host` is the node's name for a kubelet.
    pub(crate) fn start(
        tasks: &mut JoinSet<()>,
        client: Client,
        context: Context,
        component: &'static str,
        host: Option<&'static str>,
    ) -> Self {
        let (sender, notes) = mpsc::unbounded_channel();
        let writer = Writer {
            client,
            context,
            component,
            host,
            past: BTreeMap::new(),
            similar: BTreeMap::new(),
            last: 0,
            spent: BTreeMap::new(),
        };
        tasks.spawn(writer.run(notes));
        Self { sender }
    }

    pub(crate) fn normal<K: Kind>(&self, about: &K, reason: impl Into<Cow<'static, str>>, message: String) {
        self.note(reference(about), "Normal", reason, message);
    }

    pub(crate) fn warning<K: Kind>(&self, about: &K, reason: impl Into<Cow<'static, str>>, message: String) {
        self.note(reference(about), "Warning", reason, message);
    }

    pub(crate) fn note(
        &self,
        about: ObjectReference,
        kind: &'static str,
        reason: impl Into<Cow<'static, str>>,
        message: String,
    ) {
        let reason = reason.into();
        // The writer is gone only while everything stops.
        let _ = self.sender.send(Note { about, kind, reason, message, action: None });
    }

    /// An Event of the newer style (`events.k8s.io`), as the scheduler writes them.
    pub(crate) fn action<K: Kind>(
        &self,
        about: &K,
        kind: &'static str,
        reason: &'static str,
        action: &'static str,
        message: String,
    ) {
        let _ = self.sender.send(Note {
            about: reference(about),
            kind,
            reason: reason.into(),
            message,
            action: Some(action),
        });
    }
}

/// What an Event says it is about.
pub(crate) fn reference<K: Kind>(object: &K) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        field_path: None,
    }
}

struct Writer {
    client: Client,
    context: Context,
    component: &'static str,
    host: Option<&'static str>,
    past: BTreeMap<String, Past>,
    /// The messages of a reason about an object, and when the last one was.
    similar: BTreeMap<String, (BTreeSet<String>, Instant)>,
    last: i128,
    spent: BTreeMap<String, (u32, Instant)>,
}

struct Past {
    namespace: String,
    name: String,
    count: i32,
    at: Instant,
}

impl Writer {
    async fn run(mut self, mut notes: mpsc::UnboundedReceiver<Note>) {
        while let Some(note) = notes.recv().await {
            if let Err(error) = self.write(note).await {
                tracing::debug!(component = self.component, %error, "failed to write an event");
            }
        }
    }

    async fn write(&mut self, mut note: Note) -> Result<(), super::Error> {
        let now = Instant::now();
        if !self.allowed(&note.about, now) {
            return Ok(());
        }
        let key = self.combined(&mut note, now);
        self.past.retain(|_, past| now.duration_since(past.at) < REPEAT_WINDOW);
        let time = Time(self.context.now());
        if let Some(past) = self.past.get_mut(&key) {
            past.count += 1;
            past.at = now;
            let patch =
                Patch::Merge(json!({"count": past.count, "lastTimestamp": time, "message": note.message}));
            let request = Request::new(<Event as kube::Resource>::url_path(&(), Some(&past.namespace)));
            let request =
                request.patch(&past.name, &PatchParams::default(), &patch).map_err(super::Error::build)?;
            self.client.request::<Event>(request).await?;
            return Ok(());
        }
        let namespace = note.about.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let name = self.next_name(&note.about);
        let mut event = Event {
            metadata: ObjectMeta { name: Some(name), namespace: Some(namespace), ..ObjectMeta::default() },
            involved_object: note.about,
            reason: Some(note.reason.into_owned()),
            message: Some(note.message),
            type_: Some(note.kind.to_owned()),
            count: Some(1),
            first_timestamp: Some(time.clone()),
            last_timestamp: Some(time),
            source: Some(EventSource {
                component: Some(self.component.to_owned()),
                host: self.host.map(str::to_owned),
            }),
            reporting_component: Some(self.component.to_owned()),
            reporting_instance: Some(self.host.unwrap_or_default().to_owned()),
            ..Event::default()
        };
        if let Some(action) = note.action {
            event.action = Some(action.to_owned());
            event.event_time = Some(MicroTime(self.context.now()));
            event.reporting_instance = Some(format!("{}-{}", self.component, self.host.unwrap_or_default()));
            (event.source, event.count) = (None, None);
            (event.first_timestamp, event.last_timestamp) = (None, None);
        }
        let made = loop {
            let url = <Event as kube::Resource>::url_path(&(), event.metadata.namespace.as_deref());
            let request = Request::new(url).create(&PostParams::default(), serde_json::to_vec(&event)?);
            let made = self.client.request::<Event>(request.map_err(super::Error::build)?).await;
            match made.map_err(super::Error::from) {
                // Another component told of the same object at the same moment.
                Err(error) if error.has_reason("AlreadyExists") => {
                    event.metadata.name = Some(self.next_name(&event.involved_object));
                }
                other => break other?,
            }
        };
        let past = Past {
            namespace: made.metadata.namespace.unwrap_or_default(),
            name: made.metadata.name.unwrap_or_default(),
            count: 1,
            at: now,
        };
        self.past.insert(key, past);
        Ok(())
    }

    /// A name for an Event: it carries the time, and a clock that stands still must not give two Events one name.
    fn next_name(&mut self, about: &ObjectReference) -> String {
        self.last = self.context.now().as_nanosecond().max(self.last + 1);
        format!("{}.{:x}", about.name.as_deref().unwrap_or_default(), self.last)
    }

    /// What an Event is known by: its message too, unless there are too many different ones.
    fn combined(&mut self, note: &mut Note, now: Instant) -> String {
        let group = format!("{:?}/{:?}/{}/{}", note.about.uid, note.about.field_path, note.kind, note.reason);
        self.similar.retain(|_, (_, last)| now.duration_since(*last) < REPEAT_WINDOW);
        let (messages, last) = self.similar.entry(group.clone()).or_insert_with(|| (BTreeSet::new(), now));
        *last = now;
        messages.insert(note.message.clone());
        if messages.len() < SIMILAR {
            return format!("{group}/{}", note.message);
        }
        messages.pop_first();
        note.message = format!("(combined from similar events): {}", note.message);
        group
    }

    fn allowed(&mut self, about: &ObjectReference, now: Instant) -> bool {
        let uid = about.uid.clone().unwrap_or_default();
        self.spent.retain(|_, (_, since)| now.duration_since(*since) < REFILL * BURST);
        let (spent, since) = self.spent.entry(uid).or_insert((0, now));
        let refilled =
            u32::try_from(now.duration_since(*since).as_secs() / REFILL.as_secs()).unwrap_or(BURST);
        if refilled > 0 {
            *spent = spent.saturating_sub(refilled);
            *since += REFILL * refilled;
        }
        if *spent >= BURST {
            return false;
        }
        *spent += 1;
        true
    }
}
