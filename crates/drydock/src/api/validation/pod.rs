//! `Pod`, `PodSpec` and `PodTemplateSpec`.

use serde_json::{Map, Value};
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::super::strategy;
use super::container::{self, Pod};
use super::env::annotation;
use super::field::{
    At, Errors, annotations, choice, count, entries, has, is, labels, list, named, number, optional_choice,
    reasons, text,
};
use super::{address, internal, pod_resources, pod_status, scheduling, security, volume};

const SPEC: At<'static> = At::new("spec");
const METADATA: At<'static> = At::new("metadata");
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What may be changed in a pod.
const CHANGEABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// A new pod.
pub(super) fn create(out: &mut Errors, pod: &Value) {
    whole(out, pod);
    let spec = &pod["spec"];
    if !list(spec, "ephemeralContainers").is_empty() {
        out.push(FieldError::forbidden(SPEC.child("ephemeralContainers"), "cannot be set on create"));
    }
    if !text(spec, "nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        out.push(FieldError::forbidden(SPEC.child("nodeName"), why));
    }
}

/// A changed pod.
pub(super) fn update(out: &mut Errors, new: &Value, old: &Value) {
    whole(out, new);
    annotation_changes(out, new, old);
    let (spec, was) = (&new["spec"], &old["spec"]);
    for sort in ["containers", "initContainers"] {
        let at = &SPEC.child(sort);
        if list(spec, sort).len() != list(was, sort).len() {
            out.push(FieldError::forbidden(at, "pod updates may not add or remove containers"));
            return;
        }
        for (index, one) in list(spec, sort).iter().enumerate() {
            let at = &at.index(index);
            if text(one, "image").is_empty() {
                out.push(FieldError::required(at.child("image"), ""));
            }
            container::trimmed_image(out, one, at);
        }
    }
    if !deadline(out, spec, was) {
        return;
    }
    added_tolerations(out, spec, was);
    removed_gates(out, spec, was);
    selector_of_gated(out, spec, was);
    let allowed = with_allowed_changes(spec, was);
    if comparable(&allowed) != comparable(was) {
        let changes = internal::difference("PodSpec", was, &allowed);
        let why = format!("pod updates may not change fields other than {CHANGEABLE}\n{changes}");
        out.push(FieldError::forbidden(SPEC, why));
    }
}

/// A changed status.
pub(super) fn status(out: &mut Errors, new: &Value, old: &Value) {
    annotation_changes(out, new, old);
    pod_status::status(out, new, old);
}

/// Containers added to a running pod.
pub(super) fn ephemeral_containers(out: &mut Errors, new: &Value, old: &Value) {
    whole(out, new);
    annotation_changes(out, new, old);
    let at = SPEC.child("ephemeralContainers");
    let now = list(&new["spec"], "ephemeralContainers");
    for was in list(&old["spec"], "ephemeralContainers") {
        let name = text(was, "name");
        match now.iter().find(|one| text(one, "name") == name) {
            None => {
                let why = format!("existing ephemeral containers {name:?} may not be removed\n");
                out.push(FieldError::forbidden(at, why));
            }
            Some(one) if one != was => {
                let changes = internal::difference("EphemeralContainer", was, one);
                let why = format!("existing ephemeral containers {name:?} may not be changed\n{changes}");
                out.push(FieldError::forbidden(at, why));
            }
            Some(_) => {}
        }
    }
}

