//! The ClusterServiceVersion.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_machinery::names;

use super::super::image::is_image;
use super::super::version::Version;
use super::bundle::{Bundle, Manifest, text_at};
use super::{Finding, Rule, error, warning};

const API_VERSION: &str = "operators.coreos.com/v1alpha1";
const INSTALL_MODES: [&str; 4] = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];
const EXAMPLES: [&str; 2] = ["alm-examples", "olm.examples"];
/// Annotations that OLM only finds when they are written exactly so.
const EXACT: [&str; 5] = [
    "olm.operatorGroup",
    "olm.operatorNamespace",
    "olm.targetNamespaces",
    "olm.providedAPIs",
    "olm.skipRange",
];

pub(super) const RULES: &[Rule] = &[
    error("csv-api", "the ClusterServiceVersion is of operators.coreos.com/v1alpha1", csv_api),
    error("csv-name", "its name can be a label's value", csv_name),
    error("csv-version", "its version is a semantic version", csv_version),
    error("csv-name-version", "its name ends in its version", csv_name_version),
    error("replaces", "what it replaces is the name of another bundle", replaces),
    error("display-name", "it has a name for people", display_name),
    error("install-strategy", "it is installed by Deployments, and names at least one", install_strategy),
    error("deployment-account", "OLM makes the service account of each Deployment", deployment_account),
    error("install-modes", "known install modes, each once, at least one of them supported", install_modes),
    error("conversion-modes", "webhooks that convert need AllNamespaces, and it alone", conversion_modes),
    error("examples", "the examples are a list of objects of owned kinds", examples),
    warning("example-missing", "each owned kind has an example", example_missing),
    error("min-kube-version", "the least version of Kubernetes is a semantic version", min_kube_version),
    warning("min-kube-version-given", "the least version of Kubernetes is given", min_kube_version_given),
    error("annotation-case", "OLM's annotations are written as OLM reads them", annotation_case),
    warning("properties-annotation", "properties are in metadata/properties.yaml", properties_annotation),
    error("related-images", "related images can be pulled by their names", related_images),
];

/// What a rule says of the ClusterServiceVersion; nothing if there is none, which another rule says.
fn of_csv(bundle: &Bundle, violations: impl FnOnce(&Manifest) -> Vec<Finding>) -> Vec<Finding> {
    bundle.csv().map(violations).unwrap_or_default()
}

fn csv_api(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| match csv.text("/apiVersion") {
        API_VERSION => Vec::new(),
        other => vec![csv.finding("apiVersion", format!("it is {other:?}; it has to be {API_VERSION}"))],
    })
}

fn csv_name(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| {
        bad_name(csv.text("/metadata/name"))
            .map(|bad| csv.finding("metadata.name", bad))
            .into_iter()
            .collect()
    })
}

/// What is wrong with the name of a bundle.
fn bad_name(name: &str) -> Option<String> {
    let wrong = [names::dns1123_subdomain(name), names::label_value(name)].concat();
    wrong.into_iter().next().map(|wrong| format!("{name:?} cannot be the name of a bundle: {wrong}"))
}

fn csv_version(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| match Version::parse(csv.text("/spec/version")) {
        Ok(version) if version.to_string() != "0.0.0" => Vec::new(),
        Ok(_) => {
            vec![csv.finding("spec.version", "0.0.0 is what OLM takes for no version; begin with 0.0.1")]
        }
        Err(wrong) => vec![csv.finding("spec.version", wrong)],
    })
}

fn csv_name_version(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| {
        let (name, version) = (csv.text("/metadata/name"), csv.text("/spec/version"));
        let ends = [format!(".v{version}"), format!("-v{version}")];
        if name.is_empty() || version.is_empty() || ends.iter().any(|end| name.ends_with(end)) {
            return Vec::new();
        }
        // Without a version in the name there is nothing to contradict; a warning says so.
        if !name.contains(".v") {
            return Vec::new();
        }
        vec![csv.finding(
            "metadata.name",
            format!("{name:?} does not end in .v{version}, the version in spec.version"),
        )]
    })
}

fn replaces(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| {
        let replaces = csv.text("/spec/replaces");
        let wrong = match replaces {
            "" => None,
            own if own == csv.text("/metadata/name") => {
                Some("a bundle cannot replace itself; name the one before it".to_owned())
            }
            other => bad_name(other),
        };
        wrong.map(|wrong| csv.finding("spec.replaces", wrong)).into_iter().collect()
    })
}

fn display_name(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| match csv.text("/spec/displayName") {
        "" => vec![csv.finding("spec.displayName", "it is missing; catalogs show it")],
        _ => Vec::new(),
    })
}

fn install_strategy(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| match csv.text("/spec/install/strategy") {
        "deployment" if bundle.deployments().is_empty() => {
            vec![csv.finding(
                "spec.install.spec.deployments",
                "there is no Deployment, so nothing would run; add one",
            )]
        }
        "deployment" => Vec::new(),
        other => {
            let message = format!("{other:?} is no strategy of OLM; it has to be deployment");
            vec![csv.finding("spec.install.strategy", message)]
        }
    })
}

fn deployment_account(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| {
        let granted: BTreeSet<&str> = ["permissions", "clusterPermissions"]
            .into_iter()
            .flat_map(|list| csv.list(&format!("/spec/install/spec/{list}")))
            .map(|one| text_at(one, "/serviceAccountName"))
            .collect();
        let lacks = |(index, deployment): (usize, &Value)| {
            let account = text_at(deployment, "/spec/template/spec/serviceAccountName");
            if account.is_empty() || granted.contains(account) {
                return None;
            }
            let field =
                format!("spec.install.spec.deployments[{index}].spec.template.spec.serviceAccountName");
            let message = format!(
                "OLM makes no service account {account:?}, since no permissions are for it; add them"
            );
            Some(csv.finding(field, message))
        };
        bundle.deployments().iter().enumerate().filter_map(lacks).collect()
    })
}

