use std::sync::atomic::{AtomicU32, Ordering};

use super::super::bundle::tests::written;
use super::*;

/// A directory of a test's own.
fn folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("windlass-catalog-{}-{number}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// Writes a bundle and adds it.
async fn added(folder: &Path, words: &[&str]) -> Result<ExitCode> {
    let bundle = folder.join(format!("bundle-{}", words.join("-").replace([' ', '=', '<', '>'], "")));
    for (name, content) in written(words) {
        directory::write(&bundle.join(name), std::str::from_utf8(&content).unwrap()).unwrap();
    }
    add(&bundle, "example.org/bundle:1", &folder.join("catalog")).await
}

fn entries(folder: &Path, package: &str, channel: &str) -> Value {
    let documents = documents(&folder.join("catalog").join(package).join(FILE)).unwrap();
    let is_it = |document: &&Value| document["schema"] == "olm.channel" && document["name"] == channel;
    documents.iter().find(is_it).unwrap()["entries"].clone()
}

#[tokio::test]
async fn versions_follow_each_other() {
    let folder = folder();
    added(&folder, &["kiagnose", "--version", "0.1.0"]).await.unwrap();
    added(&folder, &["monocle", "--version", "1.0.0"]).await.unwrap();
    let refused = added(&folder, &["kiagnose", "--version", "0.2.0"]).await.unwrap_err().to_string();
    assert!(refused.contains("kiagnose-operator.v0.1.0, kiagnose-operator.v0.2.0"), "{refused}");
    assert_eq!(
        entries(&folder, "kiagnose-operator", "candidate").as_array().unwrap().len(),
        1,
        "nothing was written"
    );
    let second = [
        "kiagnose",
        "--version",
        "0.2.0",
        "--replaces",
        "0.1.0",
        "--channels",
        "candidate,stable",
        "--skip-range",
        ">=0.0.1 <0.2.0",
    ];
    added(&folder, &second).await.unwrap();
    added(&folder, &second).await.unwrap();
    let (old, new) = ("kiagnose-operator.v0.1.0", "kiagnose-operator.v0.2.0");
    assert_eq!(
        entries(&folder, "kiagnose-operator", "candidate"),
        json!([{"name": old}, {"name": new, "replaces": old, "skipRange": ">=0.0.1 <0.2.0"}])
    );
    assert_eq!(entries(&folder, "kiagnose-operator", "stable").as_array().unwrap().len(), 1);
    let other =
        added(&folder, &["kiagnose", "--version", "0.2.0", "--replicas", "2", "--replaces", "0.1.0"]).await;
    let other = other.unwrap_err().to_string();
    assert!(other.contains("raise the version"), "{other}");
    assert_eq!(graph::problems(&read(&folder.join("catalog")).unwrap()), Vec::<String>::new());
    assert!(folder.join("catalog.Dockerfile").is_file());
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_bundle_says_what_it_provides_and_requires() {
    let folder = folder();
    added(&folder, &["grafana-agent", "--version", "0.1.0"]).await.unwrap();
    let documents = documents(&folder.join("catalog/grafana-agent-operator/catalog.yaml")).unwrap();
    let bundle = documents.iter().find(|document| document["schema"] == "olm.bundle").unwrap();
    let of = |kind: &str| {
        let properties = bundle["properties"].as_array().unwrap().iter().filter(|one| one["type"] == kind);
        properties.map(|one| one["value"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("olm.gvk").len(), 5);
    assert_eq!(of("olm.gvk.required").len(), 3);
    assert_eq!(of("olm.package"), [json!({"packageName": "grafana-agent-operator", "version": "0.1.0"})]);
    assert_eq!(of("olm.csv.metadata")[0]["displayName"], "Grafana Agent Operator");
    let images = bundle["relatedImages"].as_array().unwrap();
    assert!(images.iter().any(|one| one["image"] == "example.org/bundle:1"));
    fs::remove_dir_all(folder).unwrap();
}
