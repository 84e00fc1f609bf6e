//! The cells of built-in kinds.

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_machinery::selector::Labels;

use super::super::registry::Resource;

mod autoscaler;
mod cluster;

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

/// The cells of an object of a built-in kind, in the order of its columns.
pub(super) fn built_in(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    let metadata = &object["metadata"];
    let name = Value::from(metadata["name"].as_str().unwrap_or_default());
    let born = metadata["creationTimestamp"].as_str().unwrap_or_default();
    let old = Value::from(age(born, now));
    let (spec, status) = (&object["spec"], &object["status"]);
    let table = (resource.group.as_str(), resource.plural.as_str());
    match table {
        // The Scale of whatever has one.
        ("autoscaling", _) if resource.kind == "Scale" => {
            vec![name, number(&spec["replicas"]), number(&status["replicas"]), old]
        }
        ("", "configmaps") => vec![name, (count(&object["data"]) + count(&object["binaryData"])).into(), old],
        ("", "secrets") => vec![name, object["type"].clone(), count(&object["data"]).into(), old],
        ("", "serviceaccounts") => vec![name, old],
        ("", "namespaces") => vec![name, status["phase"].clone(), old],
        ("", "services") => service(name, spec, status, old),
        ("", "pods") => pod::row(object, now),
        ("", "endpoints") => vec![name, endpoints(object).into(), old],
        ("", "events") | ("events.k8s.io", "events") => event(object, now),
        ("", "nodes") => node(object, old),
        ("", "persistentvolumeclaims") => claim(object, old),
        ("", "persistentvolumes") => volume(object, old),
        ("", "resourcequotas") => quota(object, old),
        ("apps", "deployments") => with_template(
            spec,
            vec![
                name,
                ready(status, spec),
                number(&status["updatedReplicas"]),
                number(&status["availableReplicas"]),
                old,
            ],
            Some(selector(&spec["selector"])),
        ),
        ("apps", "replicasets") => with_template(
            spec,
            vec![
                name,
                number(&spec["replicas"]),
                number(&status["replicas"]),
                number(&status["readyReplicas"]),
                old,
            ],
            Some(selector(&spec["selector"])),
        ),
        ("", "replicationcontrollers") => with_template(
            spec,
            vec![
                name,
                number(&spec["replicas"]),
                number(&status["replicas"]),
                number(&status["readyReplicas"]),
                old,
            ],
            Some(labels(&spec["selector"])),
        ),
        ("apps", "statefulsets") => with_template(spec, vec![name, ready(status, spec), old], None),
        ("apps", "daemonsets") => with_template(
            spec,
            vec![
                name,
                number(&status["desiredNumberScheduled"]),
                number(&status["currentNumberScheduled"]),
                number(&status["numberReady"]),
                number(&status["updatedNumberScheduled"]),
                number(&status["numberAvailable"]),
                labels(&spec["template"]["spec"]["nodeSelector"]).into(),
                old,
            ],
            Some(selector(&spec["selector"])),
        ),
        ("apps", "controllerrevisions") => {
            let owner = metadata["ownerReferences"]
                .as_array()
                .and_then(|owners| owners.iter().find(|owner| owner["controller"] == true));
            let owner = owner.map_or_else(
                || NONE.to_owned(),
                |owner| {
                    let kind = owner["kind"].as_str().unwrap_or_default().to_lowercase();
                    let group = owner["apiVersion"].as_str().unwrap_or_default();
                    let group =
                        group.split_once('/').map(|(group, _)| format!(".{group}")).unwrap_or_default();
                    format!("{kind}{group}/{}", owner["name"].as_str().unwrap_or_default())
                },
            );
            vec![name, owner.into(), number(&object["revision"]), old]
        }
        ("batch", "jobs") => job(object, now, old),
        ("batch", "cronjobs") => {
            let last = status["lastScheduleTime"].as_str().map_or(NONE.to_owned(), |time| age(time, now));
            with_template(
                &spec["jobTemplate"]["spec"],
                vec![
                    name,
                    spec["schedule"].clone(),
                    spec["timeZone"].as_str().unwrap_or(NONE).into(),
                    (if spec["suspend"] == true { "True" } else { "False" }).into(),
                    count(&status["active"]).into(),
                    last.into(),
                    old,
                ],
                Some(selector(&spec["jobTemplate"]["spec"]["selector"])),
            )
        }
        ("networking.k8s.io", "ingresses") => ingress(object, old),
        ("networking.k8s.io", "networkpolicies") => vec![name, selector(&spec["podSelector"]).into(), old],
        ("policy", "poddisruptionbudgets") => vec![
            name,
            or(&spec["minAvailable"], "N/A"),
            or(&spec["maxUnavailable"], "N/A"),
            number(&status["disruptionsAllowed"]),
            old,
        ],
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            let role = &object["roleRef"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let role = format!("{}/{}", text(&role["kind"]), text(&role["name"]));
            let of = |kind: &str| {
                let subjects = object["subjects"].as_array().into_iter().flatten();
                let names = subjects.filter(|subject| subject["kind"] == kind).map(|subject| {
                    if kind == "ServiceAccount" {
                        format!("{}/{}", text(&subject["namespace"]), text(&subject["name"]))
                    } else {
                        text(&subject["name"])
                    }
                });
                Value::from(names.collect::<Vec<_>>().join(", "))
            };
            vec![name, role.into(), old, of("User"), of("Group"), of("ServiceAccount")]
        }
        ("rbac.authorization.k8s.io", _) | ("apiextensions.k8s.io", _) => vec![name, born.into()],
        ("storage.k8s.io", "storageclasses") => storage_class(object, old),
        ("scheduling.k8s.io", "priorityclasses") => vec![
            name,
            number(&object["value"]),
            (object["globalDefault"] == true).into(),
            old,
            object["preemptionPolicy"].clone(),
        ],
        ("", "limitranges") => vec![name, born.into()],
        ("", "podtemplates") => {
            let pods = labels(&object["template"]["metadata"]["labels"]);
            with_template(object, vec![name], Some(pods))
        }
        ("node.k8s.io", "runtimeclasses") => vec![name, object["handler"].clone(), old],
        ("storage.k8s.io", "csinodes") => vec![name, count(&spec["drivers"]).into(), old],
        ("storage.k8s.io", "csidrivers") => csi_driver(name, spec, old),
        ("autoscaling", "horizontalpodautoscalers") => autoscaler::row(name, spec, status, old),
        ("coordination.k8s.io", "leases") => {
            vec![name, spec["holderIdentity"].as_str().unwrap_or_default().into(), old]
        }
        ("discovery.k8s.io", "endpointslices") => slice(object, old),
        ("admissionregistration.k8s.io", plural) if plural.ends_with("webhookconfigurations") => {
            vec![name, count(&object["webhooks"]).into(), old]
        }
        _ => cluster::row(table, object, &name, &old).unwrap_or_else(|| vec![name, old]),
    }
}

