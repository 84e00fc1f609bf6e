//! How simulated containers behave, by image: a table that tests change while the node runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a simulated container does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// It runs and is ready after a while; in a pod that is meant to end, it ends well.
    Serve {
        /// How long it takes to be ready.
        ready_after: Duration,
    },
    /// It ends by itself; with a code other than 0 that is a crash.
    Exit {
        /// How long it runs.
        after: Duration,
        /// Its exit code.
        code: i32,
    },
    /// It runs, is never ready and never ends.
    Unready,
    /// It is never created.
    Hang,
    /// Its image cannot be pulled.
    Unpullable,
}

/// A behaviour that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no behaviour {0:?}: it is one of unpullable, hang, unready, crash, exit:CODE")]
pub struct UnknownBehaviour(String);

impl std::str::FromStr for Behaviour {
    type Err = UnknownBehaviour;

    /// Reads `unpullable`, `hang`, `unready`, `crash` (at once, with code 1) or `exit:CODE` (at once).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let exit = |code| Self::Exit { after: Duration::ZERO, code };
        match text {
            "unpullable" => Ok(Self::Unpullable),
            "hang" => Ok(Self::Hang),
            "unready" => Ok(Self::Unready),
            "crash" => Ok(exit(1)),
            _ => {
                let code = text.strip_prefix("exit:").and_then(|code| code.parse().ok());
                code.map(exit).ok_or_else(|| UnknownBehaviour(text.to_owned()))
            }
        }
    }
}

/// The table of behaviours. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Behaviours {
    rules: Arc<Mutex<Vec<(String, Behaviour)>>>,
}

impl Behaviours {
    /// Sets the behaviour of images that match `pattern`, in which `*` stands for anything. The pattern set last
    /// is tried first. Containers that run already go on as they are.
    pub fn set(&self, pattern: &str, behaviour: Behaviour) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.retain(|(known, _)| known != pattern);
        rules.push((pattern.to_owned(), behaviour));
    }

    /// Takes a pattern out again.
    pub fn remove(&self, pattern: &str) {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).retain(|(known, _)| known != pattern);
    }

    /// What is set for an image.
    #[must_use]
    pub fn of(&self, image: &str) -> Option<Behaviour> {
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules
            .iter()
            .rev()
            .find(|(pattern, _)| matches(pattern, image))
            .map(|(_, behaviour)| behaviour.clone())
    }
}

pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_set_last_decides() {
        let behaviours = Behaviours::default();
        behaviours.set("*", Behaviour::Unready);
        behaviours.set("registry/*:bad*", Behaviour::Unpullable);
        assert_eq!(behaviours.of("nginx"), Some(Behaviour::Unready));
        assert_eq!(behaviours.of("registry/a/b:bad-1"), Some(Behaviour::Unpullable));
        assert_eq!(behaviours.of("registry/a/b:good"), Some(Behaviour::Unready));
        behaviours.remove("*");
        assert_eq!(behaviours.of("nginx"), None);
    }
}
