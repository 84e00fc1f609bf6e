//! The cells of a horizontal pod autoscaler.

use serde_json::Value;

const UNKNOWN: &str = "<unknown>";
/// How many metrics a row shows.
const SHOWN: usize = 2;

pub(super) fn row(name: Value, spec: &Value, status: &Value, old: Value) -> Vec<Value> {
    let reference = &spec["scaleTargetRef"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let reference = format!("{}/{}", text(&reference["kind"]), text(&reference["name"]));
    let least = spec["minReplicas"].as_i64().map_or("<unset>".to_owned(), |least| least.to_string());
    vec![
        name,
        reference.into(),
        targets(spec, status).into(),
        least.into(),
        spec["maxReplicas"].as_i64().unwrap_or(0).into(),
        status["currentReplicas"].as_i64().unwrap_or(0).into(),
        old,
    ]
}

fn targets(spec: &Value, status: &Value) -> String {
    let metrics = spec["metrics"].as_array().map(Vec::as_slice).unwrap_or_default();
    if metrics.is_empty() {
        return "<none>".to_owned();
    }
    let shown: Vec<String> = metrics
        .iter()
        .take(SHOWN)
        .enumerate()
        .map(|(index, metric)| one(metric, &status["currentMetrics"][index]))
        .collect();
    match metrics.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{} + {more} more...", shown.join(", ")),
        _ => shown.join(", "),
    }
}

fn one(metric: &Value, now: &Value) -> String {
    // The kind of a metric names the field that holds it, in both the wish and the state.
    let kind = metric["type"].as_str().unwrap_or_default();
    let mut field = kind.to_owned();
    if let Some(first) = field.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    let (wanted, current) = (&metric[field.as_str()]["target"], &now[field.as_str()]["current"]);
    let label = match kind {
        "Resource" | "ContainerResource" => {
            format!("{}: ", metric[field.as_str()]["name"].as_str().unwrap_or_default())
        }
        _ => String::new(),
    };
    if matches!(kind, "Resource" | "ContainerResource")
        && let Some(percent) = wanted["averageUtilization"].as_i64()
    {
        let current =
            current["averageUtilization"].as_i64().map_or(UNKNOWN.to_owned(), |now| format!("{now}%"));
        return format!("{label}{current}/{percent}%");
    }
    let average = wanted["averageValue"].as_str();
    let (wanted, current, suffix) = match average {
        Some(average) if kind == "Pods" || label.is_empty() => {
            (average, current["averageValue"].as_str(), if kind == "Pods" { "" } else { " (avg)" })
        }
        Some(average) => (average, current["averageValue"].as_str(), ""),
        None => (wanted["value"].as_str().unwrap_or_default(), current["value"].as_str(), ""),
    };
    format!("{label}{}/{wanted}{suffix}", current.unwrap_or(UNKNOWN))
}
