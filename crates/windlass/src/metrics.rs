//! What is counted and measured, in OpenMetrics. Nothing here is global: each runtime has its own.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::Kind;
use crate::cache::Survey;

/// From a millisecond to a minute.
const SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0];

/// The metrics of one runtime.
pub(crate) struct Metrics {
    registry: Registry,
    reconciles: Family<Reconciled, Counter>,
    durations: Family<Controlled, Seconds, fn() -> Seconds>,
    waits: Family<Controlled, Seconds, fn() -> Seconds>,
    retries: Family<Controlled, Counter>,
    writes: Family<Written, Counter>,
    depth: Gauge,
    cached: Family<Cached, Gauge>,
    bytes: Family<Cached, Gauge>,
    loaded: Family<Cached, Gauge>,
    failing: Family<Cached, Gauge>,
    restarts: Family<Cached, Counter>,
    roles: Family<Acting, Gauge>,
    explained: Gauge,
}

type Seconds = Histogram;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Controlled {
    operator: String,
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reconciled {
    operator: String,
    kind: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Written {
    operator: String,
    kind: String,
    verb: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Cached {
    kind: String,
    group: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Acting {
    role: &'static str,
}

/// How a pass ended.
pub(crate) struct Outcome<'a> {
    pub(crate) operator: &'a str,
    pub(crate) kind: &'a Kind,
    pub(crate) result: &'static str,
    pub(crate) waited: Duration,
    pub(crate) took: Duration,
}

/// What is looked up when the metrics are asked for.
pub(crate) struct Moment {
    pub(crate) depth: usize,
    pub(crate) role: &'static str,
    pub(crate) explained: usize,
    pub(crate) kinds: Vec<Survey>,
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds: fn() -> Seconds = || Histogram::new(SECONDS);
        let mut all = Self {
            registry: Registry::with_prefix("windlass"),
            reconciles: Family::default(),
            durations: Family::new_with_constructor(seconds),
            waits: Family::new_with_constructor(seconds),
            retries: Family::default(),
            writes: Family::default(),
            depth: Gauge::default(),
            cached: Family::default(),
            bytes: Family::default(),
            loaded: Family::default(),
            failing: Family::default(),
            restarts: Family::default(),
            roles: Family::default(),
            explained: Gauge::default(),
        };
        let registry = &mut all.registry;
        registry.register("reconciles", "Passes over primaries, by how they ended", all.reconciles.clone());
        let (unit, help) = (Unit::Seconds, "How long passes took");
        registry.register_with_unit("reconcile_duration", help, unit, all.durations.clone());
        let (unit, help) = (Unit::Seconds, "How long primaries waited in the queue");
        registry.register_with_unit("queue_wait", help, unit, all.waits.clone());
        registry.register("queue_retries", "Passes that failed and are tried again", all.retries.clone());
        registry.register("queue_depth", "Primaries that wait for a worker", all.depth.clone());
        registry.register(
            "writes",
            "Writes to the cluster, by what was done and what came of it",
            all.writes.clone(),
        );
        registry.register("cache_objects", "Objects kept whole", all.cached.clone());
        registry.register_with_unit("cache_size", "Text of the objects kept", Unit::Bytes, all.bytes.clone());
        registry.register("watch_loaded", "Whether all that exists has been delivered", all.loaded.clone());
        registry.register("watch_failing", "Whether the watch does not get on", all.failing.clone());
        registry.register(
            "watch_restarts",
            "Failures of a watch, each followed by a restart",
            all.restarts.clone(),
        );
        registry.register("replica_role", "What this replica is among its kind", all.roles.clone());
        registry.register_with_unit(
            "explain_size",
            "Text of the explain records",
            Unit::Bytes,
            all.explained.clone(),
        );
        all
    }
}

impl Metrics {
    pub(crate) fn passed(&self, outcome: &Outcome<'_>) {
        let Outcome { operator, kind, result, waited, took } = outcome;
        let of = Controlled { operator: (*operator).to_owned(), kind: kind.name().to_owned() };
        self.durations.get_or_create(&of).observe(took.as_secs_f64());
        self.waits.get_or_create(&of).observe(waited.as_secs_f64());
        if *result == "retry" {
            self.retries.get_or_create(&of).inc();
        }
        let Controlled { operator, kind } = of;
        self.reconciles.get_or_create(&Reconciled { operator, kind, result }).inc();
    }

    pub(crate) fn wrote(&self, operator: &str, kind: &Kind, verb: &'static str, result: &'static str) {
        let (operator, kind) = (operator.to_owned(), kind.name().to_owned());
        self.writes.get_or_create(&Written { operator, kind, verb, result }).inc();
    }

    pub(crate) fn watch_restarted(&self, kind: &Kind) {
        self.restarts.get_or_create(&cached(kind)).inc();
    }

    /// All of it as text.
    pub(crate) fn text(&self, moment: &Moment) -> String {
        self.depth.set(as_gauge(moment.depth));
        self.explained.set(as_gauge(moment.explained));
        self.roles.clear();
        self.roles.get_or_create(&Acting { role: moment.role }).set(1);
        // A kind that is not watched any more is not said to be.
        for gauges in [&self.cached, &self.bytes, &self.loaded, &self.failing] {
            gauges.clear();
        }
        for survey in &moment.kinds {
            let of = cached(&survey.kind);
            self.cached.get_or_create(&of).set(as_gauge(survey.objects));
            self.bytes.get_or_create(&of).set(as_gauge(survey.bytes));
            self.loaded.get_or_create(&of).set(survey.loaded.into());
            self.failing.get_or_create(&of).set(survey.error.is_some().into());
            // So that it is there from the start.
            let _ = self.restarts.get_or_create(&of);
        }
        let mut page = String::new();
        if text::encode(&mut page, &self.registry).is_err() {
            tracing::error!("failed to write the metrics");
        }
        page
    }
}

fn cached(kind: &Kind) -> Cached {
    Cached { kind: kind.name().to_owned(), group: kind.group().to_owned() }
}

fn as_gauge(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
