//! Seccomp profiles, which both levels look at.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Pod, Violation, containers, plural, quoted, text};

pub(super) fn seccomp_baseline(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if version < 19 {
        return seccomp_annotations(pod);
    }
    seccomp_setters(pod)
}

pub(super) fn seccomp_restricted(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if version >= 25 && pod.is_windows() {
        return None;
    }
    if let Some(violation) = seccomp_setters(pod) {
        return Some(violation);
    }
    if !pod.context()["seccompProfile"].is_null() {
        return None;
    }
    let names = pod.named(|container| container["securityContext"]["seccompProfile"].is_null());
    let detail = format!(
        "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
        containers(&names)?
    );
    Some(("seccompProfile".into(), detail))
}

fn seccomp_setters(pod: &Pod<'_>) -> Option<Violation> {
    let bad = |context: &Value| {
        let profile = &context["seccompProfile"];
        let kind = text(profile, "type");
        (!profile.is_null() && !matches!(kind, "Localhost" | "RuntimeDefault")).then(|| kind.to_owned())
    };
    let mut values = BTreeSet::new();
    let mut setters = Vec::new();
    if let Some(value) = bad(pod.context()) {
        setters.push("pod".to_owned());
        values.insert(value);
    }
    values.extend(pod.containers().filter_map(|container| bad(&container["securityContext"])));
    setters.extend(containers(&pod.named(|container| bad(&container["securityContext"]).is_some())));
    let values: Vec<String> = values.into_iter().collect();
    let detail = format!(
        "{} must not set securityContext.seccompProfile.type to {}",
        setters.join(" and "),
        quoted(&values)
    );
    (!setters.is_empty()).then(|| ("seccompProfile".into(), detail))
}

fn seccomp_annotations(pod: &Pod<'_>) -> Option<Violation> {
    let names = pod.containers().map(|container| text(container, "name"));
    let keys = names.map(|name| format!("container.seccomp.security.alpha.kubernetes.io/{name}"));
    let keys = std::iter::once("seccomp.security.alpha.kubernetes.io/pod".to_owned()).chain(keys);
    let bad: BTreeSet<String> = keys
        .filter_map(|key| {
            let value = pod.metadata["annotations"][&key].as_str()?;
            let fine =
                matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
            (!fine).then(|| format!("{key}={value:?}"))
        })
        .collect();
    let shown: Vec<String> = bad.into_iter().collect();
    let detail = format!("forbidden {} {}", plural("annotation", shown.len()), shown.join(", "));
    (!shown.is_empty()).then(|| ("seccompProfile".into(), detail))
}
