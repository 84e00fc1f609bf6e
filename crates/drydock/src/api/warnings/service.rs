//! Services.

use std::net::IpAddr;

use serde_json::Value;

use super::list;

/// A service.
pub(super) fn service(out: &mut Vec<String>, service: &Value) {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let spec = &service["spec"];
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    if service["metadata"]["annotations"].get(HINTS).is_some() {
        out.push(format!(
            "annotation {HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
        ));
    }
    let exposed = list(spec, "externalIPs").next().is_some();
    let headless = text("type") == "ClusterIP" && text("clusterIP") == "None";
    if !matches!(text("clusterIP"), "" | "None") {
        addresses(out, spec, "clusterIPs");
    }
    if headless {
        let ignored = [
            (!text("loadBalancerIP").is_empty(), "loadBalancerIP"),
            (exposed, "externalIPs"),
            (text("sessionAffinity") != "None", "SessionAffinity"),
        ];
        for (_, field) in ignored.iter().filter(|(set, _)| *set) {
            out.push(format!("spec.{field} is ignored for headless services"));
        }
    }
    addresses(out, spec, "externalIPs");
    let external = text("type") == "ExternalName";
    if exposed && !headless && !external {
        out.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned(),
        );
    }
    address(out, text("loadBalancerIP"), "spec.loadBalancerIP");
    if external && exposed {
        out.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !external && !text("externalName").is_empty() {
        out.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if text("trafficDistribution") == "PreferClose" {
        out.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
        );
    }
}

fn addresses(out: &mut Vec<String>, spec: &Value, field: &str) {
    for (index, value) in list(spec, field).enumerate() {
        address(out, value.as_str().unwrap_or_default(), &format!("spec.{field}[{index}]"));
    }
}

/// Addresses that are not written as the API writes them.
pub(super) fn address(out: &mut Vec<String>, value: &str, at: &str) {
    let Ok(IpAddr::V6(parsed)) = value.parse::<IpAddr>() else { return };
    if let Some(plain) = parsed.to_ipv4_mapped() {
        let plain = plain.to_string();
        out.push(format!("{at}: non-standard IP address {value:?} is invalid: use {plain:?}"));
    } else if parsed.to_string() != value {
        let wanted = parsed.to_string();
        out.push(format!("{at}: IPv6 address {value:?} should be in RFC 5952 canonical format ({wanted:?})"));
    }
}
