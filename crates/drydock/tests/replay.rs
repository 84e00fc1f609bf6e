//! Plays recordings of a real kube-apiserver against the drydock and compares every answer.
//!
//! `cargo test -p windlass-drydock --test replay` fails on any difference. `REPLAY=crd-basic cargo test …  -- --nocapture` plays one scenario and
//! prints all differences.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

mod replay {
    pub(super) mod difference;
    pub(super) mod normal;
    pub(super) mod player;
    pub(super) mod scenario;
    pub(super) mod server;
    mod tests;
}

use replay::{player, scenario, server};

#[tokio::test(start_paused = true)]
async fn the_drydock_answers_as_a_real_server_did() {
    let only = std::env::var("REPLAY").ok();
    let mut score = Score::default();
    let mut broken = Vec::new();
    for scenario in scenario::all().unwrap() {
        if only.as_ref().is_some_and(|only| *only != scenario.name) {
            continue;
        }
        let mut server = server::start().await;
        let results = player::replay(&scenario, &mut server).await;
        let most = if only.is_some() { usize::MAX } else { 3 };
        for result in results.iter().filter(|result| !result.differences.is_empty()) {
            println!("{} {}", scenario.name, result.summary(most));
        }
        let whole = score.count(&scenario.name, &results);
        if !whole {
            broken.push(scenario.name);
        }
    }
    println!("{score}");
    assert!(
        broken.is_empty(),
        "these recordings are answered otherwise than by a real server: {}",
        broken.join(", ")
    );
}

/// How many answers were equal.
#[derive(Default)]
struct Score {
    lines: Vec<String>,
    steps: usize,
    equal: usize,
    statuses: usize,
    scenarios: usize,
    whole: usize,
}

impl Score {
    fn count(&mut self, name: &str, results: &[player::StepResult]) -> bool {
        let equal = results.iter().filter(|result| result.differences.is_empty()).count();
        self.lines.push(format!("{name}: {equal}/{}", results.len()));
        self.steps += results.len();
        self.equal += equal;
        self.statuses += results.iter().filter(|result| result.status_equal).count();
        self.scenarios += 1;
        let whole = equal == results.len();
        self.whole += usize::from(whole);
        whole
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { lines, steps, equal, statuses, scenarios, whole } = self;
        writeln!(out, "{}", lines.join("\n"))?;
        write!(
            out,
            "{equal}/{steps} steps equal, {statuses}/{steps} status codes equal, {whole}/{scenarios} scenarios whole"
        )
    }
}
