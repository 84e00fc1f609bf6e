//! The defaults of built-in types, keyed by the type they are about, wherever it stands.
//!
//! A type's own defaults are set before those of what it holds, as the real server does. What conversion
//! between versions fills in (a Secret's `stringData`, a Pod's two names of its service account) is here too:
//! for the client it is the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use windlass_machinery::schema::{Shape, Type};
use windlass_machinery::structural;

use super::admission::amounts;

type Fields = Map<String, Value>;

const API: &str = "io.k8s.api.";
const EXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.";
const AGGREGATOR: &str = "io.k8s.kube-aggregator.pkg.apis.";

/// Structures that Go has even where the client says nothing of them, so that their defaults are set too.
const ALWAYS_THERE: &[(&str, &str)] = &[
    ("core.v1.Pod", "spec"),
    ("core.v1.PodTemplateSpec", "spec"),
    ("apps.v1.Deployment", "spec"),
    ("apps.v1.DeploymentSpec", "template"),
    ("apps.v1.ReplicaSet", "spec"),
    ("apps.v1.ReplicaSetSpec", "template"),
    ("apps.v1.StatefulSet", "spec"),
    ("apps.v1.StatefulSetSpec", "template"),
    ("apps.v1.DaemonSet", "spec"),
    ("apps.v1.DaemonSetSpec", "template"),
    ("batch.v1.Job", "spec"),
    ("batch.v1.JobSpec", "template"),
    ("batch.v1.CronJob", "spec"),
    ("batch.v1.CronJobSpec", "jobTemplate"),
    ("batch.v1.JobTemplateSpec", "spec"),
    ("core.v1.PodTemplate", "template"),
    ("core.v1.Service", "spec"),
    ("core.v1.Namespace", "status"),
    ("networking.v1.NetworkPolicy", "spec"),
    ("rbac.v1.RoleBinding", "roleRef"),
    ("rbac.v1.ClusterRoleBinding", "roleRef"),
    ("core.v1.PersistentVolume", "spec"),
    ("core.v1.PersistentVolumeClaim", "spec"),
    ("storage.v1.CSIDriver", "spec"),
    ("flowcontrol.v1.FlowSchema", "spec"),
    ("admissionregistration.v1.ValidatingAdmissionPolicy", "spec"),
    ("admissionregistration.v1.MutatingAdmissionPolicy", "spec"),
    ("autoscaling.v1.HorizontalPodAutoscaler", "spec"),
    ("autoscaling.v2.HorizontalPodAutoscaler", "spec"),
];

/// Sets the defaults of a value. `update` tells whether the object exists already.
pub fn apply(value: &mut Value, ty: Type<'_>, update: bool) {
    match (value, ty.shape()) {
        (Value::Object(map), Shape::Struct(_)) => {
            let Some(structure) = ty.structure() else { return };
            let name = &*structure.name;
            if let Some(name) =
                [API, EXTENSIONS, AGGREGATOR].iter().find_map(|known| name.strip_prefix(known))
            {
                own(name, map, update);
            }
            for (key, value) in map.iter_mut() {
                if let Some(field) = structure.fields.get(key.as_str()) {
                    apply(value, ty.to(field.node), update);
                }
            }
        }
        (Value::Object(map), Shape::Map(values)) => {
            let ty = ty.to(*values);
            map.values_mut().for_each(|value| apply(value, ty, update));
        }
        (Value::Array(list), Shape::List { items, .. }) => {
            let ty = ty.to(*items);
            list.iter_mut().for_each(|value| apply(value, ty, update));
        }
        _ => {}
    }
}

