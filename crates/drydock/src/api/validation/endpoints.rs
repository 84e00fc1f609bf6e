//! Endpoints, endpoint slices, leases and disruption budgets: what is written often and checked little.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::condition;
use super::field::{
    At, Errors, choice, has, immutable, list, named, not_negative, number, optional_choice, port_number,
    reasons, strings, text,
};
use super::selector::label_selector;
use super::{address, workload};

const SPEC: At<'static> = At::new("spec");
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// Endpoints.
pub(super) fn endpoints(out: &mut Errors, endpoints: &Value) {
    let at = &At::new("subsets");
    for (index, subset) in list(endpoints, "subsets").iter().enumerate() {
        let at = &at.index(index);
        if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
            out.push(FieldError::required(at, "must specify `addresses` or `notReadyAddresses`"));
        }
        for field in ["addresses", "notReadyAddresses"] {
            let at = &at.child(field);
            for (index, address) in list(subset, field).iter().enumerate() {
                let at = &at.index(index);
                let ip = text(address, "ip");
                address::ip(out, ip, &at.child("ip"));
                named(out, address, "hostname", at, names::dns1123_label);
                if let Some(name) = address["nodeName"].as_str() {
                    reasons(out, name, &at.child("nodeName"), names::subdomain_name(name, false));
                }
                address::endpoint(out, ip, &at.child("ip"));
            }
        }
        let ports = list(subset, "ports");
        let at = &at.child("ports");
        for (index, port) in ports.iter().enumerate() {
            let at = &at.index(index);
            if ports.len() > 1 && text(port, "name").is_empty() {
                out.push(FieldError::required(at.child("name"), ""));
            }
            named(out, port, "name", at, names::dns1123_label);
            port_number(out, &port["port"], &at.child("port"));
            choice(out, port, "protocol", at, PROTOCOLS);
            protocol(out, port, at);
        }
    }
}

fn protocol(out: &mut Errors, port: &Value, at: &At<'_>) {
    if let Some(name) = port["appProtocol"].as_str() {
        reasons(out, name, &at.child("appProtocol"), names::qualified_name(name));
    }
}

/// An endpoint slice.
pub(super) fn slice(out: &mut Errors, slice: &Value) {
    slice_kind_and_ports(out, slice);
    slice_endpoints(out, slice);
}

fn slice_kind_and_ports(out: &mut Errors, slice: &Value) {
    let kind = text(slice, "addressType");
    match kind {
        "" => out.push(FieldError::required("addressType", "")),
        "IPv4" | "IPv6" | "FQDN" => {}
        other => out.push(FieldError::not_supported("addressType", other, ["FQDN", "IPv4", "IPv6"])),
    }
    let at = &At::new("ports");
    let mut known = BTreeSet::new();
    for (index, port) in list(slice, "ports").iter().enumerate() {
        let at = &at.index(index);
        let name = text(port, "name");
        named(out, port, "name", at, names::dns1123_label);
        if !known.insert(name) {
            out.push(FieldError::duplicate(at.child("name"), name));
        }
        match port["protocol"].as_str() {
            None => out.push(FieldError::required(at.child("protocol"), "")),
            Some(name) if !PROTOCOLS.contains(&name) => {
                out.push(FieldError::not_supported(at.child("protocol"), name, PROTOCOLS));
            }
            Some(_) => {}
        }
        protocol(out, port, at);
    }
}

fn slice_endpoints(out: &mut Errors, slice: &Value) {
    let kind = text(slice, "addressType");
    let at = &At::new("endpoints");
    let endpoints = list(slice, "endpoints");
    if endpoints.len() > 1000 {
        out.push(FieldError::too_many(at, endpoints.len(), 1000));
        return;
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        slice_endpoint(out, endpoint, kind, &at.index(index));
    }
}

/// A changed endpoint slice.
pub(super) fn slice_update(out: &mut Errors, new: &Value, old: &Value) {
    slice_kind_and_ports(out, new);
    if new["endpoints"] != old["endpoints"] {
        slice_endpoints(out, new);
    }
    immutable(out, &new["addressType"], &old["addressType"], &At::new("addressType"));
}

