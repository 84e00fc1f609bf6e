//! Plays recordings of a real kube-apiserver against the drydock and compares every answer.
//!
//! `cargo test -p windlass-drydock --test replay` fails on any difference. `REPLAY=crd-basic cargo test …  -- --nocapture` plays one scenario and
//! prints all differences.
//! `REPLAY_FROM=FOLDER` plays other recordings, `REPLAY_KUBECONFIG=FILE` plays against another server,
//! `REPLAY_ANSWERS=FOLDER` keeps the answers that were given, a list for each scenario.

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
    play(async || server::start().await).await;
}

/// The same, against any server: `REPLAY_KUBECONFIG` names a kubeconfig of a user who may do everything on a cluster that
/// has not seen the recordings before, and where no controllers run. Without it there is nothing to do.
#[tokio::test]
async fn the_server_of_a_kubeconfig_answers_as_a_real_server_did() {
    let Ok(kubeconfig) = std::env::var("REPLAY_KUBECONFIG") else { return };
    play(async || server::Remote::connect(&kubeconfig).await.unwrap()).await;
}

/// Plays all recordings, each against a server of its own, and fails on any difference.
async fn play<S: server::Server>(start: impl AsyncFn() -> S) {
    let only = std::env::var("REPLAY").ok();
    let mut score = Score::default();
    let mut broken = Vec::new();
    for scenario in scenario::all().unwrap() {
        if only.as_ref().is_some_and(|only| *only != scenario.name) {
            continue;
        }
        let mut server = start().await;
        let results = player::replay(&scenario, &mut server).await;
        if let Some(folder) = std::env::var_os("REPLAY_ANSWERS") {
            let answers: Vec<_> = results.iter().map(|result| &result.answer).collect();
            let file = std::path::Path::new(&folder).join(format!("{}.json", scenario.name));
            std::fs::write(file, serde_json::to_vec(&answers).unwrap()).unwrap();
        }
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
