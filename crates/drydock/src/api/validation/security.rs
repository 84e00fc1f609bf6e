//! `PodSecurityContext` and `SecurityContext`.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_machinery::invalid::{FieldError, Shown};
use windlass_machinery::names;

use super::field::{At, Errors, has, is, list, optional_choice, reasons, strings, text};
use super::internal;
use super::volume::descending_path;

const SYSCTL: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// The security context of a pod.
pub(super) fn of_pod(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let (context, at) = (&spec["securityContext"], &at.child("securityContext"));
    ids(out, context, &["fsGroup", "runAsUser", "runAsGroup"], at);
    let groups = &at.child("supplementalGroups");
    for (index, group) in list(context, "supplementalGroups").iter().enumerate() {
        id(out, group, &groups.index(index));
    }
    if is(spec, "shareProcessNamespace") && is(spec, "hostPID") {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        out.push(FieldError::invalid(at.child("shareProcessNamespace"), true, why));
    }
    sysctls(out, spec, at);
    optional_choice(out, context, "fsGroupChangePolicy", at, &["Always", "OnRootMismatch"]);
    seccomp(out, &context["seccompProfile"], &at.child("seccompProfile"));
    app_armor(out, &context["appArmorProfile"], &at.child("appArmorProfile"));
    optional_choice(out, context, "supplementalGroupsPolicy", at, &["Merge", "Strict"]);
    optional_choice(out, context, "seLinuxChangePolicy", at, &["Recursive"]);
}