/// A pod whose containers get other amounts of what they use.
pub(super) fn resize(out: &mut Errors, new: &Value, old: &Value) {
    whole(out, new);
    annotation_changes(out, new, old);
    let (spec, was) = (&new["spec"], &old["spec"]);
    if strategy::qos_class(spec) != strategy::qos_class(was) {
        let why = "Pod QOS Class may not change as a result of resizing";
        out.push(FieldError::invalid(SPEC, new["status"]["qosClass"].clone(), why));
    }
    for sort in ["containers", "initContainers"] {
        for (index, (one, was)) in list(spec, sort).iter().zip(list(was, sort)).enumerate() {
            for amounts in ["requests", "limits"] {
                let gone = |name: &str| {
                    !was["resources"][amounts][name].is_null() && one["resources"][amounts][name].is_null()
                };
                if gone("cpu") || gone("memory") {
                    let at = &SPEC.child(sort);
                    let at = &at.index(index);
                    let at = &at.child("resources");
                    let why = format!("resource {amounts} cannot be removed");
                    out.push(FieldError::forbidden(at.child(amounts), why));
                }
            }
        }
    }
    if without_amounts(spec) != without_amounts(was) {
        out.push(FieldError::forbidden(SPEC, "only cpu and memory resources are mutable"));
    }
}

/// A pod's spec without what a resize changes.
fn without_amounts(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for sort in ["containers", "initContainers"] {
        for container in spec[sort].as_array_mut().into_iter().flatten() {
            let mut kept = container["resources"].take();
            for amounts in ["requests", "limits"] {
                if let Some(map) = kept[amounts].as_object_mut() {
                    map.retain(|name, _| !matches!(name.as_str(), "cpu" | "memory"));
                }
            }
            if let Some(map) = kept.as_object_mut() {
                map.retain(|_, value| {
                    !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty())
                });
            }
            container["resources"] = kept;
        }
    }
    spec
}

/// The template of a pod.
pub(super) fn template(out: &mut Errors, template: &Value, at: &At<'_>) {
    template_metadata(out, template, at);
    let at = &at.child("spec");
    spec(out, &template["spec"], "", at, false);
    if !list(&template["spec"], "ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        out.push(FieldError::forbidden(at.child("ephemeralContainers"), why));
    }
}

/// The metadata of a template, once more: for workloads that check it themselves as well.
pub(super) fn template_metadata(out: &mut Errors, template: &Value, at: &At<'_>) {
    labels(out, &template["metadata"], "labels", at);
    annotations(out, &template["metadata"], "annotations", at);
    own_annotations(out, &template["metadata"], &template["spec"], at);
}

fn whole(out: &mut Errors, pod: &Value) {
    let inner = &pod["spec"];
    own_annotations(out, &pod["metadata"], inner, &METADATA);
    spec(out, inner, text(&pod["metadata"], "name"), &SPEC, true);
    if text(inner, "serviceAccountName").is_empty() {
        let at = &SPEC.child("volumes");
        for (index, volume) in list(inner, "volumes").iter().enumerate() {
            let at = &at.index(index);
            let at = &at.child("projected");
            let at = &at.child("sources");
            for (index, source) in list(&volume["projected"], "sources").iter().enumerate() {
                if has(source, "serviceAccountToken") {
                    let why = "must not be specified when serviceAccountName is not set";
                    out.push(FieldError::forbidden(at.index(index).child("serviceAccountToken"), why));
                }
            }
        }
    }
    container::trimmed_images(out, inner, "containers", &SPEC);
    container::trimmed_images(out, inner, "initContainers", &SPEC);
}

fn own_annotations(out: &mut Errors, metadata: &Value, spec: &Value, at: &At<'_>) {
    let at = &at.child("annotations");
    if let Some(mirror) = annotation(metadata, MIRROR)
        && text(spec, "nodeName").is_empty()
    {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        out.push(FieldError::invalid(at.key(MIRROR), mirror, why));
    }
    const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    if let Some(cost) = annotation(metadata, COST) {
        let signed = cost.starts_with('+') || (cost.starts_with('0') && cost != "0");
        if signed || cost.parse::<i32>().is_err() {
            out.push(FieldError::invalid(at.key(COST), cost, "must be a 32bit integer"));
        }
    }
}

fn annotation_changes(out: &mut Errors, new: &Value, old: &Value) {
    let at = &METADATA.child("annotations");
    let (now, was) = (&new["metadata"], &old["metadata"]);
    let change = match (annotation(now, MIRROR), annotation(was, MIRROR)) {
        (now, was) if now == was => None,
        (_, Some(_)) => Some("may not remove or update mirror pod annotation"),
        _ => Some("may not add mirror pod annotation"),
    };
    out.extend(change.map(|why| FieldError::forbidden(at.key(MIRROR), why)));
    own_annotations(out, now, &new["spec"], &METADATA);
}

