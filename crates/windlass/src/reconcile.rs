//! One pass over one primary: decode, default, validate, plan, apply what differs, prune, report.

mod dependents;
mod memory;
mod report;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use windlass_machinery::Context;

use self::memory::{Memories, Memory};
use crate::apply::Requests;
use crate::cache::{Cache, Lookup, PrimaryKey, Read, Reads, Stored};
use crate::controller::{Controller, PANICKED, Planned, Subject};
use crate::queue::Queue;
use crate::status::Outcome;
use crate::world::{HaltKind, Source};
use crate::{Condition, Kind, ObjectName};

/// How often one pass plans and applies before it gives way to others; a plan that reads what it makes needs two
/// or three.
const ROUNDS: usize = 8;

/// Works on primaries, one pass at a time.
pub(crate) struct Reconciler {
    pub(crate) cache: Arc<Cache>,
    pub(crate) queue: Arc<Queue<PrimaryKey>>,
    pub(crate) context: Context,
    pub(crate) controllers: Vec<Arc<dyn Controller>>,
    pub(crate) requests: BTreeMap<String, Requests>,
    pub(crate) memories: Memories,
}

/// What a pass has found out.
#[derive(Default)]
struct Findings {
    outcomes: Vec<Outcome>,
    problems: Vec<Condition>,
    reads: Reads,
    /// Something failed that trying again may mend.
    retry: bool,
    /// Something is not loaded: nothing can be said of the whole yet.
    loading: bool,
}

impl Reconciler {
    /// Takes keys from the queue and works on them, for as long as it is polled.
    pub(crate) async fn work(self: Arc<Self>) {
        loop {
            let key = self.queue.next().await;
            let working = Working {
                queue: &self.queue,
                key,
            };
            self.pass(&working.key).await;
        }
    }

    async fn pass(&self, key: &PrimaryKey) {
        let Some(controller) = self.controllers.get(key.controller) else {
            return;
        };
        let Some(requests) = self.requests.get(controller.operator()) else {
            return;
        };
        let Some(stored) = self.cache.primary(controller.kind(), &key.name) else {
            self.cache.forget(key);
            self.memories.forget(key);
            self.queue.succeeded(key);
            return;
        };
        if stored.deleting {
            // What it owns goes by garbage collection.
            return;
        }
        let mut pass = Pass {
            reconciler: self,
            controller: controller.as_ref(),
            requests,
            key,
            stored,
            memory: self.memories.of(key),
        };
        let next = pass.run().await;
        match next {
            Next::Settled => self.queue.succeeded(key),
            Next::After(pause) => {
                self.queue.succeeded(key);
                self.queue.add_after(key.clone(), pause);
            }
            Next::Retry => {
                let pause = self.queue.retry(key.clone());
                tracing::debug!(primary = %key.name, ?pause, "will try again");
            }
        }
    }
}

/// A key that a worker has, given back also if the worker is stopped or panics.
struct Working<'a> {
    queue: &'a Queue<PrimaryKey>,
    key: PrimaryKey,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.queue.done(&self.key);
    }
}

/// What is to happen after a pass, if nothing changes.
enum Next {
    Settled,
    After(Duration),
    Retry,
}

struct Pass<'a> {
    reconciler: &'a Reconciler,
    controller: &'a dyn Controller,
    requests: &'a Requests,
    key: &'a PrimaryKey,
    stored: Arc<Stored>,
    memory: Arc<Memory>,
}

