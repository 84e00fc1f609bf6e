//! `Container`, of every sort: main, init and ephemeral.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{
    At, Errors, choice, count, has, is, list, named, optional_choice, port_number, reasons, required, text,
};
use super::volume::{Volumes, descending_path, no_backsteps};
use super::{env, probe, resources, security};

/// What the rules for containers have to know of their pod.
pub(super) struct Pod<'v> {
    /// Its specification.
    pub(super) spec: &'v Value,
    /// The volumes that can be mounted.
    pub(super) volumes: Volumes<'v>,
    /// How long it has to end.
    pub(super) grace: Option<i64>,
}

impl Pod<'_> {
    fn os(&self) -> &str {
        text(&self.spec["os"], "name")
    }
}

/// The main containers of a pod.
pub(super) fn main(out: &mut Errors, pod: &Pod<'_>, at: &At<'_>) {
    let at = &at.child("containers");
    let containers = list(pod.spec, "containers");
    if containers.is_empty() {
        out.push(FieldError::required(at, ""));
        return;
    }
    let mut known = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let at = &at.index(index);
        common(out, container, pod, at);
        if !known.insert(text(container, "name")) {
            out.push(FieldError::duplicate(at.child("name"), text(container, "name")));
        }
        probe::lifecycle(out, container, pod.grace, pod.os(), at);
        probe::probes(out, container, pod.grace, at);
        restart(out, container, at, false);
    }
    host_ports(out, containers, at);
}

/// The containers that run before the main ones.
pub(super) fn init(out: &mut Errors, pod: &Pod<'_>, at: &At<'_>) {
    let at = &at.child("initContainers");
    let mut known: BTreeSet<&str> =
        list(pod.spec, "containers").iter().map(|container| text(container, "name")).collect();
    let containers = list(pod.spec, "initContainers");
    for (index, container) in containers.iter().enumerate() {
        let one = &at.index(index);
        common(out, container, pod, one);
        restart(out, container, one, true);
        let name = text(container, "name");
        if known.contains(name) {
            out.push(FieldError::duplicate(one.child("name"), name));
        } else if !name.is_empty() {
            known.insert(name);
        }
        host_ports(out, std::slice::from_ref(container), at);
        let stays = text(container, "restartPolicy") == "Always";
        if stays {
            probe::lifecycle(out, container, pod.grace, pod.os(), one);
            probe::probes(out, container, pod.grace, one);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if has(container, field) {
                let why = "may not be set for init containers without restartPolicy=Always";
                out.push(FieldError::forbidden(one.child(field), why));
            }
        }
        let policies = &one.child("resizePolicy");
        for (index, policy) in list(container, "resizePolicy").iter().enumerate() {
            if text(policy, "restartPolicy") == "RestartContainer" {
                let at = policies.index(index);
                let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                out.push(FieldError::invalid(at.child("restartPolicy"), "RestartContainer", why));
            }
        }
    }
}

/// Containers that were added to a running pod.
pub(super) fn ephemeral(out: &mut Errors, pod: &Pod<'_>, at: &At<'_>) {
    const FORBIDDEN: &[&str] = &["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"];
    let at = &at.child("ephemeralContainers");
    let others: BTreeSet<&str> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|sort| list(pod.spec, sort))
        .map(|container| text(container, "name"))
        .collect();
    let mut known = others.clone();
    for (index, container) in list(pod.spec, "ephemeralContainers").iter().enumerate() {
        let at = &at.index(index);
        common(out, container, pod, at);
        trimmed_image(out, container, at);
        if !known.insert(text(container, "name")) {
            out.push(FieldError::duplicate(at.child("name"), text(container, "name")));
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            out.push(FieldError::not_found(at.child("targetContainerName"), target));
        }
        let why = "cannot be set for an Ephemeral Container";
        for field in FORBIDDEN.iter().filter(|field| has(container, field)) {
            out.push(FieldError::forbidden(at.child(field), why));
        }
        if container["resources"].as_object().is_some_and(|map| !map.is_empty()) {
            out.push(FieldError::forbidden(at.child("resources"), why));
        }
        let mounts = &at.child("volumeMounts");
        for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
            let at = &mounts.index(index);
            for field in ["subPath", "subPathExpr"].iter().filter(|field| !text(mount, field).is_empty()) {
                out.push(FieldError::forbidden(at.child(field), why));
            }
        }
    }
}

/// Images of a pod (not of a template) have no space around them.
pub(super) fn trimmed_images(out: &mut Errors, spec: &Value, sort: &str, at: &At<'_>) {
    let at = &at.child(sort);
    for (index, container) in list(spec, sort).iter().enumerate() {
        trimmed_image(out, container, &at.index(index));
    }
}

/// An image has no space around it.
pub(super) fn trimmed_image(out: &mut Errors, container: &Value, at: &At<'_>) {
    let image = text(container, "image");
    if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        out.push(FieldError::invalid(at.child("image"), image, why));
    }
}

