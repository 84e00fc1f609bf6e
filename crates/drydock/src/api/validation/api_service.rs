//! API services: groups and versions that are served, by this server or by others.

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, count, has, is, list, reasons, required, text};

const SPEC: At<'static> = At::new("spec");

/// An API service; its name is that of what it serves.
pub(super) fn service(out: &mut Errors, service: &Value) {
    let spec = &service["spec"];
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    let wanted = format!("{version}.{group}");
    for field in ["generateName", "name"] {
        let name = text(&service["metadata"], field);
        let fits = name == wanted || !names::path_segment_name(name, false).is_empty();
        if !name.is_empty() && !fits {
            let at = At::new("metadata");
            let why = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
            out.push(FieldError::invalid(at.child(field), name, why));
        }
    }
    if group.is_empty() && version != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        out.push(FieldError::required(SPEC.child("group"), why));
    }
    if !group.is_empty() {
        reasons(out, group, &SPEC.child("group"), names::dns1123_subdomain(group));
    }
    reasons(out, version, &SPEC.child("version"), names::dns1035_label(version));
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let priority = count(spec, field);
        if !(1..=most).contains(&priority) {
            let why = format!("must be positive and less than {most}");
            out.push(FieldError::invalid(SPEC.child(field), priority, why));
        }
    }
    let (certificates, unchecked) = (text(spec, "caBundle"), is(spec, "insecureSkipTLSVerify"));
    let at = SPEC.child("insecureSkipTLSVerify");
    if !has(spec, "service") {
        if !certificates.is_empty() {
            let shown = format!("{} bytes", super::config::decoded_length(&spec["caBundle"]));
            let why = "local APIServices may not have a caBundle";
            out.push(FieldError::invalid(SPEC.child("caBundle"), shown, why));
        }
        if unchecked {
            let why = "local APIServices may not have insecureSkipTLSVerify";
            out.push(FieldError::invalid(at, true, why));
        }
        return;
    }
    let (reference, place) = (&spec["service"], &SPEC.child("service"));
    required(out, reference, "namespace", place);
    required(out, reference, "name", place);
    let port = count(reference, "port");
    for why in names::port_number(port) {
        let why = format!("port is not valid: {why}");
        out.push(FieldError::invalid(place.child("port"), port, why));
    }
    if unchecked && !certificates.is_empty() {
        out.push(FieldError::invalid(at, true, "may not be true if caBundle is present"));
    }
}

/// The status of an API service.
pub(super) fn status(out: &mut Errors, new: &Value, _: &Value) {
    let at = At::new("status");
    let at = &at.child("conditions");
    for (index, condition) in list(&new["status"], "conditions").iter().enumerate() {
        let (status, at) = (text(condition, "status"), at.index(index));
        if !matches!(status, "True" | "False" | "Unknown") {
            out.push(FieldError::not_supported(at.child("status"), status, ["True", "False", "Unknown"]));
        }
    }
}
