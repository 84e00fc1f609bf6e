//! The fields of a CheckupSchedule.

// The derived schema repeats the type within a private module.
#![allow(unreachable_pub)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::Status;

use crate::CheckupSpec;

/// Checkups at given times.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kiagnose.io",
    version = "v1alpha1",
    kind = "CheckupSchedule",
    plural = "checkupschedules",
    namespaced,
    status = "CheckupScheduleStatus",
    derive = "PartialEq",
    validation = Rule::new("size(self.metadata.name) <= 52").message("metadata.name: it begins the names of Checkups; use at most 52 letters"),
    printcolumn = r#"{"name": "Schedule", "type": "string", "jsonPath": ".spec.schedule"}"#,
    printcolumn = r#"{"name": "Suspend", "type": "boolean", "jsonPath": ".spec.suspend"}"#,
    printcolumn = r#"{"name": "Last", "type": "date", "jsonPath": ".status.lastScheduleTime"}"#,
    printcolumn = r#"{"name": "Result", "type": "string", "jsonPath": ".status.lastPhase"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct CheckupScheduleSpec {
    /// When: the five fields of cron, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`, `@every 1h30m`.
    #[schemars(length(min = 1))]
    #[x_kube(validation = Rule::new("!self.startsWith('TZ=') && !self.startsWith('CRON_TZ=')").message("schedule: use timeZone for the time zone"))]
    pub schedule: String,

    /// The time zone of the schedule, such as `Europe/Zurich`; UTC if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,

    /// A run that could not start in time is still started within so many seconds; at any time if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub starting_deadline_seconds: Option<i64>,

    /// What happens at a time at which a Checkup of this schedule still runs.
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,

    /// No further Checkups; what runs goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,

    /// So many Checkups that succeeded are kept.
    #[serde(default = "three")]
    #[schemars(range(min = 0))]
    pub successful_checkups_history_limit: i64,

    /// So many Checkups that failed are kept.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub failed_checkups_history_limit: i64,

    /// What the Checkups are like.
    pub checkup_template: CheckupTemplate,
}

/// What happens at a time at which a Checkup of a schedule still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConcurrencyPolicy {
    /// Another starts beside it.
    #[default]
    Allow,
    /// The other waits until it is over.
    Forbid,
    /// It is deleted, and the other starts.
    Replace,
}

/// What the Checkups of a schedule are like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckupTemplate {
    /// Labels and annotations for them.
    #[serde(default)]
    pub metadata: TemplateMetadata,
    /// Their spec.
    pub spec: CheckupSpec,
}

/// Labels and annotations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// How a CheckupSchedule is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckupScheduleStatus {
    /// The framework's part.
    #[serde(flatten)]
    pub common: Status,
    /// The last time for which a Checkup was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// The next time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_schedule_time: Option<Time>,
    /// The last time at which one succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Time>,
    /// How the last one that is over ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_phase: Option<String>,
    /// Those that run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub active: Vec<String>,
}

fn three() -> i64 {
    3
}

fn one() -> i64 {
    1
}
