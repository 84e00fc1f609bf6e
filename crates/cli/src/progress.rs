//! What is waited for, and how far it is: one line that changes on a terminal, one line a change elsewhere.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};

use kube::api::DynamicObject;

/// How an object that is waited for is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Whether it is ready.
    pub(crate) ready: bool,
    /// What it waits for, for people.
    pub(crate) text: String,
}

impl State {
    /// Reads the standard `Ready` condition and the list of dependents.
    pub(crate) fn of(object: Option<&DynamicObject>) -> Self {
        let Some(object) = object else {
            return Self { ready: false, text: "not there yet".to_owned() };
        };
        let status = &object.data["status"];
        let list = |field: &str| status[field].as_array().cloned().unwrap_or_default();
        let current = status["observedGeneration"].as_i64() == object.metadata.generation;
        let ready = list("conditions").into_iter().find(|condition| condition["type"] == "Ready");
        let Some(condition) = ready.filter(|_| current) else {
            return Self { ready: false, text: "waiting for its operator".to_owned() };
        };
        if condition["status"] == "True" {
            return Self { ready: true, text: "Ready".to_owned() };
        }
        let dependents = list("dependents");
        let done = dependents.iter().filter(|dependent| dependent["type"] == "Ready").count();
        let reason =
            condition["message"].as_str().or_else(|| condition["reason"].as_str()).unwrap_or_default();
        Self { ready: false, text: format!("{done} of {} ready: {reason}", dependents.len()) }
    }
}

/// Shows states as they change.
pub(crate) struct Board {
    states: BTreeMap<String, State>,
    terminal: bool,
    lines: usize,
}

impl Board {
    /// A board of the objects of these names, none of them ready.
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let states = names.into_iter().map(|name| (name, State::of(None))).collect();
        Self { states, terminal: std::io::stderr().is_terminal(), lines: 0 }
    }

    /// Takes a new state, and shows it where it is one.
    pub(crate) fn update(&mut self, name: &str, state: State) {
        if self.states.get(name) == Some(&state) {
            return;
        }
        if !self.terminal {
            eprintln!("{name}: {}", state.text);
        }
        self.states.insert(name.to_owned(), state);
        if self.terminal {
            self.draw();
        }
    }

    /// Whether everything is ready.
    pub(crate) fn ready(&self) -> bool {
        self.states.values().all(|state| state.ready)
    }

    /// What is not ready, with what it waits for.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let waiting = self.states.iter().filter(|(_, state)| !state.ready);
        waiting.map(|(name, state)| format!("{name}: {}", state.text)).collect()
    }

    fn draw(&mut self) {
        let mut out = String::new();
        if self.lines > 0 {
            out.push_str(&format!("\x1b[{}F", self.lines));
        }
        let width = self.states.keys().map(String::len).max().unwrap_or(0);
        for (name, state) in &self.states {
            let (mark, colour) = if state.ready { ("✓", "32") } else { ("…", "33") };
            out.push_str(&format!("\x1b[2K\x1b[{colour}m{mark}\x1b[0m {name:width$}  {}\n", state.text));
        }
        self.lines = self.states.len();
        let mut stderr = std::io::stderr().lock();
        // A terminal that is gone has nobody to tell.
        let _ = stderr.write_all(out.as_bytes()).and_then(|()| stderr.flush());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(status: serde_json::Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x", "generation": 2}, "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn only_a_status_of_this_generation_counts() {
        let conditions = json!([{"type": "Ready", "status": "True"}]);
        assert!(!State::of(Some(&object(json!({"observedGeneration": 1, "conditions": conditions})))).ready);
        assert!(State::of(Some(&object(json!({"observedGeneration": 2, "conditions": conditions})))).ready);
    }

    #[test]
    fn what_is_waited_for_is_told() {
        let state = State::of(Some(&object(json!({
            "observedGeneration": 2,
            "conditions": [{"type": "Ready", "status": "False", "message": "Deployment x-api is starting"}],
            "dependents": [{"type": "Ready"}, {"type": "Pending"}],
        }))));
        assert_eq!(state.text, "1 of 2 ready: Deployment x-api is starting");
    }
}
