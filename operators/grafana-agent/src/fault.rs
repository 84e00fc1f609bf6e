//! Why something is left out.

/// Why an object, or a part of one, is left out of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// One word for programs.
    pub reason: &'static str,
    /// A sentence for people. Never the value of a Secret.
    pub message: String,
}

impl Fault {
    /// A fault.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// The same, saying where.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }
}