/// The defaults of one type.
fn own(name: &str, map: &mut Fields, update: bool) {
    for (_, field) in ALWAYS_THERE.iter().filter(|(ty, _)| *ty == name) {
        absent(map, field, || json!({}));
    }
    match name {
        "core.v1.Pod" => pod(map),
        "core.v1.PodSpec" => pod_spec(map),
        "core.v1.Container" | "core.v1.EphemeralContainer" => container(map),
        "core.v1.ContainerPort" | "core.v1.EndpointPort" => text(map, "protocol", "TCP"),
        "core.v1.Probe" => numbers(
            map,
            &[("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)],
        ),
        "core.v1.HTTPGetAction" => {
            text(map, "path", "/");
            text(map, "scheme", "HTTP");
        }
        "core.v1.GRPCAction" => absent(map, "service", || "".into()),
        "core.v1.Volume" => volume(map),
        "core.v1.SecretVolumeSource"
        | "core.v1.ConfigMapVolumeSource"
        | "core.v1.DownwardAPIVolumeSource"
        | "core.v1.ProjectedVolumeSource" => absent(map, "defaultMode", || 0o644.into()),
        "core.v1.ServiceAccountTokenProjection" => absent(map, "expirationSeconds", || 3600.into()),
        "core.v1.ImageVolumeSource" => {
            let image = map.get("reference").and_then(Value::as_str).unwrap_or_default();
            let policy = if image_tag(image) == Some("latest") { "Always" } else { "IfNotPresent" };
            text(map, "pullPolicy", policy);
        }
        "core.v1.RBDVolumeSource" | "core.v1.RBDPersistentVolumeSource" => {
            text(map, "pool", "rbd");
            text(map, "user", "admin");
            text(map, "keyring", "/etc/ceph/keyring");
        }
        "core.v1.ISCSIVolumeSource" | "core.v1.ISCSIPersistentVolumeSource" => {
            text(map, "iscsiInterface", "default");
        }
        "core.v1.AzureDiskVolumeSource" => {
            absent(map, "cachingMode", || "ReadWrite".into());
            absent(map, "kind", || "Shared".into());
            absent(map, "fsType", || "ext4".into());
            absent(map, "readOnly", || false.into());
        }
        "core.v1.ScaleIOVolumeSource" | "core.v1.ScaleIOPersistentVolumeSource" => {
            text(map, "storageMode", "ThinProvisioned");
            text(map, "fsType", "xfs");
        }
        "core.v1.HostPathVolumeSource" => absent(map, "type", || "".into()),
        "core.v1.ObjectFieldSelector" => text(map, "apiVersion", "v1"),
        "core.v1.Service" => service(map),
        "core.v1.ServicePort" => service_port(map),
        "core.v1.Namespace" => namespace(map),
        "core.v1.NamespaceStatus" => text(map, "phase", "Active"),
        "core.v1.PodStatus" => pod_addresses(map),
        "core.v1.Secret" => secret(map),
        "core.v1.PersistentVolumeClaim" => phase(map),
        "core.v1.PersistentVolumeClaimSpec" => absent(map, "volumeMode", || "Filesystem".into()),
        "core.v1.PersistentVolume" => phase(map),
        "core.v1.PersistentVolumeSpec" => {
            text(map, "persistentVolumeReclaimPolicy", "Retain");
            absent(map, "volumeMode", || "Filesystem".into());
        }
        "batch.v1.PodFailurePolicyOnPodConditionsPattern" => text(map, "status", "True"),
        "core.v1.NodeSpec" => {
            // One range is told twice.
            let first = map.get("podCIDRs").and_then(|all| all.get(0)).cloned();
            match (map.get("podCIDR").cloned().filter(|range| *range != ""), first) {
                (Some(range), first) if first.as_ref() != Some(&range) => {
                    map.insert("podCIDRs".into(), json!([range]));
                }
                (None, Some(first)) => _ = map.insert("podCIDR".into(), first),
                _ => {}
            }
        }
        "core.v1.NodeStatus" => {
            if let Some(capacity) = map.get("capacity").cloned() {
                absent(map, "allocatable", || capacity);
            }
        }
        "core.v1.LimitRangeItem" => limit_range_item(map),
        "core.v1.ReplicationController" => replication_controller(map),
        "core.v1.ReplicationControllerSpec" => absent(map, "replicas", || 1.into()),
        "apps.v1.DeploymentSpec" => deployment_spec(map),
        "apps.v1.ReplicaSetSpec" => absent(map, "replicas", || 1.into()),
        "apps.v1.StatefulSetSpec" => stateful_set_spec(map),
        "apps.v1.DaemonSet" => daemon_set(map, update),
        "apps.v1.DaemonSetSpec" => daemon_set_spec(map),
        "batch.v1.Job" => job(map),
        "batch.v1.CronJobSpec" => {
            text(map, "concurrencyPolicy", "Allow");
            absent(map, "suspend", || false.into());
            absent(map, "successfulJobsHistoryLimit", || 3.into());
            absent(map, "failedJobsHistoryLimit", || 1.into());
        }
        "networking.v1.NetworkPolicySpec" => network_policy_spec(map),
        "networking.v1.NetworkPolicyPort" => absent(map, "protocol", || "TCP".into()),
        "networking.v1.IngressClassParametersReference" => absent(map, "scope", || "Cluster".into()),
        "rbac.v1.RoleBinding" | "rbac.v1.ClusterRoleBinding" => role_ref(map),
        "rbac.v1.Subject" => subject(map),
        "storage.v1.StorageClass" => {
            absent(map, "reclaimPolicy", || "Delete".into());
            absent(map, "volumeBindingMode", || "Immediate".into());
        }
        "storage.v1.CSIDriverSpec" => {
            absent(map, "attachRequired", || true.into());
            for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
                absent(map, field, || false.into());
            }
            absent(map, "fsGroupPolicy", || "ReadWriteOnceWithFSType".into());
            if map.get("volumeLifecycleModes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
                map.insert("volumeLifecycleModes".into(), json!(["Persistent"]));
            }
        }
        "scheduling.v1.PriorityClass" => {
            absent(map, "preemptionPolicy", || "PreemptLowerPriority".into());
        }
        "discovery.v1.EndpointPort" => {
            absent(map, "name", || "".into());
            absent(map, "protocol", || "TCP".into());
        }
        "autoscaling.v1.HorizontalPodAutoscalerSpec" | "autoscaling.v2.HorizontalPodAutoscalerSpec" => {
            absent(map, "minReplicas", || 1.into());
            if name.starts_with("autoscaling.v2") {
                autoscaler(map);
            } else {
                absent(map, "targetCPUUtilizationPercentage", || 80.into());
            }
        }
        "admissionregistration.v1.MutatingWebhook" => {
            webhook(map);
            absent(map, "reinvocationPolicy", || "Never".into());
        }
        "admissionregistration.v1.ValidatingWebhook" => webhook(map),
        "admissionregistration.v1.RuleWithOperations"
        | "admissionregistration.v1.NamedRuleWithOperations" => {
            absent(map, "scope", || "*".into());
        }
        "admissionregistration.v1.ServiceReference" | "apiregistration.v1.ServiceReference" => {
            absent(map, "port", || 443.into())
        }
        "admissionregistration.v1.ValidatingAdmissionPolicySpec"
        | "admissionregistration.v1.MutatingAdmissionPolicySpec" => {
            absent(map, "failurePolicy", || "Fail".into());
        }
        "admissionregistration.v1.MatchResources" => {
            absent(map, "matchPolicy", || "Equivalent".into());
            absent(map, "namespaceSelector", || json!({}));
            absent(map, "objectSelector", || json!({}));
        }
        "flowcontrol.v1.FlowSchemaSpec" => numbers(map, &[("matchingPrecedence", 1000)]),
        "flowcontrol.v1.ExemptPriorityLevelConfiguration" => {
            absent(map, "nominalConcurrencyShares", || 0.into());
            absent(map, "lendablePercent", || 0.into());
        }
        "flowcontrol.v1.LimitedPriorityLevelConfiguration" => {
            absent(map, "nominalConcurrencyShares", || 30.into());
            absent(map, "lendablePercent", || 0.into());
        }
        "flowcontrol.v1.QueuingConfiguration" => {
            numbers(map, &[("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)]);
        }
        "resource.v1.ExactDeviceRequest" | "resource.v1.DeviceSubRequest" => {
            text(map, "allocationMode", "ExactCount");
            if map.get("allocationMode").is_some_and(|mode| mode == "ExactCount") {
                numbers(map, &[("count", 1)]);
            }
        }
        "resource.v1.DeviceToleration" => text(map, "operator", "Equal"),
        "v1.CustomResourceDefinition" => custom_resource_definition(map),
        _ => {}
    }
}

/// A controller is labelled, and selects, as its template is labelled.
fn replication_controller(map: &mut Fields) {
    let labels = map.get("spec").map(|spec| spec["template"]["metadata"]["labels"].clone());
    let Some(labels) = labels.filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty()))
    else {
        return;
    };
    let empty = |value: Option<&Value>| value.and_then(Value::as_object).is_none_or(Map::is_empty);
    if let Some(spec) = map.get_mut("spec").and_then(Value::as_object_mut)
        && empty(spec.get("selector"))
    {
        spec.insert("selector".into(), labels.clone());
    }
    let metadata = map.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut()
        && empty(metadata.get("labels"))
    {
        metadata.insert("labels".into(), labels);
    }
}

fn autoscaler(map: &mut Fields) {
    if map.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        map.insert("metrics".into(), json!([cpu]));
    }
    let Some(behavior) = map.get_mut("behavior").and_then(Value::as_object_mut) else { return };
    let policy = |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
    for (direction, policies, window) in [
        ("scaleUp", json!([policy("Pods", 4), policy("Percent", 100)]), Some(0)),
        ("scaleDown", json!([policy("Percent", 100)]), None),
    ] {
        // The window of scaling down is a matter of the controller.
        let rules = behavior.entry(direction).or_insert_with(|| json!({}));
        let Some(rules) = rules.as_object_mut() else { continue };
        if let Some(window) = window {
            absent(rules, "stabilizationWindowSeconds", || window.into());
        }
        absent(rules, "selectPolicy", || "Max".into());
        absent(rules, "policies", || policies);
    }
}

fn pod(map: &mut Fields) {
    let Some(spec) = map.get_mut("spec").and_then(Value::as_object_mut) else { return };
    absent(spec, "enableServiceLinks", || true.into());
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else {
                continue;
            };
            let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { continue };
            let requests = resources.entry("requests").or_insert_with(|| json!({}));
            if let Some(requests) = requests.as_object_mut() {
                for (name, limit) in limits {
                    requests.entry(name).or_insert(limit);
                }
            }
        }
    }
    pod_requests(map);
}

