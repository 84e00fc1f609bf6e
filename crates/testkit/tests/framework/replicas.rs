//! Leadership and shares that move while there is work: no work is lost, and no two write.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use windlass_drydock::faults::{Effect, Fault, Target};

use crate::fleet::Fleet;

const BOATS: usize = 30;

/// Makes each write of a ConfigMap take a while, so that something is always under way.
fn slow(fleet: &Fleet, time: Duration) {
    let writes = Target::any().verb("patch").resource("configmaps");
    fleet.drydock.faults().add(Fault::new(writes, Effect::Delay(time)));
}

#[tokio::test(start_paused = true)]
async fn when_the_leader_is_killed_in_mid_work_another_finishes_it() {
    let fleet = Fleet::start().await;
    let first = fleet.leader("replica-a");
    sleep(Duration::from_secs(5)).await;
    let _second = fleet.leader("replica-b");
    slow(&fleet, Duration::from_secs(1));
    fleet.boats(BOATS, "one").await;
    while fleet.done("one").await < BOATS / 3 {
        sleep(Duration::from_millis(100)).await;
    }
    first.kill();
    fleet.until_done(BOATS, "one").await;
    fleet.assert_only_holders_wrote();
    let clients: BTreeSet<String> = fleet.writes().into_iter().map(|(client, _)| client).collect();
    assert_eq!(clients.len(), 2, "both had their part");
}

