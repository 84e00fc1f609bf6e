//! The guard: a small shell process that ends the pods' processes when the drydock ends, however it ends.
//!
//! It reads commands from a pipe. When the pipe closes, be it because the drydock stopped or because it was
//! killed, the guard ends every process group that it knows of, whatever else was started with a
//! `WINDLASS_ROOT` of this drydock, and removes the directory. It also sends the signals: without `unsafe`
//! there is no other way to signal a process group.

use std::fs::DirBuilder;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

const SHELL: &str = "/bin/sh";

/// `$1` is the directory. Signals of a terminal are not for the guard.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
groups=
forget() {
    kept=
    for group in $groups; do [ "$group" = "$1" ] || kept="$kept $group"; done
    groups=$kept
}
sweep() {
    for file in $(grep -laF "WINDLASS_ROOT=$1/" /proc/[0-9]*/environ); do
        process=${file#/proc/}
        kill -s KILL "${process%/environ}"
    done
}
while read -r what group; do
    case $what in
        begin) groups="$groups $group" ;;
        terminate) kill -s TERM "$group" ;;
        kill) kill -s KILL -- "-$group" ;;
        end) kill -s KILL -- "-$group"; forget "$group" ;;
        sweep) sweep "$group" ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
sweep "$1"
rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }
"#;

/// The guard of one drydock, and its directory.
#[derive(Debug)]
pub(super) struct Guard {
    directory: PathBuf,
    pipe: Mutex<Option<ChildStdin>>,
    shell: Mutex<Option<Child>>,
}

impl Guard {
    /// Makes a private directory and starts its guard.
    pub(super) fn start() -> io::Result<Self> {
        let directory = private_directory()?;
        let mut shell = Command::new(SHELL)
            .args(["-c", SCRIPT, "windlass-guard"])
            .arg(&directory)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .inspect_err(|_| drop(std::fs::remove_dir(&directory)))?;
        let pipe = shell.stdin.take();
        Ok(Self { directory, pipe: Mutex::new(pipe), shell: Mutex::new(Some(shell)) })
    }

    /// Everything of the drydock's pods is in it.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts a program as a process group of its own.
    pub(super) fn spawn(
        self: &Arc<Self>,
        mut command: tokio::process::Command,
    ) -> io::Result<(tokio::process::Child, Group)> {
        let child = command.process_group(0).spawn()?;
        let id = child.id().ok_or_else(|| io::Error::other("a process without an id"))?;
        self.tell("begin", id);
        Ok((child, Group { id, guard: Arc::clone(self) }))
    }

    /// Ends everything and takes the directory away. Blocks.
    pub(super) fn end(&self) {
        drop(self.pipe.lock().unwrap_or_else(PoisonError::into_inner).take());
        let shell = self.shell.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(error)) = shell.map(|mut shell| shell.wait()) {
            tracing::warn!(%error, "failed to wait for the guard of the pods' processes");
        }
    }

    /// Kills what was started with a root in a directory and left its group.
    pub(super) fn sweep(&self, directory: &Path) {
        self.tell("sweep", directory.display());
    }

    fn tell(&self, what: &str, about: impl std::fmt::Display) {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        // After the end there is nothing left to signal.
        let told = pipe.as_mut().map(|pipe| writeln!(pipe, "{what} {about}"));
        if let Some(Err(error)) = told {
            tracing::warn!(%error, "failed to reach the guard of the pods' processes");
        }
    }
}

/// A process group. Dropping it kills what is left of it.
#[derive(Debug)]
pub(super) struct Group {
    id: u32,
    guard: Arc<Guard>,
}

impl Group {
    /// SIGTERM, to the first process only: what it started is its own to end.
    pub(super) fn terminate(&self) {
        self.guard.tell("terminate", self.id);
    }

    /// SIGKILL.
    pub(super) fn kill(&self) {
        self.guard.tell("kill", self.id);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.guard.tell("end", self.id);
    }
}

/// A new directory that only its owner can enter.
fn private_directory() -> io::Result<PathBuf> {
    let base = std::env::temp_dir();
    let mut number = 0_u32;
    loop {
        let path = base.join(format!("windlass-{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}
