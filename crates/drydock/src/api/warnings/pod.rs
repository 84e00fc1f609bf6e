//! Pods and templates of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{claim_spec, fraction, list, service};

const OLD_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Volumes that nothing mounts any more, with the names that the warnings have for them.
const OLD_VOLUMES: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// What became of a node's label.
pub(super) fn old_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(known, _)| *known == key).map(|(_, why)| *why)
}

/// A template at a place of an object.
pub(super) fn template(out: &mut Vec<String>, template: &Value, at: &str) {
    whole(out, template, &format!("{at}."));
}

/// A pod, or a template of one; `at` ends in a dot where it is not empty.
pub(super) fn whole(out: &mut Vec<String>, pod: &Value, at: &str) {
    let spec = &pod["spec"];
    scheduling(out, spec, at);
    for (key, why) in
        OLD_ANNOTATIONS.iter().filter(|(key, _)| pod["metadata"]["annotations"].get(*key).is_some())
    {
        out.push(format!("{at}metadata.annotations[{key}]: {why}"));
    }
    for (index, volume) in list(spec, "volumes").enumerate() {
        let at = format!("{at}spec.volumes[{index}]");
        for (field, shown, why) in OLD_VOLUMES {
            if volume[field].is_object() {
                out.push(format!("{at}.{shown}: {why}"));
            }
        }
        let claim = &volume["ephemeral"]["volumeClaimTemplate"]["spec"];
        claim_spec(out, claim, &format!("{at}.ephemeral.volumeClaimTemplate.spec"));
    }
    overlapping_files(out, spec);
    repeated(out, spec, at);
    for resource in ["memory", "ephemeral-storage"] {
        fraction(out, &spec["overhead"][resource], &format!("{at}spec.overhead[{resource}]"));
    }
    profiles(out, pod, at);
    ports(out, spec, at);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        out.push(format!(
            "{at}spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    affinity(out, spec, at);
    for (index, server) in list(&spec["dnsConfig"], "nameservers").enumerate() {
        let at = format!("{at}spec.dnsConfig.nameservers[{index}]");
        service::address(out, server.as_str().unwrap_or_default(), &at);
    }
    for (index, alias) in list(spec, "hostAliases").enumerate() {
        let at = format!("{at}spec.hostAliases[{index}].ip");
        service::address(out, alias["ip"].as_str().unwrap_or_default(), &at);
    }
}

/// A term that selects nodes.
pub(super) fn node_term(out: &mut Vec<String>, term: &Value, values: bool, at: &str) {
    for (index, expression) in list(term, "matchExpressions").enumerate() {
        let key = expression["key"].as_str().unwrap_or_default();
        if let Some(why) = old_label(key) {
            out.push(format!("{at}.matchExpressions[{index}].key: {key} is {why}"));
        }
        if !values {
            continue;
        }
        for (inner, value) in list(expression, "values").enumerate() {
            let value = value.as_str().unwrap_or_default();
            for why in windlass_machinery::names::label_value(value) {
                out.push(format!(
                    "{at}.matchExpressions[{index}].values[{inner}]: {value} is invalid, {why}"
                ));
            }
        }
    }
}

fn scheduling(out: &mut Vec<String>, spec: &Value, at: &str) {
    for key in spec["nodeSelector"].as_object().into_iter().flat_map(|map| map.keys()) {
        out.extend(old_label(key).map(|why| format!("{at}spec.nodeSelector[{key}]: {why}")));
    }
    let node = &spec["affinity"]["nodeAffinity"];
    let place = format!("{at}spec.affinity.nodeAffinity");
    let required = &node["requiredDuringSchedulingIgnoredDuringExecution"];
    for (index, term) in list(required, "nodeSelectorTerms").enumerate() {
        let at = format!("{place}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]");
        node_term(out, term, false, &at);
    }
    for (index, term) in list(node, "preferredDuringSchedulingIgnoredDuringExecution").enumerate() {
        let at = format!("{place}.preferredDuringSchedulingIgnoredDuringExecution[{index}].preference");
        node_term(out, &term["preference"], true, &at);
    }
    for (index, constraint) in list(spec, "topologySpreadConstraints").enumerate() {
        let at = format!("{at}spec.topologySpreadConstraints[{index}]");
        let key = constraint["topologyKey"].as_str().unwrap_or_default();
        out.extend(old_label(key).map(|why| format!("{at}.topologyKey: {key} is {why}")));
        matches_nothing(out, constraint, &at);
    }
}

fn affinity(out: &mut Vec<String>, spec: &Value, at: &str) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = &spec["affinity"][kind];
        let at = format!("{at}spec.affinity.{kind}");
        for (index, term) in list(affinity, "requiredDuringSchedulingIgnoredDuringExecution").enumerate() {
            matches_nothing(
                out,
                term,
                &format!("{at}.requiredDuringSchedulingIgnoredDuringExecution[{index}]"),
            );
        }
        for (index, term) in list(affinity, "preferredDuringSchedulingIgnoredDuringExecution").enumerate() {
            let at = format!("{at}.preferredDuringSchedulingIgnoredDuringExecution[{index}].podAffinityTerm");
            matches_nothing(out, &term["podAffinityTerm"], &at);
        }
    }
}

