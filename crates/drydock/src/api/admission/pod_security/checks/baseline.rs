//! What the baseline level forbids: ways out of the container.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Pod, Violation, containers, list, must_not, plural, quoted, text, uses};

pub(super) fn app_armor(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    let mut values = BTreeSet::new();
    let bad = |context: &Value| {
        let profile = &context["appArmorProfile"];
        let kind = text(profile, "type");
        (!profile.is_null() && !matches!(kind, "RuntimeDefault" | "Localhost")).then(|| kind.to_owned())
    };
    let mut setters = Vec::new();
    if let Some(value) = bad(pod.context()) {
        setters.push("pod".to_owned());
        values.insert(value);
    }
    values.extend(pod.containers().filter_map(|container| bad(&container["securityContext"])));
    setters.extend(containers(&pod.named(|container| bad(&container["securityContext"]).is_some())));
    let noted = pod.metadata["annotations"].as_object().into_iter().flatten();
    let mut noted: Vec<String> = noted
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
        .filter(|(key, value)| {
            let fine = value.is_empty() || *value == "runtime/default" || value.starts_with("localhost/");
            key.starts_with(PREFIX) && !fine
        })
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    noted.sort();
    let mut shown: Vec<String> = values.into_iter().collect();
    if !noted.is_empty() {
        setters.push(plural("annotation", noted.len()));
        shown.append(&mut noted);
    }
    let reason = plural("forbidden AppArmor profile", shown.len());
    let detail =
        format!("{} must not set AppArmor profile type to {}", setters.join(" and "), quoted(&shown));
    (!setters.is_empty()).then_some((reason, detail))
}

pub(super) fn added_capabilities(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    const DEFAULT: [&str; 13] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    let (names, added) = capabilities_beyond(pod, &DEFAULT);
    let detail = format!(
        "{} must not include {} in securityContext.capabilities.add",
        containers(&names)?,
        quoted(&added)
    );
    Some(("non-default capabilities".into(), detail))
}

/// The containers that add capabilities beyond those, and the capabilities.
pub(super) fn capabilities_beyond<'v>(pod: &Pod<'v>, allowed: &[&str]) -> (Vec<&'v str>, Vec<String>) {
    let beyond = |container: &Value| -> Vec<String> {
        let added =
            list(&container["securityContext"]["capabilities"], "add").iter().filter_map(Value::as_str);
        added.filter(|capability| !allowed.contains(capability)).map(ToOwned::to_owned).collect()
    };
    let added: BTreeSet<String> = pod.containers().flat_map(beyond).collect();
    (pod.named(|container| !beyond(container).is_empty()), added.into_iter().collect())
}

pub(super) fn host_namespaces(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let shared: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .iter()
        .filter(|field| pod.spec[**field] == true)
        .map(|field| format!("{field}=true"))
        .collect();
    (!shared.is_empty()).then(|| ("host namespaces".into(), shared.join(", ")))
}

pub(super) fn host_paths(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let bad: Vec<&str> = list(pod.spec, "volumes")
        .iter()
        .filter(|volume| !volume["hostPath"].is_null())
        .map(|volume| text(volume, "name"))
        .collect();
    let detail = format!("{} {}", plural("volume", bad.len()), quoted(&bad));
    (!bad.is_empty()).then(|| ("hostPath volumes".into(), detail))
}

pub(super) fn host_ports(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let ports = |container: &Value| -> Vec<String> {
        let ports = list(container, "ports").iter().filter_map(|port| port["hostPort"].as_i64());
        ports.filter(|port| *port != 0).map(|port| port.to_string()).collect()
    };
    let used: BTreeSet<String> = pod.containers().flat_map(ports).collect();
    let names = pod.named(|container| !ports(container).is_empty());
    let detail = format!(
        "{} {} {} {}",
        containers(&names)?,
        uses(names.len()),
        plural("hostPort", used.len()),
        used.into_iter().collect::<Vec<_>>().join(", ")
    );
    Some(("hostPort".into(), detail))
}

