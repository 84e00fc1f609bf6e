//! Replicas against a drydock whose answers are lost and late, in virtual time: never two that write the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use windlass_drydock::faults::{Effect, Fault, Target};
use windlass_drydock::{Drydock, Options};

use super::*;

const KEYS: u64 = 40;

/// Who is writing what.
#[derive(Clone, Default)]
struct Writers {
    active: Arc<Mutex<BTreeMap<String, String>>>,
    ever: Arc<Mutex<BTreeSet<String>>>,
}

/// A write that goes on; over when it is dropped.
struct Writing(Writers, String);

impl Writers {
    fn begin(&self, key: &str, who: &str) -> Writing {
        let other = self.active.lock().unwrap().insert(key.to_owned(), who.to_owned());
        assert_eq!(other, None, "{who} began to write {key} while another did");
        self.ever.lock().unwrap().insert(who.to_owned());
        Writing(self.clone(), key.to_owned())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.active.lock().unwrap().remove(&self.1);
    }
}

/// A replica that writes one key after another, as fast as it may.
struct Running {
    replica: Replica,
    tasks: JoinSet<()>,
}

impl Running {
    fn start(drydock: &Drydock, arrangement: &Arrangement, name: &str, writers: &Writers) -> Self {
        let (client, context) = (drydock.client(name), drydock.context().clone());
        let times = LeaseTimes::default();
        let replica = Replica::new(arrangement, client, context.clone(), times, name.to_owned());
        let mut tasks = JoinSet::new();
        let keeping = replica.clone();
        tasks.spawn(async move { keeping.keep().await });
        for _ in 0..3 {
            let (replica, writers) = (replica.clone(), writers.clone());
            let (context, name) = (context.clone(), name.to_owned());
            tasks.spawn(async move {
                loop {
                    let key = format!("key-{}", context.below(KEYS));
                    let pause = Duration::from_millis(context.below(3000));
                    let one_worker_per_key = writers.active.lock().unwrap().get(&key) == Some(&name);
                    if !one_worker_per_key {
                        let write = async {
                            let _writing = writers.begin(&key, &name);
                            sleep(pause).await;
                        };
                        let _ = replica.permit(&key).guard(write).await;
                    }
                    sleep(Duration::from_millis(50)).await;
                }
            });
        }
        Self { replica, tasks }
    }

    async fn stop(mut self) {
        self.tasks.shutdown().await;
        self.replica.release().await;
    }

    fn owned(&self) -> Vec<u64> {
        (0..KEYS).filter(|key| self.replica.permit(&format!("key-{key}")).is_valid()).collect()
    }
}

async fn drydock(seed: u64) -> Drydock {
    Drydock::start(Options::seeded(seed)).await.unwrap()
}

fn lease_name() -> LeaseName {
    LeaseName { namespace: "default".into(), name: "operators".into() }
}

fn leader() -> Arrangement {
    Arrangement::Leader(lease_name())
}

fn shards() -> Arrangement {
    Arrangement::Shards(lease_name())
}

/// Requests for Leases that fail in every way.
fn make_trouble(drydock: &Drydock) {
    let leases = || Target::any().resource("leases");
    let faults = drydock.faults();
    faults.add(Fault::new(leases(), Effect::Hang).chance(1, 6));
    faults.add(Fault::new(leases().verb("write"), Effect::LoseAnswer).chance(1, 6));
    faults.add(
        Fault::new(leases(), Effect::Refuse(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"))
            .chance(1, 6),
    );
    faults.add(Fault::new(leases(), Effect::Delay(Duration::from_secs(4))).chance(1, 4));
}

async fn lease(drydock: &Drydock) -> Lease {
    Api::<Lease>::namespaced(drydock.client("test"), "default").get("operators").await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_lease_says_what_other_tools_expect() {
    let drydock = drydock(1).await;
    let writers = Writers::default();
    let first = Running::start(&drydock, &leader(), "a", &writers);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(first.replica.role(), "leader");
    let spec = lease(&drydock).await.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("a"));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(15), Some(0)));
    let (acquired, renewed) = (spec.acquire_time.unwrap().0, spec.renew_time.unwrap().0);
    assert!((renewed - acquired).get_seconds() >= 25, "{acquired} {renewed}");

    let second = Running::start(&drydock, &leader(), "b", &writers);
    sleep(Duration::from_secs(60)).await;
    assert_eq!((first.replica.role(), second.replica.role()), ("leader", "standby"));

    first.stop().await;
    assert_eq!(lease(&drydock).await.spec.unwrap().holder_identity.as_deref(), Some(""));
    sleep(Duration::from_secs(5)).await;
    assert_eq!(second.replica.role(), "leader", "a released lease is taken at once");
    let spec = lease(&drydock).await.spec.unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("b"), Some(1)));
}