fn csi_driver(name: Value, spec: &Value, old: Value) -> Vec<Value> {
    let joined = |list: &Value, text: fn(&Value) -> &Value| {
        let texts = list.as_array().into_iter().flatten().filter_map(|one| text(one).as_str());
        let texts = texts.collect::<Vec<_>>().join(",");
        if texts.is_empty() { Value::from("<unset>") } else { Value::from(texts) }
    };
    vec![
        name,
        (spec["attachRequired"] == true).into(),
        (spec["podInfoOnMount"] == true).into(),
        (spec["storageCapacity"] == true).into(),
        joined(&spec["tokenRequests"], |request| &request["audience"]),
        (spec["requiresRepublish"] == true).into(),
        joined(&spec["volumeLifecycleModes"], |mode| mode),
        old,
    ]
}

/// The order of rows, where it is not that of the objects.
pub(super) fn sort(resource: &Resource, objects: &mut [&Value]) {
    if resource.plural == "flowschemas" && resource.custom.is_none() {
        objects.sort_by_key(|object| object["spec"]["matchingPrecedence"].as_i64());
    }
}

/// Annotations that are only there in the version that clients see.
const ADDED: [(&str, &str, &str); 1] = [("apps", "daemonsets", "deprecated.daemonset.template.generation")];

