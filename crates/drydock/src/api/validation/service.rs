//! Services and their ports.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::env::annotation;
use super::field::{
    At, Errors, choice, count, has, labels, list, number, optional_choice, port, port_number, reasons,
    strings, text,
};
use super::{address, internal};

const SPEC: At<'static> = At::new("spec");
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// A new service.
pub(super) fn create(out: &mut Errors, service: &Value) {
    if !bad_addresses(out, service, &Value::Null) {
        whole(out, service, &Value::Null);
    }
}

/// A changed service.
pub(super) fn update(out: &mut Errors, new: &Value, old: &Value) {
    if bad_addresses(out, new, old) {
        return;
    }
    let (spec, was) = (&new["spec"], &old["spec"]);
    let external = text(spec, "type") == "ExternalName" || text(was, "type") == "ExternalName";
    if !external {
        kept_addresses(out, spec, was);
        kept_families(out, spec, was);
    }
    if is_balanced(spec) && is_balanced(was) && spec["loadBalancerClass"] != was["loadBalancerClass"] {
        let at = SPEC.child("loadBalancerClass");
        out.push(FieldError::invalid(at, &spec["loadBalancerClass"], "may not change once set"));
    }
    balancer_class(out, spec);
    if needs_health_check(spec)
        && needs_health_check(was)
        && spec["healthCheckNodePort"] != was["healthCheckNodePort"]
    {
        out.push(FieldError::forbidden(SPEC.child("healthCheckNodePort"), "field is immutable"));
    }
    whole(out, new, old);
}

/// The status of a service.
pub(super) fn status(out: &mut Errors, new: &Value, old: &Value) {
    let at = At::new("status.loadBalancer");
    let at = &at.child("ingress");
    let points = list(&new["status"]["loadBalancer"], "ingress");
    if !is_balanced(&new["spec"]) && !points.is_empty() {
        out.push(FieldError::forbidden(at, "may only be used when `spec.type` is 'LoadBalancer'"));
        return;
    }
    let known: Vec<&str> =
        list(&old["status"]["loadBalancer"], "ingress").iter().map(|point| text(point, "ip")).collect();
    for (index, point) in points.iter().enumerate() {
        let at = &at.index(index);
        let (ip, name) = (text(point, "ip"), text(point, "hostname"));
        if !ip.is_empty() && !known.contains(&ip) {
            address::ip(out, ip, &at.child("ip"));
        }
        match (has(point, "ipMode"), ip.is_empty()) {
            (false, false) => {
                out.push(FieldError::required(at.child("ipMode"), "must be specified when `ip` is set"));
            }
            (true, true) => {
                out.push(FieldError::forbidden(
                    at.child("ipMode"),
                    "may not be specified when `ip` is not set",
                ));
            }
            _ => optional_choice(out, point, "ipMode", at, &["Proxy", "VIP"]),
        }
        balancer_host(out, name, &at.child("hostname"));
    }
}

/// The name of a load balancer.
pub(super) fn balancer_host(out: &mut Errors, name: &str, at: &At<'_>) {
    if name.is_empty() {
        return;
    }
    reasons(out, name, at, names::dns1123_subdomain(name));
    if address::is_ip(name) {
        out.push(FieldError::invalid(at, name, "must be a DNS name, not an IP address"));
    }
}

/// Addresses that make no sense are all that is told: families are worked out from them before anything else.
fn bad_addresses(out: &mut Errors, service: &Value, old: &Value) -> bool {
    if text(&service["spec"], "type") == "ExternalName" {
        return false;
    }
    let mut errors = Errors::new();
    addresses(&mut errors, &service["spec"], &old["spec"]);
    let bad = !errors.is_empty();
    if bad {
        *out = errors;
    }
    bad
}

