//! What is said about one dependent: ready, pending or failed, and why.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a dependent is. The order is that of badness: the worst of several is their maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum State {
    /// There, and does what it is for.
    Ready,
    /// On its way, as far as can be told.
    Pending,
    /// Will not become ready by itself.
    Failed,
}

/// The condition of one dependent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// How it is.
    pub state: State,
    /// Why, as one CamelCase word for programs.
    pub reason: String,
    /// Why, as a sentence for people.
    pub message: String,
    /// More about it, for the entry in the status.
    pub attributes: BTreeMap<String, String>,
}

impl Condition {
    /// Ready.
    #[must_use]
    pub fn ready() -> Self {
        Self {
            state: State::Ready,
            reason: "Ready".into(),
            message: String::new(),
            attributes: BTreeMap::new(),
        }
    }

    /// Not ready yet.
    pub fn pending(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            state: State::Pending,
            reason: reason.into(),
            message: message.into(),
            attributes: BTreeMap::new(),
        }
    }

    /// Failed.
    pub fn failed(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            state: State::Failed,
            reason: reason.into(),
            message: message.into(),
            attributes: BTreeMap::new(),
        }
    }

    /// Adds something to know about it: an address, a version.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    /// Whether it is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state == State::Ready
    }
}