#[tokio::test(start_paused = true)]
async fn writes_of_a_leader_that_is_cut_off_never_arrive_after_another_has_begun() {
    let fleet = Fleet::start().await;
    let _first = fleet.leader("replica-a");
    sleep(Duration::from_secs(5)).await;
    let _second = fleet.leader("replica-b");
    fleet.boats(1, "zero").await;
    fleet.until_done(1, "zero").await;
    let faults = fleet.drydock.faults();
    // What it has sent takes longer than its time; and it hears nothing of its Lease any more.
    let writes = Target::any().client("replica-a").verb("patch").resource("configmaps");
    faults.add(Fault::new(writes, Effect::Delay(Duration::from_secs(25))));
    faults.add(Fault::new(Target::any().client("replica-a").resource("leases"), Effect::Hang));
    fleet.boats(BOATS, "one").await;
    fleet.until_done(BOATS, "one").await;
    sleep(Duration::from_secs(60)).await;
    fleet.assert_only_holders_wrote();
    let writes = fleet.writes();
    let first_of_b = writes.iter().position(|(client, _)| client == "replica-b").unwrap();
    assert!(writes[first_of_b..].iter().all(|(client, _)| client == "replica-b"), "{writes:?}");

    // It comes back as a standby, warm and silent, and takes over in its turn.
    faults.clear();
    sleep(Duration::from_secs(60)).await;
    let before = fleet.writes().len();
    _second.stop().await;
    fleet.boats(BOATS, "two").await;
    fleet.until_done(BOATS, "two").await;
    fleet.assert_only_holders_wrote();
    assert!(fleet.writes()[before..].iter().any(|(client, _)| client == "replica-a"));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_finishes_what_it_is_at_and_hands_over_at_once() {
    let fleet = Fleet::start().await;
    let first = fleet.leader("replica-a");
    sleep(Duration::from_secs(5)).await;
    let second = fleet.leader("replica-b");
    slow(&fleet, Duration::from_secs(1));
    fleet.boats(BOATS, "one").await;
    while fleet.done("one").await < 4 {
        sleep(Duration::from_millis(100)).await;
    }
    first.stop().await;
    let stopped = Instant::now();
    let before = fleet.writes().len();
    while fleet.writes().len() == before {
        sleep(Duration::from_millis(100)).await;
    }
    assert!(stopped.elapsed() < Duration::from_secs(7), "{:?}", stopped.elapsed());
    fleet.until_done(BOATS, "one").await;
    fleet.assert_only_holders_wrote();
    assert!(second.port.get("/metrics").body.contains(r#"windlass_replica_role{role="leader"} 1"#));
}

#[tokio::test(start_paused = true)]
async fn clocks_that_jump_leave_one_writer() {
    let fleet = Fleet::start().await;
    let _replicas = [fleet.leader("replica-a"), fleet.leader("replica-b")];
    slow(&fleet, Duration::from_millis(700));
    for round in 0..6 {
        let text = format!("round {round}");
        fleet.boats(BOATS, &text).await;
        sleep(Duration::from_secs(1)).await;
        tokio::time::advance(Duration::from_secs(5 + 4 * round)).await;
        fleet.until_done(BOATS, &text).await;
        fleet.assert_only_holders_wrote();
    }
}

#[tokio::test(start_paused = true)]
async fn at_rest_replicas_ask_for_nothing_but_their_lease() {
    let fleet = Fleet::start().await;
    let first = fleet.leader("replica-a");
    sleep(Duration::from_secs(5)).await;
    let second = fleet.leader("replica-b");
    fleet.boats(3, "one").await;
    fleet.until_done(3, "one").await;
    let requests = || (fleet.requests("replica-a"), fleet.requests("replica-b"));
    let before = requests();
    sleep(Duration::from_secs(6 * 3600)).await;
    assert_eq!(requests(), before);
    assert!(fleet.drydock.record().entries("replica-b").iter().all(|entry| entry.verb != "patch"));
    // Both are ready: one works, one is warm.
    assert_eq!(first.port.get("/readyz").body, "ok (leader)\n");
    assert_eq!(second.port.get("/readyz").body, "ok (standby)\n");
    assert_eq!((first.port.get("/healthz").status, second.port.get("/healthz").status), (200, 200));
}

#[tokio::test(start_paused = true)]
async fn members_share_the_work_and_each_object_has_one_writer() {
    let fleet = Fleet::start().await;
    let names = ["replica-a", "replica-b", "replica-c"];
    let mut members: Vec<_> = names.iter().map(|name| fleet.member(name)).collect();
    sleep(Duration::from_secs(30)).await;
    slow(&fleet, Duration::from_millis(500));
    fleet.boats(BOATS, "one").await;
    fleet.until_done(BOATS, "one").await;
    let writers = fleet.writers();
    let maps: Vec<_> = writers.iter().filter(|(object, _)| object.starts_with("configmaps")).collect();
    assert_eq!(maps.len(), BOATS);
    assert!(maps.iter().all(|(_, writers)| writers.len() == 1), "{writers:?}");
    let busy: BTreeSet<_> = maps.iter().flat_map(|(_, writers)| writers.iter()).collect();
    assert_eq!(busy.len(), 3, "each has its share");

    // One is killed in the midst of a change, one joins, one leaves in good order: all is done.
    fleet.boats(BOATS, "two").await;
    sleep(Duration::from_millis(700)).await;
    members.remove(0).kill();
    members.push(fleet.member("replica-d"));
    sleep(Duration::from_secs(3)).await;
    members.remove(0).stop().await;
    fleet.until_done(BOATS, "two").await;

    // At rest, nothing is written and nothing read but Leases.
    let before = (fleet.writes().len(), fleet.requests("replica-c"), fleet.requests("replica-d"));
    sleep(Duration::from_secs(3600)).await;
    assert_eq!((fleet.writes().len(), fleet.requests("replica-c"), fleet.requests("replica-d")), before);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_joins_writes_nothing_that_is_right_already() {
    let fleet = Fleet::start().await;
    let _first = fleet.member("replica-a");
    fleet.boats(BOATS, "one").await;
    fleet.until_done(BOATS, "one").await;
    let before = fleet.writes().len();
    let _second = fleet.member("replica-b");
    sleep(Duration::from_secs(300)).await;
    assert_eq!(fleet.writes().len(), before);
}
