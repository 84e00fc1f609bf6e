//! The operator as a process: its processor time and its memory, as the kernel counts them.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

/// The running operator; it ends with this value.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(windlass: &Path, kubeconfig: &Path) -> Result<Self> {
        let child = Command::new(windlass)
            .args(["run", "grafana-agent", "--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(kubeconfig)
            .stderr(Stdio::null())
            .spawn();
        Ok(Self(child.with_context(|| format!("failed to start {}", windlass.display()))?))
    }

    /// The processor time that it has used.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let stat = self.read("stat")?;
        // The second field is the program's name, and may hold anything; 14 and 15 are user and system time.
        let rest = stat.rsplit_once(')').context("no stat")?.1;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        // A tick is a hundredth of a second on every Linux.
        Ok(Duration::from_millis(ticks * 10))
    }

    /// Megabytes at the most so far.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        self.status("VmHWM:")
    }

    /// Megabytes now.
    pub(crate) fn memory(&self) -> Result<u64> {
        self.status("VmRSS:")
    }

    fn status(&self, field: &str) -> Result<u64> {
        let status = self.read("status")?;
        let line = status.lines().find(|line| line.starts_with(field)).context("no such field")?;
        let kilobytes: u64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
        Ok(kilobytes / 1024)
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.0.id());
        std::fs::read_to_string(&path).context("the operator has ended")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
