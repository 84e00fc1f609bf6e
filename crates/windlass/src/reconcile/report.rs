//! The status of a primary, and Events about what is newly wrong.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as Standard, Time};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::memory::{Memories, Memory};
use super::{Findings, Next, Pass, Reconciler};
use crate::annotation::PAUSED;
use crate::cache::PrimaryKey;
use crate::controller::{Subject, overlay, own_conditions};
use crate::hash::quick_hash;
use crate::{Kind, Status, event};

/// Progress that changes nothing in the gist is written no more often than this.
const CALM: Duration = Duration::from_secs(30);
/// While more primaries than this are on the move, such progress is not written at all: the requests are better
/// spent on getting them ready.
const CROWD: usize = 50;

impl Pass<'_> {
    /// Writes the status if it differs. Gives the pause after which to look again, because a change in detail has
    /// to be written or the operator's own part has changed, or an error if the write failed.
    pub(super) async fn report(
        &self,
        subject: Option<&dyn Subject>,
        findings: &mut Findings,
    ) -> Result<Option<Duration>, ()> {
        let observed = &self.tree;
        let previous = self.previous_status();
        let memories = &self.reconciler.memories;
        let generation = observed.pointer("/metadata/generation").and_then(Value::as_i64);
        let now = self.reconciler.context.now();
        // The API keeps whole seconds.
        let now = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now);
        let compute = |findings: &Findings| {
            Status::compute(previous, generation, &findings.outcomes, &findings.problems, now)
        };
        let mut report = compute(findings);
        if self.controller.quiet() {
            return self.report_quietly(observed, previous, report).await;
        }
        // Where the operator's own part can only be as it was, progress in detail is not even put together before its
        // time.
        let calm = subject.is_some() && !report.is_urgent_after(previous);
        if calm && self.reconciler.still_tells(&self.stored, &self.memory) {
            if report == *previous {
                memories.said(self.key);
                return Ok(None);
            }
            if let Some(pause) = waits(memories, self.key, &self.memory) {
                return Ok(Some(pause));
            }
        }
        let current = object_of(observed.get("status"));
        let mut status = current.clone();
        match subject.map(|subject| subject.status(Box::new(self.source()), &current, &report)) {
            Some(Ok(told)) => {
                // A plan that was not made again has read what it had read.
                if !findings.reads.is_empty() {
                    findings.reads.extend(told.reads);
                    self.cache().record(self.key, &self.stored.uid, &findings.reads);
                }
                let primary = (self.stored.content_hash(), self.stored.status_hash());
                self.memory.told(primary, told.glimpses);
                status = told.status;
            }
            // The operator's own fields stay as they were.
            Some(Err(poison)) => {
                self.memory.told((0, 0), None);
                findings.problems.push(poison.condition());
                findings.retry = true;
                report = compute(findings);
                overlay(&mut status, &report);
            }
            None => overlay(&mut status, &report),
        }
        if status == current {
            memories.said(self.key);
            return Ok(None);
        }
        let urgent = report.is_urgent_after(previous) || own_news(&status) != own_news(&current);
        if !urgent && let Some(pause) = waits(memories, self.key, &self.memory) {
            return Ok(Some(pause));
        }
        memories.said(self.key);
        if !self.write_status(&status, &status).await? {
            return Ok(None);
        }
        self.tell_news(observed, previous, &report).await;
        // The plan may read its own status.
        let again = own_fields(&status) != own_fields(&current);
        Ok(again.then_some(Duration::ZERO))
    }

    /// Writes what is wrong, and takes it back when it is not any more; whatever else is in the status stays.
    async fn report_quietly(
        &self,
        observed: &Value,
        previous: &Status,
        report: Status,
    ) -> Result<Option<Duration>, ()> {
        if self.controller.kind().is_external() {
            // There is no object to say it on.
            if let Some((reason, message)) = report.news_since(previous) {
                tracing::warn!(plan = %self.key.name, reason, message, "something is wrong");
            }
            return Ok(None);
        }
        let report = if report.is_ready() { Status::default() } else { report };
        let current = object_of(observed.get("status"));
        let mut status = current.clone();
        overlay(&mut status, &report);
        if status == current {
            return Ok(None);
        }
        let mut ours = Value::Object(Default::default());
        overlay(&mut ours, &report);
        if self.write_status(&ours, &status).await? {
            self.tell_news(observed, previous, &report).await;
        }
        Ok(None)
    }

    /// Writes a status, which the object then has as `expected`; false if there is nothing to write to.
    async fn write_status(&self, status: &Value, expected: &Value) -> Result<bool, ()> {
        let hash = quick_hash(expected);
        self.cache().writing_status(self.key, hash);
        let kind = self.controller.kind();
        match self.requests.status(kind, &self.stored, status).await {
            Ok(object) => {
                self.memory.is_news("");
                self.memory.status_written(hash);
                self.cache().wrote_status(self.key, kind, &object);
                Ok(true)
            }
            // It is gone, or another has its name: its own event is on the way. Or the kind has no status.
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => {
                // The status cannot say it: an Event may, and the log does.
                let message = format!("failed to write the status: {error}");
                if error.is_forbidden() && self.memory.is_news(&message) {
                    tracing::error!(primary = %self.key.name, message);
                    self.post(&self.tree, &error.reason(), &message).await;
                } else {
                    tracing::warn!(primary = %self.key.name, message);
                }
                Err(())
            }
        }
    }

    /// Posts an Event about what is newly wrong.
    async fn tell_news(&self, observed: &Value, previous: &Status, report: &Status) {
        if let Some((reason, message)) = report.news_since(previous) {
            self.post(observed, &reason, &message).await;
        }
    }

    async fn post(&self, observed: &Value, reason: &str, message: &str) {
        let about = (self.controller.kind(), observed);
        let event =
            event::warning(&self.reconciler.context, self.controller.operator(), about, reason, message);
        if let Err(error) = self.requests.post(&event::kind(), &event).await {
            tracing::warn!(primary = %self.key.name, %error, "failed to post an event");
        }
    }

    /// Says that the primary is paused, and leaves the rest of its status as it was.
    pub(super) async fn report_paused(&mut self) -> Next {
        let mut status = self.previous_status().clone();
        let message = if self.stored.deleting {
            format!("deletion waits until the annotation {PAUSED} is gone")
        } else {
            format!("nothing is done until the annotation {PAUSED} is gone")
        };
        let before = status.conditions.iter().find(|one| one.type_ == "Paused");
        if before.is_some_and(|before| before.message == message) {
            return Next::Settled;
        }
        let now = self.reconciler.context.now();
        let now = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now);
        let paused = Standard {
            type_: "Paused".into(),
            status: "True".into(),
            reason: "Annotation".into(),
            message,
            observed_generation: status.observed_generation,
            last_transition_time: before.map_or(Time(now), |before| before.last_transition_time.clone()),
        };
        status.conditions.retain(|one| one.type_ != "Paused");
        status.conditions.push(paused);
        let mut whole = object_of(self.tree.get("status"));
        overlay(&mut whole, &status);
        match self.write_status(&whole, &whole).await {
            Ok(_) => Next::Settled,
            Err(()) => Next::Retry,
        }
    }

    /// The framework's part of the status as it is now.
    pub(super) fn previous_status(&self) -> &Status {
        self.previous.get_or_init(|| {
            let status = self.tree.get("status").and_then(|status| Status::deserialize(status).ok());
            status.unwrap_or_default()
        })
    }
}

