//! What each level forbids, as a table of checks with the version that brought them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::policy::{Level, LevelVersion};

/// What a pod does that it must not: in a word, and in detail.
pub(super) type Violation = (String, String);

/// A check of a pod, given the minor version of the policy.
type Rule = fn(&Pod<'_>, u32) -> Option<Violation>;

struct Check {
    name: &'static str,
    level: Level,
    /// The minor version that brought it.
    since: u32,
    rule: Rule,
    /// The check of the baseline that it stands for.
    replaces: &'static str,
}

/// The version whose checks are the newest.
const NEWEST: u32 = 35;

const BASELINE: Check = Check { name: "", level: Level::Baseline, since: 0, rule: |_, _| None, replaces: "" };
const RESTRICTED: Check = Check { level: Level::Restricted, ..BASELINE };

/// In the order in which violations are told.
static CHECKS: &[Check] = &[
    Check { name: "appArmorProfile", rule: app_armor, ..BASELINE },
    Check { name: "capabilities_baseline", rule: added_capabilities, ..BASELINE },
    Check { name: "hostNamespaces", rule: host_namespaces, ..BASELINE },
    Check { name: "hostPathVolumes", rule: host_paths, ..BASELINE },
    Check { name: "hostPorts", rule: host_ports, ..BASELINE },
    Check { name: "hostProbesAndHostLifecycle", since: 34, rule: probe_hosts, ..BASELINE },
    Check { name: "privileged", rule: privileged, ..BASELINE },
    Check {
        name: "procMount",
        rule: |pod, version| {
            if version >= 35 && pod.has_own_users() { None } else { proc_mount(pod, version) }
        },
        ..BASELINE
    },
    Check { name: "seLinuxOptions", rule: se_linux, ..BASELINE },
    Check { name: "seccompProfile_baseline", rule: seccomp_baseline, ..BASELINE },
    Check { name: "sysctls", rule: sysctls, ..BASELINE },
    Check { name: "windowsHostProcess", rule: host_process, ..BASELINE },
    Check { name: "allowPrivilegeEscalation", since: 8, rule: escalation, ..RESTRICTED },
    Check {
        name: "capabilities_restricted",
        since: 22,
        rule: capabilities,
        replaces: "capabilities_baseline",
        ..RESTRICTED
    },
    Check { name: "procMount_restricted", since: 35, rule: proc_mount, replaces: "procMount", ..RESTRICTED },
    Check { name: "restrictedVolumes", rule: volumes, replaces: "hostPathVolumes", ..RESTRICTED },
    Check { name: "runAsNonRoot", rule: run_as_non_root, ..RESTRICTED },
    Check { name: "runAsUser", since: 23, rule: run_as_user, ..RESTRICTED },
    Check {
        name: "seccompProfile_restricted",
        since: 19,
        rule: seccomp_restricted,
        replaces: "seccompProfile_baseline",
        ..RESTRICTED
    },
];

/// What a pod, or the template of one, does that its level forbids.
pub(super) fn violations(level: &LevelVersion, pod: &Value) -> Vec<Violation> {
    if level.level == Level::Privileged {
        return Vec::new();
    }
    let version = level.version.map_or(NEWEST, |version| version.min(NEWEST));
    let active = |check: &&Check| check.level <= level.level && check.since <= version;
    let replaced: Vec<&str> = CHECKS.iter().filter(active).map(|check| check.replaces).collect();
    let pod = Pod { metadata: &pod["metadata"], spec: &pod["spec"] };
    CHECKS
        .iter()
        .filter(active)
        .filter(|check| !replaced.contains(&check.name))
        .filter_map(|check| (check.rule)(&pod, version))
        .collect()
}

/// All of it in words.
pub(super) fn details(violations: &[Violation]) -> String {
    let one = |(reason, detail): &Violation| match detail.as_str() {
        "" => reason.clone(),
        detail => format!("{reason} ({detail})"),
    };
    violations.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// All of it in a few words.
pub(super) fn reasons(violations: &[Violation]) -> String {
    violations.iter().map(|(reason, _)| reason.as_str()).collect::<Vec<_>>().join(", ")
}

struct Pod<'v> {
    metadata: &'v Value,
    spec: &'v Value,
}

impl<'v> Pod<'v> {
    fn context(&self) -> &'v Value {
        &self.spec["securityContext"]
    }

    fn containers(&self) -> impl Iterator<Item = &'v Value> {
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(|sort| list(self.spec, sort))
    }

    /// The names of containers that a condition holds for.
    fn named(&self, condition: impl Fn(&Value) -> bool) -> Vec<&'v str> {
        self.containers()
            .filter(|container| condition(container))
            .map(|container| text(container, "name"))
            .collect()
    }

    fn has_own_users(&self) -> bool {
        self.spec["hostUsers"] == false
    }

    fn is_windows(&self) -> bool {
        text(&self.spec["os"], "name") == "windows"
    }
}

