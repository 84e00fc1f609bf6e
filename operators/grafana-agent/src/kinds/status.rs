//! What is reported: which objects are in, which were left out and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::Status;

/// The status of a GrafanaAgent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentStatus {
    /// The framework's part.
    #[serde(flatten)]
    pub common: Status,
    /// What of metrics is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Subsystem>,
    /// What of logs is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<Subsystem>,
    /// What of integrations is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrations: Option<Subsystem>,
    /// What was left out, and why: the first hundred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// What is in the configuration of one subsystem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Subsystem {
    /// How many instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<i64>,
    /// How many monitors, PodLogs or integrations are in.
    pub included: i64,
    /// How many were left out.
    pub left_out: i64,
    /// The same for people: `12 in, 1 left out`.
    pub summary: String,
}

impl Subsystem {
    /// Counts and the words for them.
    #[must_use]
    pub fn new(instances: Option<usize>, included: usize, left_out: usize) -> Self {
        let summary = match left_out {
            0 => format!("{included} in"),
            _ => format!("{included} in, {left_out} left out"),
        };
        Self {
            instances: instances.map(|count| count as i64),
            included: included as i64,
            left_out: left_out as i64,
            summary,
        }
    }
}

/// Something that was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LeftOut {
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Why, as one word for programs.
    pub reason: String,
    /// Why, as a sentence for people.
    pub message: String,
}

/// The status of what agents select.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectedStatus {
    /// The framework's part.
    #[serde(flatten)]
    pub common: Status,
}
