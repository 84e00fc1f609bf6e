//! What is installed: Deployments, permissions and other objects.

use serde_json::Value;

use super::super::version::Version;
use super::bundle::{Bundle, Manifest, Refused, text_at};
use super::definitions::refused;
use super::{Finding, Rule, error, warning};

/// Versions of kinds that Kubernetes no longer has: since when, API version, kinds.
const REMOVED: &[(&str, &str, &[&str])] = &[
    ("1.22.0", "apiextensions.k8s.io/v1beta1", &["CustomResourceDefinition"]),
    ("1.22.0", "scheduling.k8s.io/v1beta1", &["PriorityClass"]),
    (
        "1.22.0",
        "rbac.authorization.k8s.io/v1beta1",
        &["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"],
    ),
    ("1.25.0", "policy/v1beta1", &["PodDisruptionBudget", "PodSecurityPolicy"]),
];

/// SecurityContextConstraints that OpenShift itself has.
const DEFAULT_CONSTRAINTS: [&str; 7] =
    ["privileged", "restricted", "nonroot", "hostmount-anyuid", "hostaccess", "hostnetwork", "anyuid"];

pub(super) const RULES: &[Rule] = &[
    error("deployment-refused", "an API server takes each Deployment", |bundle| {
        refused(bundle, Refused::Deployment)
    }),
    error("object-refused", "an API server takes the other objects", |bundle| {
        refused(bundle, Refused::Other)
    }),
    error("account-twice", "no ServiceAccount of the bundle is one that OLM makes", account_twice),
    error("disruption-budget", "a PodDisruptionBudget lets nodes be drained", disruption_budget),
    error("default-priority", "a PriorityClass is not everybody's default", default_priority),
    error(
        "default-constraints",
        "nobody may change OpenShift's own SecurityContextConstraints",
        default_constraints,
    ),
    error("removed-version", "objects are of versions that the least Kubernetes still has", removed_version),
    warning(
        "removed-version-later",
        "objects are of versions that no Kubernetes lacks",
        removed_version_later,
    ),
    warning("requests", "containers request cpu and memory", requests),
    warning("may-define", "an operator does not define kinds: OLM does", may_define),
    warning("may-hinder-drains", "roles of the bundle do not change PodDisruptionBudgets", may_hinder_drains),
];

fn account_twice(bundle: &Bundle) -> Vec<Finding> {
    let used: Vec<&str> = bundle
        .deployments()
        .iter()
        .map(|one| text_at(one, "/spec/template/spec/serviceAccountName"))
        .collect();
    let message =
        |name: &str| format!("OLM makes the service account {name:?} by itself; remove it or rename it");
    let twice =
        bundle.of_kind("ServiceAccount").filter(|account| used.contains(&account.text("/metadata/name")));
    twice.map(|account| account.finding("metadata.name", message(account.text("/metadata/name")))).collect()
}

fn disruption_budget(bundle: &Bundle) -> Vec<Finding> {
    let blocks = |budget: &Manifest, field: &str, values: [Value; 2]| {
        let value = budget.tree["spec"].get(field).filter(|value| values.contains(value))?;
        let message = format!("with {value} no node with its pods can be drained; let one pod go");
        Some(budget.finding(format!("spec.{field}"), message))
    };
    let mut wrong = Vec::new();
    for budget in bundle.of_kind("PodDisruptionBudget") {
        wrong.extend(blocks(budget, "maxUnavailable", [0.into(), "0%".into()]));
        wrong.extend(blocks(budget, "minAvailable", ["100%".into(), "100%".into()]));
    }
    wrong
}

fn default_priority(bundle: &Bundle) -> Vec<Finding> {
    let global = bundle.of_kind("PriorityClass").filter(|class| class.tree["globalDefault"] == true);
    global
        .map(|class| {
            class.finding("globalDefault", "it would change the priority of all pods; set it to false")
        })
        .collect()
}

/// The rules of the roles that are objects of the bundle.
fn shipped_rules(bundle: &Bundle) -> Vec<(&Manifest, usize, &Value)> {
    let roles = bundle.of_kind("Role").chain(bundle.of_kind("ClusterRole"));
    roles
        .flat_map(|role| role.list("/rules").iter().enumerate().map(move |(index, rule)| (role, index, rule)))
        .collect()
}

fn has(rule: &Value, list: &str, wanted: &[&str]) -> bool {
    let values = rule[list].as_array().into_iter().flatten().filter_map(Value::as_str);
    values.into_iter().any(|value| wanted.contains(&value))
}

