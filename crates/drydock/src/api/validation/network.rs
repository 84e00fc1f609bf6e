//! Ingresses, ingress classes and network policies.

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::env::annotation;
use super::field::{
    At, Errors, count, has, immutable, immutable_as, list, number, port_number, reasons, required, strings,
    text,
};
use super::selector::label_selector;
use super::{address, internal, service};

const SPEC: At<'static> = At::new("spec");

/// A new ingress.
pub(super) fn ingress_create(out: &mut Errors, ingress: &Value) {
    self::ingress(out, ingress);
    const CLASS: &str = "kubernetes.io/ingress.class";
    let class = &ingress["spec"]["ingressClassName"];
    if let (Some(noted), Some(class)) = (annotation(&ingress["metadata"], CLASS), class.as_str())
        && noted != class
    {
        let at = At::new("annotations");
        let why = "must match `ingressClassName` when both are specified";
        out.push(FieldError::invalid(at.child(CLASS), noted, why));
    }
}

/// An ingress.
pub(super) fn ingress(out: &mut Errors, ingress: &Value) {
    let spec = &ingress["spec"];
    if list(spec, "rules").is_empty() && !has(spec, "defaultBackend") {
        let why = "either `defaultBackend` or `rules` must be specified";
        out.push(FieldError::invalid(SPEC, &spec["rules"], why));
    }
    if has(spec, "defaultBackend") {
        backend(out, &spec["defaultBackend"], &SPEC.child("defaultBackend"));
    }
    let at = &SPEC.child("rules");
    for (index, rule) in list(spec, "rules").iter().enumerate() {
        let at = &at.index(index);
        host(out, text(rule, "host"), &at.child("host"), true);
        if has(rule, "http") {
            let at = &at.child("http");
            let at = &at.child("paths");
            let paths = list(&rule["http"], "paths");
            if paths.is_empty() {
                out.push(FieldError::required(at, ""));
            }
            for (index, path) in paths.iter().enumerate() {
                self::path(out, path, &at.index(index));
            }
        }
    }
    let at = &SPEC.child("tls");
    for (index, tls) in list(spec, "tls").iter().enumerate() {
        let at = &at.index(index);
        let hosts = &at.child("hosts");
        for (index, name) in strings(tls, "hosts").enumerate() {
            host(out, name, &hosts.index(index), false);
        }
        let secret = text(tls, "secretName");
        if !secret.is_empty() {
            reasons(out, secret, &at.child("secretName"), names::subdomain_name(secret, false));
        }
    }
    if let Some(class) = spec["ingressClassName"].as_str() {
        reasons(out, class, &SPEC.child("ingressClassName"), names::subdomain_name(class, false));
    }
}

/// The status of an ingress.
pub(super) fn ingress_status(out: &mut Errors, new: &Value, old: &Value) {
    let at = &At::new("status.loadBalancer.ingress");
    let known: Vec<&str> =
        list(&old["status"]["loadBalancer"], "ingress").iter().map(|point| text(point, "ip")).collect();
    for (index, point) in list(&new["status"]["loadBalancer"], "ingress").iter().enumerate() {
        let at = &at.index(index);
        let ip = text(point, "ip");
        if !ip.is_empty() && !known.contains(&ip) {
            address::ip(out, ip, &at.child("ip"));
        }
        service::balancer_host(out, text(point, "hostname"), &at.child("hostname"));
    }
}

/// An ingress class.
pub(super) fn class(out: &mut Errors, class: &Value) {
    const LONGEST: usize = 250;
    let (spec, at) = (&class["spec"], &SPEC.child("controller"));
    let controller = text(spec, "controller");
    if controller.len() > LONGEST {
        out.push(FieldError::too_long(at, LONGEST));
    }
    names_a_domain(out, controller, at);
    let parameters = &spec["parameters"];
    if parameters.is_null() {
        return;
    }
    let at = &SPEC.child("parameters");
    if let Some(group) = parameters["apiGroup"].as_str() {
        reasons(out, group, &at.child("apiGroup"), names::dns1123_subdomain(group));
    }
    for field in ["kind", "name"] {
        if required(out, parameters, field, at) {
            let value = text(parameters, field);
            reasons(out, value, &at.child(field), names::path_segment_name(value, false));
        }
    }
    let (scope, inner) = (parameters["scope"].as_str(), at.child("scope"));
    match scope {
        None => out.push(FieldError::required(inner, "")),
        Some("Cluster" | "Namespace") => {}
        Some(other) => out.push(FieldError::not_supported(inner, other, ["Cluster", "Namespace"])),
    }
    let inner = &at.child("namespace");
    match (scope, parameters["namespace"].as_str()) {
        (Some("Namespace"), None) => {
            out.push(FieldError::required(inner, "`parameters.scope` is set to 'Namespace'"));
        }
        (Some("Namespace"), Some(name)) => reasons(out, name, inner, names::label_name(name, false)),
        (Some("Cluster"), Some(_)) => {
            out.push(FieldError::forbidden(inner, "`parameters.scope` is set to 'Cluster'"));
        }
        _ => {}
    }
}

