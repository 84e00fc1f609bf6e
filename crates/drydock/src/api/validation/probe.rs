//! `Probe`, `Lifecycle` and the handlers they share.

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, has, list, not_negative, number, port, port_number, reasons, text};

/// The probes of a container.
pub(super) fn probes(out: &mut Errors, container: &Value, grace: Option<i64>, at: &At<'_>) {
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let (probe, at) = (&container[kind], &at.child(kind));
        if probe.is_null() {
            continue;
        }
        self::probe(out, probe, grace, at);
        let ends = number(probe, "terminationGracePeriodSeconds");
        if kind == "readinessProbe" {
            if let Some(seconds) = ends {
                let at = at.child("terminationGracePeriodSeconds");
                out.push(FieldError::invalid(at, seconds, "must not be set for readinessProbes"));
            }
        } else if number(probe, "successThreshold") != Some(1) {
            let value = number(probe, "successThreshold").unwrap_or_default();
            out.push(FieldError::invalid(at.child("successThreshold"), value, "must be 1"));
        }
    }
}

fn probe(out: &mut Errors, probe: &Value, grace: Option<i64>, at: &At<'_>) {
    handler(out, probe, grace, at);
    let numbers =
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
    not_negative(out, probe, &numbers, at);
    if let Some(seconds) = number(probe, "terminationGracePeriodSeconds").filter(|seconds| *seconds <= 0) {
        let at = at.child("terminationGracePeriodSeconds");
        out.push(FieldError::invalid(at, seconds, "must be greater than 0"));
    }
}

/// What happens after a container starts and before it stops.
pub(super) fn lifecycle(out: &mut Errors, container: &Value, grace: Option<i64>, os: &str, at: &At<'_>) {
    let (lifecycle, at) = (&container["lifecycle"], &at.child("lifecycle"));
    for hook in ["postStart", "preStop"] {
        if has(lifecycle, hook) {
            handler(out, &lifecycle[hook], grace, &at.child(hook));
        }
    }
    if has(lifecycle, "stopSignal") && os.is_empty() {
        let why = "may not be set for containers with empty `spec.os.name`";
        out.push(FieldError::forbidden(at.child("stopSignal"), why));
    }
}

fn handler(out: &mut Errors, handler: &Value, grace: Option<i64>, at: &At<'_>) {
    let mut found = false;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let (action, at) = (&handler[kind], &at.child(kind));
        if action.is_null() {
            continue;
        }
        if found {
            out.push(FieldError::forbidden(at, "may not specify more than 1 handler type"));
            continue;
        }
        found = true;
        match kind {
            "exec" if list(action, "command").is_empty() => {
                out.push(FieldError::required(at.child("command"), ""));
            }
            "httpGet" => http_get(out, action, at),
            "tcpSocket" => port(out, &action["port"], &at.child("port")),
            "grpc" => port_number(out, &action["port"], &at.child("port")),
            "sleep" => sleep(out, action, grace, at),
            _ => {}
        }
    }
    if !found {
        out.push(FieldError::required(at, "must specify a handler type"));
    }
}

fn http_get(out: &mut Errors, action: &Value, at: &At<'_>) {
    if text(action, "path").is_empty() {
        out.push(FieldError::required(at.child("path"), ""));
    }
    port(out, &action["port"], &at.child("port"));
    let scheme = text(action, "scheme");
    if !matches!(scheme, "HTTP" | "HTTPS") {
        out.push(FieldError::not_supported(at.child("scheme"), scheme, ["HTTP", "HTTPS"]));
    }
    for header in list(action, "httpHeaders") {
        let name = text(header, "name");
        reasons(out, name, &at.child("httpHeaders"), names::http_header_name(name));
    }
}

fn sleep(out: &mut Errors, action: &Value, grace: Option<i64>, at: &At<'_>) {
    let seconds = number(action, "seconds").unwrap_or_default();
    if let Some(grace) = grace.filter(|grace| seconds < 0 || seconds > *grace) {
        let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        out.push(FieldError::invalid(at, seconds, why));
    }
}
