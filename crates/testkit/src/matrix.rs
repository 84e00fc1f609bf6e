//! An operator's life under every fault that can be enumerated.

use std::time::Duration;

use http::StatusCode;
use windlass::Operator;
use windlass_drydock::faults::{Effect, Fault, Target};

use crate::harbour::{Harbour, OPERATOR};
use crate::world::World;

/// How often an operator may write before the matrix takes it for one that never stops.
const MOST_WRITES: u64 = 500;

/// An operator and the manifests it is tried with.
///
/// ```no_run
/// # async fn example(operator: fn() -> windlass::Operator) {
/// const SAMPLE: &str = "apiVersion: example.org/v1\nkind: Greeting\nmetadata: {name: sample}";
/// windlass_testkit::Matrix::new(operator, &[SAMPLE]).run().await;
/// # }
/// ```
pub struct Matrix {
    operator: fn() -> Operator,
    manifests: &'static [&'static str],
}

impl Matrix {
    /// The matrix of an operator whose manifests become ready when nothing goes wrong.
    #[must_use]
    pub fn new(operator: fn() -> Operator, manifests: &'static [&'static str]) -> Self {
        Self { operator, manifests }
    }

    /// Runs all of it: each fault must end in the same world as the run without any.
    pub async fn run(&self) {
        let calm = self.calm().await;
        let points = self.crashes(&calm).await;
        assert!(points >= calm.len() as u64, "only {points} crash points for {} objects", calm.len());
        self.spoiled_watches(&calm).await;
        self.stale_reads(&calm).await;
        self.refusals(&calm).await;
    }

    /// The world of a run in which nothing goes wrong.
    pub async fn calm(&self) -> World {
        let harbour = self.come_up(|_| {}).await;
        let world = harbour.world();
        assert!(!world.is_empty(), "the operator made nothing that carries its label");
        let before = harbour.revision();
        tokio::time::sleep(Duration::from_secs(6 * 3600)).await;
        assert_eq!(harbour.revision(), before, "something was written at rest");
        world
    }

    /// Crashes after each write in turn, restarts, and expects the same world. Gives the number of crash points.
    pub async fn crashes(&self, calm: &World) -> u64 {
        for point in 1..MOST_WRITES {
            let mut harbour = Harbour::start(self.operator).await;
            harbour.drydock().faults().crash_after(OPERATOR, point);
            for manifest in self.manifests {
                harbour.apply(manifest).await;
            }
            harbour.settle().await;
            let crashed = harbour.drydock().faults().crashed();
            harbour.kill();
            harbour.drydock().faults().clear();
            harbour.run();
            self.expect(&harbour, calm, &format!("a crash after write {point}")).await;
            if !crashed {
                return point - 1;
            }
        }
        panic!("the operator still writes after {MOST_WRITES} writes");
    }

    /// Cuts, doubles and expires watches.
    pub async fn spoiled_watches(&self, calm: &World) {
        let watches = Target::any().client(OPERATOR).verb("watch");
        for (what, effect) in [
            ("watches cut after each event", Effect::CutWatch(1)),
            ("doubled watches", Effect::DuplicateWatch),
            ("expired watches", Effect::ExpireWatch),
        ] {
            let fault = Fault::new(watches.clone(), effect).times(40);
            let harbour = self.come_up(|harbour| harbour.drydock().faults().add(fault.clone())).await;
            self.expect(&harbour, calm, what).await;
        }
    }

    /// Lets the operator see an old state while it works.
    pub async fn stale_reads(&self, calm: &World) {
        for revisions in [1, 3, 6, 12, 25] {
            let mut harbour = Harbour::start(self.operator).await;
            for manifest in self.manifests {
                harbour.apply(manifest).await;
            }
            let start = harbour.revision();
            harbour.until("the cluster to move on", async || harbour.revision() >= start + revisions).await;
            harbour.drydock().faults().freeze(OPERATOR, harbour.revision());
            tokio::time::sleep(Duration::from_secs(300)).await;
            harbour.drydock().faults().thaw(OPERATOR);
            self.expect(&harbour, calm, &format!("stale reads from {revisions} revisions on")).await;
        }
    }

    /// Refuses writes, and carries some out without an answer.
    pub async fn refusals(&self, calm: &World) {
        let writes = Target::any().client(OPERATOR).verb("write");
        for (what, effect) in [
            ("refused writes", Effect::Refuse(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable")),
            ("conflicts", Effect::Refuse(StatusCode::CONFLICT, "Conflict")),
            ("throttled writes", Effect::Refuse(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests")),
            ("lost answers", Effect::LoseAnswer),
            ("slow writes", Effect::Delay(Duration::from_secs(7))),
        ] {
            let fault = Fault::new(writes.clone(), effect).chance(1, 2).times(20);
            let harbour = self.come_up(|harbour| harbour.drydock().faults().add(fault.clone())).await;
            self.expect(&harbour, calm, what).await;
        }
    }

    async fn come_up(&self, prepare: impl FnOnce(&Harbour)) -> Harbour {
        let mut harbour = Harbour::start(self.operator).await;
        prepare(&harbour);
        for manifest in self.manifests {
            harbour.apply(manifest).await;
        }
        harbour.ready().await;
        harbour.settle().await;
        harbour
    }

    async fn expect(&self, harbour: &Harbour, calm: &World, what: &str) {
        harbour.ready().await;
        harbour.settle().await;
        let world = harbour.world();
        assert!(world == *calm, "{what} left another world than calm:\n{world}\ninstead of\n{calm}");
    }
}
