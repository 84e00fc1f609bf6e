//! What was measured, and the table of it.

use std::time::Duration;

/// One figure of one server.
#[derive(Clone)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    more_is_better: bool,
    /// Microseconds of the server's processor time for each request, where they are known.
    pub(crate) cost: Option<f64>,
}

impl Figure {
    pub(crate) fn rate(name: &str, count: usize, time: Duration) -> Self {
        let value = count as f64 / time.as_secs_f64();
        Self { name: name.to_owned(), value, unit: "/s", more_is_better: true, cost: None }
    }

    /// The middle of some times.
    pub(crate) fn time(name: &str, mut times: Vec<Duration>) -> Self {
        times.sort();
        let value = times.get(times.len() / 2).map_or(0.0, |middle| middle.as_secs_f64() * 1000.0);
        Self { name: name.to_owned(), value, unit: "ms", more_is_better: false, cost: None }
    }

    /// Something there should be little of.
    pub(crate) fn amount(name: &str, value: f64, unit: &'static str) -> Self {
        Self { name: name.to_owned(), value, unit, more_is_better: false, cost: None }
    }

    pub(crate) fn costing(self, cost: Option<f64>) -> Self {
        Self { cost, ..self }
    }

    fn shown(&self) -> String {
        let digits = if self.value < 10.0 { 2 } else { 0 };
        format!("{:.digits$} {}", self.value, self.unit)
    }

    fn times(&self, peer: &Self) -> f64 {
        if self.more_is_better { self.value / peer.value } else { peer.value / self.value }
    }
}

/// Of each figure the middle of its rounds.
pub(crate) fn middle(rounds: Vec<Vec<Figure>>) -> Vec<Figure> {
    let figures = rounds.first().map_or(0, Vec::len);
    let of = |index: usize| {
        let mut all: Vec<Figure> = rounds.iter().map(|round| round[index].clone()).collect();
        all.sort_by(|left, right| left.value.total_cmp(&right.value));
        all.swap_remove(all.len() / 2)
    };
    (0..figures).map(of).collect()
}

/// A line for each figure: of the server, of its peer, and how much better the server is.
pub(crate) fn print(servers: Vec<Vec<Figure>>) {
    let cost = |figure: &Figure| figure.cost.map_or(String::new(), |cost| format!("{cost:.0} us"));
    println!("{:34} {:>12} {:>8} {:>12} {:>8} {:>8}", "figure", "here", "cpu", "peer", "cpu", "ratio");
    let Some((own, peers)) = servers.split_first() else { return };
    for (index, figure) in own.iter().enumerate() {
        let peer = peers.first().map(|peer| &peer[index]);
        println!(
            "{:34} {:>12} {:>8} {:>12} {:>8} {:>8}",
            figure.name,
            figure.shown(),
            cost(figure),
            peer.map(Figure::shown).unwrap_or_default(),
            peer.map(cost).unwrap_or_default(),
            peer.map_or(String::new(), |peer| format!("{:.1}x", figure.times(peer))),
        );
    }
}