pub(super) fn probe_hosts(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let hosts = |container: &Value| -> Vec<String> {
        let lifecycle = &container["lifecycle"];
        let handlers = [
            &container["livenessProbe"],
            &container["readinessProbe"],
            &container["startupProbe"],
            &lifecycle["postStart"],
            &lifecycle["preStop"],
        ];
        let actions = handlers.into_iter().flat_map(|handler| [&handler["httpGet"], &handler["tcpSocket"]]);
        let hosts = actions.map(|action| text(action, "host").to_owned());
        hosts.filter(|host| !host.is_empty()).collect()
    };
    let used: BTreeSet<String> = pod.containers().flat_map(hosts).collect();
    let names: BTreeSet<&str> = pod.named(|container| !hosts(container).is_empty()).into_iter().collect();
    let names: Vec<&str> = names.into_iter().collect();
    let used: Vec<String> = used.into_iter().collect();
    let what = plural("probe or lifecycle host", used.len());
    let detail = format!("{} {} {what} {}", containers(&names)?, uses(names.len()), quoted(&used));
    Some(("probe or lifecycle host".into(), detail))
}

pub(super) fn privileged(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let names = pod.named(|container| container["securityContext"]["privileged"] == true);
    let detail = format!("{} must not set securityContext.privileged=true", containers(&names)?);
    Some(("privileged".into(), detail))
}

pub(super) fn proc_mount(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let bad = |container: &Value| match text(&container["securityContext"], "procMount") {
        "" | "Default" => None,
        kind => Some(kind.to_owned()),
    };
    let kinds: BTreeSet<String> = pod.containers().filter_map(bad).collect();
    let names = pod.named(|container| bad(container).is_some());
    let kinds: Vec<String> = kinds.into_iter().collect();
    let detail =
        format!("{} must not set securityContext.procMount to {}", containers(&names)?, quoted(&kinds));
    Some(("procMount".into(), detail))
}

pub(super) fn se_linux(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    let is_known = |kind: &str| {
        matches!(kind, "" | "container_t" | "container_init_t" | "container_kvm_t")
            || (version >= 31 && kind == "container_engine_t")
    };
    let bad = |options: &Value| {
        !is_known(text(options, "type"))
            || !text(options, "user").is_empty()
            || !text(options, "role").is_empty()
    };
    let of = |container: &Value| container["securityContext"]["seLinuxOptions"].clone();
    let own = &pod.context()["seLinuxOptions"];
    let mut setters = Vec::new();
    if bad(own) {
        setters.push("pod".to_owned());
    }
    setters.extend(containers(&pod.named(|container| bad(&of(container)))));
    let all: Vec<Value> = std::iter::once(own.clone()).chain(pod.containers().map(of)).collect();
    let kinds: BTreeSet<&str> =
        all.iter().map(|options| text(options, "type")).filter(|kind| !is_known(kind)).collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    let mut data = Vec::new();
    if !kinds.is_empty() {
        data.push(format!("{} {}", plural("type", kinds.len()), quoted(&kinds)));
    }
    for field in ["user", "role"] {
        if all.iter().any(|options| !text(options, field).is_empty()) {
            data.push(format!("{field} may not be set"));
        }
    }
    let detail = format!(
        "{} set forbidden securityContext.seLinuxOptions: {}",
        setters.join(" and "),
        data.join("; ")
    );
    (!setters.is_empty()).then(|| ("seLinuxOptions".into(), detail))
}

pub(super) fn sysctls(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    // Each with the version that allowed it.
    const ALLOWED: [(&str, u32); 12] = [
        ("kernel.shm_rmid_forced", 0),
        ("net.ipv4.ip_local_port_range", 0),
        ("net.ipv4.tcp_syncookies", 0),
        ("net.ipv4.ping_group_range", 0),
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_keepalive_intvl", 29),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_rmem", 32),
        ("net.ipv4.tcp_wmem", 32),
    ];
    let bad: Vec<&str> = list(pod.context(), "sysctls")
        .iter()
        .map(|sysctl| text(sysctl, "name"))
        .filter(|name| !ALLOWED.iter().any(|(known, since)| known == name && *since <= version))
        .collect();
    (!bad.is_empty()).then(|| ("forbidden sysctls".into(), bad.join(", ")))
}

pub(super) fn host_process(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let bad = |context: &Value| context["windowsOptions"]["hostProcess"] == true;
    must_not(pod, bad, "hostProcess", "securityContext.windowsOptions.hostProcess=true")
}
