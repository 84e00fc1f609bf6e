//! The agent's own Secrets: the configurations, and copies of what they name.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::labels;
use crate::kinds::GrafanaAgent;
use crate::outcome::Outcome;

/// The key that a configuration is under.
const KEY: &str = "agent.yml";

/// Copies of what the configurations name as files.
pub(super) fn copies(agent: &GrafanaAgent, outcome: &Outcome) -> Secret {
    Secret {
        metadata: labels::metadata(agent, labels::child(agent, "secrets")),
        data: Some(outcome.copies.clone()),
        ..Secret::default()
    }
}

/// A configuration.
pub(super) fn config(agent: &GrafanaAgent, suffix: &str, packed: Vec<u8>) -> Secret {
    Secret {
        metadata: labels::metadata(agent, labels::child(agent, suffix)),
        data: Some([(KEY.to_owned(), ByteString(packed))].into()),
        ..Secret::default()
    }
}
