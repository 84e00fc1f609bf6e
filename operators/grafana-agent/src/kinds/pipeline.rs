//! The stages of a pipeline of logs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metrics::Integer;

/// One stage. Exactly one of the fields is given.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// Reads lines as the container runtime interface writes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cri: Option<Empty>,
    /// Reads lines as Docker writes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docker: Option<Empty>,
    /// Drops lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop: Option<Drop>,
    /// Reads fields of a line that is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<Json>,
    /// Keeps these labels and no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub label_allow: Vec<String>,
    /// Drops these labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub label_drop: Vec<String>,
    /// Sets labels from what earlier stages read: each label's name, and the name of what was read (the same if
    /// it is empty).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Limits the rate of lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Runs other stages, or drops, for the lines of some streams.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matching: Option<Match>,
    /// Makes metrics from lines, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Metric>,
    /// Joins several lines into one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiline: Option<Multiline>,
    /// Replaces the line by what an earlier stage read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// Puts labels into the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack: Option<Pack>,
    /// Reads parts of a line with an expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<Regex>,
    /// Replaces parts of a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<Replace>,
    /// Computes a value with a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<Template>,
    /// Sets the tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Tenant>,
    /// Sets the time of the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
}

/// A stage without settings.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}

/// Drops the lines for which all that is given holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drop {
    /// What to look at: something that was read earlier; the line if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// An expression that it matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// A text that it is equal to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// An age that the line is beyond.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older_than: Option<String>,
    /// A size that the line is beyond, such as `8kb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longer_than: Option<String>,
    /// The reason by which dropped lines are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_counter_reason: Option<String>,
}

/// Reads fields of a line that is JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Json {
    /// What to look at: something that was read earlier; the line if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// For each name the JMESPath expression that finds its value; the name itself if it is empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub expressions: BTreeMap<String, String>,
}

/// Limits the rate of lines.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    /// Lines a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Integer>")]
    pub rate: Option<i64>,
    /// Lines at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Integer>")]
    pub burst: Option<i64>,
    /// Whether lines beyond the limit are dropped rather than held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop: Option<bool>,
}

/// Runs other stages, or drops, for the lines of some streams.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Match {
    /// The streams and lines, in LogQL.
    pub selector: String,
    /// A name for the inner stages, in metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline_name: Option<String>,
    /// `keep` runs the stages, `drop` drops the lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The reason by which dropped lines are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_counter_reason: Option<String>,
    /// The inner stages: a YAML list of such stages, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<String>,
}

/// A metric made from lines.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metric {
    /// `counter`, `gauge` or `histogram`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What its name begins with; `promtail_custom_` if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// What was read earlier and is measured; the metric's own name if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// How long a series without new lines is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_idle_duration: Option<String>,
    /// Whether all lines count, whatever was read of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_all: Option<bool>,
    /// Whether the bytes of a line are counted. Only with `matchAll`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count_entry_bytes: Option<bool>,
    /// A value: only lines for which it was read count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What is done: `inc`, `add`, and for a gauge also `set`, `dec`, `sub`.
    pub action: String,
    /// The upper bounds of a histogram's buckets, numbers as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<String>,
}

/// Joins several lines into one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Multiline {
    /// An expression that the first of the lines matches.
    pub first_line: String,
    /// How long to wait for the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wait_time: Option<String>,
    /// How many at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Integer>")]
    pub max_lines: Option<i64>,
}

/// Replaces the line by what an earlier stage read.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The name of what was read.
    pub source: String,
}

/// Puts labels into the line.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pack {
    /// The labels, or what was read earlier; they are no labels of the stream any more.
    pub labels: Vec<String>,
    /// Whether the line gets the time at which it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingest_timestamp: Option<bool>,
}

/// Reads parts of a line with an expression.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Regex {
    /// What to look at: something that was read earlier; the line if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The expression; each of its groups has a name.
    pub expression: String,
}

/// Replaces parts of a line.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replace {
    /// What to look at: something that was read earlier; the line if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The expression; its groups are replaced.
    pub expression: String,
    /// What they are replaced by; nothing if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<String>,
}

/// Computes a value with a template.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// The name of what is written.
    pub source: String,
    /// The template, as Go writes them.
    pub template: String,
}

/// Sets the tenant, from one of three places.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tenant {
    /// A label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Something that was read earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// This text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Sets the time of the line.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timestamp {
    /// What was read earlier and holds the time.
    pub source: String,
    /// How it is written: `RFC3339Nano`, `Unix` and so on, or a layout as Go has them.
    pub format: String,
    /// Other ways to try.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback_formats: Vec<String>,
    /// The time zone of times that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// `fudge` or `skip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_on_failure: Option<String>,
}
