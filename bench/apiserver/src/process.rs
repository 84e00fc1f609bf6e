//! What the kernel says of a server's processes.

use std::time::Duration;

/// Clock ticks in a second, as `/proc` counts them on Linux.
const TICKS: u64 = 100;

/// The processes of a server.
pub(crate) struct Processes(pub(crate) Vec<u32>);

impl Processes {
    /// Processor time until now; none where no process is named.
    pub(crate) fn time(&self) -> Option<Duration> {
        let of = |pid: &u32| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name before it may hold anything, but ends with the last parenthesis.
            let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
            let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            Some(user + system)
        };
        let ticks: Option<Vec<u64>> = self.0.iter().map(of).collect();
        let ticks = ticks.filter(|ticks| !ticks.is_empty())?;
        Some(Duration::from_millis(ticks.iter().sum::<u64>() * 1000 / TICKS))
    }

    /// Microseconds of processor time since then, for each of so many requests.
    pub(crate) fn cost(&self, since: Option<Duration>, requests: usize) -> Option<f64> {
        Some((self.time()? - since?).as_secs_f64() * 1e6 / requests as f64)
    }

    /// Memory in kilobytes; none where no process is named.
    pub(crate) fn memory(&self) -> Option<f64> {
        let of = |pid: &u32| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.to_owned();
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        let all: Option<Vec<f64>> = self.0.iter().map(of).collect();
        all.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
    }
}