fn common(out: &mut Errors, container: &Value, pod: &Pod<'_>, at: &At<'_>) {
    if required(out, container, "name", at) {
        named(out, container, "name", at, names::dns1123_label);
    }
    required(out, container, "image", at);
    choice(out, container, "terminationMessagePolicy", at, &["File", "FallbackToLogsOnError"]);
    ports(out, container, at);
    env::variables(out, container, at);
    variable_files(out, pod, container, at);
    env::sources(out, container, at);
    mounts(out, container, &pod.volumes, at);
    devices(out, container, &pod.volumes, at);
    choice(out, container, "imagePullPolicy", at, &["Always", "IfNotPresent", "Never"]);
    resources::of_container(out, &container["resources"], &at.child("resources"));
    resize(out, container, text(pod.spec, "restartPolicy"), at);
    security::of_container(out, &container["securityContext"], pod.spec, &at.child("securityContext"));
}

fn ports(out: &mut Errors, container: &Value, at: &At<'_>) {
    let at = &at.child("ports");
    let mut known = BTreeSet::new();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let at = &at.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            let why = names::port_name(name);
            if !why.is_empty() {
                reasons(out, name, &at.child("name"), why);
            } else if !known.insert(name) {
                out.push(FieldError::duplicate(at.child("name"), name));
            }
        }
        if count(port, "containerPort") == 0 {
            out.push(FieldError::required(at.child("containerPort"), ""));
        } else {
            port_number(out, &port["containerPort"], &at.child("containerPort"));
        }
        if count(port, "hostPort") != 0 {
            port_number(out, &port["hostPort"], &at.child("hostPort"));
        }
        choice(out, port, "protocol", at, &["SCTP", "TCP", "UDP"]);
    }
}

fn host_ports(out: &mut Errors, containers: &[Value], at: &At<'_>) {
    let mut taken = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let at = &at.index(index);
        let at = &at.child("ports");
        for (index, port) in list(container, "ports").iter().enumerate() {
            let number = count(port, "hostPort");
            let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if number != 0 && !taken.insert(key.clone()) {
                out.push(FieldError::duplicate(at.index(index).child("hostPort"), key));
            }
        }
    }
}

fn mounts(out: &mut Errors, container: &Value, volumes: &Volumes<'_>, at: &At<'_>) {
    let devices = list(container, "volumeDevices");
    let at = &at.child("volumeMounts");
    let mut points = BTreeSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let one = &at.index(index);
        let (name, path) = (text(mount, "name"), text(mount, "mountPath"));
        required(out, mount, "name", one);
        if !volumes.contains_key(name) {
            out.push(FieldError::not_found(one.child("name"), name));
        }
        required(out, mount, "mountPath", one);
        if !points.insert(path) {
            out.push(FieldError::invalid(one.child("mountPath"), path, "must be unique"));
        }
        if devices.iter().any(|device| text(device, "name") == name) {
            out.push(FieldError::invalid(one.child("name"), name, "must not already exist in volumeDevices"));
        }
        if devices.iter().any(|device| text(device, "devicePath") == path) {
            let why = "must not already exist as a path in volumeDevices";
            out.push(FieldError::invalid(one.child("mountPath"), path, why));
        }
        let (sub, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        descending_path(out, sub, &at.child("subPath"));
        if !expression.is_empty() {
            if !sub.is_empty() {
                let why = "subPathExpr and subPath are mutually exclusive";
                out.push(FieldError::invalid(one.child("subPathExpr"), expression, why));
            }
            descending_path(out, expression, &at.child("subPathExpr"));
        }
        propagation(out, mount, container, at);
        read_only(out, mount, at);
    }
}

fn propagation(out: &mut Errors, mount: &Value, container: &Value, at: &At<'_>) {
    optional_choice(out, mount, "mountPropagation", at, &["Bidirectional", "HostToContainer", "None"]);
    let both = text(mount, "mountPropagation") == "Bidirectional";
    if both && !is(&container["securityContext"], "privileged") {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        out.push(FieldError::forbidden(at.child("mountPropagation"), why));
    }
}

fn read_only(out: &mut Errors, mount: &Value, at: &At<'_>) {
    optional_choice(out, mount, "recursiveReadOnly", at, &["Disabled", "Enabled", "IfPossible"]);
    if !matches!(text(mount, "recursiveReadOnly"), "Enabled" | "IfPossible") {
        return;
    }
    let at = &at.child("recursiveReadOnly");
    if !is(mount, "readOnly") {
        out.push(FieldError::forbidden(at, "may only be specified when readOnly is true"));
    }
    if !matches!(text(mount, "mountPropagation"), "" | "None") {
        let why = "may only be specified when mountPropagation is None or not specified";
        out.push(FieldError::forbidden(at, why));
    }
}

