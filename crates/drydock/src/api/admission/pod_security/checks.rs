//! What each level forbids, as a table of checks with the version that brought them.

mod baseline;
mod restricted;
mod seccomp;

use serde_json::Value;

use super::policy::{Level, LevelVersion};
use baseline::{
    added_capabilities, app_armor, host_namespaces, host_paths, host_ports, host_process, privileged,
    probe_hosts, proc_mount, se_linux, sysctls,
};
use restricted::{capabilities, escalation, run_as_non_root, run_as_user, volumes};
use seccomp::{seccomp_baseline, seccomp_restricted};

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
