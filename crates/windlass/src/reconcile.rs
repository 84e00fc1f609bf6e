//! One pass over one primary: decode, default, validate, plan, apply what differs, prune, report.

mod dependents;
mod external;
mod hold;
mod memory;
mod report;
mod settlement;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Instrument as _;
use tracing::field::Empty;
use windlass_machinery::Context;

use self::memory::{Memories, Memory};
use self::settlement::{Glance, Settlement};
use crate::admission::Endpoint;
use crate::annotation::Wishes;
use crate::apply::Requests;
use crate::cache::{Cache, Lookup, PrimaryKey, Read, Reads, Stored};
use crate::controller::{Controller, PANICKED, Planned, Subject};
use crate::explain::{self, Cause, Journal, Trace};
use crate::external::Externals;
use crate::memo::Memo;
use crate::metrics::{self, Metrics};
use crate::queue::Queue;
use crate::replica::Replica;
use crate::status::Outcome;
use crate::world::{Glimpse, HaltKind, Source, Views};
use crate::{Condition, Invalid, Kind, ObjectName, Status};

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
    pub(crate) memo: Arc<Memo>,
    pub(crate) externals: Externals,
    pub(crate) replica: Replica,
    pub(crate) journal: Journal,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) webhooks: Endpoint,
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
    /// What was written is now as planned, and nothing is outside Kubernetes.
    agreed: bool,
    /// When to look again even if nothing has changed.
    look_again: Option<Duration>,
    /// The primary itself is to go.
    retire: bool,
    /// What the plan looked at, if nothing but that and the dependents decides what the next pass comes to.
    glimpses: Option<Vec<Glimpse>>,
}

impl Reconciler {
    /// Takes keys from the queue and works on them, until it is told to stop.
    pub(crate) async fn work(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        loop {
            let key = tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => return,
                key = self.queue.next() => key,
            };
            let working = Working { queue: &self.queue, key };
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
        if let Some(pause) = self.memories.of(key).pause(controller.pace()) {
            self.queue.add_after(key.clone(), pause);
            return;
        }
        let (waited, causes) = self.queue.taken(key);
        let Some(stored) = self.cache.primary(controller.kind(), &key.name) else {
            self.cache.forget(key);
            self.memories.forget(key);
            self.queue.succeeded(key);
            return;
        };
        let permit = self.replica.permit(&shard_key(controller.kind(), &key.name));
        if !permit.is_valid() {
            // All primaries are queued again when this replica may write more than now.
            return;
        }
        let memory = self.memories.of(key);
        let began = Instant::now();
        let news = match self.glance(controller.as_ref(), key, &stored, &memory) {
            Glance::Plan => None,
            Glance::Report(outcomes) => Some(outcomes),
            Glance::Rest(pause) => {
                self.queue.succeeded(key);
                if let Some(pause) = pause {
                    self.look_again(key, pause);
                }
                self.metrics.passed(&metrics::Outcome {
                    operator: controller.operator(),
                    kind: controller.kind(),
                    result: "unchanged",
                    waited,
                    took: began.elapsed(),
                });
                return;
            }
        };
        let tree = stored.value();
        let wishes = Wishes::of(&tree);
        let causes = causes.texts();
        let span = tracing::info_span!(
            "reconcile",
            operator = controller.operator(),
            kind = controller.kind().name(),
            namespace = key.name.namespace,
            name = key.name.name,
            waited_ms = millis(waited),
            causes = causes.join("; "),
            result = Empty,
            otel.status_code = Empty,
        );
        let trace = Arc::new(Trace::new(explain::Pass {
            at: self.context.now().to_string(),
            waited_ms: millis(waited),
            causes,
            ..explain::Pass::default()
        }));
        let mut pass = Pass {
            reconciler: self,
            controller: controller.as_ref(),
            requests: &requests.under(permit.clone(), Some(Arc::clone(&trace))),
            key,
            stored,
            tree,
            memory,
            wishes,
            trace: &trace,
            views: Arc::default(),
            previous: OnceLock::new(),
        };
        let run = async {
            match (pass.stored.deleting, news) {
                (false, None) => pass.run().await,
                (false, Some(outcomes)) => pass.tell(outcomes).await,
                // What it owns goes by garbage collection, or is cleaned up first.
                (true, _) => pass.cleanup().await,
            }
        };
        let next = permit.while_valid(run).instrument(span.clone()).await;
        if !matches!(next, Ok(Next::Settled | Next::After(_))) {
            // What was to be told may not have been.
            drop(self.memories.of(key).take_settlement());
        }
        let (result, text) = match next {
            Ok(Next::Settled) => {
                self.queue.succeeded(key);
                ("settled", "settled".to_owned())
            }
            Ok(Next::After(pause)) => {
                self.queue.succeeded(key);
                self.look_again(key, pause);
                ("again", format!("looks again in {pause:?}"))
            }
            Ok(Next::Retry) => {
                let pause = self.queue.retry(key.clone());
                self.queue.note_after(key, Cause::Retry, pause);
                tracing::debug!(primary = %key.name, ?pause, "will try again");
                ("retry", format!("failed; tries again in {pause:?}"))
            }
            Err(deposed) => ("deposed", deposed.to_string()),
        };
        span.record("result", result);
        if result == "retry" {
            span.record("otel.status_code", "ERROR");
        }
        let took = began.elapsed();
        trace.note(|pass| {
            pass.took_ms = millis(took);
            pass.result = text;
        });
        self.journal.add(key, &trace);
        self.metrics.passed(&metrics::Outcome {
            operator: controller.operator(),
            kind: controller.kind(),
            result,
            waited,
            took,
        });
    }
}

