//! What is said about a bundle rather than in it: annotations, the same as labels of its image, and the scorecard.

use serde_json::{Map, Value, json};

use super::Release;

const BUNDLE: &str = "operators.operatorframework.io.bundle";
const METRICS: &str = "operators.operatorframework.io.metrics";
const TEST: &str = "operators.operatorframework.io.test";
/// The image with the tests of the scorecard.
const SCORECARD: &str = "quay.io/operator-framework/scorecard-test:v1.41.1";
/// The tests, by suite.
const TESTS: &[(&str, &str)] = &[
    ("basic", "basic-check-spec"),
    ("olm", "olm-bundle-validation"),
    ("olm", "olm-crds-have-validation"),
    ("olm", "olm-crds-have-resources"),
    ("olm", "olm-spec-descriptors"),
    ("olm", "olm-status-descriptors"),
];

pub(super) fn annotations(package: &str, release: &Release) -> Map<String, Value> {
    let rows = [
        (BUNDLE, "mediatype.v1", "registry+v1".to_owned()),
        (BUNDLE, "manifests.v1", "manifests/".to_owned()),
        (BUNDLE, "metadata.v1", "metadata/".to_owned()),
        (BUNDLE, "package.v1", package.to_owned()),
        (BUNDLE, "channels.v1", release.channels.join(",")),
        (METRICS, "builder", concat!("windlass-v", env!("CARGO_PKG_VERSION")).to_owned()),
        (METRICS, "mediatype.v1", "metrics+v1".to_owned()),
        (TEST, "mediatype.v1", "scorecard+v1".to_owned()),
        (TEST, "config.v1", "tests/scorecard/".to_owned()),
    ];
    let mut annotations: Map<String, Value> =
        rows.into_iter().map(|(prefix, name, value)| (format!("{prefix}.{name}"), value.into())).collect();
    if let Some(default) = &release.default_channel {
        annotations.insert(format!("{BUNDLE}.channel.default.v1"), default.as_str().into());
    }
    annotations
}

pub(super) fn dockerfile(annotations: &Map<String, Value>) -> String {
    let labels: String = annotations
        .iter()
        .map(|(name, value)| format!("LABEL {name}={}\n", value.as_str().unwrap_or_default()))
        .collect();
    format!(
        "FROM scratch\n\n{labels}\nCOPY manifests /manifests/\nCOPY metadata /metadata/\n\
         COPY tests/scorecard /tests/scorecard/\n"
    )
}

pub(super) fn scorecard() -> Value {
    let storage = json!({"spec": {"mountPath": {}}});
    let test = |(suite, name): &(&str, &str)| {
        json!({
            "entrypoint": ["scorecard-test", name],
            "image": SCORECARD,
            "labels": {"suite": suite, "test": format!("{name}-test")},
            "storage": storage,
        })
    };
    json!({
        "apiVersion": "scorecard.operatorframework.io/v1alpha3",
        "kind": "Configuration",
        "metadata": {"name": "config"},
        "stages": [{"parallel": true, "tests": TESTS.iter().map(test).collect::<Vec<_>>()}],
        "storage": storage,
    })
}
