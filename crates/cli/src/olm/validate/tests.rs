//! For each rule a good bundle, broken in one way. `WINDLASS_BROKEN_BUNDLES=DIR` writes them out, for `tests/olm.sh` to hold
//! OLM's own validators against them.

use std::path::Path;

use serde_json::{Value, json};

use super::super::bundle::tests::written;
use super::super::directory;
use super::*;

type Files = BTreeMap<String, Vec<u8>>;
/// Breaks a bundle in one way.
type Break = fn(&mut Files);

const CSV: &str = "manifests/kiagnose-operator.clusterserviceversion.yaml";
const CHECKUPS: &str = "manifests/kiagnose.io_checkups.yaml";
const ANNOTATIONS: &str = "metadata/annotations.yaml";

/// Rules that OLM's own validators do not have, and what they leave to find out on a cluster.
const ALONE: &[&str] = &[
    // They read only the first object of a file.
    "one-object-a-file",
    "csv-api",
    "csv-name-version",
    "deployment-account",
    // They look for one that is there twice, and never find it.
    "install-modes",
    // They look at the name of the annotation, not at its value.
    "required-annotations",
    "default-channel",
    "dockerfile-labels",
    "example-refused",
    "deployment-refused",
    "object-refused",
];

fn good() -> Files {
    written(&["kiagnose", "--version", "1.2.3", "--replaces", "1.2.2"])
}

fn change(files: &mut Files, file: &str, change: impl FnOnce(&mut Value)) {
    let mut tree: Value = serde_saphyr::from_str(std::str::from_utf8(&files[file]).unwrap()).unwrap();
    change(&mut tree);
    put(files, file, &tree);
}

fn put(files: &mut Files, file: &str, tree: &Value) {
    files.insert(file.into(), serde_saphyr::to_string(tree).unwrap().into_bytes());
}

/// Sets a field of the ClusterServiceVersion.
fn set(files: &mut Files, pointer: &str, value: Value) {
    change(files, CSV, |csv| *csv.pointer_mut(pointer).unwrap() = value);
}

fn remove(files: &mut Files, parent: &str, field: &str) {
    change(files, CSV, |csv| {
        csv.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(field).unwrap();
    });
}

fn annotate(files: &mut Files, name: &str, value: &str) {
    change(files, CSV, |csv| csv["metadata"]["annotations"][name] = value.into());
}

fn bundle_annotation(files: &mut Files, name: &str, value: &str) {
    let name = format!("operators.operatorframework.io.bundle.{name}");
    change(files, ANNOTATIONS, |tree| tree["annotations"][&name] = value.into());
    // The labels follow, so that only one thing is wrong.
    let text = String::from_utf8(files["bundle.Dockerfile"].clone()).unwrap();
    let label = |line: &str| {
        if line.starts_with(&format!("LABEL {name}=")) {
            format!("LABEL {name}={value}")
        } else {
            line.into()
        }
    };
    files.insert(
        "bundle.Dockerfile".into(),
        text.lines().map(label).collect::<Vec<String>>().join("\n").into_bytes(),
    );
}

/// Adds an object.
fn add(files: &mut Files, tree: Value) {
    put(files, "manifests/more.yaml", &tree);
}

fn role(rule: Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "more"}, "rules": [rule]})
}

/// Text that does not get smaller by compression.
fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap())
    };
    (0..length).map(|_| letter()).collect()
}

const DEPLOYMENT: &str = "/spec/install/spec/deployments/0/spec";