/// What a pod asks for as a whole, where it has a limit: what its containers ask for, or the limit.
fn pod_requests(map: &mut Fields) {
    let Some(spec) = map.get_mut("spec") else { return };
    let limits = spec["resources"]["limits"].as_object().cloned().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    let used: Vec<(String, Value)> = amounts::of_containers(spec, "requests")
        .into_iter()
        .filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"))
        .map(|(name, amount)| (name, amount.to_string().into()))
        .collect();
    let limits = limits.into_iter().filter(|(name, _)| amounts::is_of_pods(name));
    if let Some(resources) = spec["resources"].as_object_mut() {
        let requests = resources.entry("requests").or_insert_with(|| json!({}));
        if let Some(requests) = requests.as_object_mut() {
            for (name, amount) in used.into_iter().chain(limits) {
                requests.entry(name).or_insert(amount);
            }
        }
    }
}

fn pod_spec(map: &mut Fields) {
    text(map, "dnsPolicy", "ClusterFirst");
    text(map, "restartPolicy", "Always");
    absent(map, "securityContext", || json!({}));
    absent(map, "terminationGracePeriodSeconds", || 30.into());
    text(map, "schedulerName", "default-scheduler");
    let name = ["serviceAccountName", "serviceAccount"]
        .iter()
        .find_map(|field| map.get(*field).and_then(Value::as_str).filter(|name| !name.is_empty()))
        .map(ToOwned::to_owned);
    if let Some(name) = name {
        map.insert("serviceAccountName".into(), name.clone().into());
        map.insert("serviceAccount".into(), name.into());
    }
    if map.get("hostNetwork") == Some(&Value::Bool(true)) {
        for list in ["initContainers", "containers"] {
            let containers = map.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            for port in
                containers.filter_map(|c| c.get_mut("ports")).filter_map(Value::as_array_mut).flatten()
            {
                if let (Some(number), Some(port)) = (port.get("containerPort").cloned(), port.as_object_mut())
                {
                    absent(port, "hostPort", || number);
                }
            }
        }
    }
}

