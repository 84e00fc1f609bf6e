//! Autoscalers in their first version, which knows one metric: all else is kept in annotations.

use serde_json::{Map, Value, json};
use windlass_machinery::go;

use super::super::validation;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// How a source of a metric is told in the first version: its own fields, and where they are in the second.
type Fields = &'static [(&'static str, &'static str)];

/// Sources by the field that has them. `?` is left out where it is not there, `+` is an amount that always is.
static WANTED: &[(&str, Fields)] = &[
    (
        "object",
        &[
            ("target", "describedObject"),
            ("metricName", "metric.name"),
            ("targetValue+", "target.value"),
            ("selector?", "metric.selector"),
            ("averageValue?", "target.averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name"),
            ("targetAverageValue+", "target.averageValue"),
            ("selector?", "metric.selector"),
        ],
    ),
    (
        "resource",
        &[
            ("name", "name"),
            ("targetAverageUtilization?", "target.averageUtilization"),
            ("targetAverageValue?", "target.averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name"),
            ("targetAverageUtilization?", "target.averageUtilization"),
            ("targetAverageValue?", "target.averageValue"),
            ("container", "container"),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name"),
            ("metricSelector?", "metric.selector"),
            ("targetValue?", "target.value"),
            ("targetAverageValue?", "target.averageValue"),
        ],
    ),
];

static FOUND: &[(&str, Fields)] = &[
    (
        "object",
        &[
            ("target", "describedObject"),
            ("metricName", "metric.name"),
            ("currentValue+", "current.value"),
            ("selector?", "metric.selector"),
            ("averageValue?", "current.averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name"),
            ("currentAverageValue+", "current.averageValue"),
            ("selector?", "metric.selector"),
        ],
    ),
    (
        "resource",
        &[
            ("name", "name"),
            ("currentAverageUtilization?", "current.averageUtilization"),
            ("currentAverageValue+", "current.averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name"),
            ("currentAverageUtilization?", "current.averageUtilization"),
            ("currentAverageValue+", "current.averageValue"),
            ("container", "container"),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name"),
            ("metricSelector?", "metric.selector"),
            ("currentValue+", "current.value"),
            ("currentAverageValue?", "current.averageValue"),
        ],
    ),
];

/// From the second version to the first. What is in the first already stays as it is.
pub(super) fn shown(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if spec.contains_key("targetCPUUtilizationPercentage") {
        return;
    }
    let metrics = spec.remove("metrics").unwrap_or_default();
    let behavior = spec.remove("behavior").filter(|behavior| !behavior.is_null());
    let (own, others): (Vec<_>, Vec<_>) =
        metrics.as_array().cloned().unwrap_or_default().into_iter().partition(is_processor);
    if let Some(share) = own.first().map(|metric| metric["resource"]["target"]["averageUtilization"].clone())
    {
        spec.insert("targetCPUUtilizationPercentage".into(), share);
    }
    let status = object.get_mut("status").and_then(Value::as_object_mut);
    let (current, conditions) = match status {
        None => (Value::Null, Value::Null),
        Some(status) => {
            let current = status.remove("currentMetrics").unwrap_or_default();
            let share = current
                .as_array()
                .into_iter()
                .flatten()
                .filter(|metric| metric["type"] == "Resource" && metric["resource"]["name"] == "cpu")
                .filter_map(|metric| metric["resource"]["current"].get("averageUtilization"))
                .next_back();
            if let Some(share) = share {
                status.insert("currentCPUUtilizationPercentage".into(), share.clone());
            }
            (current, status.remove("conditions").unwrap_or_default())
        }
    };
    let mut notes = Map::new();
    if !others.is_empty() {
        notes.insert(METRICS.into(), metrics_text(&others, WANTED).into());
    }
    if let Some(current) = current.as_array().filter(|current| !current.is_empty()) {
        notes.insert(CURRENT.into(), metrics_text(current, FOUND).into());
    }
    if let Some(behavior) = behavior {
        notes.insert(BEHAVIOR.into(), validation::behavior_text(&behavior).into());
    }
    if let Some(conditions) = conditions.as_array().filter(|conditions| !conditions.is_empty()) {
        let fields: Fields = &[
            ("type", "type"),
            ("status", "status"),
            ("lastTransitionTime", "lastTransitionTime"),
            ("reason?", "reason"),
            ("message?", "message"),
        ];
        let texts: Vec<String> = conditions.iter().map(|condition| text(condition, fields)).collect();
        notes.insert(CONDITIONS.into(), format!("[{}]", texts.join(",")).into());
    }
    annotate(object, notes);
}