fn spec(out: &mut Errors, spec: &Value, name: &str, at: &At<'_>, is_pod: bool) {
    let grace = number(spec, "terminationGracePeriodSeconds");
    if grace.is_none() {
        out.push(FieldError::required(at.child("terminationGracePeriodSeconds"), ""));
    }
    let volumes = volume::volumes(out, spec, name, at);
    let pod = Pod { spec, volumes, grace };
    resource_claims(out, spec, at);
    for list in CONTAINERS {
        used_claims(out, spec, list, at);
    }
    container::main(out, &pod, at);
    container::init(out, &pod, at);
    container::ephemeral(out, &pod, at);
    pod_resources::of_pod(out, spec, at);
    host_network(out, spec, at, is_pod);
    choice(out, spec, "restartPolicy", at, &["Always", "OnFailure", "Never"]);
    choice(out, spec, "dnsPolicy", at, &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    labels(out, spec, "nodeSelector", at);
    security::of_pod(out, spec, at);
    scheduling::affinity(out, spec, at);
    dns(out, spec, at);
    scheduling::gates(out, spec, at);
    scheduling::spreading(out, spec, at);
    host_processes(out, spec, at);
    security::host_users(out, spec, at);
    host_name(out, spec, at);
    for field in ["serviceAccountName", "nodeName"] {
        named(out, spec, field, at, |name| names::subdomain_name(name, false));
    }
    if let Some(seconds) = number(spec, "activeDeadlineSeconds") {
        let why = names::in_range(seconds, 1, i64::from(i32::MAX));
        let at = at.child("activeDeadlineSeconds");
        out.extend(why.into_iter().map(|why| FieldError::invalid(at, seconds, why)));
    }
    named(out, spec, "hostname", at, names::dns1123_label);
    named(out, spec, "subdomain", at, names::dns1123_label);
    scheduling::tolerations(out, spec, at);
    host_aliases(out, spec, at);
    for field in ["priorityClassName", "runtimeClassName"] {
        named(out, spec, field, at, |name| names::subdomain_name(name, false));
    }
    optional_choice(out, spec, "preemptionPolicy", at, &["PreemptLowerPriority", "Never"]);
    security::os(out, spec, at);
}

const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// The claims that containers use.
fn used_claims(out: &mut Errors, spec: &Value, field: &str, at: &At<'_>) {
    let at = &at.child(field);
    for (index, container) in list(spec, field).iter().enumerate() {
        let at = &at.index(index);
        let at = &at.child("resources");
        pod_resources::claims(out, list(&container["resources"], "claims"), spec, &at.child("claims"));
    }
}

/// Containers that are processes of a Windows host: all of them or none.
fn host_processes(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let own = |within: &Value| within["securityContext"]["windowsOptions"]["hostProcess"].as_bool();
    let all = CONTAINERS.iter().flat_map(|field| list(spec, field)).count();
    let mut processes = 0;
    for field in CONTAINERS {
        let at = &at.child(field);
        for (index, container) in list(spec, field).iter().enumerate() {
            if let (Some(pod), Some(own)) = (own(spec), own(container))
                && pod != own
            {
                let at = at.index(index);
                let why = format!("pod hostProcess value must be identical if both are specified, was {pod}");
                let at = format!("{at}.securityContext.windowsOptions.hostProcess");
                out.push(FieldError::invalid(at, own, why));
            }
            processes += usize::from(own(container).or(own(spec)) == Some(true));
        }
    }
    if processes == 0 {
        return;
    }
    if processes != all {
        let why =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        out.push(FieldError::invalid(at, "", why));
    }
    if spec["hostNetwork"] != true {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        out.push(FieldError::invalid(at.child("hostNetwork"), false, why));
    }
}

/// Claims of devices.
fn resource_claims(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let at = &at.child("resourceClaims");
    let all = list(spec, "resourceClaims");
    for (index, claim) in all.iter().enumerate() {
        let (name, at) = (text(claim, "name"), &at.index(index));
        if name.is_empty() {
            out.push(FieldError::required(at.child("name"), ""));
        } else if all[..index].iter().any(|other| text(other, "name") == name) {
            out.push(FieldError::duplicate(at.child("name"), name));
        } else {
            reasons(out, name, &at.child("name"), names::dns1123_label(name));
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"];
        let why = match sources.iter().filter(|field| has(claim, field)).count() {
            1 => "",
            0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            _ => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        };
        if !why.is_empty() {
            out.push(FieldError::invalid(at, internal::shown("PodResourceClaim", claim), why));
        }
        for field in sources {
            named(out, claim, field, at, |name| names::subdomain_name(name, false));
        }
    }
}

fn host_network(out: &mut Errors, spec: &Value, at: &At<'_>, is_pod: bool) {
    if !is(spec, "hostNetwork") {
        return;
    }
    let at = &at.child("containers");
    for (index, container) in list(spec, "containers").iter().enumerate() {
        let at = &at.index(index);
        let at = &at.child("ports");
        for (index, port) in list(container, "ports").iter().enumerate() {
            let host = count(port, "hostPort");
            if (is_pod || host != 0) && host != count(port, "containerPort") {
                let why = "must match `containerPort` when `hostNetwork` is true";
                out.push(FieldError::invalid(at.index(index).child("hostPort"), host, why));
            }
        }
    }
}

fn dns(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let (config, at) = (&spec["dnsConfig"], &at.child("dnsConfig"));
    let servers = list(config, "nameservers");
    if text(spec, "dnsPolicy") == "None" {
        if config.is_null() {
            out.push(FieldError::required(at, "must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if servers.is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            out.push(FieldError::required(at.child("nameservers"), why));
            return;
        }
    }
    let inner = &at.child("nameservers");
    if servers.len() > 3 {
        out.push(FieldError::invalid(inner, &config["nameservers"], "must not have more than 3 nameservers"));
    }
    for (index, server) in servers.iter().enumerate() {
        address::ip(out, server.as_str().unwrap_or_default(), &inner.index(index));
    }
    let (searches, inner) = (list(config, "searches"), &at.child("searches"));
    if searches.len() > 32 {
        out.push(FieldError::invalid(inner, &config["searches"], "must not have more than 32 search paths"));
    }
    for (index, search) in searches.iter().enumerate() {
        let search = search.as_str().unwrap_or_default();
        let plain = search.strip_suffix('.').unwrap_or(search);
        if search != "." {
            reasons(out, plain, &inner.index(index), search_path(plain));
        }
    }
    let inner = &at.child("options");
    for (index, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            out.push(FieldError::required(inner.index(index), "must not be empty"));
        }
    }
}

/// A DNS subdomain whose labels may have underscores.
fn search_path(value: &str) -> Vec<String> {
    const REGEX: &str = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let good = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label);
        label.starts_with(edge) && label.ends_with(edge) && label.chars().all(|c| edge(c) || "-_".contains(c))
    };
    let mut why = Vec::new();
    if value.len() > 253 {
        why.push("must be no more than 253 characters".to_owned());
    }
    if !value.split('.').all(good) {
        why.push(names::regex_text(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
            REGEX,
            &["example.com"],
        ));
    }
    why
}

fn host_name(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let Some(name) = spec["hostnameOverride"].as_str() else {
        return;
    };
    let at = &at.child("hostnameOverride");
    if is(spec, "setHostnameAsFQDN") {
        out.push(FieldError::forbidden(at, "may not be specified when setHostnameAsFQDN is true"));
    }
    if is(spec, "hostNetwork") {
        out.push(FieldError::forbidden(at, "may not be specified when hostNetwork is true"));
    }
    if name.len() > 64 {
        out.push(FieldError::too_long(at, 64));
    }
    reasons(out, name, at, names::dns1123_subdomain(name));
}

fn host_aliases(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let at = &at.child("hostAliases");
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let at = &at.index(index);
        address::ip(out, text(alias, "ip"), &at.child("ip"));
        let at = &at.child("hostnames");
        for (index, name) in list(alias, "hostnames").iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            reasons(out, name, &at.index(index), names::dns1123_subdomain(name));
        }
    }
}