fn matches_nothing(out: &mut Vec<String>, term: &Value, at: &str) {
    if term["labelSelector"].is_null() {
        out.push(format!("{at}.labelSelector: a null labelSelector results in matching no pod"));
    }
}

fn repeated(out: &mut Vec<String>, spec: &Value, at: &str) {
    for (field, key) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let mut known = BTreeSet::new();
        for (index, item) in list(spec, field).enumerate() {
            let value = item[key].as_str().unwrap_or_default();
            if !known.insert(value) {
                out.push(format!("{at}spec.{field}[{index}].{key}: duplicate {key} {value:?}"));
            }
        }
    }
    for (index, secret) in list(spec, "imagePullSecrets").enumerate() {
        if secret["name"].as_str().unwrap_or_default().is_empty() {
            out.push(format!("{at}spec.imagePullSecrets[{index}].name: invalid empty name \"\""));
        }
    }
}

/// All containers with their places.
fn containers<'p>(spec: &'p Value, at: &'p str) -> impl Iterator<Item = (String, &'p Value)> {
    ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(move |sort| {
        list(spec, sort).enumerate().map(move |(index, one)| (format!("{at}spec.{sort}[{index}]"), one))
    })
}

/// Security profiles in annotations, amounts that are no whole numbers, variables that hide others.
fn profiles(out: &mut Vec<String>, pod: &Value, at: &str) {
    const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
    const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
    let (spec, annotations) = (&pod["spec"], &pod["metadata"]["annotations"]);
    let instead = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
    if spec["securityContext"]["seccompProfile"].is_null() && annotations.get(SECCOMP).is_some() {
        out.push(format!("{at}metadata.annotations[{SECCOMP}]: {instead}"));
    }
    for (place, container) in containers(spec, at) {
        let name = container["name"].as_str().unwrap_or_default();
        let context = &container["securityContext"];
        let key = format!("{OF_CONTAINER}{name}");
        if context["seccompProfile"].is_null() && annotations.get(&key).is_some() {
            out.push(format!("{at}metadata.annotations[{key}]: {instead}"));
        }
        let key = format!("{APPARMOR}{name}");
        let own =
            !context["appArmorProfile"].is_null() || !spec["securityContext"]["appArmorProfile"].is_null();
        if !at.is_empty() && !own && annotations.get(&key).is_some() {
            out.push(format!(
                "{at}metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"
            ));
        }
        for resource in ["memory", "ephemeral-storage"] {
            for list in ["limits", "requests"] {
                let at = format!("{place}.resources.{list}[{resource}]");
                fraction(out, &container["resources"][list][resource], &at);
            }
        }
        hidden_variables(out, container, &place);
    }
}

