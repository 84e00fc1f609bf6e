//! An operator's life under every fault that can be enumerated.

use std::time::Duration;

use http::StatusCode;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use windlass::Operator;
use windlass_drydock::Snapshot;
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
    beside: &'static str,
    companion: fn(&Harbour),
    /// A cluster at rest in which the operator is installed: every run starts from it.
    installed: OnceCell<Snapshot>,
}

impl Matrix {
    /// The matrix of an operator whose manifests become ready when nothing goes wrong.
    #[must_use]
    pub fn new(operator: fn() -> Operator, manifests: &'static [&'static str]) -> Self {
        Self { operator, manifests, beside: "", companion: |_| {}, installed: OnceCell::new() }
    }

    /// With this manifest besides, of objects that have no conditions to wait for.
    #[must_use]
    pub fn beside(self, manifest: &'static str) -> Self {
        Self { beside: manifest, ..self }
    }

    /// With this besides, which is called at the start of each run: it sees to what nobody else in the cluster does.
    #[must_use]
    pub fn companion(self, companion: fn(&Harbour)) -> Self {
        Self { companion, ..self }
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
            let mut harbour = self.begin().await;
            harbour.drydock().faults().crash_after(OPERATOR, point);
            self.apply(&mut harbour).await;
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
            let mut harbour = self.begin().await;
            self.apply(&mut harbour).await;
            if !reaches(&harbour, harbour.revision() + revisions).await {
                // Its whole life is shorter.
                return;
            }
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

    /// The operator in the cluster that every run starts from.
    async fn begin(&self) -> Harbour {
        let install = async || {
            let mut harbour = Harbour::start(self.operator).await;
            harbour.settle().await;
            harbour.stop().await;
            harbour.drydock().snapshot()
        };
        let harbour = Harbour::restored(self.operator, self.installed.get_or_init(install).await).await;
        (self.companion)(&harbour);
        harbour
    }

    async fn come_up(&self, prepare: impl FnOnce(&Harbour)) -> Harbour {
        let mut harbour = self.begin().await;
        prepare(&harbour);
        self.apply(&mut harbour).await;
        harbour.ready().await;
        harbour.settle().await;
        harbour
    }

    async fn apply(&self, harbour: &mut Harbour) {
        harbour.put(self.beside).await;
        for manifest in self.manifests {
            harbour.apply(manifest).await;
        }
    }

    async fn expect(&self, harbour: &Harbour, calm: &World, what: &str) {
        harbour.ready().await;
        harbour.settle().await;
        let world = harbour.world();
        assert!(world == *calm, "{what} left another world than calm:\n{world}\ninstead of\n{calm}");
    }
}

/// Waits until the cluster has come to a revision; false if it has come to rest before.
async fn reaches(harbour: &Harbour, revision: u64) -> bool {
    let (mut last, mut since) = (harbour.revision(), Instant::now());
    while last < revision {
        if since.elapsed() > Duration::from_secs(120) {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        if harbour.revision() != last {
            (last, since) = (harbour.revision(), Instant::now());
        }
    }
    true
}
