//! Why something is left out.

use std::borrow::Cow;

/// Why an object, or a part of one, is left out of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// One word for programs.
    pub reason: Cow<'static, str>,
    /// A sentence for people. Never the value of a Secret.
    pub message: String,
}

impl Fault {
    /// A fault.
    pub fn new(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }

    /// The same, saying where.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }
}