/// The security context of a container.
pub(super) fn of_container(out: &mut Errors, context: &Value, spec: &Value, at: &At<'_>) {
    windows(out, &context["windowsOptions"], &at.child("windowsOptions"));
    if context.is_null() {
        return;
    }
    ids(out, context, &["runAsUser", "runAsGroup"], at);
    if has(context, "procMount") {
        optional_choice(out, context, "procMount", at, &["Default", "Unmasked"]);
        if text(context, "procMount") == "Unmasked" && spec["hostUsers"] != false {
            let why = "`hostUsers` must be false to use `Unmasked`";
            out.push(FieldError::invalid(at.child("procMount"), "Unmasked", why));
        }
    }
    seccomp(out, &context["seccompProfile"], &at.child("seccompProfile"));
    if context["allowPrivilegeEscalation"] == false {
        let mut refuse = |why: &str| {
            out.push(FieldError::invalid(at, internal::shown("SecurityContext", context), why));
        };
        if is(context, "privileged") {
            refuse("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
        }
        for capability in strings(&context["capabilities"], "add") {
            if capability == "CAP_SYS_ADMIN" {
                refuse("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
            }
        }
    }
    app_armor(out, &context["appArmorProfile"], &at.child("appArmorProfile"));
}

fn ids(out: &mut Errors, context: &Value, fields: &[&str], at: &At<'_>) {
    for field in fields.iter().filter(|field| has(context, field)) {
        id(out, &context[*field], &at.child(field));
    }
}

fn id(out: &mut Errors, value: &Value, at: &At<'_>) {
    let value = value.as_i64().unwrap_or_default();
    let why = names::in_range(value, 0, i64::from(i32::MAX));
    out.extend(why.into_iter().map(|why| FieldError::invalid(at, value, why)));
}

fn sysctls(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let at = &at.child("sysctls");
    let mut known = BTreeSet::new();
    for (index, sysctl) in list(&spec["securityContext"], "sysctls").iter().enumerate() {
        let at = &at.index(index);
        let at = &at.child("name");
        let name = text(sysctl, "name");
        if name.is_empty() {
            out.push(FieldError::required(at, ""));
        } else if name.len() > 253 || !is_sysctl(name) {
            let why = format!("must have at most 253 characters and match regex {SYSCTL}");
            out.push(FieldError::invalid(at, name, why));
        } else if known.contains(name) {
            out.push(FieldError::duplicate(at, name));
        }
        known.insert(name);
        // Only the host may set what it shares with the pod.
        for (shared, prefixes) in [
            ("hostNetwork", &["net."] as &[&str]),
            ("hostIPC", &["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."]),
        ] {
            if is(spec, shared) && prefixes.iter().any(|prefix| name.replace('/', ".").starts_with(prefix)) {
                out.push(FieldError::invalid(
                    at,
                    name,
                    format!("may not be specified when '{shared}' is true"),
                ));
            }
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    name.split(['.', '/']).all(|part| {
        let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        part.starts_with(edge)
            && part.ends_with(edge)
            && part.chars().all(|c| edge(c) || c == '-' || c == '_')
    })
}

fn seccomp(out: &mut Errors, profile: &Value, at: &At<'_>) {
    const TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
    if profile.is_null() {
        return;
    }
    match text(profile, "type") {
        "" => out.push(FieldError::required(at.child("type"), "type is required when seccompProfile is set")),
        kind if !TYPES.contains(&kind) => out.push(FieldError::not_supported(at.child("type"), kind, TYPES)),
        _ => {}
    }
    let (path, at) = (&profile["localhostProfile"], &at.child("localhostProfile"));
    match (text(profile, "type") == "Localhost", path.as_str()) {
        (true, None) => out.push(FieldError::required(at, "must be set when seccomp type is Localhost")),
        (true, Some(path)) => descending_path(out, path, at),
        (false, Some(_)) => {
            let shown = internal::shown("SeccompProfile", profile);
            out.push(FieldError::invalid(at, shown, "can only be set when seccomp type is Localhost"));
        }
        (false, None) => {}
    }
}

fn app_armor(out: &mut Errors, profile: &Value, at: &At<'_>) {
    const TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
    if profile.is_null() {
        return;
    }
    let (path, inner) = (&profile["localhostProfile"], &at.child("localhostProfile"));
    match text(profile, "type") {
        "Localhost" => match path.as_str() {
            None | Some("") => {
                out.push(FieldError::required(inner, "must be set when AppArmor type is Localhost"));
            }
            Some(path) if path.trim() != path => {
                out.push(FieldError::invalid(inner, path, "must not be padded with whitespace"));
            }
            Some(path) if path.len() > 4095 => out.push(FieldError::too_long(inner, 4095)),
            Some(_) => {}
        },
        "RuntimeDefault" | "Unconfined" => {
            if !path.is_null() {
                let why = "can only be set when AppArmor type is Localhost";
                out.push(FieldError::invalid(inner, Shown::from(path), why));
            }
        }
        "" => {
            out.push(FieldError::required(at.child("type"), "type is required when appArmorProfile is set"))
        }
        kind => out.push(FieldError::not_supported(at.child("type"), kind, TYPES)),
    }
}

/// What a pod in a user namespace of its own may not share with the host.
pub(super) fn host_users(out: &mut Errors, spec: &Value, at: &At<'_>) {
    if spec["hostUsers"] != false {
        return;
    }
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if is(spec, field) {
            out.push(FieldError::forbidden(at.child(shown), "when `hostUsers` is false"));
        }
    }
}

/// What a pod cannot have on its operating system.
pub(super) fn os(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let os = &spec["os"];
    match text(os, "name") {
        _ if os.is_null() => {}
        "" => out.push(FieldError::required(at.child("os").child("name"), "")),
        "linux" => for_linux(out, spec, at),
        "windows" => for_windows(out, spec, at),
        other => out.push(FieldError::not_supported(at.child("os"), other, ["linux", "windows"])),
    }
}

/// Who a container runs as on Windows.
fn windows(out: &mut Errors, options: &Value, at: &At<'_>) {
    if let Some(name) = options["gmsaCredentialSpecName"].as_str() {
        reasons(out, name, &at.child("gmsaCredentialSpecName"), names::dns1123_subdomain(name));
    }
    if options["gmsaCredentialSpec"] == "" {
        let why = "gmsaCredentialSpec cannot be an empty string";
        out.push(FieldError::invalid(at.child("gmsaCredentialSpec"), "", why));
    }
    let Some(name) = options["runAsUserName"].as_str() else { return };
    let user = name.rsplit('\\').next().unwrap_or_default();
    let why = if name.is_empty() {
        "runAsUserName cannot be an empty string"
    } else if name.contains(char::is_control) {
        "runAsUserName cannot contain control characters"
    } else if name.matches('\\').count() > 1 {
        "runAsUserName cannot contain more than one backslash"
    } else if user.is_empty() {
        "runAsUserName's User cannot be empty"
    } else if user.len() > 104 {
        "runAsUserName's User length must not be longer than 104 characters"
    } else if user.chars().all(|c| matches!(c, '.' | ' ')) {
        "runAsUserName's User cannot contain only periods or spaces"
    } else if user.contains(|c: char| "\"/:;|=,+*?<>@[]".contains(c)) {
        "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
    } else {
        return;
    };
    out.push(FieldError::invalid(at.child("runAsUserName"), name, why));
}

fn for_linux(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let mut refuse = |context: &Value, at: At<'_>| {
        if has(context, "windowsOptions") {
            let why = "windows options cannot be set for a linux pod";
            out.push(FieldError::forbidden(at.child("windowsOptions"), why));
        }
    };
    refuse(&spec["securityContext"], at.child("securityContext"));
    for sort in ["initContainers", "containers", "ephemeralContainers"] {
        let at = &at.child(sort);
        for (index, container) in list(spec, sort).iter().enumerate() {
            refuse(&container["securityContext"], at.index(index).child("securityContext"));
        }
    }
}

fn for_windows(out: &mut Errors, spec: &Value, at: &At<'_>) {
    const WHY: &str = "cannot be set for a windows pod";
    // Where it is in the pod: its security context, or the pod itself.
    const OF_POD: &[(&str, bool)] = &[
        ("appArmorProfile", true),
        ("seLinuxOptions", true),
        ("hostUsers", false),
        ("hostPID", false),
        ("hostIPC", false),
        ("seccompProfile", true),
        ("fsGroup", true),
        ("fsGroupChangePolicy", true),
        ("sysctls", true),
        ("shareProcessNamespace", false),
        ("runAsUser", true),
        ("runAsGroup", true),
        ("supplementalGroups", true),
        ("supplementalGroupsPolicy", true),
        ("seLinuxChangePolicy", true),
    ];
    const OF_CONTAINER: &[&str] = &[
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "capabilities",
        "readOnlyRootFilesystem",
        "privileged",
        "allowPrivilegeEscalation",
        "procMount",
        "runAsUser",
        "runAsGroup",
    ];
    for (field, inner) in OF_POD {
        if *inner && has(&spec["securityContext"], field) {
            out.push(FieldError::forbidden(at.child("securityContext").child(field), WHY));
        } else if !inner && has(spec, field) {
            out.push(FieldError::forbidden(at.child(field), WHY));
        }
    }
    for sort in ["initContainers", "containers", "ephemeralContainers"] {
        let at = &at.child(sort);
        for (index, container) in list(spec, sort).iter().enumerate() {
            let at = &at.index(index);
            let at = &at.child("securityContext");
            for field in OF_CONTAINER.iter().filter(|field| has(&container["securityContext"], field)) {
                out.push(FieldError::forbidden(at.child(field), WHY));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctl_names() {
        assert!(is_sysctl("net.ipv4.ip_forward"));
        assert!(is_sysctl("net/ipv4.conf"));
        assert!(!is_sysctl("Net.ipv4"));
        assert!(!is_sysctl("a..b"));
    }

    #[test]
    fn ids_have_bounds() {
        let mut out = Errors::new();
        let context = serde_json::json!({"runAsUser": -1, "runAsGroup": 5});
        of_container(&mut out, &context, &Value::Null, &At::new("s"));
        assert_eq!(out.len(), 1);
    }
}
