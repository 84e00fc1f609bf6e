//! What the server accepts and would rather not see: deprecated fields, values without effect, surprising names.
//!
//! A table says which kinds are looked at, and whether changes are looked at too. Looks at valid objects only.

mod certificate;
mod pod;
mod service;

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_machinery::names;
use windlass_machinery::quantity::Quantity;

use super::registry::Resource;

type Look = fn(&mut Vec<String>, &Value);

/// When changes are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Changes {
    Never,
    Always,
    /// When the generation changes with them.
    Generation,
    /// As before, but the server looks at what was.
    Backwards,
    /// When they are of this field of the specification.
    Of(&'static str),
}

const TEMPLATE_NAME: &str = "Pod names and hostnames";

static TABLE: &[(&str, &str, Look, Changes)] = &[
    ("", "pods", of_pod, Changes::Never),
    ("", "podtemplates", |out, object| pod::template(out, &object["template"], "template"), Changes::Always),
    ("", "replicationcontrollers", named_template, Changes::Backwards),
    ("apps", "deployments", named_template, Changes::Generation),
    ("apps", "replicasets", named_template, Changes::Generation),
    ("apps", "daemonsets", template, Changes::Generation),
    ("apps", "statefulsets", stateful_set, Changes::Generation),
    (
        "batch",
        "jobs",
        |out, object| {
            name(out, object, TEMPLATE_NAME);
            job(out, &object["spec"], "spec");
        },
        Changes::Generation,
    ),
    (
        "batch",
        "cronjobs",
        |out, object| {
            name(out, object, TEMPLATE_NAME);
            job(out, &object["spec"]["jobTemplate"]["spec"], "spec.jobTemplate.spec");
        },
        Changes::Generation,
    ),
    ("", "services", service::service, Changes::Always),
    ("", "secrets", secret, Changes::Always),
    ("", "serviceaccounts", service_account, Changes::Never),
    ("", "persistentvolumeclaims", claim, Changes::Always),
    ("", "persistentvolumes", volume, Changes::Always),
    ("", "nodes", node, Changes::Always),
    ("networking.k8s.io", "ingresses", ingress, Changes::Never),
    ("storage.k8s.io", "storageclasses", storage_class, Changes::Always),
    ("storage.k8s.io", "csidrivers", driver, Changes::Of("tokenRequests")),
    ("node.k8s.io", "runtimeclasses", runtime_class, Changes::Always),
    ("discovery.k8s.io", "endpointslices", slice, Changes::Always),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        super::definitions::unknown_formats,
        Changes::Always,
    ),
];

/// What to say of a new or changed object.
pub(super) fn of(resource: &Resource, new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut out = Vec::new();
    if resource.custom.is_some() {
        finalizers(&mut out, new, old);
    }
    let known =
        TABLE.iter().find(|(group, plural, ..)| *group == resource.group && *plural == resource.plural);
    let Some((_, _, look, changes)) = known else { return out };
    let generation = |object: &Value| object["metadata"]["generation"].clone();
    let looks = match (old, changes) {
        (None, _) | (Some(_), Changes::Always) => true,
        (Some(_), Changes::Never) => false,
        (Some(old), Changes::Generation | Changes::Backwards) => generation(new) != generation(old),
        (Some(old), Changes::Of(field)) => new["spec"][*field] != old["spec"][*field],
    };
    if looks {
        look(&mut out, old.filter(|_| *changes == Changes::Backwards).unwrap_or(new));
    }
    if old.is_some() && new["spec"]["schedule"].as_str().is_some_and(|schedule| schedule.contains("TZ")) {
        out.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .to_owned(),
        );
    }
    if old.is_some() {
        // A name cannot be changed any more.
        out.retain(|warning| !warning.starts_with("metadata.name:"));
    }
    out
}

