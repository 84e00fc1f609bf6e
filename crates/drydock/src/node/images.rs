//! Images that stand for programs of this machine: a table that tests change while the node runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::behaviour::matches;

/// What a mapped image runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program's file.
    pub path: PathBuf,
    /// Arguments before those of the container.
    pub arguments: Vec<String>,
}

impl Program {
    /// A program without arguments of its own. A path with a slash is taken as of now, from this directory.
    #[must_use]
    pub fn new(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let path = match path.components().count() {
            // A bare name is looked up when it is run.
            1 if !path.is_absolute() => path.to_owned(),
            _ => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        };
        Self { path, arguments: Vec::new() }
    }

    /// The same with arguments of its own.
    #[must_use]
    pub fn with_arguments(self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { arguments: arguments.into_iter().map(Into::into).collect(), ..self }
    }
}

/// The table of mapped images. Cloning shares it.
///
/// A pod all of whose containers' images are in it runs as real processes; every other pod is simulated.
#[derive(Clone, Debug, Default)]
pub struct Images {
    rules: Arc<Mutex<Vec<(String, Program)>>>,
}

impl Images {
    /// Maps images to a program. `*` in the pattern stands for anything; a pattern without a tag or digest is
    /// for all of them. The pattern set last is tried first.
    pub fn set(&self, pattern: &str, program: Program) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.retain(|(known, _)| known != pattern);
        rules.push((pattern.to_owned(), program));
    }

    /// The program of an image.
    #[must_use]
    pub fn of(&self, image: &str) -> Option<Program> {
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |pattern: &str| matches(pattern, image) || matches(pattern, untagged(image));
        rules.iter().rev().find(|(pattern, _)| fits(pattern)).map(|(_, program)| program.clone())
    }
}

/// An image's name without its tag and digest.
fn untagged(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or_default();
    match name.rsplit_once(':') {
        // A colon before a slash is that of the registry's port.
        Some((name, tag)) if !tag.contains('/') => name,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_untagged_pattern_is_for_all_tags() {
        let images = Images::default();
        images.set("localhost:5000/echo", Program::new("/bin/echo"));
        assert!(images.of("localhost:5000/echo:v1").is_some());
        assert!(images.of("localhost:5000/echo@sha256:00").is_some());
        assert!(images.of("localhost:5000/echo").is_some());
        assert!(images.of("localhost:5000/echoes").is_none());
        images.set("a:v1", Program::new("sh"));
        assert!(images.of("a:v2").is_none());
        assert_eq!(images.of("a:v1"), Some(Program::new("sh")));
    }
}
