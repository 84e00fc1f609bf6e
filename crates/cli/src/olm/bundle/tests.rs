use std::ffi::OsString;

use clap::Parser;
use windlass_machinery::names;

use super::*;
use crate::{command, run};

#[derive(Parser)]
struct Bundle {
    #[command(flatten)]
    arguments: Arguments,
}

#[derive(Parser)]
struct Run {
    #[command(flatten)]
    _arguments: run::Arguments,
}

/// The files of a bundle as a user gets them.
pub(in crate::olm) fn written(words: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let words = ["bundle"].into_iter().chain(words.iter().copied());
    let arguments = Bundle::try_parse_from(words).unwrap().arguments;
    let (_, files) = files(&arguments).unwrap();
    files.iter().map(|(name, file)| (name.clone(), directory::text(file).unwrap().into_bytes())).collect()
}

fn refused(words: &[&str]) -> String {
    let words = ["bundle"].into_iter().chain(words.iter().copied());
    files(&Bundle::try_parse_from(words).unwrap().arguments).unwrap_err().to_string()
}

fn tree(files: &BTreeMap<String, Vec<u8>>, name: &str) -> Value {
    serde_saphyr::from_str(std::str::from_utf8(&files[name]).unwrap()).unwrap()
}

fn csv(files: &BTreeMap<String, Vec<u8>>) -> Value {
    let name = files.keys().find(|name| name.ends_with(".clusterserviceversion.yaml")).unwrap();
    tree(files, name)
}

/// The files show in a review what a change does to what OLM installs. Definitions are long, and the same as elsewhere.
#[test]
fn what_is_written_is_what_the_fixtures_say() {
    for entry in catalog::OPERATORS {
        let words = [entry.name, "--version", "0.1.0", "--channels", "candidate,fast", "--replaces", "0.0.9"];
        let files = written(&words);
        assert_eq!(files, written(&words), "two runs differ");
        for (name, content) in &files {
            if tree_kind(content) == "CustomResourceDefinition" {
                continue;
            }
            let file = format!("fixtures/bundles/{}/{name}", entry.name);
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&file);
            if std::env::var_os("WINDLASS_UPDATE_FIXTURES").is_some() {
                directory::write(&path, std::str::from_utf8(content).unwrap()).unwrap();
            }
            assert!(
                std::fs::read(&path).unwrap_or_default() == *content,
                "{file} is out of date: WINDLASS_UPDATE_FIXTURES=1 cargo test -p windlass-cli fixtures"
            );
        }
    }
}

fn tree_kind(content: &[u8]) -> String {
    let text = std::str::from_utf8(content).unwrap();
    let kind = text.lines().find_map(|line| line.strip_prefix("kind: "));
    kind.unwrap_or_default().to_owned()
}

#[tokio::test]
async fn bundles_of_all_operators_are_good() {
    for entry in catalog::OPERATORS {
        for flags in [&[][..], &["--webhooks", "--replicas", "2"], &["--shards"]] {
            let report = validate::validate(written(&[&[entry.name, "--version", "1.2.3"], flags].concat()))
                .await
                .unwrap();
            assert_eq!((report.errors(), report.warnings()), (0, 0), "{}: {report}", entry.name);
        }
    }
}

#[test]
fn the_deployment_runs_wherever_olm_puts_it() {
    for entry in catalog::OPERATORS {
        let csv = csv(&written(&[entry.name, "--version", "1.2.3", "--image", "example.org/windlass:1"]));
        let deployment = &csv["spec"]["install"]["spec"]["deployments"][0];
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], "example.org/windlass:1");
        let arguments: Vec<String> = serde_json::from_value(container["args"].clone()).unwrap();
        assert!(!arguments.iter().any(|argument| argument.contains("namespace")), "{arguments:?}");
        let called: Vec<String> =
            serde_json::from_value(container["command"].clone()).unwrap_or(vec!["windlass".into()]);
        let words =
            called.iter().chain(&arguments).map(|word| OsString::from(word.replace("$(POD_IP)", "10.0.0.7")));
        // Without its own name, what follows is the command of that name.
        Run::try_parse_from(command::words(words).skip(1)).unwrap_or_else(|error| panic!("{error}"));
        assert!(names::dns1123_label(deployment["name"].as_str().unwrap()).is_empty());
    }
}

#[test]
fn kiagnose_may_not_touch_definitions_when_they_come_with_the_bundle() {
    let csv = csv(&written(&["kiagnose", "--version", "1.2.3"]));
    let rules = csv["spec"]["install"]["spec"]["clusterPermissions"][0]["rules"].as_array().unwrap();
    let on =
        |rule: &&Value| rule["resources"].as_array().unwrap().contains(&"customresourcedefinitions".into());
    let verbs: Vec<&Value> =
        rules.iter().filter(on).flat_map(|rule| rule["verbs"].as_array().unwrap()).collect();
    assert_eq!(verbs, ["get", "list", "watch"]);
    let kinds: Vec<_> = csv["spec"]["customresourcedefinitions"]["owned"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["kind"].clone())
        .collect();
    assert_eq!(kinds, ["Checkup", "CheckupSchedule"]);
}

#[test]
fn monitors_are_the_prometheus_operators() {
    let files = written(&["grafana-agent", "--version", "1.2.3"]);
    assert!(!files.keys().any(|name| name.contains("monitoring.coreos.com")));
    let required = csv(&files)["spec"]["customresourcedefinitions"]["required"].as_array().unwrap().len();
    assert_eq!(required, 3);
}

#[test]
fn what_makes_no_sense_is_refused() {
    assert!(refused(&["monocle", "--version", "1.2"]).contains("--version"));
    assert!(
        refused(&["monocle", "--version", "1.2.3", "--default-channel", "stable"])
            .contains("none of --channels")
    );
    assert!(refused(&["monocle", "--version", "1.2.3", "--replaces", "1.2.3"]).contains("itself"));
    assert!(refused(&["monocle", "--version", "1.2.3", "--skip-range", ">=1"]).contains("--skip-range"));
    assert!(refused(&["nobody", "--version", "1.2.3"]).contains("choose from"));
    assert!(refused(&["monocle", "--version", "1.2.3", "--watch-namespace", "a"]).contains("all namespaces"));
    assert!(Bundle::try_parse_from(["bundle", "monocle"]).is_err());
    assert!(Bundle::try_parse_from(["bundle", "validate", "somewhere"]).is_ok());
}

#[test]
fn a_directory_of_something_else_is_not_overwritten() {
    let folder = std::env::temp_dir().join(format!("windlass-bundle-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("precious"), "x").unwrap();
    let arguments =
        Bundle::try_parse_from(["bundle", "monocle", "--version", "1.2.3", "--webhooks"]).unwrap().arguments;
    let (_, with) = files(&arguments).unwrap();
    assert!(directory::write_bundle(&folder, &with).unwrap_err().to_string().contains("no bundle"));
    std::fs::remove_file(folder.join("precious")).unwrap();
    directory::write_bundle(&folder, &with).unwrap();
    let arguments = Bundle::try_parse_from(["bundle", "monocle", "--version", "1.2.3"]).unwrap().arguments;
    let (_, without) = files(&arguments).unwrap();
    directory::write_bundle(&folder, &without).unwrap();
    let left: Vec<String> = directory::read(&folder).unwrap().into_keys().collect();
    assert_eq!(left, without.into_keys().collect::<Vec<_>>(), "the Service of the first is gone");
    std::fs::remove_dir_all(folder).unwrap();
}