/// Finalizers that are new on a custom object, and that others may use by accident as well.
fn finalizers(out: &mut Vec<String>, new: &Value, old: Option<&Value>) {
    let of = |object: &Value| -> BTreeSet<String> {
        let all = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
    };
    for name in of(new).difference(&old.map(of).unwrap_or_default()) {
        let mut say = |why: &str| out.push(format!("metadata.finalizers: {name:?}: {why}"));
        names::qualified_name(name).iter().for_each(|why| say(why));
        if name.contains('/') || matches!(name.as_str(), "orphan" | "foregroundDeletion" | "kubernetes") {
            continue;
        }
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        say(&format!(
            "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        ));
    }
}

fn of_pod(out: &mut Vec<String>, object: &Value) {
    name(out, object, "the Pod's hostname");
    pod::whole(out, object, "");
}

fn template(out: &mut Vec<String>, object: &Value) {
    pod::template(out, &object["spec"]["template"], "spec.template");
}

fn named_template(out: &mut Vec<String>, object: &Value) {
    name(out, object, TEMPLATE_NAME);
    template(out, object);
}

fn name(out: &mut Vec<String>, object: &Value, used: &str) {
    let why = names::dns1123_label(object["metadata"]["name"].as_str().unwrap_or_default());
    if !why.is_empty() {
        out.push(format!(
            "metadata.name: this is used in {used}, which can result in surprising behavior; a DNS label is \
             recommended: [{}]",
            why.join(" ")
        ));
    }
}

fn stateful_set(out: &mut Vec<String>, object: &Value) {
    template(out, object);
    for (index, claim) in list(&object["spec"], "volumeClaimTemplates").enumerate() {
        claim_spec(out, &claim["spec"], &format!("spec.volumeClaimTemplates[{index}]"));
    }
    if object["spec"]["revisionHistoryLimit"].as_i64().is_some_and(|limit| limit < 0) {
        out.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                .to_owned(),
        );
    }
}

fn job(out: &mut Vec<String>, spec: &Value, at: &str) {
    let number = |field: &str| spec[field].as_i64().unwrap_or_default();
    if spec["completionMode"] == "Indexed"
        && number("completions") > 100_000
        && number("parallelism") > 10_000
    {
        out.push(format!(
            "{at}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
             Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    pod::template(out, &spec["template"], &format!("{at}.template"));
}

/// Certificates and keys that do not fit together.
fn secret(out: &mut Vec<String>, secret: &Value) {
    if secret["type"] != "kubernetes.io/tls" {
        return;
    }
    let bytes = |key: &str| {
        use base64::Engine as _;
        let text = secret["data"][key].as_str().unwrap_or_default();
        base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default()
    };
    out.extend(certificate::complaint(&bytes("tls.crt"), &bytes("tls.key")));
}

fn service_account(out: &mut Vec<String>, account: &Value) {
    const ENFORCES: &str = "kubernetes.io/enforce-mountable-secrets";
    if account["metadata"]["annotations"].get(ENFORCES).is_some() {
        out.push(format!(
            "metadata.annotations[{ENFORCES}]: deprecated in v1.32+; prefer separate namespaces to isolate access to \
             mounted secrets"
        ));
    }
}

fn claim(out: &mut Vec<String>, claim: &Value) {
    old_class(out, claim);
    claim_spec(out, &claim["spec"], "spec");
}

fn claim_spec(out: &mut Vec<String>, spec: &Value, at: &str) {
    for list in ["requests", "limits"] {
        fraction(out, &spec["resources"][list]["storage"], &format!("{at}.resources.{list}[storage]"));
    }
}

fn old_class(out: &mut Vec<String>, object: &Value) {
    const OLD: &str = "volume.beta.kubernetes.io/storage-class";
    if object["metadata"]["annotations"].get(OLD).is_some() {
        out.push(format!(
            "metadata.annotations[{OLD}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
        ));
    }
}

fn volume(out: &mut Vec<String>, volume: &Value) {
    const GONE: [(&str, &str, &str); 6] = [
        ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    old_class(out, volume);
    let spec = &volume["spec"];
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" {
        out.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended \
             approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    for (index, term) in list(&spec["nodeAffinity"]["required"], "nodeSelectorTerms").enumerate() {
        pod::node_term(out, term, false, &format!("spec.nodeAffinity.required.nodeSelectorTerms[{index}]"));
    }
    for (_, shown, why) in GONE.iter().filter(|(field, ..)| spec[*field].is_object()) {
        out.push(format!("spec.{shown}: {why}"));
    }
}

fn node(out: &mut Vec<String>, node: &Value) {
    let spec = &node["spec"];
    if !spec["configSource"].is_null() {
        out.push("spec.configSource: the feature is removed".to_owned());
    }
    if spec["externalID"].as_str().is_some_and(|id| !id.is_empty()) {
        out.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
}

fn ingress(out: &mut Vec<String>, ingress: &Value) {
    const CLASS: &str = "kubernetes.io/ingress.class";
    if ingress["metadata"]["annotations"].get(CLASS).is_some() {
        out.push(format!("annotation {CLASS:?} is deprecated, please use 'spec.ingressClassName' instead"));
    }
}

fn storage_class(out: &mut Vec<String>, class: &Value) {
    for (index, term) in list(class, "allowedTopologies").enumerate() {
        for (inner, expression) in list(term, "matchLabelExpressions").enumerate() {
            if let Some(why) = pod::old_label(expression["key"].as_str().unwrap_or_default()) {
                out.push(format!("allowedTopologies[{index}].matchLabelExpressions[{inner}].key: {why}"));
            }
        }
    }
}

fn driver(out: &mut Vec<String>, driver: &Value) {
    let spec = &driver["spec"];
    if list(spec, "tokenRequests").next().is_some() && spec["serviceAccountTokenInSecrets"].is_null() {
        out.push(
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
             possible logging of tokens in volume attributes"
                .to_owned(),
        );
    }
}

fn runtime_class(out: &mut Vec<String>, class: &Value) {
    for key in class["scheduling"]["nodeSelector"].as_object().into_iter().flat_map(|map| map.keys()) {
        out.extend(pod::old_label(key).map(|why| format!("scheduling.nodeSelector: {why}")));
    }
}

fn slice(out: &mut Vec<String>, slice: &Value) {
    if slice["addressType"] == "FQDN" {
        out.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
}

/// Amounts of bytes that are no whole numbers.
fn fraction(out: &mut Vec<String>, amount: &Value, at: &str) {
    let Some(amount) = amount.as_str().and_then(|text| Quantity::parse(text).ok()) else { return };
    if amount.milli_value() % 1000 != 0 {
        let text = amount.to_string();
        out.push(format!("{at}: fractional byte value {text:?} is invalid, must be an integer"));
    }
}

fn list<'v>(object: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    object[field].as_array().into_iter().flatten()
}