fn added(resource: &Resource) -> Option<&'static str> {
    let found =
        ADDED.iter().find(|(group, plural, _)| resource.group == *group && resource.plural == *plural);
    found.map(|(_, _, annotation)| *annotation)
}

/// Whether metadata has what is only there in the version that clients see.
pub(in super::super) fn adds_metadata(resource: &Resource) -> bool {
    added(resource).is_some()
}

/// Takes from metadata what is only there in the version that clients see: parts show what the server works with.
pub(in super::super) fn without_added(resource: &Resource, metadata: &mut Value) {
    let Some(annotation) = added(resource) else { return };
    if let Some(annotations) = metadata["annotations"].as_object_mut() {
        annotations.remove(annotation);
        if annotations.is_empty()
            && let Some(metadata) = metadata.as_object_mut()
        {
            metadata.remove("annotations");
        }
    }
}

/// What a row tells of its object besides its cells.
pub(super) fn condition(resource: &Resource, object: &Value) -> Option<Value> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => {
            let phase = object["status"]["phase"].as_str()?;
            let message = match phase {
                "Succeeded" => "The pod has completed successfully.",
                "Failed" => "The pod failed.",
                _ => return None,
            };
            Some(json!({"type": "Completed", "status": "True", "reason": phase, "message": message}))
        }
        _ => None,
    }
}

/// How long ago a time was, as kubectl writes it.
#[must_use]
pub fn age(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => duration(now.duration_since(time).as_secs()),
        Err(_) => UNKNOWN.to_owned(),
    }
}

/// A duration in at most two units.
fn duration(seconds: i64) -> String {
    let two = |value: i64, unit: char, rest: i64, small: char| {
        if rest == 0 { format!("{value}{unit}") } else { format!("{value}{unit}{rest}{small}") }
    };
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.len(),
        Value::Array(list) => list.len(),
        _ => 0,
    }
}

fn number(value: &Value) -> Value {
    value.as_i64().unwrap_or(0).into()
}

fn or(value: &Value, fallback: &str) -> Value {
    match value {
        Value::Null => fallback.into(),
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}

fn ready(status: &Value, spec: &Value) -> Value {
    let ready = status["readyReplicas"].as_i64().unwrap_or(0);
    format!("{ready}/{}", spec["replicas"].as_i64().unwrap_or(0)).into()
}

fn labels(value: &Value) -> String {
    let text = value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect::<Vec<_>>()
        .join(",");
    if text.is_empty() { NONE.to_owned() } else { text }
}

fn selector(value: &Value) -> String {
    match Labels::from_object((!value.is_null()).then_some(value)) {
        Ok(labels) if labels.is_everything() || labels.is_nothing() => NONE.to_owned(),
        Ok(labels) => labels.to_string(),
        Err(_) => "<error>".to_owned(),
    }
}

fn with_template(spec: &Value, mut row: Vec<Value>, selector: Option<String>) -> Vec<Value> {
    let containers = spec["template"]["spec"]["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let join = |field: &str| {
        containers.iter().map(|c| c[field].as_str().unwrap_or_default()).collect::<Vec<_>>().join(",")
    };
    row.push(join("name").into());
    row.push(join("image").into());
    row.extend(selector.map(Value::from));
    row
}

fn service(name: Value, spec: &Value, status: &Value, old: Value) -> Vec<Value> {
    let kind = spec["type"].as_str().unwrap_or_default();
    let external = match kind {
        "ExternalName" => spec["externalName"].as_str().unwrap_or_default().to_owned(),
        "LoadBalancer" => {
            let points = status["loadBalancer"]["ingress"].as_array().map(Vec::as_slice).unwrap_or_default();
            let given = spec["externalIPs"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let points = points.iter().filter_map(|p| p["ip"].as_str().or_else(|| p["hostname"].as_str()));
            let addresses: Vec<&str> = points.chain(given).collect();
            if addresses.is_empty() { "<pending>".to_owned() } else { addresses.join(",") }
        }
        _ => {
            let given = spec["externalIPs"].as_array().map(Vec::as_slice).unwrap_or_default();
            let given: Vec<&str> = given.iter().filter_map(Value::as_str).collect();
            if given.is_empty() { NONE.to_owned() } else { given.join(",") }
        }
    };
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ports: Vec<String> = ports
        .iter()
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or_default();
            match port["nodePort"].as_i64() {
                Some(node) if node > 0 => format!("{}:{node}/{protocol}", port["port"]),
                _ => format!("{}/{protocol}", port["port"]),
            }
        })
        .collect();
    let address = spec["clusterIP"].as_str().filter(|ip| !ip.is_empty()).unwrap_or(NONE);
    let ports = if ports.is_empty() { NONE.to_owned() } else { ports.join(",") };
    vec![
        name,
        kind.into(),
        address.into(),
        external.into(),
        ports.into(),
        old,
        labels(&spec["selector"]).into(),
    ]
}