/// How long progress that changes nothing in the gist has to wait before it is written, if it has to.
pub(super) fn waits(memories: &Memories, key: &PrimaryKey, memory: &Memory) -> Option<Duration> {
    let waited = memory.since_status().unwrap_or(CALM);
    let crowd = memories.unsaid(key) > CROWD;
    (crowd || waited < CALM).then(|| if crowd { CALM } else { CALM - waited })
}

impl Reconciler {
    /// Tells people of an operator that may not look at its own primaries, which therefore cannot say it.
    pub(crate) async fn tell_blind(&self, kind: &Kind, why: &str) {
        let definition = Kind::of::<CustomResourceDefinition>();
        let object = json!({"metadata": {"name": format!("{}.{}", kind.plural(), kind.group())}});
        for controller in self.controllers.iter().filter(|controller| controller.kind() == kind) {
            let Some(requests) = self.requests.get(controller.operator()) else { continue };
            let requests = requests.under(self.replica.permit(kind.plural()), None);
            let about = (&definition, &object);
            let event = event::warning(&self.context, controller.operator(), about, "CannotWatch", why);
            if let Err(error) = requests.post(&event::kind(), &event).await {
                tracing::warn!(%kind, %error, "failed to post an event");
            }
        }
    }
}

/// A status as a map of fields; the server may keep one that was taken back as null.
fn object_of(status: Option<&Value>) -> Value {
    status.filter(|status| status.is_object()).cloned().unwrap_or_else(|| Value::Object(Default::default()))
}

fn own_fields(status: &Value) -> Value {
    let mut own = status.clone();
    overlay(&mut own, &Status::default());
    own
}

/// What is new for a reader in the operator's own conditions, other than in detail.
fn own_news(status: &Value) -> Vec<[Value; 3]> {
    let own = own_conditions(status).into_iter();
    own.map(|one| ["type", "status", "reason"].map(|field| one[field].clone())).collect()
}