impl Reconciler {
    /// Has a primary looked at after a pause, whatever happens meanwhile.
    fn look_again(&self, key: &PrimaryKey, pause: Duration) {
        self.queue.note_after(key, Cause::Again, pause);
        self.queue.add_after(key.clone(), pause);
    }
}

/// By what primaries are shared out among replicas; every replica must come to the same.
fn shard_key(kind: &Kind, name: &ObjectName) -> String {
    format!("{}.{}/{name}", kind.plural(), kind.group())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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
    /// The primary as a tree.
    tree: Value,
    memory: Arc<Memory>,
    /// What the primary's annotations ask for.
    wishes: Wishes,
    trace: &'a Trace,
    views: Arc<Views>,
    previous: OnceLock<Status>,
}

impl Pass<'_> {
    async fn run(&mut self) -> Next {
        if self.wishes.paused {
            return self.report_paused().await;
        }
        if self.memory.is_new_force(self.wishes.force.as_ref()) {
            self.cache().look_at_facts_of(self.key);
        }
        let subject = match self.controller.open(&self.stored) {
            Ok(subject) => subject,
            Err(poison) => return self.quarantine(poison.condition()).await,
        };
        match subject.validity() {
            Ok(invalid) if invalid.is_empty() => {}
            Ok(invalid) => {
                let invalid = Invalid::message(&invalid);
                return self.quarantine(Condition::failed("InvalidSpec", invalid)).await;
            }
            Err(poison) => return self.quarantine(poison.condition()).await,
        }
        if !self.cache().is_loaded(self.key, &self.controller.declared().written) {
            return Next::Settled;
        }
        let mut findings = self.plan_and_apply(subject.as_ref()).await;
        self.cache().record(self.key, &self.stored.uid, &findings.reads);
        self.trace.note(|pass| {
            pass.reads = findings.reads.iter().map(ToString::to_string).collect();
            let problems = findings.problems.iter();
            pass.problems =
                problems.map(|problem| format!("{}: {}", problem.reason, problem.message)).collect();
        });
        if findings.loading {
            // Queued again when it is loaded.
            return if findings.retry { Next::Retry } else { Next::Settled };
        }
        self.settle_down(&mut findings);
        let mut written = self.report(Some(subject.as_ref()), &mut findings).await;
        if findings.retire
            && !findings.retry
            && let Err(why) = self.retire().await
        {
            findings.problems.push(why);
            findings.retry = true;
            written = self.report(Some(subject.as_ref()), &mut findings).await;
        }
        match (findings.retry, written, findings.look_again) {
            (true, ..) | (_, Err(()), _) => Next::Retry,
            (false, Ok(Some(pause)), look) => Next::After(look.map_or(pause, |look| look.min(pause))),
            (false, Ok(None), Some(look)) => Next::After(look),
            (false, Ok(None), None) => Next::Settled,
        }
    }

    /// Tells what has changed of the dependents, where the plan is as it was.
    async fn tell(&mut self, outcomes: Vec<Outcome>) -> Next {
        let subject = match self.controller.open(&self.stored) {
            Ok(subject) => subject,
            Err(poison) => return self.quarantine(poison.condition()).await,
        };
        let again = self.memory.again();
        let mut findings = Findings { outcomes, ..Findings::default() };
        let written = self.report(Some(subject.as_ref()), &mut findings).await;
        match (findings.retry, written) {
            (true, _) | (_, Err(())) => Next::Retry,
            (false, Ok(pause)) => pause.into_iter().chain(again).min().map_or(Next::Settled, Next::After),
        }
    }

    /// Remembers what this pass rests on, if there will soon be another.
    fn settle_down(&self, findings: &mut Findings) {
        let moving = findings.outcomes.iter().any(|outcome| !outcome.condition.is_ready());
        let sure = !findings.retry && !findings.loading && !findings.retire && findings.problems.is_empty();
        if !(moving && sure) || self.wishes.ignores_some() {
            return;
        }
        if let Some(mut plan) = findings.glimpses.take() {
            plan.shrink_to_fit();
            let primary = (self.stored.content_hash(), self.stored.status_hash());
            let again = findings.look_again.map(|pause| Instant::now() + pause);
            self.memory.keep_settlement(Settlement { primary, plan, again });
        }
    }

    /// Deletes the primary.
    async fn retire(&self) -> Result<(), Condition> {
        tracing::info!(primary = %self.key.name, "its time has come");
        let deleted = self.requests.delete(self.controller.kind(), &self.stored).await;
        deleted.map_err(|error| {
            let message = format!("its time has come, but it could not be deleted: {error}");
            Condition { message, ..error.into() }
        })
    }

    /// The namespace of all that this primary owns; `None` if that may be anywhere.
    fn own_namespace(&self) -> Option<&str> {
        let namespace = self.key.name.namespace.as_str();
        let declared = self.controller.declared();
        (!namespace.is_empty() && !declared.reaches_out).then_some(namespace)
    }

    /// Reports an object that cannot be worked on until it changes.
    async fn quarantine(&mut self, why: Condition) -> Next {
        tracing::warn!(primary = %self.key.name, reason = why.reason, why.message, "cannot be worked on");
        let panicked = why.reason == PANICKED;
        let mut findings = Findings { problems: vec![why], ..Findings::default() };
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
            let span =
                tracing::info_span!("plan", round, dependents = Empty, reads = Empty, complete = Empty);
            let mut planned = span.in_scope(|| subject.plan(Box::new(self.source())));
            span.record("dependents", planned.dependents.len());
            span.record("reads", planned.reads.len());
            span.record("complete", planned.halt.is_none());
            drop(span);
            self.memory.keep_derived(std::mem::take(&mut planned.derived));
            findings = Findings::default();
            let wrote = self.apply_all(subject, &planned, &mut findings).await;
            findings.reads.extend(planned.reads.iter().cloned());
            findings.problems.extend(planned.problems.iter().cloned());
            findings.retry |= planned.panicked;
            findings.look_again = planned.look_again;
            let places: BTreeSet<_> =
                planned.reads.iter().map(|read| (read.kind(), read.namespace())).collect();
            for (kind, namespace) in places {
                self.note_trouble(kind, namespace, &mut findings);
            }
            self.cache().unwatch(self.key, unwatched(&planned));
            if let Some(halt) = &planned.halt {
                self.note_halt(&planned, halt.condition(), &mut findings);
            }
            if wrote {
                self.memory.wrote();
            }
            // A plan that did not look at what was written would be the same again.
            let holds = |glimpses: &mut Vec<Glimpse>| self.cache().holds(glimpses);
            let same = planned.is_complete() && planned.glimpses.as_mut().is_some_and(holds);
            if !wrote || findings.agreed && same && self.controller.pace().is_zero() {
                if planned.is_complete() {
                    self.prune(subject, &planned, &mut findings).await;
                    self.let_go(subject, &planned, &mut findings).await;
                    findings.retire = planned.retire;
                    findings.glimpses = planned.glimpses.filter(|_| findings.agreed);
                }
                break;
            }
            // What would be written at a pace is not written round after round either.
            if round == ROUNDS || !self.controller.pace().is_zero() {
                self.reconciler.queue.note(self.key, Cause::Again);
                self.reconciler.queue.add(self.key.clone());
                break;
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
        let said = findings.outcomes.iter().any(|outcome| {
            let absent = format!("{} {} is not there", outcome.type_name, outcome.name.name);
            outcome.counts && !outcome.condition.is_ready() && condition.message == absent
        });
        if !said {
            findings.problems.push(condition.clone());
        }
    }

    fn note_loading(&self, kind: &Kind, findings: &mut Findings) {
        if !self.note_trouble(kind, None, findings) {
            findings.loading = true;
        }
    }

    /// Reports a kind whose watch is failing, in a namespace or anywhere; true if it is.
    fn note_trouble(&self, kind: &Kind, namespace: Option<&str>, findings: &mut Findings) -> bool {
        let Some(trouble) = self.cache().trouble(self.key, kind, namespace) else {
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
            memo: Arc::clone(&self.reconciler.memo),
            views: Arc::clone(&self.views),
            uid: self.stored.uid.clone(),
        }
    }
}