fn install_modes(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| {
        let modes = csv.list("/spec/installModes");
        let say = |message: String| csv.finding("spec.installModes", message);
        if modes.is_empty() {
            return vec![say(
                "there are none; an operator of the whole cluster supports AllNamespaces".into()
            )];
        }
        let mut seen = BTreeSet::new();
        let mut wrong = Vec::new();
        for mode in modes.iter().map(|mode| text_at(mode, "/type")) {
            if !INSTALL_MODES.contains(&mode) {
                wrong.push(say(format!("{mode:?} is none of {INSTALL_MODES:?}")));
            } else if !seen.insert(mode) {
                wrong.push(say(format!("{mode} is there twice; remove one")));
            }
        }
        if !modes.iter().any(|mode| mode["supported"] == true) {
            wrong.push(say("none of them is supported, so it cannot be installed; support one".into()));
        }
        wrong
    })
}

fn conversion_modes(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| {
        let converts =
            |webhook: &Value| webhook["conversionCRDs"].as_array().is_some_and(|list| !list.is_empty());
        if !csv.list("/spec/webhookdefinitions").iter().any(converts) {
            return Vec::new();
        }
        let fits = |mode: &Value| (mode["type"] == "AllNamespaces") == (mode["supported"] == true);
        if csv.list("/spec/installModes").iter().all(fits) {
            return Vec::new();
        }
        let message =
            "a webhook converts versions, which are the same in all namespaces; support AllNamespaces alone";
        vec![csv.finding("spec.installModes", message)]
    })
}

/// The examples, if there are any, and the field they are in.
fn read_examples(csv: &Manifest) -> Option<(String, Result<Vec<Value>, String>)> {
    let name = EXAMPLES.into_iter().find(|name| csv.annotation(name).is_some())?;
    let text = csv.annotation(name).unwrap_or_default();
    let read = if text.is_empty() {
        Ok(Vec::new())
    } else {
        serde_json::from_str(text).map_err(|error| error.to_string())
    };
    Some((format!("metadata.annotations.{name}"), read))
}

/// The kind of an example.
fn kind_of(example: &Value) -> (String, String, String) {
    let (group, version) =
        text_at(example, "/apiVersion").split_once('/').unwrap_or(("", text_at(example, "/apiVersion")));
    (group.to_owned(), version.to_owned(), text_at(example, "/kind").to_owned())
}

/// The examples that can be read.
pub(super) fn shown(bundle: &Bundle) -> Vec<Value> {
    let examples = bundle.csv().and_then(read_examples);
    examples.and_then(|(_, read)| read.ok()).unwrap_or_default()
}

fn examples(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| match read_examples(csv) {
        None => Vec::new(),
        Some((field, Err(wrong))) => {
            vec![csv.finding(field, format!("it is no list of objects in JSON: {wrong}"))]
        }
        Some((field, Ok(examples))) => {
            let owned = bundle.owned();
            let foreign = examples.iter().map(kind_of).filter(|kind| !owned.contains(kind));
            let message = |(group, version, kind): (String, String, String)| {
                format!(
                    "there is an example of {kind} ({group}/{version}), which the bundle does not own; remove it"
                )
            };
            foreign.map(|kind| csv.finding(field.clone(), message(kind))).collect()
        }
    })
}

fn example_missing(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| {
        if let Some((_, Err(_))) = read_examples(csv) {
            return Vec::new();
        }
        let shown: Vec<_> = shown(bundle).iter().map(kind_of).collect();
        let missing = bundle.owned().into_iter().filter(|kind| !shown.contains(kind));
        let message = |kind: &str| format!("there is no example of {kind}; add one for people to start from");
        missing.map(|(_, _, kind)| csv.finding("metadata.annotations.alm-examples", message(&kind))).collect()
    })
}

fn min_kube_version(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| match csv.text("/spec/minKubeVersion").trim() {
        "" => Vec::new(),
        version => Version::parse(version)
            .err()
            .map(|wrong| csv.finding("spec.minKubeVersion", wrong))
            .into_iter()
            .collect(),
    })
}

fn min_kube_version_given(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| match csv.text("/spec/minKubeVersion").trim() {
        "" => vec![csv.finding(
            "spec.minKubeVersion",
            "it is missing, so OLM installs it on any Kubernetes; name the oldest",
        )],
        _ => Vec::new(),
    })
}

fn annotation_case(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| {
        let keys = csv.tree["metadata"]["annotations"].as_object().into_iter().flat_map(|all| all.keys());
        let misspelt = |key: &String| {
            let meant = EXACT.into_iter().find(|known| known.eq_ignore_ascii_case(key) && known != key)?;
            Some(csv.finding(
                format!("metadata.annotations.{key}"),
                format!("OLM does not find it; write it as {meant}"),
            ))
        };
        keys.filter_map(misspelt).collect()
    })
}

fn properties_annotation(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| match csv.annotation("olm.properties") {
        Some(_) => vec![csv.finding(
            "metadata.annotations.olm.properties",
            "move the properties to metadata/properties.yaml",
        )],
        None => Vec::new(),
    })
}

fn related_images(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| {
        let wrong = |(index, one): (usize, &Value)| {
            let image = text_at(one, "/image");
            let message = format!("{image:?} is no image; write it as registry/name:tag");
            (!is_image(image)).then(|| csv.finding(format!("spec.relatedImages[{index}].image"), message))
        };
        csv.list("/spec/relatedImages").iter().enumerate().filter_map(wrong).collect()
    })
}