/// From the first version to the second.
pub(super) fn stored(object: &mut Value) {
    let mut note = |name: &str| -> Value {
        let annotations = object["metadata"]["annotations"].as_object_mut();
        let text = annotations.and_then(|annotations| annotations.remove(name));
        text.and_then(|text| serde_json::from_str(text.as_str()?).ok()).unwrap_or_default()
    };
    let (metrics, current) = (note(METRICS), note(CURRENT));
    let (behavior, conditions) = (note(BEHAVIOR), note(CONDITIONS));
    annotate(object, Map::new());
    let processor = |share: Value| {
        let target = json!({"type": "Utilization", "averageUtilization": share});
        json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    };
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let mut all: Vec<Value> =
        metrics.as_array().into_iter().flatten().map(|one| metric(one, WANTED)).collect();
    all.extend(spec.remove("targetCPUUtilizationPercentage").map(processor));
    if all.is_empty() {
        all.push(processor(80.into()));
    }
    spec.insert("metrics".into(), all.into());
    if behavior.as_object().is_some_and(|behavior| behavior.values().any(|rules| !rules.is_null())) {
        spec.insert("behavior".into(), published(&behavior));
    }
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    let share = status.remove("currentCPUUtilizationPercentage");
    if let Some(current) = current.as_array() {
        let all: Vec<Value> = current.iter().map(|one| metric(one, FOUND)).collect();
        status.insert("currentMetrics".into(), all.into());
    } else if let Some(share) = share {
        let cpu = json!({"name": "cpu", "current": {"averageUtilization": share}});
        status.insert("currentMetrics".into(), json!([{"type": "Resource", "resource": cpu}]));
    }
    if conditions.is_array() {
        status.insert("conditions".into(), conditions);
    }
}

fn is_processor(metric: &Value) -> bool {
    metric["type"] == "Resource"
        && metric["resource"]["name"] == "cpu"
        && metric["resource"]["target"].get("averageUtilization").is_some()
}

/// Sets annotations, and leaves no empty map.
fn annotate(object: &mut Value, notes: Map<String, Value>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.extend(notes);
    }
    if annotations.as_object().is_none_or(Map::is_empty) {
        metadata.remove("annotations");
    }
}

fn metrics_text(metrics: &[Value], kinds: &[(&str, Fields)]) -> String {
    let texts = metrics.iter().map(|metric| {
        let source = kinds.iter().find(|(field, _)| !metric[*field].is_null());
        let inner = source.map(|(field, fields)| format!(",\"{field}\":{}", text(&metric[*field], fields)));
        format!("{{\"type\":{}{}}}", go::json(&metric["type"]), inner.unwrap_or_default())
    });
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}

/// A structure with these fields, in their order.
fn text(source: &Value, fields: Fields) -> String {
    let found = |path: &str| path.split('.').fold(source, |value, field| &value[field]);
    let members = fields.iter().filter_map(|(name, path)| {
        let value = found(path);
        let shown = match (value, *path) {
            (Value::Null, _) if name.ends_with('?') => return None,
            (Value::Null, _) if name.ends_with('+') => "\"0\"".to_owned(),
            (Value::Object(_), "describedObject") => {
                text(value, &[("kind", "kind"), ("name", "name"), ("apiVersion?", "apiVersion")])
            }
            (Value::Object(_), path) if path.ends_with("selector") => {
                text(value, &[("matchLabels?", "matchLabels"), ("matchExpressions?", "matchExpressions")])
            }
            _ => go::json(value),
        };
        Some(format!("\"{}\":{shown}", name.trim_end_matches(['?', '+'])))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// A metric of the first version in the words of the second.
fn metric(first: &Value, kinds: &[(&str, Fields)]) -> Value {
    let mut out = json!({"type": first["type"]});
    let Some((field, fields)) = kinds.iter().find(|(field, _)| !first[*field].is_null()) else { return out };
    let mut source = json!({});
    for (name, path) in *fields {
        let value = &first[*field][name.trim_end_matches(['?', '+'])];
        if value.is_null() {
            continue;
        }
        match path.split_once('.') {
            Some((outer, inner)) => source[outer][inner] = value.clone(),
            None => source[*path] = value.clone(),
        }
    }
    if let Some(target) = source.get_mut("target").and_then(Value::as_object_mut) {
        let kind = ["averageUtilization", "averageValue", "value"]
            .into_iter()
            .find(|kind| target.contains_key(*kind));
        let kind = match kind {
            Some("averageUtilization") => "Utilization",
            Some("averageValue") => "AverageValue",
            _ => "Value",
        };
        target.insert("type".into(), kind.into());
    }
    out[*field] = source;
    out
}

/// What was written with Go's names, with the published ones.
fn published(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
                let mut letters = name.chars();
                let first = letters.next().map(|first| first.to_ascii_lowercase());
                (first.into_iter().chain(letters).collect(), published(value))
            });
            Value::Object(fields.collect())
        }
        Value::Array(list) => list.iter().map(published).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_first_version_cannot_say_comes_back() {
        let second = json!({
            "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "metrics": [
                {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 5}}},
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
            ], "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}}},
            "status": {"conditions": [{"type": "x", "status": "True", "lastTransitionTime": null}]},
        });
        let mut first = second.clone();
        shown(&mut first);
        assert_eq!(first["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}));
        let notes = &first["metadata"]["annotations"];
        assert_eq!(
            notes[METRICS],
            r#"[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":5}}]"#
        );
        stored(&mut first);
        assert_eq!(first, second);
    }
}