fn app_armor(pod: &Pod<'_>, _: u32) -> Option<Violation> {
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

fn added_capabilities(pod: &Pod<'_>, _: u32) -> Option<Violation> {
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
fn capabilities_beyond<'v>(pod: &Pod<'v>, allowed: &[&str]) -> (Vec<&'v str>, Vec<String>) {
    let beyond = |container: &Value| -> Vec<String> {
        let added =
            list(&container["securityContext"]["capabilities"], "add").iter().filter_map(Value::as_str);
        added.filter(|capability| !allowed.contains(capability)).map(ToOwned::to_owned).collect()
    };
    let added: BTreeSet<String> = pod.containers().flat_map(beyond).collect();
    (pod.named(|container| !beyond(container).is_empty()), added.into_iter().collect())
}

fn host_namespaces(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let shared: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .iter()
        .filter(|field| pod.spec[**field] == true)
        .map(|field| format!("{field}=true"))
        .collect();
    (!shared.is_empty()).then(|| ("host namespaces".into(), shared.join(", ")))
}

fn host_paths(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let bad: Vec<&str> = list(pod.spec, "volumes")
        .iter()
        .filter(|volume| !volume["hostPath"].is_null())
        .map(|volume| text(volume, "name"))
        .collect();
    let detail = format!("{} {}", plural("volume", bad.len()), quoted(&bad));
    (!bad.is_empty()).then(|| ("hostPath volumes".into(), detail))
}

fn host_ports(pod: &Pod<'_>, _: u32) -> Option<Violation> {
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

fn probe_hosts(pod: &Pod<'_>, _: u32) -> Option<Violation> {
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

fn privileged(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let names = pod.named(|container| container["securityContext"]["privileged"] == true);
    let detail = format!("{} must not set securityContext.privileged=true", containers(&names)?);
    Some(("privileged".into(), detail))
}

fn proc_mount(pod: &Pod<'_>, _: u32) -> Option<Violation> {
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

fn se_linux(pod: &Pod<'_>, version: u32) -> Option<Violation> {
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

fn seccomp_baseline(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if version < 19 {
        return seccomp_annotations(pod);
    }
    seccomp_setters(pod)
}

fn seccomp_restricted(pod: &Pod<'_>, version: u32) -> Option<Violation> {
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

fn sysctls(pod: &Pod<'_>, version: u32) -> Option<Violation> {
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

fn host_process(pod: &Pod<'_>, _: u32) -> Option<Violation> {
    let bad = |context: &Value| context["windowsOptions"]["hostProcess"] == true;
    must_not(pod, bad, "hostProcess", "securityContext.windowsOptions.hostProcess=true")
}

fn escalation(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if version >= 25 && pod.is_windows() {
        return None;
    }
    let names = pod.named(|container| container["securityContext"]["allowPrivilegeEscalation"] != false);
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&names)?);
    Some(("allowPrivilegeEscalation != false".into(), detail))
}

fn capabilities(pod: &Pod<'_>, version: u32) -> Option<Violation> {
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

fn volumes(pod: &Pod<'_>, _: u32) -> Option<Violation> {
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

fn run_as_non_root(pod: &Pod<'_>, version: u32) -> Option<Violation> {
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

fn run_as_user(pod: &Pod<'_>, version: u32) -> Option<Violation> {
    if version >= 35 && pod.has_own_users() {
        return None;
    }
    must_not(pod, |context| context["runAsUser"] == 0, "runAsUser=0", "runAsUser=0")
}

/// What neither the pod nor a container may set.
fn must_not(pod: &Pod<'_>, bad: impl Fn(&Value) -> bool, reason: &str, what: &str) -> Option<Violation> {
    let mut setters = Vec::new();
    if bad(pod.context()) {
        setters.push("pod".to_owned());
    }
    setters.extend(containers(&pod.named(|container| bad(&container["securityContext"]))));
    let detail = format!("{} must not set {what}", setters.join(" and "));
    (!setters.is_empty()).then(|| (reason.to_owned(), detail))
}

/// `containers "a", "b"`; nothing where there are none.
fn containers(names: &[&str]) -> Option<String> {
    (!names.is_empty()).then(|| format!("{} {}", plural("container", names.len()), quoted(names)))
}

fn quoted<S: AsRef<str>>(items: &[S]) -> String {
    items.iter().map(|item| format!("\"{}\"", item.as_ref())).collect::<Vec<_>>().join(", ")
}

fn plural(word: &str, count: usize) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

fn uses(count: usize) -> &'static str {
    if count == 1 { "uses" } else { "use" }
}

fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object[field].as_str().unwrap_or_default()
}

fn list<'v>(object: &'v Value, field: &str) -> &'v [Value] {
    object[field].as_array().map_or(&[], Vec::as_slice)
}
