//! An operator as a process, and what the kernel says of it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tokio::process::{Child, Command};

/// Clock ticks a second in `/proc`: the same on every Linux.
const TICKS: f64 = 100.0;

/// An operator to be measured.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    /// What its user agent begins with.
    pub(crate) name: String,
    program: PathBuf,
    arguments: Vec<String>,
}

impl Contender {
    /// Reads `NAME=PROGRAM ARGUMENTS…`; `--kubeconfig FILE` is added when it runs.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, command) = text.split_once('=').ok_or("write NAME=PROGRAM")?;
        let mut words = command.split_whitespace().map(ToOwned::to_owned);
        let program = words.next().ok_or("name a program after =")?.into();
        Ok(Self { name: name.to_owned(), program, arguments: words.collect() })
    }

    pub(crate) fn start(&self, kubeconfig: &Path) -> Result<Process> {
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdout(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("failed to start {}", self.program.display()))?;
        let pid = child.id().context("the operator ended at once")?;
        Ok(Process { child, pid })
    }
}

/// An operator that runs.
pub(crate) struct Process {
    child: Child,
    pid: u32,
}

impl Process {
    /// Seconds of CPU that it has used.
    pub(crate) fn cpu(&self) -> Result<f64> {
        let text = self.read("stat")?;
        // The second field is the program's name in brackets, which may hold anything.
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks =
            |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
        Ok((ticks(11) + ticks(12)) / TICKS)
    }

    /// Its memory in megabytes: now, and at its peak.
    pub(crate) fn memory(&self) -> Result<Memory> {
        let text = self.read("status")?;
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
            kilobytes.unwrap_or(0.0) / 1024.0
        };
        Ok(Memory { now: of("VmRSS:"), peak: of("VmHWM:") })
    }

    /// Ends it as a crash would.
    pub(crate) async fn kill(mut self) -> Result<()> {
        self.child.kill().await.context("failed to end the operator")
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.pid);
        std::fs::read_to_string(&path).with_context(|| format!("failed to read {path}: has it ended?"))
    }
}

/// Memory in megabytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) now: f64,
    pub(crate) peak: f64,
}