fn unwatched(planned: &Planned) -> BTreeSet<(Kind, ObjectName)> {
    let dependents = planned.dependents.iter();
    let unwatched = dependents.filter(|dependent| !dependent.config.watched);
    unwatched.map(|dependent| (dependent.kind.clone(), dependent.name.clone())).collect()
}

/// The world as the runtime's cache has it.
struct CacheSource {
    cache: Arc<Cache>,
    context: Context,
    key: PrimaryKey,
    memory: Arc<Memory>,
    memo: Arc<Memo>,
    views: Arc<Views>,
    uid: Box<str>,
}

impl Source for CacheSource {
    fn named(&self, kind: &Kind, name: &ObjectName) -> Lookup {
        self.cache.named(&self.key, kind, name)
    }

    fn selected(&self, read: &Read) -> Option<Vec<Arc<Stored>>> {
        self.cache.selected(&self.key, read)
    }

    fn known(&self, read: Read) -> Read {
        self.cache.known(&self.key, read)
    }

    fn now(&self) -> Timestamp {
        self.context.now()
    }

    fn random(&self, key: &str, length: usize) -> String {
        self.memory.random(&self.context, &self.uid, key, length)
    }

    fn views(&self) -> Option<&Views> {
        Some(&self.views)
    }

    fn memo(&self) -> Option<&Memo> {
        Some(&self.memo)
    }
}