/// An ingress class that keeps its controller.
pub(super) fn class_update(out: &mut Errors, new: &Value, old: &Value) {
    let controller = |class: &Value| Value::from(text(&class["spec"], "controller"));
    immutable(out, &controller(new), &controller(old), &SPEC.child("controller"));
    class(out, new);
}

/// A name such as `acme.io/foo`.
pub(super) fn names_a_domain(out: &mut Errors, name: &str, at: &At<'_>) {
    if name.is_empty() {
        out.push(FieldError::required(at, ""));
        return;
    }
    let Some((domain, path)) =
        name.split_once('/').filter(|(domain, path)| !domain.is_empty() && !path.is_empty())
    else {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        out.push(FieldError::invalid(at, name, why));
        return;
    };
    reasons(out, domain, at, names::dns1123_subdomain(domain));
    if !path.chars().all(|c| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c)) {
        let why = names::regex_text("Invalid path", "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+", &[]);
        out.push(FieldError::invalid(at, path, why));
    }
}

fn host(out: &mut Errors, name: &str, at: &At<'_>, of_rule: bool) {
    if of_rule {
        if name.is_empty() {
            return;
        }
        if address::is_ip(name) {
            out.push(FieldError::invalid(at, name, "must be a DNS name, not an IP address"));
        }
    }
    let rule = if name.contains('*') { names::wildcard_subdomain } else { names::dns1123_subdomain };
    reasons(out, name, at, rule(name));
}

fn path(out: &mut Errors, path: &Value, at: &At<'_>) {
    let (text_of, inner) = (text(path, "path"), &at.child("path"));
    match path["pathType"].as_str() {
        None => {
            out.push(FieldError::required(at.child("pathType"), "pathType must be specified"));
            return;
        }
        Some("Exact" | "Prefix") => {
            if !text_of.starts_with('/') {
                out.push(FieldError::invalid(inner, text_of, "must be an absolute path"));
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|part| text_of.contains(**part)) {
                out.push(FieldError::invalid(inner, text_of, format!("must not contain '{part}'")));
            }
            for end in ["/..", "/."].iter().filter(|end| text_of.ends_with(**end)) {
                out.push(FieldError::invalid(inner, text_of, format!("cannot end with '{end}'")));
            }
        }
        Some("ImplementationSpecific") => {
            if !text_of.is_empty() && !text_of.starts_with('/') {
                out.push(FieldError::invalid(inner, text_of, "must be an absolute path"));
            }
        }
        Some(other) => {
            let known = ["Exact", "ImplementationSpecific", "Prefix"];
            out.push(FieldError::not_supported(at.child("pathType"), other, known));
        }
    }
    backend(out, &path["backend"], &at.child("backend"));
}

fn backend(out: &mut Errors, backend: &Value, at: &At<'_>) {
    match (has(backend, "resource"), has(backend, "service")) {
        (true, true) => {
            out.push(FieldError::invalid(at, "", "cannot set both resource and service backends"))
        }
        (false, false) => out.push(FieldError::invalid(at, "", "resource or service backend is required")),
        (true, false) => {
            let (resource, at) = (&backend["resource"], &at.child("resource"));
            if let Some(group) = resource["apiGroup"].as_str() {
                reasons(out, group, &at.child("apiGroup"), names::dns1123_subdomain(group));
            }
            for field in ["kind", "name"] {
                if required(out, resource, field, at) {
                    let value = text(resource, field);
                    reasons(out, value, &at.child(field), names::path_segment_name(value, false));
                }
            }
        }
        (false, true) => {
            let (service, inner) = (&backend["service"], &at.child("service"));
            if required(out, service, "name", inner) {
                let name = text(service, "name");
                reasons(out, name, &inner.child("name"), names::label_name(name, false));
            }
            let (port, inner) = (&service["port"], &inner.child("port"));
            let name = text(port, "name");
            match (!name.is_empty(), count(port, "number") != 0) {
                (true, true) => {
                    out.push(FieldError::invalid(at, "", "cannot set both port name & port number"));
                }
                (true, false) => reasons(out, name, &inner.child("name"), names::port_name(name)),
                (false, true) => port_number(out, &port["number"], &inner.child("number")),
                (false, false) => out.push(FieldError::required(at, "port name or number is required")),
            }
        }
    }
}

/// A network policy.
pub(super) fn policy(out: &mut Errors, policy: &Value) {
    let spec = &policy["spec"];
    label_selector(out, &spec["podSelector"], &SPEC.child("podSelector"));
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let at = &SPEC.child(direction);
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let at = &at.index(index);
            let ports = &at.child("ports");
            for (index, port) in list(rule, "ports").iter().enumerate() {
                policy_port(out, port, &ports.index(index));
            }
            let at = &at.child(peers);
            for (index, peer) in list(rule, peers).iter().enumerate() {
                policy_peer(out, peer, &at.index(index));
            }
        }
    }
    let at = &SPEC.child("policyTypes");
    if list(spec, "policyTypes").len() > 2 {
        out.push(FieldError::invalid(at, &spec["policyTypes"], "may not specify more than two policyTypes"));
        return;
    }
    for (index, kind) in strings(spec, "policyTypes").enumerate() {
        if !matches!(kind, "Ingress" | "Egress") {
            out.push(FieldError::not_supported(at.index(index), kind, ["Ingress", "Egress"]));
        }
    }
}