fn container(map: &mut Fields) {
    text(map, "terminationMessagePath", "/dev/termination-log");
    text(map, "terminationMessagePolicy", "File");
    let image = map.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if image_tag(image) == Some("latest") { "Always" } else { "IfNotPresent" };
    text(map, "imagePullPolicy", policy);
}

/// The tag of an image; `latest` where it has neither tag nor digest, nothing where the name is none.
fn image_tag(image: &str) -> Option<&str> {
    if !is_reference(image) {
        return None;
    }
    let (name, digest) = match image.split_once('@') {
        Some((name, _)) => (name, true),
        None => (image, false),
    };
    let last = name.rsplit('/').next().unwrap_or_default();
    match last.split_once(':') {
        Some((_, tag)) => Some(tag),
        None if digest => None,
        None => Some("latest"),
    }
}

/// Whether a text can be the name of an image: parts in lower case, with a host, a tag and a digest perhaps.
fn is_reference(image: &str) -> bool {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let (path, tag) = match name.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, tag),
        _ => (name, "latest"),
    };
    let mut parts: Vec<&str> = path.split('/').collect();
    let is_host =
        |part: &str| part.contains(['.', ':']) || part == "localhost" || part.contains(char::is_uppercase);
    if parts.len() > 1 && is_host(parts[0]) {
        parts.remove(0);
    }
    let is_part = |part: &str| {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        edge(part.chars().next())
            && edge(part.chars().last())
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c))
    };
    let is_tag = tag.len() <= 128
        && tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && tag.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    path.len() <= 255 && is_tag && parts.iter().all(|part| is_part(part))
}

