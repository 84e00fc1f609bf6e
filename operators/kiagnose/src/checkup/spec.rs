//! The fields of a Checkup.

// The derived schema repeats the type within a private module.
#![allow(unreachable_pub)]

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ResourceRequirements, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use windlass::Status;
use windlass_machinery::go;

use super::params::Params;

/// How long a checkup may take to clean up after its timeout, before it is ended.
const TEARDOWN_GRACE: Duration = Duration::from_secs(10);

/// One checkup: a container that examines the cluster, and its verdict.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kiagnose.io",
    version = "v1alpha1",
    kind = "Checkup",
    plural = "checkups",
    namespaced,
    status = "CheckupStatus",
    derive = "PartialEq",
    validation = Rule::new("size(self.metadata.name) <= 63").message("metadata.name: it is also that of a Job; use at most 63 letters"),
    validation = Rule::new("!has(oldSelf.status) || !has(oldSelf.status.startTime) || self.spec == oldSelf.spec").message("spec: it cannot change once the run has started; make another Checkup, or run this one again with the annotation kiagnose.io/rerun").field_path(".spec"),
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#,
    printcolumn = r#"{"name": "Succeeded", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Succeeded\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Succeeded\")].reason"}"#,
    printcolumn = r#"{"name": "Duration", "type": "string", "jsonPath": ".status.duration"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.timeoutSeconds) != has(self.timeout)").message("give either timeoutSeconds or timeout"),
    validation = Rule::new("!has(self.timeout) || (type(self.timeout) == int ? self.timeout >= 1 : self.timeout.matches('^([0-9]+(\\\\.[0-9]+)?(ms|s|m|h))+$') && duration(self.timeout) >= duration('1s'))").message("timeout: seconds, at least 1, or a duration such as 1m30s"),
    validation = Rule::new("self.serviceAccountName != 'default'").message("serviceAccountName: the service account default is everybody's; make one for the checkup")
)]
pub struct CheckupSpec {
    /// The checkup's image.
    #[schemars(length(min = 1))]
    pub image: String,

    /// The service account that the checkup runs as, in the Checkup's namespace; not `default`.
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: String,

    /// How long the checkup may take, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_seconds: Option<i64>,

    /// The same as seconds, or as a duration such as `1m30s`; in place of `timeoutSeconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<IntOrString>,

    /// What the checkup is told: texts by name, or a text that holds them as a JSON object.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    #[schemars(schema_with = "params_schema")]
    pub params: Params,

    /// Requests and limits of the checkup's container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,

    /// On which nodes the checkup may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,

    /// Which taints it tolerates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,

    /// So long after its end the Checkup is deleted, with all that was made for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i64>,

    /// Leaves everything for a look: the time to live does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_teardown: bool,
}

/// How a Checkup is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckupStatus {
    /// The framework's part. Its conditions are `Succeeded` and `Failed` besides.
    #[serde(flatten)]
    pub common: Status,

    /// Where the run is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,

    /// When the run started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,

    /// When the run was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,

    /// How long it took, such as `1m30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,

    /// What the checkup found out. It is what the checkup wrote, and not to be trusted further than the checkup.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<String, String>,

    /// Why it failed, as the checkup says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,

    /// The last lines of its log, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_tail: Option<String>,

    /// Which run this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunRecord>,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Not started.
    Pending,
    /// Started.
    Running,
    /// Over, and all is well.
    Succeeded,
    /// Over, and not well.
    Failed,
}

/// What is remembered of a run, so that there is never a second one by mistake.
///
/// The server itself refuses to forget a Job that was recorded: a controller that sees an old state, or a second one
/// that runs beside, cannot take another for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(oldSelf.jobUid) || (has(self.jobUid) && self.jobUid == oldSelf.jobUid) || (has(self.former) && oldSelf.jobUid in self.former)").message("status.run.jobUid: a Job that was recorded is forgotten only by another run").reason(Reason::FieldValueForbidden)
)]
pub struct RunRecord {
    /// The annotation's value that it was started with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerun: Option<String>,
    /// When it was asked for.
    pub requested: Time,
    /// The results ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub results_uid: Option<String>,
    /// The Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub job_uid: Option<String>,
    /// What the former run left, which has to go first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 128)))]
    pub former: Vec<String>,
}

impl RunRecord {
    pub(super) fn new(rerun: Option<String>, now: Timestamp) -> Self {
        Self { rerun, requested: Time(now), results_uid: None, job_uid: None, former: Vec::new() }
    }
}

impl CheckupSpec {
    /// How long the checkup may take.
    #[must_use]
    pub fn time_limit(&self) -> Duration {
        let seconds = match (&self.timeout_seconds, &self.timeout) {
            (Some(seconds), _) => *seconds,
            (None, Some(IntOrString::Int(seconds))) => i64::from(*seconds),
            (None, Some(IntOrString::String(text))) => {
                go::parse_duration(text).map_or(0, |nanos| nanos.div_euclid(1_000_000_000))
            }
            (None, None) => 0,
        };
        Duration::from_secs(u64::try_from(seconds.max(1)).unwrap_or(1))
    }

    /// After how long its Job is ended.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.time_limit() + TEARDOWN_GRACE
    }
}

impl CheckupStatus {
    /// Nothing is decided yet.
    pub(super) fn unknown(&mut self, phase: Phase, reason: &str, message: &str, now: Timestamp) {
        self.phase = Some(phase);
        self.say("Succeeded", "Unknown", reason, message, now);
        self.say("Failed", "Unknown", reason, message, now);
    }

    /// Sets one of the Checkup's own conditions.
    pub(super) fn say(&mut self, kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) {
        let conditions = &mut self.common.conditions;
        let before = conditions.iter().find(|one| one.type_ == kind && one.status == status);
        let since = before.map_or(Time(now), |before| before.last_transition_time.clone());
        conditions.retain(|one| one.type_ != kind);
        conditions.push(Condition {
            type_: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            observed_generation: self.common.observed_generation,
            last_transition_time: since,
        });
    }

    /// Reason and message of the verdict.
    pub(super) fn said(&self) -> (String, String) {
        let verdict = self.common.conditions.iter().find(|one| one.type_ == "Succeeded");
        verdict.map(|one| (one.reason.clone(), one.message.clone())).unwrap_or_default()
    }
}

/// A span as Go writes whole seconds: `1m30s`.
pub(super) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

fn params_schema(_: &mut SchemaGenerator) -> Schema {
    // Either of two types: the schemas of the API have no other word for it.
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}
