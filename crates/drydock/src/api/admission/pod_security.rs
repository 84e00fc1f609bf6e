//! PodSecurity: what pods of a namespace may ask of their node.
//!
//! A namespace's labels name a level (`privileged`, `baseline`, `restricted`) and a version of it. A pod that
//! breaks the enforced level is refused; one that breaks the level to warn of, and a workload whose template
//! does, is let through with a warning. Auditing is parsed and checked but goes nowhere: there is no audit log.

mod checks;
mod policy;

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::status::{Failure, Outcome};
use super::super::write::{decoded, metadata_of, name_of};
use super::{Admission, Operation};
use crate::store::{Key, Scope};
use policy::{Level, LevelVersion, Policy};

/// How many pods of a namespace are looked at when its level changes.
const MOST_PODS: usize = 3000;

/// Subresources of a pod that change nothing in what it asks for.
const IGNORED: [&str; 4] = ["binding", "eviction", "log", "status"];

/// Where the kinds that make pods keep the pod's metadata and specification: the path of the template.
static TEMPLATES: &[(&str, &str, &[&str])] = &[
    ("", "podtemplates", &["template"]),
    ("", "replicationcontrollers", &["spec", "template"]),
    ("apps", "deployments", &["spec", "template"]),
    ("apps", "replicasets", &["spec", "template"]),
    ("apps", "statefulsets", &["spec", "template"]),
    ("apps", "daemonsets", &["spec", "template"]),
    ("batch", "jobs", &["spec", "template"]),
    ("batch", "cronjobs", &["spec", "jobTemplate", "spec", "template"]),
];

/// Lets an object through, with or without a warning.
///
/// # Errors
/// When it is a pod that breaks the level of its namespace, or a namespace with a level that there is not.
pub(super) fn check(admission: &mut Admission<'_>, object: &Value) -> Outcome<()> {
    if admission.operation == Operation::Delete {
        return Ok(());
    }
    if admission.is_for("", "namespaces") {
        return namespace(admission, object);
    }
    if admission.is_for("", "pods") {
        return pod(admission, object);
    }
    let resource = admission.resource;
    let template = TEMPLATES
        .iter()
        .find(|(group, plural, _)| *group == resource.group && *plural == resource.plural)
        .filter(|_| admission.subresource.is_none());
    if let Some((_, _, path)) = template {
        let template = path.iter().fold(object, |value, field| &value[*field]);
        let policy = policy_of(admission)?;
        warn(admission, &policy.warn, template);
    }
    Ok(())
}

fn pod(admission: &mut Admission<'_>, pod: &Value) -> Outcome<()> {
    if admission.subresource.is_some_and(|part| IGNORED.contains(&part)) {
        return Ok(());
    }
    let policy = policy_of(admission)?;
    if policy.is_privileged() || admission.old.is_some_and(|old| !is_significant(pod, old)) {
        return Ok(());
    }
    let broken = checks::violations(&policy.enforce, pod);
    if !broken.is_empty() {
        let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, checks::details(&broken));
        return Err(Failure::forbidden(admission.resource, name_of(pod), why));
    }
    warn(admission, &policy.warn, pod);
    Ok(())
}

fn warn(admission: &mut Admission<'_>, level: &LevelVersion, pod: &Value) {
    let broken = checks::violations(level, pod);
    if !broken.is_empty() {
        let text = format!("would violate PodSecurity \"{level}\": {}", checks::details(&broken));
        admission.warnings.push(text);
    }
}

fn namespace(admission: &mut Admission<'_>, namespace: &Value) -> Outcome<()> {
    if admission.subresource.is_some() {
        return Ok(());
    }
    let (new, errors) = Policy::of(&namespace["metadata"]["labels"]);
    let refused = |errors: &[_]| Failure::invalid("", "Namespace", name_of(namespace), errors);
    let Some(old) = admission.old else {
        return if errors.is_empty() { Ok(()) } else { Err(refused(&errors)) };
    };
    let (old, old_errors) = Policy::of(&old["metadata"]["labels"]);
    if !errors.is_empty() && errors != old_errors {
        return Err(refused(&errors));
    }
    let (new, old) = (new.enforce, old.enforce);
    let looser = new.version == old.version && new.level <= old.level;
    if new != old && new.level != Level::Privileged && !looser {
        let warnings = existing_pods(admission, name_of(namespace), &new)?;
        admission.warnings.extend(warnings);
    }
    Ok(())
}

/// What is said about the pods of a namespace that a new level would not let in.
fn existing_pods(admission: &Admission<'_>, namespace: &str, level: &LevelVersion) -> Outcome<Vec<String>> {
    let registry = admission.server.registry();
    let Some(pods) = registry.core("pods") else {
        return Ok(Vec::new());
    };
    let (_, stored) = admission.server.store.list(pods.table, &Scope::Namespace(namespace.into()));
    let mut warnings = Vec::new();
    // By what is broken: the first pod, and how many.
    let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in stored.iter().take(MOST_PODS) {
        let pod = decoded(pod)?;
        let broken = checks::violations(level, &pod);
        if !broken.is_empty() {
            let name = name_of(&pod).to_owned();
            let entry = found.entry(checks::reasons(&broken)).or_insert_with(|| (name.clone(), 0));
            entry.1 += 1;
            if name < entry.0 {
                entry.0 = name;
            }
        }
    }
    if stored.len() > MOST_PODS {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MOST_PODS} of {} existing pods",
            stored.len()
        ));
    }
    if !found.is_empty() {
        warnings.push(format!(
            "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \"{level}\""
        ));
    }
    let mut texts: Vec<String> = found
        .into_iter()
        .map(|(broken, (first, count))| match count {
            1 => format!("{first}: {broken}"),
            2 => format!("{first} (and 1 other pod): {broken}"),
            _ => format!("{first} (and {} other pods): {broken}", count - 1),
        })
        .collect();
    texts.sort();
    warnings.append(&mut texts);
    Ok(warnings)
}

fn policy_of(admission: &Admission<'_>) -> Outcome<Policy> {
    let registry = admission.server.registry();
    let key = Key::new("", admission.namespace);
    let stored = registry.core("namespaces").and_then(|table| admission.server.store.get(table.table, &key));
    let Some(stored) = stored else {
        return Ok(Policy::default());
    };
    let namespace = decoded(&stored)?;
    let none = Value::Null;
    Ok(Policy::of(metadata_of(&namespace).get("labels").unwrap_or(&none)).0)
}

/// Whether a change of a pod can make a difference: containers that come or go, or another image.
fn is_significant(new: &Value, old: &Value) -> bool {
    let images = |pod: &Value, sort: &str| -> Vec<(String, String)> {
        let text = |container: &Value, field: &str| container[field].as_str().unwrap_or_default().to_owned();
        let containers = pod["spec"][sort].as_array().map(Vec::as_slice).unwrap_or_default();
        containers.iter().map(|container| (text(container, "name"), text(container, "image"))).collect()
    };
    let plain =
        |pod: &Value, sort: &str| images(pod, sort).into_iter().map(|(_, image)| image).collect::<Vec<_>>();
    let ephemeral = images(old, "ephemeralContainers");
    ["containers", "initContainers"].iter().any(|sort| plain(new, sort) != plain(old, sort))
        || images(new, "ephemeralContainers").iter().any(|container| !ephemeral.contains(container))
}