fn service(map: &mut Fields) {
    let Some(spec) = map.get_mut("spec").and_then(Value::as_object_mut) else { return };
    text(spec, "sessionAffinity", "None");
    text(spec, "type", "ClusterIP");
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if spec.get("sessionAffinity").is_some_and(|affinity| affinity == "ClientIP") {
        let config = spec.get("sessionAffinityConfig");
        if config.is_none_or(|config| config["clientIP"]["timeoutSeconds"].is_null()) {
            spec.insert("sessionAffinityConfig".into(), json!({"clientIP": {"timeoutSeconds": 10800}}));
        }
    } else if spec.get("sessionAffinity").is_some_and(|affinity| affinity == "None") {
        spec.remove("sessionAffinityConfig");
    }
    let exposed = spec.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") || (kind == "ClusterIP" && exposed) {
        text(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        absent(spec, "internalTrafficPolicy", || "Cluster".into());
    }
    if kind == "LoadBalancer" {
        absent(spec, "allocateLoadBalancerNodePorts", || true.into());
        let points = map
            .get_mut("status")
            .and_then(|status| status.get_mut("loadBalancer")?.get_mut("ingress")?.as_array_mut());
        for point in points.into_iter().flatten().filter_map(Value::as_object_mut) {
            if point.get("ip").is_some_and(|ip| *ip != "") {
                absent(point, "ipMode", || "VIP".into());
            }
        }
    }
}

fn service_port(map: &mut Fields) {
    text(map, "protocol", "TCP");
    let unset = map.get("targetPort").is_none_or(|port| port == 0 || port == "");
    if unset && let Some(port) = map.get("port").cloned() {
        map.insert("targetPort".into(), port);
    }
}