fn endpoints(object: &Value) -> String {
    let mut found = Vec::new();
    for subset in object["subsets"].as_array().into_iter().flatten() {
        let addresses = subset["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ports = subset["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
        for address in addresses {
            let ip = address["ip"].as_str().unwrap_or_default();
            if ports.is_empty() {
                found.push(ip.to_owned());
            }
            found.extend(ports.iter().map(|port| format!("{ip}:{}", port["port"])));
        }
    }
    shortened(&found)
}

fn shortened(found: &[String]) -> String {
    match found {
        [] => NONE.to_owned(),
        [first @ .., _] if found.len() > 3 => {
            format!("{} + {} more...", first[..3].join(","), found.len() - 3)
        }
        all => all.join(","),
    }
}

fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ago = |field: &str| object[field].as_str().map(|time| age(time, now));
    let first = ago("firstTimestamp").or_else(|| ago("eventTime")).unwrap_or_else(|| UNKNOWN.to_owned());
    let last = object["series"]["lastObservedTime"]
        .as_str()
        .map(|time| age(time, now))
        .or_else(|| ago("lastTimestamp"))
        .unwrap_or_else(|| first.clone());
    let involved = &object["involvedObject"];
    let kind = text(&involved["kind"]).to_lowercase();
    let target =
        if kind.is_empty() { text(&involved["name"]) } else { format!("{kind}/{}", text(&involved["name"])) };
    let component = match text(&object["source"]["component"]) {
        empty if empty.is_empty() => text(&object["reportingComponent"]),
        component => component,
    };
    let host = match text(&object["source"]["host"]) {
        empty if empty.is_empty() => text(&object["reportingInstance"]),
        host => host,
    };
    let source = if host.is_empty() { component } else { format!("{component}, {host}") };
    let count = object["series"]["count"].as_i64().or_else(|| object["count"].as_i64()).unwrap_or(1).max(1);
    vec![
        last.into(),
        text(&object["type"]).into(),
        text(&object["reason"]).into(),
        target.into(),
        text(&involved["fieldPath"]).into(),
        source.into(),
        text(&object["message"]).trim().into(),
        first.into(),
        count.into(),
        object["metadata"]["name"].clone(),
    ]
}

