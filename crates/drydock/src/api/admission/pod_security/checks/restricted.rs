//! What the restricted level forbids besides.

use std::collections::BTreeSet;

use serde_json::Value;

use super::baseline::capabilities_beyond;
use super::{Pod, Violation, containers, list, must_not, plural, quoted, text, uses};

pub(super) fn escalation(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if version >= 25 && pod.is_windows() {
        return None;
    }
    let names = pod.named(|container| container["securityContext"]["allowPrivilegeEscalation"] != false);
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&names)?);
    Some(("allowPrivilegeEscalation != false".into(), detail))
}

pub(super) fn capabilities(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if version >= 25 && pod.is_windows() {
        return None;
    }
    let keeps = pod.named(|container| {
        !list(&container["securityContext"]["capabilities"], "drop")
            .iter()
            .any(|capability| capability == "ALL")
    });
    let mut details = Vec::new();
    if let Some(names) = containers(&keeps) {
        details.push(format!("{names} must set securityContext.capabilities.drop=[\"ALL\"]"));
    }
    let (names, added) = capabilities_beyond(pod, &["NET_BIND_SERVICE"]);
    if let Some(names) = containers(&names) {
        details
            .push(format!("{names} must not include {} in securityContext.capabilities.add", quoted(&added)));
    }
    (!details.is_empty()).then(|| ("unrestricted capabilities".into(), details.join("; ")))
}

pub(super) fn volumes(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    const ALLOWED: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let bad: Vec<&Value> = list(pod.spec, "volumes")
        .iter()
        .filter(|volume| !ALLOWED.iter().any(|kind| !volume[*kind].is_null()))
        .collect();
    let kinds: BTreeSet<&str> = bad
        .iter()
        .map(|volume| {
            let fields = volume.as_object().into_iter().flat_map(|map| map.keys());
            fields.map(String::as_str).find(|field| *field != "name").unwrap_or("unknown")
        })
        .collect();
    let names: Vec<&str> = bad.iter().map(|volume| text(volume, "name")).collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    let detail = format!(
        "{} {} {} {} {}",
        plural("volume", names.len()),
        quoted(&names),
        uses(names.len()),
        plural("restricted volume type", kinds.len()),
        quoted(&kinds)
    );
    (!bad.is_empty()).then(|| ("restricted volume types".into(), detail))
}

pub(super) fn run_as_non_root(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if version >= 35 && pod.has_own_users() {
        return None;
    }
    let bad = |context: &Value| context["runAsNonRoot"] == false;
    let explicit = must_not(pod, bad, "runAsNonRoot != true", "securityContext.runAsNonRoot=false");
    if explicit.is_some() || pod.context()["runAsNonRoot"] == true {
        return explicit;
    }
    let names = pod.named(|container| container["securityContext"]["runAsNonRoot"].is_null());
    let detail = format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&names)?);
    Some(("runAsNonRoot != true".into(), detail))
}

pub(super) fn run_as_user(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if version >= 35 && pod.has_own_users() {
        return None;
    }
    must_not(pod, |context| context["runAsUser"] == 0, "runAsUser=0", "runAsUser=0")
}