fn slice_endpoint(out: &mut Errors, endpoint: &Value, kind: &str, at: &At<'_>) {
    let inner = &at.child("addresses");
    let addresses = list(endpoint, "addresses").len();
    if addresses == 0 {
        out.push(FieldError::required(inner, "must contain at least 1 address"));
    } else if addresses > 100 {
        out.push(FieldError::too_many(inner, addresses, 100));
    }
    for (index, value) in strings(endpoint, "addresses").enumerate() {
        let one = &inner.index(index);
        if kind == "FQDN" {
            reasons(out, value, one, names::dns1123_subdomain(value));
        }
        if !matches!(kind, "IPv4" | "IPv6") {
            continue;
        }
        let before = out.len();
        address::ip(out, value, one);
        if out.len() > before {
            continue;
        }
        if address::is_ipv6(value) != (kind == "IPv6") {
            out.push(FieldError::invalid(inner, value, format!("must be an {kind} address")));
        }
        address::endpoint(out, value, one);
    }
    if let Some(name) = endpoint["nodeName"].as_str() {
        reasons(out, name, &at.child("nodeName"), names::subdomain_name(name, false));
    }
    if let Some(name) = endpoint["hostname"].as_str() {
        reasons(out, name, &at.child("hostname"), names::dns1123_label(name));
    }
    let hints = &at.child("hints");
    hinted(out, &endpoint["hints"], "forZones", names::label_value, hints);
    hinted(out, &endpoint["hints"], "forNodes", |name| names::subdomain_name(name, false), hints);
}

/// Where an endpoint is meant to be used from.
fn hinted(out: &mut Errors, hints: &Value, field: &str, rule: impl Fn(&str) -> Vec<String>, at: &At<'_>) {
    const MOST: usize = 8;
    let (all, at) = (list(hints, field), &at.child(field));
    if all.len() > MOST {
        out.push(FieldError::too_many(at, all.len(), MOST));
        return;
    }
    let mut known = BTreeSet::new();
    for (index, hint) in all.iter().enumerate() {
        let (name, at) = (text(hint, "name"), at.index(index));
        if !known.insert(name) {
            out.push(FieldError::duplicate(at.child("name"), name));
        }
        reasons(out, name, &at.child("name"), rule(name));
    }
}

/// A lease.
pub(super) fn lease(out: &mut Errors, lease: &Value) {
    let spec = &lease["spec"];
    if let Some(seconds) = number(spec, "leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        out.push(FieldError::invalid(SPEC.child("leaseDurationSeconds"), seconds, "must be greater than 0"));
    }
    not_negative(out, spec, &["leaseTransitions"], &SPEC);
}

/// A disruption budget.
pub(super) fn budget(out: &mut Errors, budget: &Value) {
    let spec = &budget["spec"];
    if has(spec, "minAvailable") && has(spec, "maxUnavailable") {
        let shown = super::internal::shown("PodDisruptionBudgetSpec", spec);
        out.push(FieldError::invalid(SPEC, shown, "minAvailable and maxUnavailable cannot be both set"));
    }
    for field in ["minAvailable", "maxUnavailable"].iter().filter(|field| has(spec, field)) {
        workload::share(out, spec, field, &SPEC);
        workload::not_more_than_all(out, spec, field, &SPEC);
    }
    label_selector(out, &spec["selector"], &SPEC.child("selector"));
    optional_choice(out, spec, "unhealthyPodEvictionPolicy", &SPEC, &["AlwaysAllow", "IfHealthyBudget"]);
}

/// The status of a disruption budget.
pub(super) fn budget_status(out: &mut Errors, new: &Value, _: &Value) {
    condition::conditions(out, &new["status"], &At::new("status"));
    let numbers = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    not_negative(out, &new["status"], &numbers, &At::new("status"));
}