fn node(object: &Value, old: Value) -> Vec<Value> {
    let status = &object["status"];
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut state = match conditions.iter().find(|condition| condition["type"] == "Ready") {
        Some(condition) if condition["status"] == "True" => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if object["spec"]["unschedulable"] == true {
        state.push_str(",SchedulingDisabled");
    }
    let roles = object["metadata"]["labels"].as_object().into_iter().flatten().filter_map(|(key, value)| {
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => Some(role.to_owned()),
            _ if key == "kubernetes.io/role" => value.as_str().map(ToOwned::to_owned),
            _ => None,
        }
    });
    let roles = roles.collect::<std::collections::BTreeSet<_>>();
    let roles = roles.into_iter().collect::<Vec<_>>().join(",");
    let address = |kind: &str| {
        let addresses = status["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
        let found = addresses.iter().find(|address| address["type"] == kind);
        Value::from(found.and_then(|address| address["address"].as_str()).unwrap_or(NONE))
    };
    let info = |field: &str| {
        Value::from(status["nodeInfo"][field].as_str().filter(|text| !text.is_empty()).unwrap_or(UNKNOWN))
    };
    vec![
        object["metadata"]["name"].clone(),
        state.into(),
        (if roles.is_empty() { NONE } else { &roles }).into(),
        old,
        status["nodeInfo"]["kubeletVersion"].as_str().unwrap_or_default().into(),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

fn access_modes(modes: &Value) -> String {
    let short = |mode: &Value| match mode.as_str() {
        Some("ReadWriteOnce") => "RWO",
        Some("ReadOnlyMany") => "ROX",
        Some("ReadWriteMany") => "RWX",
        Some("ReadWriteOncePod") => "RWOP",
        _ => "",
    };
    modes.as_array().into_iter().flatten().map(short).collect::<Vec<_>>().join(",")
}

fn claim(object: &Value, old: Value) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let deleting = object["metadata"]["deletionTimestamp"].is_string();
    let phase = if deleting { "Terminating" } else { status["phase"].as_str().unwrap_or_default() };
    let volume = spec["volumeName"].as_str().unwrap_or_default();
    let bound = !volume.is_empty();
    let capacity = if bound { status["capacity"]["storage"].as_str().unwrap_or("0") } else { "" };
    let modes = if bound { access_modes(&status["accessModes"]) } else { String::new() };
    vec![
        object["metadata"]["name"].clone(),
        phase.into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        spec["storageClassName"].as_str().unwrap_or_default().into(),
        or(&spec["volumeAttributesClassName"], "<unset>"),
        old,
        or(&spec["volumeMode"], "<unset>"),
    ]
}

fn volume(object: &Value, old: Value) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let deleting = object["metadata"]["deletionTimestamp"].is_string();
    let phase = if deleting { "Terminating" } else { status["phase"].as_str().unwrap_or_default() };
    let claim = &spec["claimRef"];
    let claim = match (claim["namespace"].as_str(), claim["name"].as_str()) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
        _ => String::new(),
    };
    vec![
        object["metadata"]["name"].clone(),
        spec["capacity"]["storage"].as_str().unwrap_or_default().into(),
        access_modes(&spec["accessModes"]).into(),
        spec["persistentVolumeReclaimPolicy"].clone(),
        phase.into(),
        claim.into(),
        spec["storageClassName"].as_str().unwrap_or_default().into(),
        or(&spec["volumeAttributesClassName"], "<unset>"),
        status["reason"].as_str().unwrap_or_default().into(),
        old,
        or(&spec["volumeMode"], "<unset>"),
    ]
}

fn quota(object: &Value, old: Value) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (name, hard) in object["status"]["hard"].as_object().into_iter().flatten() {
        let used = object["status"]["used"][name].as_str().unwrap_or("0");
        let text = format!("{name}: {used}/{}", hard.as_str().unwrap_or_default());
        if name.starts_with("limits") { limits.push(text) } else { requests.push(text) }
    }
    vec![object["metadata"]["name"].clone(), requests.join(", ").into(), limits.join(", ").into(), old]
}