fn hidden_variables(out: &mut Vec<String>, container: &Value, at: &str) {
    let mut known = BTreeSet::new();
    for (index, variable) in list(container, "env").enumerate() {
        let name = variable["name"].as_str().unwrap_or_default();
        if known.insert(name) {
            continue;
        }
        let value = variable["value"].as_str().unwrap_or_default();
        let reference = format!("$({name})");
        if variable["valueFrom"].is_object() || value == reference || !value.contains(&reference) {
            out.push(format!(
                "{at}.env[{index}]: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
}

/// Where a port is described, and the address and port of the node that it takes.
type HostPort<'v> = (String, &'v str, i64);

fn ports(out: &mut Vec<String>, spec: &Value, at: &str) {
    let mut known: BTreeMap<(i64, &str), Vec<HostPort<'_>>> = BTreeMap::new();
    let text = |port: &Value, field: &str| port[field].as_str().unwrap_or_default().to_owned();
    for (place, container) in containers(spec, at) {
        for (index, port) in list(container, "ports").enumerate() {
            let place = format!("{place}.ports[{index}]");
            let ip = port["hostIP"].as_str().unwrap_or_default();
            let host = port["hostPort"].as_i64().unwrap_or_default();
            let number = port["containerPort"].as_i64().unwrap_or_default();
            let protocol = port["protocol"].as_str().unwrap_or_default();
            if !ip.is_empty() && host == 0 {
                out.push(format!(
                    "{place}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{number} \
                     Protocol:{protocol} HostIP:{ip}}}",
                    text(port, "name")
                ));
            }
            let others = known.entry((number, protocol)).or_default();
            for (other, other_ip, other_host) in others.iter() {
                let what = if ip == *other_ip && host == *other_host {
                    "duplicate"
                } else if host == 0 || *other_host == 0 {
                    "overlapping"
                } else if host == *other_host && ip.is_empty() != other_ip.is_empty() {
                    "dangerously ambiguous"
                } else {
                    continue;
                };
                out.push(format!("{place}: {what} port definition with {other}"));
            }
            others.push((place, ip, host));
        }
    }
    let mut named: BTreeMap<String, String> = BTreeMap::new();
    for (place, container) in containers(spec, at) {
        for (index, port) in list(container, "ports").enumerate() {
            let (name, place) = (text(port, "name"), format!("{place}.ports[{index}]"));
            match named.get(&name) {
                _ if name.is_empty() => {}
                Some(other) => out.push(format!(
                    "{place}: duplicate port name {name:?} with {other}, services and probes that select ports by \
                     name will use {other}"
                )),
                None => _ = named.insert(name, place),
            }
        }
    }
}

/// A path in a volume, and what puts a file there.
#[derive(PartialEq, Eq)]
struct File {
    path: String,
    source: String,
}

impl std::fmt::Display for File {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, source } = self;
        match source.as_str() {
            "" => write!(out, "{path:?}"),
            source => write!(out, "{path:?} ({source})"),
        }
    }
}

fn overlapping_files(out: &mut Vec<String>, spec: &Value) {
    for volume in list(spec, "volumes") {
        let name = volume["name"].as_str().unwrap_or_default();
        let quoted =
            |source: &Value, field: &str| format!("{:?}", source[field].as_str().unwrap_or_default());
        let items = |source: &Value, what: &str| -> Vec<File> {
            list(source, "items").map(|item| file(&item["path"], what)).collect()
        };
        for (field, what) in [
            ("configMap", format!("ConfigMap {}", quoted(&volume["configMap"], "name"))),
            ("secret", format!("Secret {}", quoted(&volume["secret"], "secretName"))),
            ("downwardAPI", "DownwardAPI".to_owned()),
        ] {
            overlaps(out, items(&volume[field], ""), &format!("volume {name:?} ({what})"));
        }
        let mut all = Vec::new();
        for source in list(&volume["projected"], "sources") {
            if source.as_object().is_none_or(|source| source.is_empty()) {
                out.push(format!("volume {name:?} (Projected) has no sources provided"));
                continue;
            }
            let (map, secret) = (&source["configMap"], &source["secret"]);
            if map["items"].is_array() {
                all.extend(items(map, &format!("ConfigMap {}", quoted(map, "name"))));
            } else if secret["items"].is_array() {
                all.extend(items(secret, &format!("Secret {}", quoted(secret, "name"))));
            } else if source["downwardAPI"]["items"].is_array() {
                all.extend(items(&source["downwardAPI"], "DownwardAPI"));
            } else if source["serviceAccountToken"].is_object() {
                all.push(file(&source["serviceAccountToken"]["path"], "ServiceAccountToken"));
            } else if source["clusterTrustBundle"].is_object() {
                let bundle = &source["clusterTrustBundle"];
                let field = if bundle["name"].is_null() { "signerName" } else { "name" };
                all.push(file(&bundle["path"], &format!("ClusterTrustBundle {}", quoted(bundle, field))));
            }
        }
        overlaps(out, all, &format!("volume {name:?} (Projected)"));
    }
}

fn file(path: &Value, source: &str) -> File {
    let path = path.as_str().unwrap_or_default().trim_end_matches('/').to_owned();
    File { path, source: source.to_owned() }
}

fn overlaps(out: &mut Vec<String>, files: Vec<File>, volume: &str) {
    for (index, one) in files.iter().enumerate().filter(|(_, one)| !one.path.is_empty()) {
        let within = |inner: &str, outer: &str| format!("{inner}/").starts_with(&format!("{outer}/"));
        for other in files[..index].iter().filter(|other| !other.path.is_empty()) {
            if other == one || within(&other.path, &one.path) || within(&one.path, &other.path) {
                out.push(format!("{volume}: overlapping paths: {one} with {other}"));
            }
        }
    }
}
