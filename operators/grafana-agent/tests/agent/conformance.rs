//! Renders each fixture, and compares what it says with what is expected.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::Path;

use serde_json::Value;
use windlass_grafana_agent::manifests::{Manifests, Type};

#[test]
fn every_fixture_renders_as_expected() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/conformance");
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        count += 1;
        if let Err(difference) = check(&path) {
            wrong.push(format!("{}: {difference}", path.file_name().unwrap().to_string_lossy()));
        }
    }
    assert!(count >= 20, "{count} fixtures");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(path: &Path) -> Result<(), String> {
    let read = |file: &str| fs::read_to_string(path.join(file)).unwrap();
    let meta: Value = serde_json::from_str(&read("meta.json")).unwrap();
    let which = match meta["type"].as_str().unwrap() {
        "metrics" => Type::Metrics,
        "logs" => Type::Logs,
        _ => Type::Integrations,
    };
    let mut manifests = Manifests::default();
    manifests.add(&read("input.yaml"), "input.yaml").map_err(|error| error.to_string())?;
    let rendered = manifests.render(which).map_err(|error| error.to_string())?;
    let mut actual: &Value = &serde_saphyr::from_str(&rendered.yaml).unwrap();
    for step in meta["path"].as_array().unwrap() {
        actual = match step {
            Value::String(name) => &actual[name],
            index => &actual[index.as_u64().unwrap() as usize],
        };
    }
    let expected: Value = serde_saphyr::from_str(&read("expect.yaml")).unwrap();
    let holds = match meta["compare"].as_str().unwrap() {
        "equal" => *actual == expected,
        _ => contains(actual, &expected),
    };
    holds.then_some(()).ok_or_else(|| format!("expected {expected:#}\nbut it is {actual:#}"))
}

fn contains(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| actual.get(name).is_some_and(|actual| contains(actual, expected))),
        (Value::Array(actual), Value::Array(expected)) => {
            actual.len() == expected.len()
                && actual.iter().zip(expected).all(|(actual, expected)| contains(actual, expected))
        }
        (actual, expected) => actual == expected,
    }
}