fn job(object: &Value, now: Timestamp, old: Value) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let succeeded = status["succeeded"].as_i64().unwrap_or(0);
    let completions = match (spec["completions"].as_i64(), spec["parallelism"].as_i64()) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, Some(parallel)) if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
        _ => format!("{succeeded}/1"),
    };
    let took = match (status["startTime"].as_str(), status["completionTime"].as_str()) {
        (None, _) => String::new(),
        (Some(start), None) => age(start, now),
        (Some(start), Some(end)) => match end.parse::<Timestamp>() {
            Ok(end) => age(start, end),
            Err(_) => UNKNOWN.to_owned(),
        },
    };
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let has = |kind: &str| conditions.iter().any(|c| c["type"] == kind && c["status"] == "True");
    let state = if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if object["metadata"]["deletionTimestamp"].is_string() {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else if has("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    };
    with_template(
        spec,
        vec![object["metadata"]["name"].clone(), state.into(), completions.into(), took.into(), old],
        Some(selector(&spec["selector"])),
    )
}

fn ingress(object: &Value, old: Value) -> Vec<Value> {
    let spec = &object["spec"];
    let rules = spec["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    let hosts: Vec<&str> = rules.iter().map(|rule| rule["host"].as_str().unwrap_or("*")).collect();
    let hosts = match hosts.as_slice() {
        [] => "*".to_owned(),
        all => all.join(","),
    };
    let points =
        object["status"]["loadBalancer"]["ingress"].as_array().map(Vec::as_slice).unwrap_or_default();
    let addresses: Vec<&str> =
        points.iter().filter_map(|p| p["ip"].as_str().or_else(|| p["hostname"].as_str())).collect();
    vec![
        object["metadata"]["name"].clone(),
        spec["ingressClassName"].as_str().unwrap_or(NONE).into(),
        hosts.into(),
        addresses.join(",").into(),
        (if count(&spec["tls"]) > 0 { "80, 443" } else { "80" }).into(),
        old,
    ]
}

fn storage_class(object: &Value, old: Value) -> Vec<Value> {
    let metadata = &object["metadata"];
    let mut name = metadata["name"].as_str().unwrap_or_default().to_owned();
    if metadata["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true" {
        name.push_str(" (default)");
    }
    vec![
        name.into(),
        object["provisioner"].clone(),
        object["reclaimPolicy"].clone(),
        object["volumeBindingMode"].clone(),
        (object["allowVolumeExpansion"] == true).into(),
        old,
    ]
}

fn slice(object: &Value, old: Value) -> Vec<Value> {
    let ports: Vec<String> = object["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|port| or(&port["port"], "*").to_string())
        .collect();
    let ports: Vec<String> = ports.iter().map(|port| port.trim_matches('"').to_owned()).collect();
    let addresses: Vec<String> = object["endpoints"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|endpoint| endpoint["addresses"].as_array().cloned().unwrap_or_default())
        .filter_map(|address| address.as_str().map(ToOwned::to_owned))
        .collect();
    let unset = |list: &[String]| if list.is_empty() { "<unset>".to_owned() } else { shortened(list) };
    vec![
        object["metadata"]["name"].clone(),
        object["addressType"].clone(),
        unset(&ports).into(),
        unset(&addresses).into(),
        old,
    ]
}

mod pod {
    //! Pods, whose state is pieced together from their containers.

    use super::*;

    pub(super) fn row(object: &Value, now: Timestamp) -> Vec<Value> {
        let (spec, status) = (&object["spec"], &object["status"]);
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let statuses = list(&status["containerStatuses"]);
        let mut reason = match status["reason"].as_str() {
            Some(reason) if !reason.is_empty() => reason.to_owned(),
            _ => status["phase"].as_str().unwrap_or_default().to_owned(),
        };
        if list(&status["conditions"])
            .iter()
            .any(|c| c["type"] == "PodScheduled" && c["reason"] == "SchedulingGated")
        {
            reason = "SchedulingGated".to_owned();
        }
        let mut restarts = 0;
        let mut last_restart = None;
        let total_init = list(&spec["initContainers"]).len();
        let mut initializing = false;
        for (index, container) in list(&status["initContainerStatuses"]).iter().enumerate() {
            restarts += container["restartCount"].as_i64().unwrap_or(0);
            let state = &container["state"];
            if state["terminated"]["exitCode"] == 0 || container["started"] == true {
                continue;
            }
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            reason = if state["terminated"].is_object() {
                match text(&state["terminated"]["reason"]) {
                    empty if empty.is_empty() => format!("Init:ExitCode:{}", state["terminated"]["exitCode"]),
                    why => format!("Init:{why}"),
                }
            } else {
                match text(&state["waiting"]["reason"]).as_str() {
                    "" | "PodInitializing" => format!("Init:{index}/{total_init}"),
                    why => format!("Init:{why}"),
                }
            };
            initializing = true;
            break;
        }
        let mut ready = 0;
        if !initializing {
            restarts = 0;
            let mut running = false;
            for container in statuses.iter().rev() {
                restarts += container["restartCount"].as_i64().unwrap_or(0);
                if let Some(finished) = container["lastState"]["terminated"]["finishedAt"].as_str() {
                    last_restart = last_restart.max(Some(finished.to_owned()));
                }
                let state = &container["state"];
                let waiting = state["waiting"]["reason"].as_str().unwrap_or_default();
                let ended = state["terminated"]["reason"].as_str().unwrap_or_default();
                if !waiting.is_empty() {
                    reason = waiting.to_owned();
                } else if !ended.is_empty() {
                    reason = ended.to_owned();
                } else if state["terminated"].is_object() {
                    reason = match state["terminated"]["signal"].as_i64() {
                        Some(signal) if signal != 0 => format!("Signal:{signal}"),
                        _ => format!("ExitCode:{}", state["terminated"]["exitCode"]),
                    };
                } else if container["ready"] == true && state["running"].is_object() {
                    running = true;
                    ready += 1;
                }
            }
            if reason == "Completed" && running {
                let is_ready =
                    list(&status["conditions"]).iter().any(|c| c["type"] == "Ready" && c["status"] == "True");
                reason = if is_ready { "Running" } else { "NotReady" }.to_owned();
            }
        }
        let over = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
        if object["metadata"]["deletionTimestamp"].is_string() {
            match status["reason"].as_str() {
                Some("NodeLost") => reason = "Unknown".to_owned(),
                _ if !over => reason = "Terminating".to_owned(),
                _ => {}
            }
        }
        let restarts = match last_restart {
            Some(at) if restarts > 0 => format!("{restarts} ({} ago)", age(&at, now)),
            _ => restarts.to_string(),
        };
        let text =
            |value: &Value| Value::from(value.as_str().filter(|text| !text.is_empty()).unwrap_or(NONE));
        let gates = list(&spec["readinessGates"]);
        let gates = if gates.is_empty() {
            NONE.to_owned()
        } else {
            let conditions = list(&status["conditions"]);
            let open = gates
                .iter()
                .filter(|gate| {
                    conditions.iter().any(|c| c["type"] == gate["conditionType"] && c["status"] == "True")
                })
                .count();
            format!("{open}/{}", gates.len())
        };
        vec![
            object["metadata"]["name"].clone(),
            format!("{ready}/{}", list(&spec["containers"]).len()).into(),
            reason.into(),
            restarts.into(),
            age(object["metadata"]["creationTimestamp"].as_str().unwrap_or_default(), now).into(),
            text(&status["podIP"]),
            text(&spec["nodeName"]),
            text(&status["nominatedNodeName"]),
            gates.into(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_writes_them() {
        for (seconds, text) in [
            (5, "5s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (3600, "60m"),
            (10_900, "3h1m"),
            (40_000, "11h"),
            (200_000, "2d7h"),
            (1_000_000, "11d"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
