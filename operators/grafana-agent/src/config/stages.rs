//! The eighteen stages of a pipeline of logs.

use serde_json::Value;

use super::relabel::expression;
use crate::document::{Document, Fields};
use crate::fault::Fault;
use crate::kinds::{Match, Metric, Stage};

/// How deep stages may stand within `match`.
const DEEPEST: usize = 16;

pub(super) fn render(field: &str, stages: &[Stage]) -> Result<Vec<Document>, Fault> {
    render_within(field, stages, 0)
}

fn render_within(field: &str, stages: &[Stage], depth: usize) -> Result<Vec<Document>, Fault> {
    let indexed = stages.iter().enumerate();
    indexed
        .map(|(index, one)| stage(one, depth).map_err(|fault| fault.within(&format!("{field}[{index}]"))))
        .collect()
}

fn stage(stage: &Stage, depth: usize) -> Result<Document, Fault> {
    for (field, regex) in [
        ("regex.expression", stage.regex.as_ref().map(|regex| &regex.expression)),
        ("replace.expression", stage.replace.as_ref().map(|replace| &replace.expression)),
        ("multiline.firstLine", stage.multiline.as_ref().map(|multiline| &multiline.first_line)),
        ("drop.expression", stage.drop.as_ref().and_then(|drop| drop.expression.as_ref())),
    ] {
        regex.map(|regex| expression(field, regex)).transpose()?;
    }
    let fields = readers(stage).filled("labelallow", stage.label_allow.clone());
    let fields = writers(stage, fields)
        .maybe("match", stage.matching.as_ref().map(|matching| inner(matching, depth)).transpose()?)
        .filled("metrics", metrics(stage)?);
    Ok(fields.into())
}

/// The stages that read a line.
fn readers(stage: &Stage) -> Fields {
    let json = stage
        .json
        .as_ref()
        .map(|json| Fields::new().filled("expressions", &json.expressions).text("source", &json.source));
    let regex = stage.regex.as_ref().map(|regex| {
        Fields::new().with("expression", regex.expression.as_str()).text("source", &regex.source)
    });
    let multiline = stage.multiline.as_ref().map(|multiline| {
        Fields::new()
            .with("firstline", multiline.first_line.as_str())
            .text("max_wait_time", &multiline.max_wait_time)
            .number("max_lines", multiline.max_lines)
    });
    let timestamp = stage.timestamp.as_ref().map(|timestamp| {
        Fields::new()
            .with("source", timestamp.source.as_str())
            .with("format", timestamp.format.as_str())
            .filled("fallback_formats", timestamp.fallback_formats.clone())
            .text("location", &timestamp.location)
            .text("action_on_failure", &timestamp.action_on_failure)
    });
    Fields::new()
        .maybe("docker", stage.docker.map(|_| Fields::new()))
        .maybe("cri", stage.cri.map(|_| Fields::new()))
        .maybe("json", json)
        .maybe("regex", regex)
        .maybe("multiline", multiline)
        .maybe("timestamp", timestamp)
}

/// The stages that change or drop it.
fn writers(stage: &Stage, fields: Fields) -> Fields {
    let drop = stage.drop.as_ref().map(|drop| {
        Fields::new()
            .text("source", &drop.source)
            .text("expression", &drop.expression)
            .text("value", &drop.value)
            .text("older_than", &drop.older_than)
            .text("longer_than", &drop.longer_than)
            .text("drop_counter_reason", &drop.drop_counter_reason)
    });
    let limit = stage.limit.as_ref().map(|limit| {
        Fields::new()
            .number("rate", limit.rate)
            .number("burst", limit.burst)
            .with("drop", limit.drop == Some(true))
    });
    let pack = stage.pack.as_ref().map(|pack| {
        Fields::new().filled("labels", pack.labels.clone()).flag("ingest_timestamp", pack.ingest_timestamp)
    });
    let replace = stage.replace.as_ref().map(|replace| {
        Fields::new()
            .with("expression", replace.expression.as_str())
            .text("source", &replace.source)
            .text("replace", &replace.replace)
    });
    let template = stage.template.as_ref().map(|template| {
        Fields::new().with("source", template.source.as_str()).with("template", template.template.as_str())
    });
    let tenant = stage.tenant.as_ref().map(|tenant| {
        Fields::new().text("label", &tenant.label).text("source", &tenant.source).text("value", &tenant.value)
    });
    let output = stage.output.as_ref().map(|output| Fields::new().with("source", output.source.as_str()));
    fields
        .maybe("drop", drop)
        .filled("labeldrop", stage.label_drop.clone())
        .filled("labels", &stage.labels)
        .maybe("limit", limit)
        .maybe("output", output)
        .maybe("pack", pack)
        .maybe("replace", replace)
        .maybe("template", template)
        .maybe("tenant", tenant)
}

/// Stages within a stage. The API cannot nest them, so they are text.
fn inner(matching: &Match, depth: usize) -> Result<Fields, Fault> {
    let fields = Fields::new()
        .with("selector", matching.selector.as_str())
        .text("pipeline_name", &matching.pipeline_name)
        .text("action", &matching.action)
        .text("drop_counter_reason", &matching.drop_counter_reason);
    let Some(text) = matching.stages.as_deref().filter(|text| !text.is_empty()) else { return Ok(fields) };
    let bad = |message: String| Fault::new("BadStages", format!("match.stages: {message}"));
    if depth >= DEEPEST {
        return Err(bad("stands too deep within other stages".into()));
    }
    let stages: Vec<Stage> =
        serde_saphyr::from_str(text).map_err(|error| bad(format!("is no YAML list of stages: {error}")))?;
    let stages = render_within("match.stages", &stages, depth + 1)?;
    Ok(fields.with("stages", stages))
}

fn metrics(stage: &Stage) -> Result<Document, Fault> {
    let mut metrics = Fields::new();
    for (name, one) in &stage.metrics {
        let rendered = metric(one).map_err(|fault| fault.within(&format!("metrics.{name}")))?;
        metrics = metrics.with(name.clone(), rendered);
    }
    Ok(metrics.into())
}

fn metric(metric: &Metric) -> Result<Fields, Fault> {
    let kind = match metric.kind.to_ascii_lowercase().as_str() {
        "counter" => "Counter",
        "gauge" => "Gauge",
        "histogram" => "Histogram",
        other => {
            let message = format!("type: {other:?} is none of counter, gauge and histogram");
            return Err(Fault::new("BadMetric", message));
        }
    };
    let config = Fields::new()
        .flag("match_all", metric.match_all)
        .flag("count_entry_bytes", metric.count_entry_bytes)
        .text("value", &metric.value)
        .with("action", metric.action.as_str())
        .filled(
            "buckets",
            metric.buckets.iter().map(|bucket| number(bucket)).collect::<Result<Vec<_>, _>>()?,
        );
    Ok(Fields::new()
        .with("type", kind)
        .text("description", &metric.description)
        .text("prefix", &metric.prefix)
        .text("source", &metric.source)
        .text("max_idle_duration", &metric.max_idle_duration)
        .with("config", config))
}

fn number(text: &str) -> Result<Document, Fault> {
    match serde_json::from_str(text.trim()) {
        Ok(Value::Number(number)) => Ok(Document::Number(number)),
        _ => Err(Fault::new("BadMetric", format!("buckets: {text:?} is no number"))),
    }
}
