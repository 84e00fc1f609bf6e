//! What is said about one dependent: ready, pending or failed, and why.

use std::collections::BTreeMap;
use std::fmt;

/// How a dependent is. The order is that of badness: the worst of several is their maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// There, and does what it is for.
    Ready,
    /// On its way, as far as can be told.
    Pending,
    /// Will not become ready by itself.
    Failed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// The condition of one dependent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// How it is.
    pub state: State,
    /// What that is called in the status, if the three words do not say it.
    pub name: Option<String>,
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
        Self::new(State::Ready, "Ready", "")
    }

    /// Not ready yet.
    pub fn pending(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(State::Pending, reason, message)
    }

    /// Failed.
    pub fn failed(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(State::Failed, reason, message)
    }

    fn new(state: State, reason: impl Into<String>, message: impl Into<String>) -> Self {
        let (reason, message) = (reason.into(), message.into());
        Self { state, name: None, reason, message, attributes: BTreeMap::new() }
    }

    /// Gives its state a name of the operator's own, such as `Migrating`, by which the status calls it. It counts as
    /// before: `Condition::pending(…).named("Migrating")` is a pending one. What is ready is called `Ready` in any case.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// What its state is called in the status: `Ready`, `Pending`, `Failed`, or its [name](Self::named).
    #[must_use]
    pub fn title(&self) -> String {
        let name = self.name.clone().filter(|_| !self.is_ready());
        name.unwrap_or_else(|| self.state.to_string())
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