fn policy_port(out: &mut Errors, port: &Value, at: &At<'_>) {
    super::field::optional_choice(out, port, "protocol", at, &["TCP", "UDP", "SCTP"]);
    let (first, last) = (&port["port"], number(port, "endPort"));
    if !first.is_null() {
        super::field::port(out, first, &at.child("port"));
    }
    let Some(last) = last else { return };
    let at = at.child("endPort");
    match first.as_i64() {
        Some(first) => {
            if last < first {
                out.push(FieldError::invalid(at, first, "must be greater than or equal to `port`"));
            }
            let why = names::port_number(last);
            out.extend(why.into_iter().map(|why| FieldError::invalid(at, last, why)));
        }
        None if first.is_null() => {
            out.push(FieldError::invalid(at, last, "may not be specified when `port` is not specified"));
        }
        None => out.push(FieldError::invalid(at, last, "may not be specified when `port` is non-numeric")),
    }
}

fn policy_peer(out: &mut Errors, peer: &Value, at: &At<'_>) {
    for field in ["podSelector", "namespaceSelector"] {
        label_selector(out, &peer[field], &at.child(field));
    }
    let block = &peer["ipBlock"];
    if !block.is_null() {
        let at = &at.child("ipBlock");
        let range = text(block, "cidr");
        if required(out, block, "cidr", at) {
            address::cidr(out, range, &at.child("cidr"));
            let at = &at.child("except");
            // Within nothing there is nothing to except.
            let excepted = strings(block, "except").filter(|_| address::is_within(range, range).is_some());
            for (index, except) in excepted.enumerate() {
                let at = &at.index(index);
                address::cidr(out, except, at);
                if address::is_within(except, range) == Some(false) {
                    out.push(FieldError::invalid(at, except, "must be a strict subset of `cidr`"));
                }
            }
        }
    }
    let others = ["podSelector", "namespaceSelector"].iter().filter(|field| has(peer, field)).count();
    if block.is_null() && others == 0 {
        out.push(FieldError::required(at, "must specify a peer"));
    } else if !block.is_null() && others > 0 {
        out.push(FieldError::forbidden(at, "may not specify both ipBlock and another peer"));
    }
}

/// An address of a service.
pub(super) fn ip_address(out: &mut Errors, address: &Value) {
    let (parent, at) = (&address["spec"]["parentRef"], &SPEC.child("parentRef"));
    if parent.is_null() {
        out.push(FieldError::required(at, ""));
        return;
    }
    super::field::named(out, parent, "group", at, names::dns1123_subdomain);
    for field in ["resource", "name"] {
        if required(out, parent, field, at) {
            let value = text(parent, field);
            reasons(out, value, &at.child(field), names::path_segment_name(value, false));
        }
    }
    super::field::named(out, parent, "namespace", at, |name| names::path_segment_name(name, false));
}

/// A changed address belongs to the same service.
pub(super) fn ip_address_update(out: &mut Errors, new: &Value, old: &Value) {
    ip_address(out, new);
    let at = &SPEC.child("parentRef");
    immutable_as(out, &new["spec"]["parentRef"], &old["spec"]["parentRef"], at, |value| {
        internal::shown("ParentReference", value)
    });
}

/// A range of addresses for services.
pub(super) fn service_range(out: &mut Errors, range: &Value) {
    let at = &SPEC.child("cidrs");
    let all: Vec<&str> = strings(&range["spec"], "cidrs").collect();
    if all.is_empty() {
        out.push(FieldError::required(at, "at least one CIDR required"));
        return;
    }
    if all.len() > 2 {
        let shown = internal::shown("ServiceCIDRSpec", &range["spec"]);
        out.push(FieldError::invalid(at, shown, "may only hold up to 2 values"));
        return;
    }
    for (index, cidr) in all.iter().enumerate() {
        address::cidr(out, cidr, &at.index(index));
    }
    let sixth = |cidr: &str| cidr.contains(':');
    if let [first, second] = all.as_slice()
        && sixth(first) == sixth(second)
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        out.push(FieldError::invalid(at, &range["spec"]["cidrs"], why));
    }
}

/// A changed range may get the other family.
pub(super) fn service_range_update(out: &mut Errors, new: &Value, old: &Value) {
    let at = &SPEC.child("cidrs");
    let (now, was) = (list(&new["spec"], "cidrs"), list(&old["spec"], "cidrs"));
    match (was.len(), now.len()) {
        (before, after) if before == after => {
            for (index, (now, _)) in now.iter().zip(was).enumerate().filter(|(_, (now, was))| now != was) {
                out.push(FieldError::invalid(at.index(index), now, "field is immutable"));
            }
        }
        (1, 2) => {
            if now[0] != was[0] {
                out.push(FieldError::invalid(at.index(0), &now[0], "field is immutable"));
            }
            service_range(out, new);
        }
        _ => out.push(FieldError::invalid(at, &new["spec"]["cidrs"], "field is immutable")),
    }
}