fn whole(out: &mut Errors, service: &Value, old: &Value) {
    let spec = &service["spec"];
    let kind = text(spec, "type");
    let ports = list(spec, "ports");
    let headless = is_headless(spec);
    if ports.is_empty() && !headless && kind != "ExternalName" {
        out.push(FieldError::required(SPEC.child("ports"), ""));
    }
    by_type(out, spec, kind, headless);
    let at = &SPEC.child("ports");
    let mut known = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        service_port(out, port, ports.len() > 1, &mut known, &at.index(index));
    }
    labels(out, spec, "selector", &SPEC);
    choice(out, spec, "sessionAffinity", &SPEC, &["ClientIP", "None"]);
    session_affinity(out, spec);
    let external = &SPEC.child("externalIPs");
    let kept: Vec<&str> = strings(&old["spec"], "externalIPs").collect();
    for (index, ip) in strings(spec, "externalIPs").enumerate() {
        let at = &external.index(index);
        let before = out.len();
        if !kept.contains(&ip) {
            address::ip(out, ip, at);
        }
        if out.len() == before {
            address::endpoint(out, ip, at);
        }
    }
    choice(out, spec, "type", &SPEC, &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    if kind == "ClusterIP" {
        for (index, _) in ports.iter().enumerate().filter(|(_, port)| count(port, "nodePort") != 0) {
            let why = "may not be used when `type` is 'ClusterIP'";
            out.push(FieldError::forbidden(at.index(index).child("nodePort"), why));
        }
    }
    unique_ports(out, ports, at);
    source_ranges(out, service, old);
    if has(spec, "allocateLoadBalancerNodePorts") && kind != "LoadBalancer" {
        let why = "may only be used when `type` is 'LoadBalancer'";
        out.push(FieldError::forbidden(SPEC.child("allocateLoadBalancerNodePorts"), why));
    }
    balancer_class(out, spec);
    traffic(out, spec, kind);
}

fn by_type(out: &mut Errors, spec: &Value, kind: &str, headless: bool) {
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            out.push(FieldError::invalid(SPEC.child("clusterIPs").index(0), "None", why));
        }
        "ExternalName" => {
            let set = |field: &&&str| {
                has(spec, field) || (**field == "clusterIPs" && !text(spec, "clusterIP").is_empty())
            };
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"].iter().filter(set) {
                out.push(FieldError::forbidden(
                    SPEC.child(field),
                    "may not be set for ExternalName services",
                ));
            }
            let name = text(spec, "externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            let at = &SPEC.child("externalName");
            if name.is_empty() {
                out.push(FieldError::required(at, ""));
            } else {
                reasons(out, name, at, names::dns1123_subdomain(name));
            }
        }
        _ => {}
    }
}

fn service_port<'v>(
    out: &mut Errors,
    port: &'v Value,
    named_ports: bool,
    known: &mut BTreeSet<&'v str>,
    at: &At<'_>,
) {
    let name = text(port, "name");
    if named_ports && name.is_empty() {
        out.push(FieldError::required(at.child("name"), ""));
    } else if !name.is_empty() {
        reasons(out, name, &at.child("name"), names::dns1123_label(name));
        if !known.insert(name) {
            out.push(FieldError::duplicate(at.child("name"), name));
        }
    }
    port_number(out, &port["port"], &at.child("port"));
    choice(out, port, "protocol", at, PROTOCOLS);
    self::port(out, &port["targetPort"], &at.child("targetPort"));
    if let Some(protocol) = port["appProtocol"].as_str() {
        reasons(out, protocol, &at.child("appProtocol"), names::qualified_name(protocol));
    }
}

fn unique_ports(out: &mut Errors, ports: &[Value], at: &At<'_>) {
    let mut taken = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let number = count(port, "nodePort");
        if number != 0 && !taken.insert((text(port, "protocol"), number)) {
            out.push(FieldError::duplicate(at.index(index).child("nodePort"), number));
        }
    }
    let mut taken = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let (protocol, number) = (text(port, "protocol"), count(port, "port"));
        if !taken.insert((protocol, number)) {
            let key = json!({"protocol": protocol, "port": number, "targetPort": 0});
            out.push(FieldError::duplicate(at.index(index), internal::shown("ServicePort", &key)));
        }
    }
}