fn default_constraints(bundle: &Bundle) -> Vec<Finding> {
    let changes = |rule: &Value| {
        has(rule, "apiGroups", &["security.openshift.io"])
            && has(rule, "resources", &["securitycontextconstraints"])
            && has(rule, "verbs", &["*", "delete", "update", "patch"])
            && has(rule, "resourceNames", &DEFAULT_CONSTRAINTS)
    };
    let message = "it allows changes of OpenShift's own SecurityContextConstraints; bring your own";
    let found = shipped_rules(bundle).into_iter().filter(|(_, _, rule)| changes(rule));
    found.map(|(role, index, _)| role.finding(format!("rules[{index}]"), message)).collect()
}

/// The objects whose version Kubernetes no longer has, each with the release that removed it.
fn removed(bundle: &Bundle) -> impl Iterator<Item = (&Manifest, &'static str)> {
    bundle.manifests.iter().filter_map(|manifest| {
        let gone = |(_, version, kinds): &&(&str, &str, &[&str])| {
            manifest.text("/apiVersion") == *version && kinds.contains(&manifest.kind())
        };
        REMOVED.iter().find(gone).map(|(since, ..)| (manifest, *since))
    })
}

/// Whether a release is one that the bundle can be installed on for certain.
fn is_within(bundle: &Bundle, release: &str) -> bool {
    let least = bundle.csv().map_or("", |csv| csv.text("/spec/minKubeVersion"));
    matches!((Version::parse(least), Version::parse(release)), (Ok(least), Ok(release)) if least >= release)
}

fn removed_version(bundle: &Bundle) -> Vec<Finding> {
    let message = |since: &str| {
        format!("Kubernetes has it no more since {since}, which spec.minKubeVersion demands; move on")
    };
    let gone = removed(bundle).filter(|(_, since)| is_within(bundle, since));
    gone.map(|(manifest, since)| manifest.finding("apiVersion", message(since))).collect()
}

fn removed_version_later(bundle: &Bundle) -> Vec<Finding> {
    let message =
        |since: &str| format!("Kubernetes has it no more since {since}; move on to a newer version");
    let gone = removed(bundle).filter(|(_, since)| !is_within(bundle, since));
    gone.map(|(manifest, since)| manifest.finding("apiVersion", message(since))).collect()
}

fn requests(bundle: &Bundle) -> Vec<Finding> {
    let Some(csv) = bundle.csv() else { return Vec::new() };
    let mut wrong = Vec::new();
    for (index, deployment) in bundle.deployments().iter().enumerate() {
        let containers = deployment.pointer("/spec/template/spec/containers").and_then(Value::as_array);
        for container in containers.into_iter().flatten() {
            let requests = &container["resources"]["requests"];
            if requests.get("cpu").is_none() || requests.get("memory").is_none() {
                let name = text_at(container, "/name");
                let field =
                    format!("spec.install.spec.deployments[{index}].spec.template.spec.containers.{name}");
                let message =
                    "it requests no cpu or no memory, which some clusters demand; add resources.requests";
                wrong.push(csv.finding(field, message));
            }
        }
    }
    wrong
}

fn may_define(bundle: &Bundle) -> Vec<Finding> {
    let Some(csv) = bundle.csv() else { return Vec::new() };
    let defines = |rule: &&Value| {
        has(rule, "apiGroups", &["apiextensions.k8s.io"])
            && has(rule, "resources", &["customresourcedefinitions", "*"])
            && has(rule, "verbs", &["create", "patch", "*"])
    };
    let mut wrong = Vec::new();
    for list in ["permissions", "clusterPermissions"] {
        for (index, one) in csv.list(&format!("/spec/install/spec/{list}")).iter().enumerate() {
            if one["rules"].as_array().into_iter().flatten().any(|rule| defines(&rule)) {
                let message =
                    "it may create or change definitions, which come with the bundle; take that away";
                wrong.push(csv.finding(format!("spec.install.spec.{list}[{index}].rules"), message));
            }
        }
    }
    wrong
}

fn may_hinder_drains(bundle: &Bundle) -> Vec<Finding> {
    let hinders = |rule: &Value| {
        has(rule, "apiGroups", &["policy"])
            && has(rule, "resources", &["poddisruptionbudgets"])
            && has(rule, "verbs", &["*", "create", "update", "patch"])
    };
    let message = "it allows changes of PodDisruptionBudgets, which can keep nodes from being drained";
    let found = shipped_rules(bundle).into_iter().filter(|(_, _, rule)| hinders(rule));
    found.map(|(role, index, _)| role.finding(format!("rules[{index}]"), message)).collect()
}