/// Each rule with what breaks it.
const BROKEN: &[(&str, Break)] = &[
    ("directories", |files| files.retain(|file, _| !file.starts_with("metadata/"))),
    ("one-object-a-file", |files| {
        let two = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n";
        files.insert("manifests/two.yaml".into(), two.into());
    }),
    ("one-csv", |files| {
        let csv = files[CSV].clone();
        files.insert("manifests/another.yaml".into(), csv);
    }),
    ("supported-kinds", |files| {
        add(files, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "more"}}));
    }),
    ("size", |files| set(files, "/spec/description", noise(1_300_000).into())),
    ("size-near-limit", |files| set(files, "/spec/description", noise(830_000).into())),
    ("annotations", |files| {
        files.insert(ANNOTATIONS.into(), "labels: {}\n".into());
    }),
    ("media-type", |files| bundle_annotation(files, "mediatype.v1", "helm")),
    ("required-annotations", |files| bundle_annotation(files, "manifests.v1", "elsewhere/")),
    ("default-channel", |files| bundle_annotation(files, "channel.default.v1", "stable")),
    ("dockerfile-labels", |files| {
        let text = String::from_utf8(files["bundle.Dockerfile"].clone()).unwrap();
        files.insert(
            "bundle.Dockerfile".into(),
            text.replace("channels.v1=candidate", "channels.v1=stable").into(),
        );
    }),
    ("csv-api", |files| set(files, "/apiVersion", "operators.coreos.com/v1".into())),
    ("csv-name", |files| set(files, "/metadata/name", "Kiagnose_Operator.v1.2.3".into())),
    ("csv-version", |files| set(files, "/spec/version", "one.two".into())),
    ("csv-name-version", |files| set(files, "/metadata/name", "kiagnose-operator.v1.2.4".into())),
    ("replaces", |files| set(files, "/spec/replaces", "Kiagnose 1.2.2".into())),
    ("display-name", |files| remove(files, "/spec", "displayName")),
    ("install-strategy", |files| remove(files, "/spec/install/spec", "deployments")),
    ("deployment-account", |files| {
        set(files, &format!("{DEPLOYMENT}/template/spec/serviceAccountName"), "another".into());
    }),
    ("install-modes", |files| {
        change(files, CSV, |csv| {
            let modes = csv["spec"]["installModes"].as_array_mut().unwrap();
            modes.push(modes[3].clone());
        });
    }),
    ("conversion-modes", |files| {
        let webhook = json!({"generateName": "c.kiagnose.io", "type": "ConversionWebhook", "deploymentName": "kiagnose-operator",
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "conversionCRDs": ["checkups.kiagnose.io"]});
        change(files, CSV, |csv| {
            csv["spec"]["webhookdefinitions"] = json!([webhook]);
            csv["spec"]["installModes"][0]["supported"] = true.into();
        });
    }),
    ("examples", |files| annotate(files, "alm-examples", "[{")),
    ("example-missing", |files| annotate(files, "alm-examples", "[]")),
    ("min-kube-version", |files| set(files, "/spec/minKubeVersion", "1.30".into())),
    ("min-kube-version-given", |files| remove(files, "/spec", "minKubeVersion")),
    ("annotation-case", |files| annotate(files, "olm.skiprange", ">=1.0.0 <1.2.3")),
    ("properties-annotation", |files| annotate(files, "olm.properties", "[]")),
    ("related-images", |files| set(files, "/spec/relatedImages/0/image", "Not An Image".into())),
    ("definition-refused", |files| {
        change(files, CHECKUPS, |crd| crd["spec"]["versions"][0]["storage"] = false.into())
    }),
    ("definition-twice", |files| {
        let crd = files[CHECKUPS].clone();
        files.insert("manifests/again.yaml".into(), crd);
    }),
    ("owned-missing", |files| drop(files.remove(CHECKUPS))),
    ("definition-not-owned", |files| {
        change(files, CSV, |csv| {
            drop(csv["spec"]["customresourcedefinitions"]["owned"].as_array_mut().unwrap().remove(0));
            csv["metadata"]["annotations"]["alm-examples"] = "[]".into();
        });
    }),
    ("owned-name", |files| {
        change(files, CSV, |csv| {
            let owned = csv["spec"]["customresourcedefinitions"]["owned"].as_array_mut().unwrap();
            owned.push(json!({"name": "oddities", "kind": "Oddity", "version": "v1", "description": "Odd."}));
        });
    }),
    ("example-refused", |files| {
        change(files, CSV, |csv| {
            let examples = csv["metadata"]["annotations"]["alm-examples"].as_str().unwrap();
            csv["metadata"]["annotations"]["alm-examples"] =
                examples.replace("\"timeout\": \"1m\"", "\"timeout\": -1").into();
        });
    }),
    ("kind-description", |files| {
        set(files, "/spec/customresourcedefinitions/owned/0/description", "".into())
    }),
    ("deployment-refused", |files| {
        set(files, &format!("{DEPLOYMENT}/selector"), json!({"matchLabels": {"app": "another"}}));
    }),
    ("object-refused", |files| {
        add(
            files,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more"}, "data": {"no spaces": "x"}}),
        );
    }),
    ("account-twice", |files| {
        add(
            files,
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kiagnose-operator"}}),
        );
    }),
    ("disruption-budget", |files| {
        let spec = json!({"maxUnavailable": 0, "selector": {"matchLabels": {"a": "b"}}});
        add(
            files,
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "more"}, "spec": spec}),
        );
    }),
    ("default-priority", |files| {
        add(
            files,
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "more"},
            "value": 1, "globalDefault": true}),
        );
    }),
    ("default-constraints", |files| {
        add(
            files,
            role(json!({"apiGroups": ["security.openshift.io"], "resources": ["securitycontextconstraints"],
            "resourceNames": ["privileged"], "verbs": ["update"]})),
        );
    }),
    ("removed-version", |files| {
        add(
            files,
            json!({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PriorityClass", "metadata": {"name": "more"}, "value": 1}),
        );
    }),
    ("removed-version-later", |files| {
        add(
            files,
            json!({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PriorityClass", "metadata": {"name": "more"}, "value": 1}),
        );
        set(files, "/spec/minKubeVersion", "1.21.0".into());
    }),
    ("requests", |files| {
        set(
            files,
            &format!("{DEPLOYMENT}/template/spec/containers/0/resources"),
            json!({"limits": {"memory": "1Gi"}}),
        );
    }),
    ("may-define", |files| {
        change(files, CSV, |csv| {
            let rules =
                csv["spec"]["install"]["spec"]["clusterPermissions"][0]["rules"].as_array_mut().unwrap();
            rules.push(json!({"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["create"]}));
        });
    }),
    ("may-hinder-drains", |files| {
        add(
            files,
            role(
                json!({"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["create"]}),
            ),
        );
    }),
    ("provider", |files| set(files, "/spec/provider/name", " ".into())),
    ("maintainers", |files| set(files, "/spec/maintainers/0/email", "nobody".into())),
    ("links", |files| set(files, "/spec/links/0/url", "kiagnose".into())),
    ("icon", |files| set(files, "/spec/icon/0/mediatype", "image/webp".into())),
    ("icon-missing", |files| remove(files, "/spec", "icon")),
    ("capabilities", |files| annotate(files, "capabilities", "Everything")),
    ("categories", |files| annotate(files, "categories", "Monitoring, Checkups")),
    ("csv-name-form", |files| set(files, "/metadata/name", "kiagnose".into())),
    ("channel-names", |files| {
        bundle_annotation(files, "channels.v1", "preview");
        bundle_annotation(files, "channel.default.v1", "preview");
    }),
];

#[tokio::test]
async fn each_rule_finds_what_it_is_for() {
    let rules: Vec<&Rule> = TABLES.into_iter().flatten().collect();
    assert_eq!(rules.iter().map(|rule| rule.name).collect::<Vec<_>>().len(), BROKEN.len(), "each rule once");
    let out = std::env::var_os("WINDLASS_BROKEN_BUNDLES");
    for rule in rules {
        let (_, break_it) =
            BROKEN.iter().find(|(name, _)| *name == rule.name).unwrap_or_else(|| panic!("{}", rule.name));
        let mut files = good();
        break_it(&mut files);
        if let Some(out) = &out {
            let level = if rule.level == Level::Error { "error" } else { "warning" };
            let folder = if ALONE.contains(&rule.name) { "alone" } else { level };
            for (name, content) in &files {
                let path = Path::new(out).join(folder).join(rule.name).join(name);
                directory::write(&path, std::str::from_utf8(content).unwrap()).unwrap();
            }
        }
        let report = validate(files).await.unwrap();
        let found: Vec<_> = report.violations.iter().filter(|(found, _)| found.name == rule.name).collect();
        assert!(!found.is_empty(), "{} finds nothing: {report}", rule.name);
        assert!(
            found.iter().all(|(_, finding)| !finding.file.is_empty() && finding.message.len() > 20),
            "{report}"
        );
        assert!(rule.level == Level::Error || report.errors() == 0, "{}: {report}", rule.name);
    }
}

#[tokio::test]
async fn a_report_names_file_field_and_way_out() {
    let mut files = good();
    annotate(&mut files, "capabilities", "Everything");
    let report = validate(files).await.unwrap().to_string();
    let line = report.lines().next().unwrap();
    assert!(
        line.starts_with(&format!("error[capabilities] {CSV}: metadata.annotations.capabilities: ")),
        "{line}"
    );
    assert!(line.contains("Basic Install"), "{line}");
    assert!(report.ends_with("kiagnose-operator.v1.2.3: 1 error, 0 warnings\n"), "{report}");
}

#[tokio::test]
async fn an_empty_directory_is_no_bundle() {
    let report = validate(Files::new()).await.unwrap();
    assert!(report.errors() >= 3, "{report}");
}