#[tokio::test(start_paused = true)]
async fn a_killed_leader_is_followed_after_the_leases_duration() {
    let drydock = drydock(1).await;
    let writers = Writers::default();
    let first = Running::start(&drydock, &leader(), "a", &writers);
    sleep(Duration::from_secs(30)).await;
    let second = Running::start(&drydock, &leader(), "b", &writers);
    sleep(Duration::from_secs(10)).await;
    drop(first);
    let died = Instant::now();
    while second.replica.role() != "leader" {
        sleep(Duration::from_millis(100)).await;
    }
    let waited = died.elapsed();
    assert!((Duration::from_secs(12)..Duration::from_secs(20)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_starts() {
    let drydock = drydock(1).await;
    let writers = Writers::default();
    let first = Running::start(&drydock, &leader(), "a", &writers);
    sleep(Duration::from_secs(30)).await;
    let second = Running::start(&drydock, &leader(), "b", &writers);
    sleep(Duration::from_secs(10)).await;
    drydock.faults().add(Fault::new(Target::any().client("a"), Effect::Hang));
    let cut = Instant::now();
    let mut ended = None;
    while second.replica.role() != "leader" {
        sleep(Duration::from_millis(100)).await;
        if first.replica.role() == "standby" {
            ended.get_or_insert(cut.elapsed());
        }
    }
    let (ended, began) = (ended.unwrap(), cut.elapsed());
    assert!(ended <= Duration::from_secs(11), "{ended:?}");
    assert!(began >= ended + Duration::from_secs(3), "{ended:?} {began:?}");

    drydock.faults().clear();
    sleep(Duration::from_secs(60)).await;
    assert_eq!((first.replica.role(), second.replica.role()), ("standby", "leader"));
}

#[tokio::test(start_paused = true)]
async fn never_two_leaders_write_whatever_happens_to_their_requests() {
    for seed in 1..=4 {
        let drydock = drydock(seed).await;
        let writers = Writers::default();
        make_trouble(&drydock);
        let mut running = BTreeMap::new();
        for step in 0..60 {
            let name = ["a", "b", "c"][drydock.context().below(3) as usize];
            match running.remove(name) {
                // A kill, or a stop in good order.
                Some(one) if step % 2 == 0 => drop(one),
                Some(one) => Running::stop(one).await,
                None => {
                    // Each start is a process of its own.
                    let identity = format!("{name}-{step}");
                    running.insert(name, Running::start(&drydock, &leader(), &identity, &writers));
                }
            }
            sleep(Duration::from_secs(drydock.context().below(40))).await;
            let leaders = running.values().filter(|one| one.replica.role() == "leader").count();
            assert!(leaders <= 1, "{leaders} leaders");
        }
        assert!(writers.ever.lock().unwrap().len() > 1, "leadership never moved");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_leaves_no_two_leaders() {
    let drydock = drydock(1).await;
    let writers = Writers::default();
    let first = Running::start(&drydock, &leader(), "a", &writers);
    let second = Running::start(&drydock, &leader(), "b", &writers);
    for _ in 0..50 {
        sleep(Duration::from_secs(20)).await;
        // All tasks find themselves this much later.
        tokio::time::advance(Duration::from_secs(1 + drydock.context().below(30))).await;
        let roles = [first.replica.role(), second.replica.role()];
        assert_ne!(roles, ["leader", "leader"]);
    }
}

#[tokio::test(start_paused = true)]
async fn members_share_the_keys_and_hand_them_over() {
    let drydock = drydock(1).await;
    let writers = Writers::default();
    let a = Running::start(&drydock, &shards(), "a", &writers);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(a.owned().len() as u64, KEYS, "alone, it has all of them");

    let b = Running::start(&drydock, &shards(), "b", &writers);
    let c = Running::start(&drydock, &shards(), "c", &writers);
    sleep(Duration::from_secs(20)).await;
    let shares = [a.owned(), b.owned(), c.owned()];
    assert!(shares.iter().all(|share| share.len() >= 5), "{shares:?}");
    let mut all = shares.concat();
    all.sort_unstable();
    assert_eq!(all, (0..KEYS).collect::<Vec<_>>(), "each has one owner");

    // In good order: at once.
    b.stop().await;
    sleep(Duration::from_secs(8)).await;
    assert_eq!(a.owned().len() + c.owned().len(), KEYS as usize);
    // By a kill: after the lease's duration, and not before.
    drop(c);
    sleep(Duration::from_secs(11)).await;
    assert!(a.owned().len() < KEYS as usize);
    sleep(Duration::from_secs(12)).await;
    assert_eq!(a.owned().len() as u64, KEYS);
    // The dead member's lease is cleared away.
    sleep(Duration::from_secs(120)).await;
    let leases = Api::<Lease>::namespaced(drydock.client("test"), "default");
    let left = leases.list(&Default::default()).await.unwrap().items;
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn never_two_members_write_one_key_whatever_happens_to_their_requests() {
    for seed in 1..=4 {
        let drydock = drydock(seed).await;
        let writers = Writers::default();
        make_trouble(&drydock);
        let mut running = BTreeMap::new();
        for step in 0..60 {
            let name = ["a", "b", "c", "d"][drydock.context().below(4) as usize];
            match running.remove(name) {
                Some(one) if step % 2 == 0 => drop(one),
                Some(one) => Running::stop(one).await,
                None => {
                    let identity = format!("{name}-{step}");
                    running.insert(name, Running::start(&drydock, &shards(), &identity, &writers));
                }
            }
            sleep(Duration::from_secs(drydock.context().below(40))).await;
        }
        // When the trouble is over, every key has one owner again.
        drydock.faults().clear();
        running.entry("a").or_insert_with(|| Running::start(&drydock, &shards(), "a-end", &writers));
        sleep(Duration::from_secs(90)).await;
        let mut all: Vec<u64> = running.values().flat_map(Running::owned).collect();
        all.sort_unstable();
        assert_eq!(all, (0..KEYS).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn unsafe_times_are_known() {
    let seconds = |duration, renew_deadline, retry| LeaseTimes {
        duration: Duration::from_secs(duration),
        renew_deadline: Duration::from_secs(renew_deadline),
        retry: Duration::from_secs(retry),
    };
    assert!(LeaseTimes::default().is_safe());
    assert!(!seconds(10, 10, 2).is_safe());
    assert!(!seconds(15, 10, 10).is_safe());
    assert!(!seconds(15, 10, 0).is_safe());
}
