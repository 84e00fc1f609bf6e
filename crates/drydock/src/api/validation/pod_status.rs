//! The status of a pod, as nodes and schedulers write it.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, count, has, immutable, list, named, reasons, required, text};
use super::{address, internal};

const STATUS: At<'static> = At::new("status");

/// A changed status.
pub(super) fn status(out: &mut Errors, new: &Value, old: &Value) {
    let (status, was) = (&new["status"], &old["status"]);
    conditions(out, status);
    if status["nominatedNodeName"] != was["nominatedNodeName"] {
        named(out, status, "nominatedNodeName", &STATUS, |name| names::subdomain_name(name, false));
        if has(&old["spec"], "nodeName") && !text(status, "nominatedNodeName").is_empty() {
            let why = "may not be set on pods that are already bound to a node";
            out.push(FieldError::forbidden(STATUS.child("nominatedNodeName"), why));
        }
    }
    let seen = count(status, "observedGeneration");
    if seen < 0 {
        let why = "must be a non-negative integer";
        out.push(FieldError::invalid(STATUS.child("observedGeneration"), seen, why));
    }
    immutable(out, &status["qosClass"], &was["qosClass"], &STATUS.child("qosClass"));
    terminations(out, status, was, &old["spec"]);
    claims(out, status, &new["spec"]);
    addresses(out, status, was, "podIPs");
    host_addresses(out, status, was);
    let at = &STATUS.child("ephemeralContainerStatuses");
    for (index, container) in list(status, "ephemeralContainerStatuses").iter().enumerate() {
        if has(container, "allocatedResourcesStatus") {
            let at = at.index(index);
            let why = "must not be specified in container status";
            out.push(FieldError::forbidden(at.child("allocatedResourcesStatus"), why));
        }
    }
}

fn conditions(out: &mut Errors, status: &Value) {
    let at = &STATUS.child("conditions");
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        let (kind, at) = (text(condition, "type"), &at.index(index));
        let seen = count(condition, "observedGeneration");
        if seen < 0 {
            let why = "must be a non-negative integer";
            out.push(FieldError::invalid(at.child("observedGeneration"), seen, why));
        }
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            reasons(out, kind, &at.child("Type"), names::qualified_name(kind));
        }
    }
}

/// What has ended and is not started again has ended for good.
fn terminations(out: &mut Errors, status: &Value, was: &Value, spec: &Value) {
    let policy = text(spec, "restartPolicy");
    let at = &STATUS.child("containerStatuses");
    for (index, before) in list(was, "containerStatuses").iter().enumerate() {
        let ended = &before["state"]["terminated"];
        let restarts = match policy {
            "Always" => true,
            "OnFailure" => count(ended, "exitCode") != 0,
            _ => false,
        };
        let own = |spec: &Value| text(spec, "name") == text(before, "name");
        let rules =
            list(spec, "containers").iter().find(|one| own(one)).is_some_and(|one| has(one, "restartPolicy"));
        if ended.is_null() || restarts || rules {
            continue;
        }
        let now = list(status, "containerStatuses").iter().find(|one| own(one));
        if now.is_some_and(|now| now["state"]["terminated"].is_null()) {
            let why = "may not be transitioned to non-terminated state";
            out.push(FieldError::forbidden(at.index(index).child("state"), why));
        }
    }
}

/// Claims that were made for the pod.
fn claims(out: &mut Errors, status: &Value, spec: &Value) {
    let at = &STATUS.child("resourceClaimStatuses");
    let mut known = BTreeSet::new();
    for (index, claim) in list(status, "resourceClaimStatuses").iter().enumerate() {
        let (name, at) = (text(claim, "name"), &at.index(index));
        if !list(spec, "resourceClaims").iter().any(|claim| text(claim, "name") == name) {
            let why = "must match the name of an entry in `spec.resourceClaims`";
            out.push(FieldError::invalid(at.child("name"), name, why));
        }
        if !known.insert(name) {
            out.push(FieldError::duplicate(at.child("name"), name));
        }
        if let Some(name) = claim["resourceClaimName"].as_str() {
            reasons(out, name, &at.child("resourceClaimName"), names::subdomain_name(name, false));
        }
    }
    let extended = &status["extendedResourceClaimStatus"];
    if extended.is_null() {
        return;
    }
    let at = &STATUS.child("extendedResourceClaimStatus");
    let inner = &at.child("requestMappings");
    let mappings = list(extended, "requestMappings");
    if mappings.is_empty() {
        out.push(FieldError::required(inner, "at least one request mapping is required"));
    }
    for (index, mapping) in mappings.iter().enumerate() {
        let place = &inner.index(index);
        let (name, resource) = (text(mapping, "containerName"), text(mapping, "resourceName"));
        let mut containers = ["containers", "initContainers"].iter().flat_map(|field| list(spec, field));
        match containers.find(|container| text(container, "name") == name) {
            None => {
                let why =
                    "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                out.push(FieldError::invalid(place.child("containerName"), name, why));
            }
            Some(container) if container["resources"]["requests"][resource].is_null() => {
                let why = "must match the extended resource name of an entry in \
                           spec.initContainers.resources.requests or spec.containers.resources.requests";
                out.push(FieldError::invalid(place.child("resourceName"), resource, why));
            }
            Some(_) => {}
        }
        let request = text(mapping, "requestName");
        reasons(out, request, &at.child("requestName"), names::dns1123_label(request));
        if mappings[..index].contains(mapping) {
            for field in ["containerName", "resourceName", "requestName"] {
                out.push(FieldError::duplicate(place.child(field), text(mapping, field)));
            }
        }
    }
    if required(out, extended, "resourceClaimName", at) {
        named(out, extended, "resourceClaimName", at, |name| names::subdomain_name(name, false));
    }
}

fn addresses(out: &mut Errors, status: &Value, was: &Value, field: &str) {
    let at = &STATUS.child(field);
    let known: Vec<&str> = list(was, field).iter().map(|ip| text(ip, "ip")).collect();
    let all: Vec<&str> = list(status, field).iter().map(|ip| text(ip, "ip")).collect();
    for (index, ip) in all.iter().enumerate().filter(|(_, ip)| !known.contains(ip)) {
        address::ip(out, ip, &at.index(index));
    }
    let sixth = all.iter().filter(|ip| address::is_ipv6(ip)).count();
    if all.len() > 2 || (all.len() == 2 && sixth != 1) {
        let why = "may specify no more than one IP for each IP family";
        let ty = if field == "podIPs" { "PodIP" } else { "HostIP" };
        out.push(FieldError::invalid(at, internal::shown_list(ty, &status[field]), why));
    }
}

fn host_addresses(out: &mut Errors, status: &Value, was: &Value) {
    let Some(first) = list(status, "hostIPs").first().map(|ip| text(ip, "ip")) else { return };
    if text(status, "hostIP") != first {
        let at = STATUS.child("hostIPs");
        let at = at.index(0);
        out.push(FieldError::invalid(at.child("ip"), first, "must be equal to `hostIP`"));
    }
    addresses(out, status, was, "hostIPs");
}
