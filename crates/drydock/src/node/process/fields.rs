//! The downward API: fields of the pod and its containers' resources, as text.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use windlass_machinery::quantity::Quantity;

use super::super::registration;

/// This machine's address, to the processes on it.
const LOOPBACK: &str = "127.0.0.1";

/// The address at which a pod's processes are reached, whatever it is in the API. On Linux all of 127.0.0.0/8 is this
/// machine, so that pods which listen on their own address are not in each other's way.
pub(super) fn address(pod: &Pod) -> String {
    let host_network = pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true));
    if host_network || !cfg!(target_os = "linux") {
        return LOOPBACK.to_owned();
    }
    // FNV-1a: a uid is random already, and any spread of it will do.
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let hash =
        uid.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let [_, first, second, third] = hash.to_be_bytes();
    format!("127.{}.{second}.{}", 1 + first % 254, 1 + third % 254)
}

/// A field of a pod, as a `fieldRef` names it.
pub(super) fn field(pod: &Pod, path: &str) -> Result<String, String> {
    let meta = &pod.metadata;
    let spec = pod.spec.as_ref();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    if let Some((list, key)) = path.strip_suffix("']").and_then(|path| path.split_once("['")) {
        let map = match list {
            "metadata.labels" => meta.labels.as_ref(),
            "metadata.annotations" => meta.annotations.as_ref(),
            _ => return Err(format!("unsupported fieldPath: {path}")),
        };
        return Ok(map.and_then(|map| map.get(key)).cloned().unwrap_or_default());
    }
    Ok(match path {
        "metadata.name" => text(&meta.name),
        "metadata.namespace" => text(&meta.namespace),
        "metadata.uid" => text(&meta.uid),
        "metadata.labels" => lines(meta.labels.as_ref()),
        "metadata.annotations" => lines(meta.annotations.as_ref()),
        "spec.nodeName" => spec.map(|spec| text(&spec.node_name)).unwrap_or_default(),
        "spec.serviceAccountName" => spec.map(|spec| text(&spec.service_account_name)).unwrap_or_default(),
        "spec.restartPolicy" => spec.map(|spec| text(&spec.restart_policy)).unwrap_or_default(),
        "status.podIP" | "status.podIPs" => address(pod),
        "status.hostIP" | "status.hostIPs" => LOOPBACK.to_owned(),
        _ => return Err(format!("unsupported fieldPath: {path}")),
    })
}

/// Labels or annotations as a downward API volume has them.
fn lines(map: Option<&BTreeMap<String, String>>) -> String {
    let lines: Vec<_> = map
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", windlass_machinery::go::quote(value)))
        .collect();
    lines.join("\n")
}

/// A request or limit of a container, as a `resourceFieldRef` names it; without a limit, what the node has.
pub(super) fn resource(container: &Container, selector: &ResourceFieldSelector) -> Result<String, String> {
    let unsupported = || format!("unsupported container resource : {}", selector.resource);
    let (kind, name) = selector.resource.split_once('.').ok_or_else(unsupported)?;
    let of = |kind: &str| {
        let resources = container.resources.as_ref()?;
        let map = if kind == "limits" { &resources.limits } else { &resources.requests };
        map.as_ref()?.get(name).map(|quantity| quantity.0.clone())
    };
    let found = match kind {
        "limits" => of("limits").or_else(|| registration::capacity(name).map(ToOwned::to_owned)),
        "requests" => of("requests").or_else(|| Some("0".to_owned())),
        _ => return Err(unsupported()),
    };
    let found = found.ok_or_else(unsupported)?;
    let parse = |text: &str| Quantity::parse(text).map_err(|error| error.to_string());
    let divisor = selector.divisor.as_ref().map(|divisor| divisor.0.as_str()).filter(|text| *text != "0");
    let (value, divisor) = (parse(&found)?, parse(divisor.unwrap_or("1"))?);
    // Processors can be divided by thousandths, bytes cannot.
    let (value, divisor) = match name {
        "cpu" => (value.milli_value(), divisor.milli_value()),
        _ => (value.value(), divisor.value()),
    };
    let divisor = divisor.max(1);
    Ok((value.saturating_add(divisor - 1) / divisor).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn resources_are_divided_and_rounded_up() {
        let container: Container = serde_json::from_value(json!({
            "name": "c", "resources": {"limits": {"cpu": "1500m", "memory": "64Mi"}, "requests": {"cpu": "250m"}},
        }))
        .unwrap();
        for (name, divisor, wanted) in [
            ("limits.cpu", "0", "2"),
            ("limits.cpu", "1m", "1500"),
            ("limits.memory", "1Mi", "64"),
            ("limits.memory", "0", "67108864"),
            ("requests.cpu", "1m", "250"),
            ("requests.memory", "0", "0"),
        ] {
            let selector = json!({"resource": name, "divisor": divisor});
            let selector = serde_json::from_value(selector).unwrap();
            assert_eq!(resource(&container, &selector).unwrap(), wanted, "{name} {divisor}");
        }
    }

    #[test]
    fn fields_of_the_pod_are_found() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n", "labels": {"a": "1", "b/c": "x\"y"}},
            "spec": {"containers": [], "serviceAccountName": "s"},
        }))
        .unwrap();
        assert_eq!(field(&pod, "metadata.labels['b/c']").unwrap(), "x\"y");
        assert_eq!(field(&pod, "metadata.labels").unwrap(), "a=\"1\"\nb/c=\"x\\\"y\"");
        assert_eq!(field(&pod, "spec.serviceAccountName").unwrap(), "s");
        assert_eq!(field(&pod, "status.hostIP").unwrap(), "127.0.0.1");
        assert!(field(&pod, "status.podIP").unwrap().starts_with("127."));
        assert!(field(&pod, "spec.hostname").is_err());
    }
}