impl Pass<'_> {
    async fn run(&mut self) -> Next {
        let subject = match self.controller.open(&self.stored) {
            Ok(subject) => subject,
            Err(poison) => return self.quarantine(poison.condition()).await,
        };
        match subject.validity() {
            Ok(invalid) if invalid.is_empty() => {}
            Ok(invalid) => {
                let fields: Vec<_> = invalid.iter().map(ToString::to_string).collect();
                return self
                    .quarantine(Condition::failed("InvalidSpec", fields.join("; ")))
                    .await;
            }
            Err(poison) => return self.quarantine(poison.condition()).await,
        }
        if !self.cache().is_loaded(self.key, self.controller.owns()) {
            return Next::Settled;
        }
        let mut findings = self.plan_and_apply(subject.as_ref()).await;
        self.cache().record(self.key, &self.stored.uid, &findings.reads);
        if findings.loading {
            // Queued again when it is loaded.
            return if findings.retry {
                Next::Retry
            } else {
                Next::Settled
            };
        }
        let written = self.report(Some(subject.as_ref()), &mut findings).await;
        match (findings.retry, written, subject.look_again()) {
            (true, ..) | (_, Err(()), _) => Next::Retry,
            (false, Ok(Some(pause)), look) => Next::After(look.map_or(pause, |look| look.min(pause))),
            (false, Ok(None), Some(look)) => Next::After(look),
            (false, Ok(None), None) => Next::Settled,
        }
    }

    /// Reports an object that cannot be worked on until it changes.
    async fn quarantine(&mut self, why: Condition) -> Next {
        tracing::warn!(primary = %self.key.name, reason = why.reason, why.message, "cannot be worked on");
        let panicked = why.reason == PANICKED;
        let mut findings = Findings {
            problems: vec![why],
            ..Findings::default()
        };
        self.cache().record(self.key, &self.stored.uid, &Reads::new());
        match self.report(None, &mut findings).await {
            Ok(_) if panicked => Next::Retry,
            Ok(Some(pause)) => Next::After(pause),
            Ok(None) => Next::Settled,
            Err(()) => Next::Retry,
        }
    }

    async fn plan_and_apply(&self, subject: &dyn Subject) -> Findings {
        let mut findings = Findings::default();
        for round in 1..=ROUNDS {
            let planned = subject.plan(Box::new(self.source()));
            findings = Findings::default();
            let wrote = self.apply_all(subject, &planned, &mut findings).await;
            findings.reads.extend(planned.reads.iter().cloned());
            findings.problems.extend(planned.problems.iter().cloned());
            findings.retry |= planned.panicked;
            if let Some(halt) = &planned.halt {
                self.note_halt(&planned, halt.condition(), &mut findings);
            }
            if !wrote {
                if planned.halt.is_none() {
                    self.prune(subject, &planned, &mut findings).await;
                }
                break;
            }
            if round == ROUNDS {
                self.reconciler.queue.add(self.key.clone());
            }
        }
        findings
    }

    fn note_halt(&self, planned: &Planned, condition: &Condition, findings: &mut Findings) {
        if let Some(HaltKind::Loading(kind)) = planned.halt.as_ref().map(|halt| &halt.1) {
            self.note_loading(kind, findings);
            return;
        }
        // That a dependent is not there is said by its own entry.
        let said = findings
            .outcomes
            .iter()
            .any(|outcome| outcome.counts && !outcome.condition.is_ready());
        if !(said && condition.reason == "Absent") {
            findings.problems.push(condition.clone());
        }
    }

    fn note_loading(&self, kind: &Kind, findings: &mut Findings) {
        if !self.note_trouble(kind, findings) {
            findings.loading = true;
        }
    }

    /// Reports a kind whose watch is failing; true if it is.
    fn note_trouble(&self, kind: &Kind, findings: &mut Findings) -> bool {
        let Some(trouble) = self.cache().trouble(self.key, kind) else {
            return false;
        };
        if !findings.problems.iter().any(|problem| problem.message == trouble) {
            findings.problems.push(Condition::failed("CannotWatch", trouble));
        }
        true
    }

    fn cache(&self) -> &Cache {
        &self.reconciler.cache
    }

    fn source(&self) -> CacheSource {
        CacheSource {
            cache: Arc::clone(&self.reconciler.cache),
            context: self.reconciler.context.clone(),
            key: self.key.clone(),
            memory: Arc::clone(&self.memory),
            uid: self.stored.uid.clone(),
        }
    }
}

/// The world as the runtime's cache has it.
struct CacheSource {
    cache: Arc<Cache>,
    context: Context,
    key: PrimaryKey,
    memory: Arc<Memory>,
    uid: Box<str>,
}

impl Source for CacheSource {
    fn named(&self, kind: &Kind, name: &ObjectName) -> Lookup {
        self.cache.named(&self.key, kind, name)
    }

    fn selected(&self, read: &Read) -> Option<Vec<Arc<Stored>>> {
        self.cache.selected(&self.key, read)
    }

    fn now(&self) -> Timestamp {
        self.context.now()
    }

    fn random(&self, key: &str, length: usize) -> String {
        self.memory.random(&self.context, &self.uid, key, length)
    }
}
