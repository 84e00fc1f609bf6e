//! The table of figures, and the limits that the first operator is held to.

use crate::life::{CHILDREN, Figures};

/// The peer whose CPU and memory are the measure.
const PEER: &str = "monocle-controller-runtime";
/// At most this part of the peer's CPU time.
const CPU: f64 = 1.0 / 2.0;
/// At most this part of the peer's memory.
const MEMORY: f64 = 1.0 / 3.0;
/// At most so many requests for a Monocle beyond one for each child.
const MORE_REQUESTS: usize = 2;
/// At most so many megabytes more for objects that are nothing to it.
const UNRELATED: f64 = 20.0;

type Row = (&'static str, fn(&Figures) -> f64, usize);

const ROWS: [Row; 8] = [
    ("CPU seconds", |figures| figures.cpu_seconds, 1),
    ("CPU milliseconds a Monocle", |figures| figures.cpu_seconds * 1000.0 / figures.monocles as f64, 2),
    ("peak memory, MB", |figures| figures.peak_megabytes, 0),
    ("seconds until all are ready", |figures| figures.seconds_to_ready, 1),
    ("requests a Monocle", |figures| figures.requests_per_monocle, 2),
    ("requests at rest", |figures| figures.requests_at_rest as f64, 0),
    ("writes after a restart", |figures| figures.restart_writes as f64, 0),
    ("CPU seconds of a restart", |figures| figures.restart_cpu_seconds, 1),
];

/// Prints the figures, with the ratio of each to the first operator's.
pub(crate) fn table(all: &[Figures]) {
    let Some(first) = all.first() else { return };
    print!("{:28}", format!("{} Monocles", first.monocles));
    all.iter().for_each(|figures| print!(" {:>34}", figures.operator));
    println!();
    for (title, figure, digits) in ROWS {
        print!("{title:28}");
        for (place, figures) in all.iter().enumerate() {
            let (value, base) = (figure(figures), figure(first));
            let ratio = match place > 0 && base > 0.0 {
                true => format!(" ({:.1}x)", value / base),
                false => String::new(),
            };
            print!(" {:>34}", format!("{value:.digits$}{ratio}"));
        }
        println!();
    }
    if let Some(unrelated) = &first.unrelated {
        println!(
            "{} unrelated Secrets: memory {:.0} -> {:.0} MB, peak of a start {:.0} -> {:.0} MB",
            unrelated.secrets,
            unrelated.megabytes_before,
            unrelated.megabytes_after,
            unrelated.restart_peak_before,
            unrelated.restart_peak_after
        );
    }
}

/// The limits that the first operator misses.
pub(crate) fn missed(all: &[Figures]) -> Vec<String> {
    let Some(own) = all.first() else { return Vec::new() };
    let mut limits = vec![
        ("requests a Monocle", own.requests_per_monocle, (CHILDREN + MORE_REQUESTS) as f64),
        ("requests at rest", own.requests_at_rest as f64, 0.0),
        ("writes after a restart", own.restart_writes as f64, 0.0),
    ];
    if let Some(peer) = all.iter().find(|figures| figures.operator == PEER) {
        limits.push(("CPU seconds next to controller-runtime", own.cpu_seconds, peer.cpu_seconds * CPU));
        limits.push(("memory next to controller-runtime", own.peak_megabytes, peer.peak_megabytes * MEMORY));
    }
    if let Some(unrelated) = &own.unrelated {
        let more = unrelated.megabytes_after - unrelated.megabytes_before;
        limits.push(("memory for unrelated Secrets", more, UNRELATED));
        let more = unrelated.restart_peak_after - unrelated.restart_peak_before;
        limits.push(("peak memory of a start with unrelated Secrets", more, UNRELATED));
    }
    let missed = limits.into_iter().filter(|(_, value, limit)| value > limit);
    missed.map(|(what, value, limit)| format!("{what}: {value:.2}, at most {limit:.2}")).collect()
}