fn namespace(map: &mut Fields) {
    let metadata = map.entry("metadata").or_insert_with(|| json!({}));
    let name = metadata["name"].as_str().unwrap_or_default().to_owned();
    if !name.is_empty()
        && let Some(metadata) = metadata.as_object_mut()
    {
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("kubernetes.io/metadata.name".into(), name.into());
        }
    }
}

fn secret(map: &mut Fields) {
    text(map, "type", "Opaque");
    if let Some(Value::Object(plain)) = map.remove("stringData") {
        let data = map.entry("data").or_insert_with(|| json!({}));
        for (key, value) in plain {
            data[key] = STANDARD.encode(value.as_str().unwrap_or_default()).into();
        }
    }
}

/// The first address of a pod is told twice.
fn pod_addresses(map: &mut Fields) {
    let first = map.get("podIPs").and_then(|all| all.get(0)).map(|ip| ip["ip"].clone());
    match (map.get("podIP").cloned().filter(|ip| *ip != ""), first) {
        (Some(ip), first) if first.as_ref() != Some(&ip) => {
            map.insert("podIPs".into(), json!([{"ip": ip}]));
        }
        (None, Some(first)) if first.is_string() => _ = map.insert("podIP".into(), first),
        _ => {}
    }
}

fn phase(map: &mut Fields) {
    let status = map.entry("status").or_insert_with(|| json!({}));
    if let Some(status) = status.as_object_mut() {
        text(status, "phase", "Pending");
    }
}

/// What containers get unless they ask: the most there is, and for requests what they get or the least.
fn limit_range_item(map: &mut Fields) {
    if map.get("type").is_none_or(|kind| kind != "Container") {
        return;
    }
    for (field, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let Some(Value::Object(values)) = map.get(from).cloned() else { continue };
        let target = map.entry(field).or_insert_with(|| json!({}));
        if let Some(target) = target.as_object_mut() {
            for (name, value) in values {
                target.entry(name).or_insert(value);
            }
        }
    }
}

fn deployment_spec(map: &mut Fields) {
    absent(map, "replicas", || 1.into());
    absent(map, "revisionHistoryLimit", || 10.into());
    absent(map, "progressDeadlineSeconds", || 600.into());
    rolling(map, "strategy", &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))]);
}

fn stateful_set_spec(map: &mut Fields) {
    text(map, "podManagementPolicy", "OrderedReady");
    absent(map, "replicas", || 1.into());
    absent(map, "revisionHistoryLimit", || 10.into());
    // Only where the type is not given are there parameters of it.
    let typed = map.get("updateStrategy").and_then(|strategy| strategy["type"].as_str());
    let bare = map.get("updateStrategy").is_none_or(|strategy| strategy["rollingUpdate"].is_null());
    if !(bare && typed.is_some_and(|kind| !kind.is_empty())) {
        rolling(map, "updateStrategy", &[("partition", json!(0))]);
    }
    absent(map, "persistentVolumeClaimRetentionPolicy", || json!({}));
    if let Some(policy) = map.get_mut("persistentVolumeClaimRetentionPolicy").and_then(Value::as_object_mut) {
        text(policy, "whenDeleted", "Retain");
        text(policy, "whenScaled", "Retain");
    }
    // A template says what kind of object it is.
    for claim in map.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(claim) = claim.as_object_mut() {
            text(claim, "kind", "PersistentVolumeClaim");
            text(claim, "apiVersion", "v1");
        }
    }
}

fn daemon_set(map: &mut Fields, update: bool) {
    const GENERATION: &str = "deprecated.daemonset.template.generation";
    let metadata = map.entry("metadata").or_insert_with(|| json!({}));
    if metadata["annotations"].get(GENERATION).is_none() {
        metadata["annotations"][GENERATION] = if update { "0" } else { "1" }.into();
    }
}

fn daemon_set_spec(map: &mut Fields) {
    absent(map, "revisionHistoryLimit", || 10.into());
    let parameters = [("maxUnavailable", json!(1)), ("maxSurge", json!(0))];
    rolling(map, "updateStrategy", &parameters);
    // Parameters that are there have defaults, whatever they are for.
    if let Some(given) = map
        .get_mut("updateStrategy")
        .and_then(|strategy| strategy.get_mut("rollingUpdate"))
        .and_then(Value::as_object_mut)
    {
        for (name, value) in parameters {
            absent(given, name, || value);
        }
    }
}