fn session_affinity(out: &mut Errors, spec: &Value) {
    let (config, at) = (&spec["sessionAffinityConfig"], &SPEC.child("sessionAffinityConfig"));
    match text(spec, "sessionAffinity") {
        "None" if !config.is_null() => {
            out.push(FieldError::forbidden(at, "must not be set when session affinity is None"));
        }
        "ClientIP" => {
            let client = &at.child("clientIP");
            let missing = "when session affinity type is ClientIP";
            if config.is_null() {
                out.push(FieldError::required(at, missing));
            } else if !has(config, "clientIP") {
                out.push(FieldError::required(client, missing));
            } else if let Some(seconds) = number(&config["clientIP"], "timeoutSeconds") {
                if !(1..=86_400).contains(&seconds) {
                    let why = "must be greater than 0 and less than 86400";
                    out.push(FieldError::invalid(client.child("timeoutSeconds"), seconds, why));
                }
            } else {
                out.push(FieldError::required(client.child("timeoutSeconds"), missing));
            }
        }
        _ => {}
    }
}

fn addresses(out: &mut Errors, spec: &Value, was: &Value) {
    let at = &SPEC.child("clusterIPs");
    let (first, all) = (text(spec, "clusterIP"), list(spec, "clusterIPs"));
    match (first.is_empty(), all.first()) {
        (false, None) => out.push(FieldError::required(at, "")),
        (false, Some(ip)) if ip.as_str() != Some(first) => {
            out.push(FieldError::invalid(at, &spec["clusterIPs"], "first value must match `clusterIP`"));
        }
        (true, Some(_)) => {
            let why = "must be empty when `clusterIP` is not specified";
            out.push(FieldError::invalid(at, &spec["clusterIPs"], why));
        }
        _ => {}
    }
    let families = &SPEC.child("ipFamilies");
    let mut known = BTreeSet::new();
    for (index, family) in strings(spec, "ipFamilies").enumerate() {
        if !matches!(family, "IPv4" | "IPv6") {
            out.push(FieldError::not_supported(families.index(index), family, ["IPv4", "IPv6"]));
        }
        if !known.insert(family) {
            out.push(FieldError::duplicate(families.index(index), family));
        }
    }
    optional_choice(
        out,
        spec,
        "ipFamilyPolicy",
        &SPEC,
        &["PreferDualStack", "RequireDualStack", "SingleStack"],
    );
    let before = out.len();
    let kept: Vec<&str> = strings(was, "clusterIPs").collect();
    for (index, ip) in strings(spec, "clusterIPs").enumerate() {
        if index == 0 && ip == "None" {
            if all.len() > 1 {
                let why = "'None' must be the first and only value";
                out.push(FieldError::invalid(at, &spec["clusterIPs"], why));
            }
        } else if !kept.contains(&ip) {
            address::ip(out, ip, &at.index(index));
        }
    }
    let broken = out.len() > before;
    if all.len() > 2 {
        out.push(FieldError::invalid(at, &spec["clusterIPs"], "may only hold up to 2 values"));
    }
    if broken || is_headless(spec) {
        return;
    }
    if all.len() > 1 {
        let sixth = strings(spec, "clusterIPs").filter(|ip| address::is_ipv6(ip)).count();
        if sixth == 0 || sixth == all.len() {
            let why = "may specify no more than one IP for each IP family";
            out.push(FieldError::invalid(at, &spec["clusterIPs"], why));
        }
    }
    for (index, (ip, family)) in strings(spec, "clusterIPs").zip(strings(spec, "ipFamilies")).enumerate() {
        if (family == "IPv6") != address::is_ipv6(ip) && matches!(family, "IPv4" | "IPv6") {
            let why = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            out.push(FieldError::invalid(at.index(index), ip, why));
        }
    }
}

fn kept_addresses(out: &mut Errors, spec: &Value, was: &Value) {
    if is_headless(spec) && is_headless(was) {
        return;
    }
    let at = &SPEC.child("clusterIPs");
    let (now, old) = (list(spec, "clusterIPs"), list(was, "clusterIPs"));
    let mut changed = |index: usize, why: &str| {
        out.push(FieldError::invalid(at.index(index), &spec["clusterIPs"], why));
    };
    if now.len() == old.len() {
        for (index, _) in now.iter().zip(old).enumerate().filter(|(_, (now, old))| now != old) {
            changed(index, "may not change once set");
        }
    } else if now.is_empty() {
        changed(0, "primary clusterIP can not be unset");
    } else if !old.is_empty() && now[0] != old[0] {
        changed(0, "may not change once set");
    }
    if now.len() == 1 && old.len() > 1 && text(spec, "ipFamilyPolicy") != "SingleStack" {
        let why = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        out.push(FieldError::invalid(SPEC.child("ipFamilyPolicy"), &spec["ipFamilyPolicy"], why));
    }
}

