//! The directory, its annotations, and what may be in it at all.

use super::bundle::{Bundle, MANIFESTS, METADATA};
use super::{Finding, Rule, error, finding, warning};

const PREFIX: &str = "operators.operatorframework.io.bundle.";
const MEDIA_TYPE: &str = "operators.operatorframework.io.bundle.mediatype.v1";
pub(super) const PACKAGE: &str = "operators.operatorframework.io.bundle.package.v1";
pub(super) const CHANNELS: &str = "operators.operatorframework.io.bundle.channels.v1";
pub(super) const DEFAULT_CHANNEL: &str = "operators.operatorframework.io.bundle.channel.default.v1";
const DOCKERFILE: &str = "bundle.Dockerfile";
const ANNOTATIONS: &str = "metadata/annotations.yaml";

/// The annotations that have to be there, and the value where only one will do.
const REQUIRED: [(&str, Option<&str>); 4] = [
    ("operators.operatorframework.io.bundle.manifests.v1", Some(MANIFESTS)),
    ("operators.operatorframework.io.bundle.metadata.v1", Some(METADATA)),
    (PACKAGE, None),
    (CHANNELS, None),
];

/// What OLM stages in one ConfigMap.
const LIMIT: usize = 1 << 20;

/// The kinds that OLM installs from a bundle.
const SUPPORTED: &[&str] = &[
    "ClusterServiceVersion",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ConsoleCLIDownload",
    "ConsoleLink",
    "ConsolePlugin",
    "ConsoleQuickStart",
    "ConsoleYAMLSample",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PodMonitor",
    "PriorityClass",
    "PrometheusRule",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "ServiceMonitor",
    "VerticalPodAutoscaler",
];

pub(super) const RULES: &[Rule] = &[
    error("directories", "there are manifests/ and metadata/", directories),
    error("one-object-a-file", "each file below manifests/ holds one object", |bundle| {
        bundle.unreadable.clone()
    }),
    error("one-csv", "there is exactly one ClusterServiceVersion", one_csv),
    error("supported-kinds", "all objects are of kinds that OLM installs", supported_kinds),
    error("size", "the files, compressed, fit into one ConfigMap of 1 MiB", size),
    warning("size-near-limit", "there is room left to grow", size_near_limit),
    error("annotations", "a file in metadata/ has annotations", annotations),
    error("media-type", "the media type is registry+v1", media_type),
    error("required-annotations", "directories, package and channels are annotated", required_annotations),
    error("default-channel", "the default channel is one of the channels", default_channel),
    error("dockerfile-labels", "the image's labels are the annotations", dockerfile_labels),
];

fn directories(bundle: &Bundle) -> Vec<Finding> {
    let missing = |directory: &&str| !bundle.files.keys().any(|file| file.starts_with(*directory));
    let message = "the directory is missing or empty; `windlass bundle` writes it";
    [MANIFESTS, METADATA]
        .into_iter()
        .filter(missing)
        .map(|directory| finding(directory, "", message))
        .collect()
}

fn one_csv(bundle: &Bundle) -> Vec<Finding> {
    let mut found = bundle.of_kind("ClusterServiceVersion");
    match found.next() {
        None => vec![finding(
            MANIFESTS,
            "",
            "there is no ClusterServiceVersion, without which OLM installs nothing",
        )],
        Some(_) => {
            let message = "there is another ClusterServiceVersion already; a bundle is one version, so remove one of them";
            found.map(|more| more.finding("kind", message)).collect()
        }
    }
}

fn supported_kinds(bundle: &Bundle) -> Vec<Finding> {
    let unsupported = bundle.manifests.iter().filter(|manifest| !SUPPORTED.contains(&manifest.kind()));
    unsupported
        .map(|manifest| {
            let kind = manifest.kind();
            manifest.finding(
                "kind",
                format!("OLM does not install {kind} from a bundle; have the operator make it"),
            )
        })
        .collect()
}

fn size(bundle: &Bundle) -> Vec<Finding> {
    let size = bundle.stored_size();
    let message =
        format!("the files have {size} bytes compressed, and {LIMIT} is the limit; shorten descriptions");
    if size > LIMIT { vec![finding(MANIFESTS, "", message)] } else { Vec::new() }
}

fn size_near_limit(bundle: &Bundle) -> Vec<Finding> {
    let size = bundle.stored_size();
    let message = format!(
        "the files have {size} bytes compressed, close to the limit of {LIMIT}; shorten descriptions"
    );
    if size <= LIMIT && size * 100 > LIMIT * 85 { vec![finding(MANIFESTS, "", message)] } else { Vec::new() }
}

fn annotations(bundle: &Bundle) -> Vec<Finding> {
    let message = "there are no annotations, which say what the bundle is; `windlass bundle` writes them";
    if bundle.annotations.is_none() { vec![finding(ANNOTATIONS, "annotations", message)] } else { Vec::new() }
}

fn media_type(bundle: &Bundle) -> Vec<Finding> {
    let Some((file, _)) = &bundle.annotations else { return Vec::new() };
    match bundle.annotation(MEDIA_TYPE) {
        Some("registry+v1") => Vec::new(),
        other => {
            let message = format!(
                "it is {:?}; a bundle with a ClusterServiceVersion is registry+v1",
                other.unwrap_or_default()
            );
            vec![finding(file, MEDIA_TYPE, message)]
        }
    }
}

fn required_annotations(bundle: &Bundle) -> Vec<Finding> {
    let Some((file, _)) = &bundle.annotations else { return Vec::new() };
    let wrong = |(name, wanted): &(&str, Option<&str>)| {
        let message = match (bundle.annotation(name).map(str::trim), wanted) {
            (None | Some(""), _) => "the annotation is missing or empty".to_owned(),
            (Some(value), Some(wanted)) if value != *wanted => {
                format!("it is {value:?}; the directory is {wanted:?}")
            }
            _ => return None,
        };
        Some(finding(file, *name, message))
    };
    REQUIRED.iter().filter_map(wrong).collect()
}

fn default_channel(bundle: &Bundle) -> Vec<Finding> {
    let (Some((file, _)), Some(default)) = (&bundle.annotations, bundle.annotation(DEFAULT_CHANNEL)) else {
        return Vec::new();
    };
    if bundle.channels().contains(&default) {
        return Vec::new();
    }
    let message = format!(
        "{default:?} is none of the channels {:?}; name one of them, or leave it out",
        bundle.channels()
    );
    vec![finding(file, DEFAULT_CHANNEL, message)]
}

fn dockerfile_labels(bundle: &Bundle) -> Vec<Finding> {
    let (Some((_, annotations)), Some(content)) = (&bundle.annotations, bundle.files.get(DOCKERFILE)) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(content);
    let label = |name: &str| {
        let start = format!("LABEL {name}=");
        text.lines()
            .find_map(|line| line.strip_prefix(&start))
            .map(|value| value.trim_matches('"').to_owned())
    };
    let differs = |(name, value): (&String, &serde_json::Value)| {
        let value = value.as_str().unwrap_or_default();
        let message = match label(name) {
            Some(found) if found == value => return None,
            Some(found) => {
                format!("the label is {found:?} and the annotation {value:?}; they have to be the same")
            }
            None => format!("the label is missing; add LABEL {name}={value}"),
        };
        Some(finding(DOCKERFILE, name, message))
    };
    annotations.iter().filter(|(name, _)| name.starts_with(PREFIX)).filter_map(differs).collect()
}
