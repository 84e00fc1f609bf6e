use super::*;

impl Tenant for &str {
    fn tenant(&self) -> &str {
        self.split_once('/').map_or("", |(tenant, _)| tenant)
    }
}

fn queue() -> Queue<&'static str> {
    Queue::new(Context::seeded(1))
}

#[tokio::test(start_paused = true)]
async fn a_key_is_given_out_once_and_never_to_two_workers() {
    let queue = queue();
    queue.add("a");
    queue.add("a");
    queue.add("b");
    assert_eq!(queue.next().await, "a");
    queue.add("a");
    assert_eq!(queue.next().await, "b");
    assert!(tokio::time::timeout(Duration::from_secs(9), queue.next()).await.is_err());
    queue.done(&"a");
    assert_eq!(queue.next().await, "a");
}

#[tokio::test(start_paused = true)]
async fn pauses_double_up_to_a_limit_and_success_resets_them() {
    let queue = queue();
    let mut longest = FIRST_PAUSE;
    for _ in 0..40 {
        let pause = queue.retry("a");
        assert!(pause <= longest && pause >= longest / 2, "{pause:?} of {longest:?}");
        longest = (longest * 2).min(LONGEST_PAUSE);
        let before = Instant::now();
        assert_eq!(queue.next().await, "a");
        assert_eq!(before.elapsed().as_millis(), pause.as_millis());
        queue.done(&"a");
    }
    queue.succeeded(&"a");
    assert!(queue.retry("a") <= FIRST_PAUSE);
}

#[tokio::test(start_paused = true)]
async fn a_change_does_not_wait_for_the_pause_and_replaces_it() {
    let queue = queue();
    queue.add_after("a", Duration::from_secs(100));
    queue.add("a");
    assert_eq!(queue.next().await, "a");
    queue.done(&"a");
    assert!(tokio::time::timeout(Duration::from_secs(200), queue.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_earliest_of_several_times_holds() {
    let queue = queue();
    queue.add_after("a", Duration::from_secs(100));
    queue.add_after("a", Duration::from_secs(10));
    queue.add_after("a", Duration::from_secs(50));
    let before = Instant::now();
    queue.next().await;
    assert_eq!(before.elapsed().as_secs(), 10);
}

async fn order(queue: &Queue<&'static str>, count: usize) -> Vec<&'static str> {
    let mut order = Vec::new();
    for _ in 0..count {
        let key = queue.next().await;
        queue.done(&key);
        order.push(key);
    }
    order
}

#[tokio::test(start_paused = true)]
async fn a_change_comes_before_routine_and_raises_what_already_waits() {
    let queue = queue();
    for key in ["x/1", "x/2", "x/3"] {
        queue.add(key);
    }
    queue.add_with("x/9", Urgency::Change);
    queue.add_with("x/3", Urgency::Change);
    assert_eq!(order(&queue, 4).await, ["x/9", "x/3", "x/1", "x/2"]);
}

#[tokio::test(start_paused = true)]
async fn routine_is_not_starved_by_changes() {
    let queue = queue();
    queue.add("x/routine");
    let keys: Vec<&'static str> = (0..40).map(|n| &*format!("x/{n}").leak()).collect();
    for key in &keys {
        queue.add_with(key, Urgency::Change);
    }
    let order = order(&queue, 41).await;
    let at = order.iter().position(|key| *key == "x/routine").unwrap();
    assert!((1..20).contains(&at), "given out as number {at}");
}

#[tokio::test(start_paused = true)]
async fn tenants_take_turns() {
    let queue = queue();
    let many: Vec<&'static str> = (0..1000).map(|n| &*format!("big/{n}").leak()).collect();
    for key in &many {
        queue.add(key);
    }
    queue.add("small/1");
    queue.add("small/2");
    assert_eq!(order(&queue, 5).await, ["big/0", "small/1", "big/1", "small/2", "big/2"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_while_a_worker_has_the_key_keeps_its_urgency() {
    let queue = queue();
    queue.add("x/a");
    assert_eq!(queue.next().await, "x/a");
    queue.add("x/b");
    queue.add_with("x/a", Urgency::Change);
    queue.done(&"x/a");
    assert_eq!(order(&queue, 2).await, ["x/a", "x/b"]);
}