fn kept_families(out: &mut Errors, spec: &Value, was: &Value) {
    if is_headless(spec) || is_headless(was) {
        return;
    }
    let at = &SPEC.child("ipFamilies");
    let (now, old) = (list(spec, "ipFamilies"), list(was, "ipFamilies"));
    if now.len() == old.len() {
        for _ in now.iter().zip(old).filter(|(now, old)| now != old) {
            out.push(FieldError::invalid(at.index(0), &spec["ipFamilies"], "may not change once set"));
        }
    } else if let (Some(now), Some(old)) = (now.first(), old.first())
        && now != old
    {
        out.push(FieldError::invalid(at.index(0), &spec["clusterIPs"], "may not change once set"));
    }
}

fn source_ranges(out: &mut Errors, service: &Value, old: &Value) {
    const KEY: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
    let spec = &service["spec"];
    let why = "may only be used when `type` is 'LoadBalancer'";
    if !list(spec, "loadBalancerSourceRanges").is_empty() {
        let at = &SPEC.child("LoadBalancerSourceRanges");
        if !is_balanced(spec) {
            out.push(FieldError::forbidden(at, why));
        }
        let kept: Vec<&str> = strings(&old["spec"], "loadBalancerSourceRanges").map(str::trim).collect();
        for (index, range) in strings(spec, "loadBalancerSourceRanges").map(str::trim).enumerate() {
            if !kept.contains(&range) {
                address::cidr(out, range, &at.index(index));
            }
        }
    } else if let Some(ranges) = annotation(&service["metadata"], KEY) {
        let at = At::new("metadata");
        let at = &at.child("annotations");
        let at = &at.key(KEY);
        if !is_balanced(spec) {
            out.push(FieldError::forbidden(at, why));
        }
        for range in ranges.split(',').map(str::trim).filter(|range| !range.is_empty()) {
            address::cidr(out, range, at);
        }
    }
}

fn balancer_class(out: &mut Errors, spec: &Value) {
    let at = &SPEC.child("loadBalancerClass");
    if !has(spec, "loadBalancerClass") {
        return;
    }
    if is_balanced(spec) {
        let class = text(spec, "loadBalancerClass");
        reasons(out, class, at, names::qualified_name(class));
    } else {
        out.push(FieldError::forbidden(at, "may only be used when `type` is 'LoadBalancer'"));
    }
}

fn traffic(out: &mut Errors, spec: &Value, kind: &str) {
    let accessible = matches!(kind, "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP" && !list(spec, "externalIPs").is_empty());
    if accessible {
        choice(out, spec, "externalTrafficPolicy", &SPEC, &["Cluster", "Local"]);
    } else if !text(spec, "externalTrafficPolicy").is_empty() {
        let at = SPEC.child("externalTrafficPolicy");
        let why = "may only be set for externally-accessible services";
        out.push(FieldError::invalid(at, text(spec, "externalTrafficPolicy"), why));
    }
    let check = count(spec, "healthCheckNodePort");
    if needs_health_check(spec) && has(spec, "healthCheckNodePort") {
        port_number(out, &spec["healthCheckNodePort"], &SPEC.child("healthCheckNodePort"));
    }
    if !needs_health_check(spec) && check != 0 {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        out.push(FieldError::invalid(SPEC.child("healthCheckNodePort"), check, why));
    }
    if matches!(kind, "NodePort" | "LoadBalancer" | "ClusterIP") && !has(spec, "internalTrafficPolicy") {
        out.push(FieldError::required(SPEC.child("internalTrafficPolicy"), ""));
    }
    optional_choice(out, spec, "internalTrafficPolicy", &SPEC, &["Cluster", "Local"]);
    let spread = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    optional_choice(out, spec, "trafficDistribution", &SPEC, &spread);
}

fn is_headless(spec: &Value) -> bool {
    matches!(list(spec, "clusterIPs"), [only] if only == "None")
}

fn is_balanced(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer"
}

fn needs_health_check(spec: &Value) -> bool {
    is_balanced(spec) && text(spec, "externalTrafficPolicy") == "Local"
}