/// A deadline may come nearer, but not go away; whether the other rules apply as well.
fn deadline(out: &mut Errors, spec: &Value, was: &Value) -> bool {
    let at = SPEC.child("activeDeadlineSeconds");
    match (number(spec, "activeDeadlineSeconds"), number(was, "activeDeadlineSeconds")) {
        (Some(now), _) if !(0..=i64::from(i32::MAX)).contains(&now) => {
            let why = names::in_range(now, 0, i64::from(i32::MAX));
            out.extend(why.into_iter().map(|why| FieldError::invalid(at, now, why)));
            return false;
        }
        (Some(now), Some(was)) if was < now => {
            out.push(FieldError::invalid(at, now, "must be less than or equal to previous value"));
            return false;
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            out.push(FieldError::invalid(at, Value::Null, why));
        }
        _ => {}
    }
    true
}

fn added_tolerations(out: &mut Errors, spec: &Value, was: &Value) {
    let now = list(spec, "tolerations");
    let same = |old: &Value, new: &Value| {
        let rest = |value: &Value| {
            let mut map = value.as_object().cloned().unwrap_or_default();
            map.remove("tolerationSeconds");
            map
        };
        rest(old) == rest(new)
    };
    if list(was, "tolerations").iter().any(|old| !now.iter().any(|new| same(old, new))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        out.push(FieldError::forbidden(SPEC.child("tolerations"), why));
        return;
    }
    scheduling::tolerations(out, spec, &SPEC);
}