fn devices(out: &mut Errors, container: &Value, volumes: &Volumes<'_>, at: &At<'_>) {
    let mounts = list(container, "volumeMounts");
    let at = &at.child("volumeDevices");
    let (mut paths, mut known) = (BTreeSet::new(), BTreeSet::new());
    for (index, device) in list(container, "volumeDevices").iter().enumerate() {
        let at = &at.index(index);
        let (name, path) = (text(device, "name"), text(device, "devicePath"));
        required(out, device, "name", at);
        if known.contains(name) {
            out.push(FieldError::invalid(at.child("name"), name, "must be unique"));
        }
        match volumes.get(name) {
            None => out.push(FieldError::not_found(at.child("name"), name)),
            Some(volume) if !has(volume, "persistentVolumeClaim") && !has(volume, "ephemeral") => {
                let why =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                out.push(FieldError::invalid(at.child("name"), name, why));
            }
            Some(_) => {}
        }
        required(out, device, "devicePath", at);
        if paths.contains(path) {
            out.push(FieldError::invalid(at.child("devicePath"), path, "must be unique"));
        }
        let mut steps = Errors::new();
        no_backsteps(&mut steps, path, at);
        if steps.is_empty() {
            paths.insert(path);
        } else {
            out.push(FieldError::invalid(at.child("devicePath"), path, "can not contain backsteps ('..')"));
        }
        if mounts.iter().any(|mount| text(mount, "name") == name) {
            out.push(FieldError::invalid(at.child("name"), name, "must not already exist in volumeMounts"));
        }
        if mounts.iter().any(|mount| text(mount, "mountPath") == path) {
            let why = "must not already exist as a path in volumeMounts";
            out.push(FieldError::invalid(at.child("devicePath"), path, why));
        }
        if !name.is_empty() {
            known.insert(name);
        }
    }
}

fn resize(out: &mut Errors, container: &Value, restart: &str, at: &At<'_>) {
    let at = &at.child("resizePolicy");
    let mut known = BTreeMap::new();
    let one_of = |out: &mut Errors, value: &str, options: &[&str]| match value {
        "" => out.push(FieldError::required(at, "")),
        value if !options.contains(&value) => out.push(FieldError::not_supported(at, value, options)),
        _ => {}
    };
    for (index, policy) in list(container, "resizePolicy").iter().enumerate() {
        let (name, wanted) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if known.insert(name, ()).is_some() {
            out.push(FieldError::duplicate(at.index(index), name));
        }
        one_of(out, name, &["cpu", "memory"]);
        one_of(out, wanted, &["NotRequired", "RestartContainer"]);
        if restart == "Never" && wanted != "NotRequired" {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            out.push(FieldError::invalid(at, wanted, why));
        }
    }
}

/// Variables can come from files of volumes that the pod has.
fn variable_files(out: &mut Errors, pod: &Pod<'_>, container: &Value, at: &At<'_>) {
    let at = &at.child("env");
    for (index, variable) in list(container, "env").iter().enumerate() {
        let reference = &variable["valueFrom"]["fileKeyRef"];
        let name = text(reference, "volumeName");
        if has(&variable["valueFrom"], "fileKeyRef") && !pod.volumes.contains_key(name) {
            let at = at.index(index);
            let at = format!("{at}.valueFrom.fileKeyRef.volumeName");
            out.push(FieldError::not_found(at, name));
        }
    }
}

fn restart(out: &mut Errors, container: &Value, at: &At<'_>, init: bool) {
    let rules = list(container, "restartPolicyRules");
    if has(container, "restartPolicy") {
        optional_choice(out, container, "restartPolicy", at, &["Always", "Never", "OnFailure"]);
    } else if !rules.is_empty() {
        let why = "must specify restartPolicy when restart rules are used";
        out.push(FieldError::required(at.child("restartPolicy"), why));
        if init {
            return;
        }
    }
    let at = &at.child("restartPolicyRules");
    if rules.len() > 20 {
        out.push(FieldError::too_many(at, rules.len(), 20));
    }
    for (index, rule) in rules.iter().enumerate() {
        let at = &at.index(index);
        let action = text(rule, "action");
        if !matches!(action, "Restart" | "RestartAllContainers") {
            let known = ["Restart", "RestartAllContainers"];
            out.push(FieldError::not_supported(at.child("action"), action, known));
        }
        let (codes, at) = (&rule["exitCodes"], &at.child("exitCodes"));
        if codes.is_null() {
            out.push(FieldError::required(at, "must be specified"));
            continue;
        }
        let operator = text(codes, "operator");
        if !matches!(operator, "In" | "NotIn") {
            out.push(FieldError::not_supported(at.child("operator"), operator, ["In", "NotIn"]));
        }
        let values = list(codes, "values").len();
        if values > 255 {
            out.push(FieldError::too_many(at.child("values"), values, 255));
        }
    }
}