/// The defaults of a strategy that is `RollingUpdate` unless it says otherwise.
fn rolling(map: &mut Fields, field: &str, parameters: &[(&str, Value)]) {
    let strategy = map.entry(field).or_insert_with(|| json!({}));
    let Some(strategy) = strategy.as_object_mut() else { return };
    text(strategy, "type", "RollingUpdate");
    if strategy.get("type").is_some_and(|kind| kind == "RollingUpdate") {
        let rolling = strategy.entry("rollingUpdate").or_insert_with(|| json!({}));
        if let Some(rolling) = rolling.as_object_mut() {
            for (name, value) in parameters {
                absent(rolling, name, || value.clone());
            }
        }
    }
}

fn job(map: &mut Fields) {
    let labels = map.get("spec").map(|spec| spec["template"]["metadata"]["labels"].clone());
    if let Some(labels @ Value::Object(_)) = labels {
        let metadata = map.entry("metadata").or_insert_with(|| json!({}));
        if metadata["labels"].as_object().is_none_or(Map::is_empty) {
            metadata["labels"] = labels;
        }
    }
    let Some(spec) = map.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".into(), 1.into());
    }
    absent(spec, "parallelism", || 1.into());
    let per_index = spec.contains_key("backoffLimitPerIndex");
    absent(spec, "backoffLimit", || if per_index { i32::MAX.into() } else { 6.into() });
    absent(spec, "completionMode", || "NonIndexed".into());
    absent(spec, "suspend", || false.into());
    absent(spec, "manualSelector", || false.into());
    let replace = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    absent(spec, "podReplacementPolicy", || replace.into());
}

fn volume(map: &mut Fields) {
    if !map.iter().any(|(key, _)| key != "name") {
        map.insert("emptyDir".into(), json!({}));
    }
}

fn network_policy_spec(map: &mut Fields) {
    if map.get("policyTypes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let egress = map.contains_key("egress");
        let kinds = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        map.insert("policyTypes".into(), kinds);
    }
}

fn subject(map: &mut Fields) {
    if map.get("kind").is_some_and(|kind| kind == "User" || kind == "Group") {
        text(map, "apiGroup", "rbac.authorization.k8s.io");
    }
}

fn role_ref(map: &mut Fields) {
    if let Some(reference) = map.get_mut("roleRef").and_then(Value::as_object_mut) {
        text(reference, "apiGroup", "rbac.authorization.k8s.io");
    }
}

fn webhook(map: &mut Fields) {
    absent(map, "failurePolicy", || "Fail".into());
    absent(map, "matchPolicy", || "Equivalent".into());
    absent(map, "namespaceSelector", || json!({}));
    absent(map, "objectSelector", || json!({}));
    absent(map, "timeoutSeconds", || 10.into());
}

fn custom_resource_definition(map: &mut Fields) {
    let mut definition = Value::Object(std::mem::take(map));
    structural::default_definition(&mut definition);
    if let Value::Object(filled) = definition {
        *map = filled;
    }
}

/// Sets a field that is not there.
fn absent(map: &mut Fields, field: &str, value: impl FnOnce() -> Value) {
    if !map.contains_key(field) {
        map.insert(field.to_owned(), value());
    }
}

/// Sets a text that is not there, or empty.
fn text(map: &mut Fields, field: &str, value: &str) {
    if map.get(field).is_none_or(|found| found == "" || found.is_null()) {
        map.insert(field.to_owned(), value.into());
    }
}

/// Sets numbers that are not there, or zero.
fn numbers(map: &mut Fields, defaults: &[(&str, i64)]) {
    for (field, value) in defaults {
        if map.get(*field).is_none_or(|found| *found == 0) {
            map.insert((*field).to_owned(), (*value).into());
        }
    }
}
