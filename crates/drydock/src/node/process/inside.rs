//! Running programs inside a container: with its variables, in its directory, as a group of their own.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Container;
use tokio::process::{Child, Command};

use super::super::images::Program;
use super::environment::Variables;
use super::expansion::expand;
use super::guard::{Group, Guard};
use super::root::Root;

/// What is kept of a probe's or hook's output.
const OUTPUT: usize = 1024;

/// The inside of a container.
pub(super) struct Inside {
    pub(super) guard: Arc<Guard>,
    pub(super) program: Program,
    pub(super) root: Root,
    pub(super) variables: Variables,
    /// The working directory.
    pub(super) directory: PathBuf,
    /// Where its ports are.
    pub(super) address: String,
}

impl Inside {
    /// The container's program and arguments.
    ///
    /// `command` takes the place of the mapped program, as it does of an image's entry point. Its first word is
    /// the mapped program where it has its name, a program of this machine where there is one, and otherwise the
    /// mapped program again: that is what the image holds.
    pub(super) fn words(&self, container: &Container) -> Vec<String> {
        let value = |name: &str| self.variables.get(name).map(String::as_str);
        let own = |list: &Option<Vec<String>>| -> Vec<String> {
            list.iter().flatten().map(|word| self.root.rewrite(&expand(word, value))).collect()
        };
        let (command, arguments) = (own(&container.command), own(&container.args));
        match command.split_first() {
            Some((first, rest)) => {
                let mut words = vec![first.clone()];
                words.extend(rest.iter().cloned().chain(arguments));
                words
            }
            None => {
                let mut words = vec![self.program.path.to_string_lossy().into_owned()];
                words.extend(self.program.arguments.iter().cloned().chain(arguments));
                words
            }
        }
    }

    /// Starts a program.
    pub(super) fn spawn(&self, words: &[String]) -> io::Result<(Child, Group)> {
        let Some((first, rest)) = words.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command specified"));
        };
        let mut command = Command::new(self.found(first));
        // One program can stand for all those of an image: it is told by which name it is called.
        #[cfg(unix)]
        command.arg0(first);
        command
            .args(rest)
            .env_clear()
            .envs(&self.variables)
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.guard.spawn(command)
    }

    /// Runs the command of a probe or hook to its end; the error is what it wrote.
    pub(super) async fn exec(&self, command: &[String], limit: Duration) -> Result<(), String> {
        let words: Vec<String> = command.iter().map(|word| self.root.rewrite(word)).collect();
        // The group ends with this function, whatever is left of it.
        let (child, _group) = self.spawn(&words).map_err(|error| error.to_string())?;
        let Ok(output) = tokio::time::timeout(limit, child.wait_with_output()).await else {
            return Err(format!(
                "command timed out: {:?} timed out after {}s",
                command.join(" "),
                limit.as_secs()
            ));
        };
        let output = output.map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let text = [output.stdout, output.stderr].concat();
        Err(String::from_utf8_lossy(&text[..text.len().min(OUTPUT)]).into_owned())
    }

    /// The program that the first word of a command means.
    fn found(&self, word: &str) -> String {
        let mapped = || self.program.path.to_string_lossy().into_owned();
        let path = Path::new(word);
        if path.file_name().is_some() && path.file_name() == self.program.path.file_name() {
            return mapped();
        }
        let search = self.variables.get("PATH").map(String::as_str).unwrap_or_default();
        let there = match word.contains('/') {
            true => self.directory.join(path).is_file(),
            false => std::env::split_paths(OsStr::new(search)).any(|folder| folder.join(word).is_file()),
        };
        if there { word.to_owned() } else { mapped() }
    }
}