fn removed_gates(out: &mut Errors, spec: &Value, was: &Value) {
    let at = &SPEC.child("schedulingGates");
    let known = list(was, "schedulingGates");
    for (index, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        if !known.iter().any(|known| text(known, "name") == name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            out.push(FieldError::forbidden(at.index(index).child("name"), why));
        }
    }
}

fn is_gated(spec: &Value) -> bool {
    !list(spec, "schedulingGates").is_empty()
}

/// A pod that waits at a gate may still be sent to fewer nodes.
fn selector_of_gated(out: &mut Errors, spec: &Value, was: &Value) {
    let narrows =
        entries(was, "nodeSelector").all(|(key, value)| spec["nodeSelector"].get(key) == Some(value));
    if is_gated(was) && !narrows {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        out.push(FieldError::invalid(SPEC.child("nodeSelector"), &spec["nodeSelector"], why));
    }
}

/// The new specification with the old values of what may be changed.
fn with_allowed_changes(spec: &Value, was: &Value) -> Value {
    let mut spec = spec.as_object().cloned().unwrap_or_default();
    let keep = |spec: &mut Map<String, Value>, field: &str| match was.get(field) {
        Some(value) => _ = spec.insert(field.to_owned(), value.clone()),
        None => _ = spec.remove(field),
    };
    for sort in ["containers", "initContainers"] {
        let old = list(was, sort);
        for (new, old) in spec.get_mut(sort).and_then(Value::as_array_mut).into_iter().flatten().zip(old) {
            new["image"] = old["image"].clone();
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        keep(&mut spec, field);
    }
    let grace = "terminationGracePeriodSeconds";
    if number(was, grace).is_some_and(|was| was < 0) && spec.get(grace).is_some_and(|now| *now == 1) {
        keep(&mut spec, grace);
    }
    if is_gated(was) {
        keep(&mut spec, "nodeSelector");
    }
    Value::Object(spec)
}

/// What counts when specifications are compared: `serviceAccount` is an old name of `serviceAccountName`.
fn comparable(spec: &Value) -> Map<String, Value> {
    let mut map = spec.as_object().cloned().unwrap_or_default();
    map.remove("serviceAccount");
    map
}
