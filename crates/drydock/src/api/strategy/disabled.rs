//! Fields of features that are off by default: they can be written, but are not kept.

use serde_json::Value;

use super::super::registry::Resource;

/// Paths below the object; `*` stands for all elements of a list.
static FIELDS: &[(&str, &str, &[&str])] = &[
    ("", "pods", &["spec!", "status.nodeAllocatableResourceClaimStatuses"]),
    ("", "podtemplates", &["template.spec!"]),
    ("", "replicationcontrollers", &["spec.template.spec!"]),
    ("apps", "deployments", &["spec.template.spec!"]),
    ("apps", "replicasets", &["spec.template.spec!"]),
    ("apps", "daemonsets", &["spec.template.spec!"]),
    ("apps", "statefulsets", &["spec.template.spec!", "spec.updateStrategy.rollingUpdate.maxUnavailable"]),
    ("batch", "jobs", &["spec.template.spec!"]),
    ("batch", "cronjobs", &["spec.jobTemplate.spec.template.spec!"]),
    ("coordination.k8s.io", "leases", &["spec.strategy", "spec.preferredHolder"]),
    ("discovery.k8s.io", "endpointslices", &["endpoints.*.deprecatedTopology"]),
    ("storage.k8s.io", "csidrivers", &["spec.preventPodSchedulingIfMissing"]),
    ("", "nodes", &["spec.configSource", "status.config"]),
];

/// What pods have of that, wherever they are described: `!` above.
const OF_PODS: [&str; 6] = [
    "schedulingGroup",
    "volumes.*.projected.sources.*.clusterTrustBundle",
    "volumes.*.projected.sources.*.podCertificate",
    "containers.*.lifecycle.stopSignal",
    "initContainers.*.lifecycle.stopSignal",
    "ephemeralContainers.*.lifecycle.stopSignal",
];

/// Removes them from an object.
pub(super) fn drop_fields(resource: &Resource, object: &mut Value) {
    let known =
        FIELDS.iter().find(|(group, plural, _)| *plural == resource.plural && *group == resource.group);
    for path in known.into_iter().flat_map(|(_, _, paths)| paths.iter()) {
        match path.strip_suffix('!') {
            None => drop_field(object, path),
            Some(spec) => {
                if let Some(spec) =
                    spec.split('.').try_fold(&mut *object, |value, field| value.get_mut(field))
                {
                    OF_PODS.iter().for_each(|path| drop_field(spec, path));
                }
            }
        }
    }
}

fn drop_field(object: &mut Value, path: &str) {
    match (path.split_once('.'), object) {
        (Some(("*", rest)), Value::Array(items)) => items.iter_mut().for_each(|item| drop_field(item, rest)),
        (Some((field, rest)), Value::Object(map)) => {
            if let Some(value) = map.get_mut(field) {
                drop_field(value, rest);
            }
        }
        (None, Value::Object(map)) => _ = map.remove(path),
        _ => {}
    }
}
