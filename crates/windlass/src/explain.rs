//! Why an object is as it is: what the last passes over a primary were caused by, read, compared and wrote.
//!
//! The operator's port serves it as `/explain/{kind}/{namespace}/{name}`, and `windlass explain` prints it. The
//! record is bounded twice: a few passes for each object, and a few megabytes for all of them. Values of Secrets are
//! never in it.

mod cause;
mod diff;
mod journal;
mod trace;

use serde::{Deserialize, Serialize};

pub(crate) use cause::{Cause, Causes};
pub(crate) use diff::{changes, masked};
pub(crate) use journal::Journal;
pub(crate) use trace::{Sent, Trace};

/// The record of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The operator that keeps it.
    pub operator: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The last passes over it, the newest last.
    pub passes: Vec<Pass>,
}

/// One pass over an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pass {
    /// When it began.
    pub at: String,
    /// How long the object had waited in the queue, in milliseconds.
    pub waited_ms: u64,
    /// How long the pass took, in milliseconds.
    pub took_ms: u64,
    /// What queued the object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// What the plan read: whatever of it changes queues the object again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    /// What was found of each dependent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<Comparison>,
    /// What was written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<Write>,
    /// What is wrong or still to come, apart from the dependents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What came of it.
    pub result: String,
}

/// What was found of a dependent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// Kind, namespace and name.
    pub object: String,
    /// How it compares with the plan: `as planned`, `not there`, `differs at spec.replicas`, …
    pub found: String,
}

/// A write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// What was done: `create`, `apply`, `delete`, `status`, `event`.
    pub verb: String,
    /// Kind, namespace and name.
    pub object: String,
    /// What it changed, as far as it was known before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A field that a write changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Where it is: `spec.template.spec.containers[api].image`.
    pub path: String,
    /// What it was, unless it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it is, unless it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}
