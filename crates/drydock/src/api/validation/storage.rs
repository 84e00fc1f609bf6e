//! Claims, volumes and storage classes.

use serde_json::{Map, Value};
use windlass_machinery::invalid::{FieldError, Shown};
use windlass_machinery::names;
use windlass_machinery::quantity::Quantity;

use super::env::annotation;
use super::field::{
    At, Errors, entries, has, immutable, list, named, optional_choice, reasons, required, strings, text,
};
use super::resources::quantity;
use super::selector::label_selector;
use super::{internal, scheduling, volume_source};

const SPEC: At<'static> = At::new("spec");
const MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// A claim.
pub(super) fn claim(out: &mut Errors, claim: &Value) {
    new_claim_spec(out, &claim["spec"], &SPEC);
}

/// What a new claim asks for.
pub(super) fn new_claim_spec(out: &mut Errors, spec: &Value, at: &At<'_>) {
    claim_spec(out, spec, at);
    for field in ["dataSource", "dataSourceRef"] {
        named(out, &spec[field], "apiGroup", &at.child(field), names::dns1123_subdomain);
    }
}

/// A changed claim.
pub(super) fn claim_update(out: &mut Errors, new: &Value, old: &Value) {
    claim_spec(out, &new["spec"], &SPEC);
    let (spec, was) = (&new["spec"], &old["spec"]);
    let metadata = At::new("metadata");
    let class = |object: &Value| annotation(&object["metadata"], CLASS).unwrap_or_default().to_owned();
    if class(new) != class(old) {
        let at = metadata.child("annotations");
        out.push(FieldError::invalid(at.child(CLASS), class(new), "field is immutable"));
    }
    let bound = text(&new["status"], "phase") == "Bound";
    let keep = |map: &mut Map<String, Value>, field: &str, from: &Value| match from.get(field) {
        Some(value) => _ = map.insert(field.to_owned(), value.clone()),
        None => _ = map.remove(field),
    };
    let mut now = spec.as_object().cloned().unwrap_or_default();
    let mut before = was.as_object().cloned().unwrap_or_default();
    if text(was, "volumeName").is_empty() {
        keep(&mut before, "volumeName", spec);
    }
    if !has(was, "storageClassName") && has(spec, "storageClassName") && class(old).is_empty() {
        keep(&mut now, "storageClassName", was);
    }
    if bound {
        if let Some(requests) = now.get_mut("resources").and_then(|resources| resources.get_mut("requests")) {
            requests["storage"] = was["resources"]["requests"]["storage"].clone();
        }
        keep(&mut now, "volumeAttributesClassName", was);
    }
    if now != before {
        let changes = internal::difference("PersistentVolumeClaimSpec", &before.into(), &now.into());
        let why = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n{changes}"
        );
        out.push(FieldError::forbidden(SPEC, why));
    }
    let size = |value: &Value| quantity(&value["storage"]).unwrap_or(Quantity::ZERO);
    let (wanted, had) = (size(&spec["resources"]["requests"]), size(&was["resources"]["requests"]));
    if wanted < had && wanted <= size(&old["status"]["capacity"]) {
        let why = "field can not be less than status.capacity";
        out.push(FieldError::forbidden("spec.resources.requests.storage", why));
    }
    immutable(out, &spec["volumeMode"], &was["volumeMode"], &At::new("volumeMode"));
}

/// How far a claim is with what it asks for.
pub(super) fn claim_status(out: &mut Errors, new: &Value, _: &Value) {
    const STEPS: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let status = &new["status"];
    let at = At::new("status");
    let known = |out: &mut Errors, name: &str, at: &At<'_>| {
        let own = name.split_once('/').is_some_and(|(domain, _)| !domain.ends_with("kubernetes.io"));
        reasons(out, name, at, names::qualified_name(name));
        if name != "storage" && !own {
            out.push(FieldError::not_supported(at, name, ["storage"]));
        }
    };
    let negative = |out: &mut Errors, value: &Value, at: &At<'_>| {
        if let Some(size) = quantity(value).filter(|size| size.sign() < 0) {
            out.push(FieldError::invalid(at, size.value(), "must be a valid resource quantity"));
        }
    };
    let inner = &at.child("capacity");
    for (name, value) in entries(status, "capacity") {
        negative(out, value, &inner.key(name));
    }
    let inner = &at.child("allocatedResourceStatuses");
    for (name, step) in entries(status, "allocatedResourceStatuses") {
        known(out, name, inner);
        if !STEPS.iter().any(|known| step == known) {
            let mut steps = STEPS;
            steps.sort_unstable();
            out.push(FieldError::not_supported(inner, name, steps));
        }
    }
    let inner = &at.child("allocatedResources");
    for (name, value) in entries(status, "allocatedResources") {
        let before = out.len();
        known(out, name, inner);
        if out.len() == before {
            negative(out, value, &inner.key(name));
        }
    }
}

/// What a claim asks for.
pub(super) fn claim_spec(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let modes = list(spec, "accessModes");
    let inner = &at.child("accessModes");
    if modes.is_empty() {
        out.push(FieldError::required(inner, "at least 1 access mode is required"));
    }
    label_selector(out, &spec["selector"], &at.child("selector"));
    access_modes(out, spec, inner);
    let resources = &at.child("resources");
    let storage = &resources.key("storage");
    match quantity(&spec["resources"]["requests"]["storage"]) {
        None => out.push(FieldError::required(storage, "")),
        Some(size) if size.sign() <= 0 => {
            out.push(FieldError::invalid(storage, size.to_string(), "must be greater than zero"));
        }
        Some(_) => {}
    }
    named(out, spec, "storageClassName", at, |name| names::subdomain_name(name, false));
    optional_choice(out, spec, "volumeMode", at, &["Block", "Filesystem"]);
    for field in ["dataSource", "dataSourceRef"].iter().filter(|field| has(spec, field)) {
        data_source(out, &spec[*field], &at.child(field));
    }
    let (source, reference) = (&spec["dataSource"], &spec["dataSourceRef"]);
    if !source.is_null() && !reference.is_null() {
        let why = if !text(reference, "namespace").is_empty() {
            Some("may not be specified when dataSourceRef.namespace is specified")
        } else {
            let same = ["apiGroup", "kind", "name"].iter().all(|field| source[*field] == reference[*field]);
            (!same).then_some("must match dataSourceRef")
        };
        // The server means to show the field, and shows a thing that has no text.
        out.extend(why.map(|why| FieldError::invalid(at, Shown::raw("{}"), why)));
    }
    named(out, spec, "volumeAttributesClassName", at, |name| names::subdomain_name(name, false));
}

fn access_modes(out: &mut Errors, spec: &Value, at: &At<'_>) {
    for mode in strings(spec, "accessModes").filter(|mode| !MODES.contains(mode)) {
        out.push(FieldError::not_supported(at, mode, MODES));
    }
    let one = strings(spec, "accessModes").any(|mode| mode == "ReadWriteOncePod");
    let other = strings(spec, "accessModes").any(|mode| mode != "ReadWriteOncePod" && MODES.contains(&mode));
    if one && other {
        out.push(FieldError::forbidden(at, "may not use ReadWriteOncePod with other access modes"));
    }
}

fn data_source(out: &mut Errors, source: &Value, at: &At<'_>) {
    required(out, source, "name", at);
    required(out, source, "kind", at);
    let (group, kind) = (text(source, "apiGroup"), text(source, "kind"));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        out.push(FieldError::invalid(at, kind, why));
    }
    named(out, source, "namespace", at, |name| names::label_name(name, false));
}

/// What volumes are made of, in the order in which it is looked at.
const SOURCES: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// A changed volume: what it is made of stays. The server checks the whole of it twice.
pub(super) fn volume_update(out: &mut Errors, new: &Value, old: &Value) {
    volume(out, new);
    volume(out, new);
    let metadata = windlass_machinery::invalid::Path::new("metadata");
    out.extend(names::object_meta(&new["metadata"], false, names::subdomain_name, &metadata));
    out.extend(names::finalizers_qualified(&new["metadata"], &metadata));
    let (spec, was) = (&new["spec"], &old["spec"]);
    let source = |spec: &Value, expands: bool| {
        let mut map = spec.as_object().cloned().unwrap_or_default();
        map.retain(|field, _| SOURCES.contains(&field.as_str()));
        if let Some(csi) = map.get_mut("csi").and_then(Value::as_object_mut).filter(|_| !expands) {
            csi.remove("controllerExpandSecretRef");
        }
        Value::Object(map)
    };
    let expands = has(&was["csi"], "controllerExpandSecretRef") || !has(was, "csi");
    let (now, before) = (source(spec, expands), source(was, expands));
    if now != before {
        let changes = internal::difference("PersistentVolumeSource", &before, &now);
        let why = format!("spec.persistentvolumesource is immutable after creation\n{changes}");
        out.push(FieldError::forbidden("spec.persistentvolumesource", why));
    }
    immutable(out, &spec["volumeMode"], &was["volumeMode"], &At::new("volumeMode"));
    if has(was, "nodeAffinity") && spec["nodeAffinity"] != was["nodeAffinity"] {
        let why = "field is immutable, except for updating from beta label to GA";
        let shown = internal::shown("VolumeNodeAffinity", &spec["nodeAffinity"]);
        out.push(FieldError::invalid("nodeAffinity", shown, why));
    }
    if has(was, "volumeAttributesClassName") && !has(spec, "volumeAttributesClassName") {
        let why = "update from non-nil value to nil is forbidden";
        out.push(FieldError::forbidden(SPEC.child("volumeAttributesClassName"), why));
    }
}

fn secret_reference(out: &mut Errors, reference: &Value, at: &At<'_>) {
    if required(out, reference, "name", at) {
        let name = text(reference, "name");
        reasons(out, name, &at.child("name"), names::subdomain_name(name, false));
    }
    if required(out, reference, "namespace", at) {
        let name = text(reference, "namespace");
        reasons(out, name, &at.child("namespace"), names::label_name(name, false));
    }
}

/// A volume.
pub(super) fn volume(out: &mut Errors, volume: &Value) {
    let spec = &volume["spec"];
    let at = &SPEC.child("accessModes");
    if list(spec, "accessModes").is_empty() {
        out.push(FieldError::required(at, ""));
    }
    access_modes(out, spec, at);
    let at = &SPEC.child("capacity");
    let capacity = spec["capacity"].as_object();
    if capacity.is_none_or(Map::is_empty) {
        out.push(FieldError::required(at, ""));
    }
    if capacity.is_none_or(|map| map.len() != 1 || !map.contains_key("storage")) {
        out.push(FieldError::not_supported(at, &spec["capacity"], ["storage"]));
    }
    for (name, value) in entries(spec, "capacity") {
        let at = &at.key(name);
        let Some(size) = quantity(value) else { continue };
        if size.sign() < 0 {
            let value = size.value();
            out.push(FieldError::invalid(at, value, "must be a valid resource quantity"));
        }
        if size.sign() <= 0 {
            out.push(FieldError::invalid(at, size.to_string(), "must be greater than zero"));
        }
    }
    optional_choice(out, spec, "persistentVolumeReclaimPolicy", &SPEC, &["Delete", "Recycle", "Retain"]);
    let affinity = &spec["nodeAffinity"];
    if !affinity.is_null() {
        let at = &SPEC.child("nodeAffinity");
        let at = &at.child("required");
        if has(affinity, "required") {
            scheduling::node_selector(out, &affinity["required"], at);
        } else {
            out.push(FieldError::required(at, "must specify required node constraints"));
        }
    }
    let mut found = SOURCES.iter().filter(|source| has(spec, source));
    match found.next() {
        None => out.push(FieldError::required(SPEC, "must specify a volume type")),
        Some(first) => {
            let source = &spec[*first];
            let at = &SPEC.child(first);
            match *first {
                "hostPath" => super::volume::host_path(out, source, at),
                "local" => _ = required(out, source, "path", at),
                "csi" => {
                    driver_name(out, source, "driver", at);
                    required(out, source, "volumeHandle", at);
                    for field in ["controllerPublish", "controllerExpand", "nodePublish", "nodeExpand"]
                        .map(|use_of| format!("{use_of}SecretRef"))
                    {
                        if has(source, &field) {
                            secret_reference(out, &source[&field], &at.child(&field));
                        }
                    }
                }
                "nfs" => super::volume::nfs(out, source, at),
                other => {
                    if let Some((shown, rule)) = volume_source::rule(other) {
                        rule(out, source, &SPEC.child(shown), true);
                    }
                }
            }
            initiator(out, volume, at);
            if *first == "local" && affinity.is_null() {
                let at = SPEC.child("nodeAffinity");
                out.push(FieldError::required(at, "Local volume requires node affinity"));
            }
        }
    }
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" && text(&spec["hostPath"], "path") == "/" {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        out.push(FieldError::forbidden(SPEC.child("persistentVolumeReclaimPolicy"), why));
    }
    for extra in found {
        // One driver is looked at whatever else there is.
        if *extra == "flexVolume"
            && let Some((shown, rule)) = volume_source::rule(extra)
        {
            rule(out, &spec[*extra], &SPEC.child(shown), true);
            continue;
        }
        let shown = if *extra == "cephfs" { "cephFS" } else { extra };
        out.push(FieldError::forbidden(SPEC.child(shown), "may not specify more than 1 volume type"));
    }
    if let Some(class) = spec["volumeAttributesClassName"].as_str() {
        let at = &SPEC.child("volumeAttributesClassName");
        if class.is_empty() {
            out.push(FieldError::required(at, "an empty string is disallowed"));
        } else {
            reasons(out, class, at, names::subdomain_name(class, false));
        }
    }
    if has(spec, "volumeAttributesClassName") && !has(spec, "csi") {
        let why = "has to be specified when using volumeAttributesClassName";
        out.push(FieldError::required(SPEC.child("csi"), why));
    }
    named(out, spec, "storageClassName", &SPEC, |name| names::subdomain_name(name, false));
    optional_choice(out, spec, "volumeMode", &SPEC, &["Block", "Filesystem"]);
}

/// An initiator's session is named after the volume and its portal.
fn initiator(out: &mut Errors, volume: &Value, at: &At<'_>) {
    let source = &volume["spec"]["iscsi"];
    let portal = text(source, "targetPortal");
    let length = text(&volume["metadata"], "name").len() + 1 + portal.len();
    if has(source, "initiatorName") && length > 64 {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                   iscsi.initiatorName is specified.";
        out.push(FieldError::invalid(at.child("targetportal"), portal, why));
    }
}

/// A storage class.
pub(super) fn class(out: &mut Errors, class: &Value) {
    provisioner(out, class, "provisioner");
    parameters(out, class);
    let policy = text(class, "reclaimPolicy");
    if !matches!(policy, "" | "Delete" | "Retain") {
        out.push(FieldError::not_supported("reclaimPolicy", policy, ["Delete", "Retain"]));
    }
    let modes = ["Immediate", "WaitForFirstConsumer"];
    match class["volumeBindingMode"].as_str() {
        None => out.push(FieldError::required("volumeBindingMode", "")),
        Some(mode) if !modes.contains(&mode) => {
            out.push(FieldError::not_supported("volumeBindingMode", mode, modes));
        }
        Some(_) => {}
    }
    topologies(out, class);
}

/// The name of what makes volumes.
pub(super) fn provisioner(out: &mut Errors, class: &Value, field: &str) {
    let (name, at) = (text(class, field).to_lowercase(), &At::new(field));
    if name.is_empty() {
        out.push(FieldError::required(at, ""));
    } else {
        reasons(out, &name, at, names::qualified_name(&name));
    }
}

/// What a provisioner is told.
pub(super) fn parameters(out: &mut Errors, class: &Value) {
    const MOST: usize = 512;
    const SIZE: usize = 256 * 1024;
    if entries(class, "parameters").count() > MOST {
        out.push(FieldError::too_long("parameters", MOST));
        return;
    }
    let mut size = 0;
    for (key, value) in entries(class, "parameters") {
        if key.is_empty() {
            out.push(FieldError::invalid("parameters", key, "field can not be empty."));
        }
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > SIZE {
        out.push(FieldError::too_long("parameters", SIZE));
    }
}

fn topologies(out: &mut Errors, class: &Value) {
    let at = &At::new("allowedTopologies");
    let all = list(class, "allowedTopologies");
    for (index, term) in all.iter().enumerate() {
        let at = &at.index(index);
        let at = &at.child("matchLabelExpressions");
        let requirements = list(term, "matchLabelExpressions");
        let mut keys: Vec<&str> = Vec::new();
        for (index, requirement) in requirements.iter().enumerate() {
            let at = &at.index(index);
            let key = text(requirement, "key");
            let values: Vec<&str> = strings(requirement, "values").collect();
            if values.is_empty() {
                out.push(FieldError::required(at.child("values"), ""));
            }
            let inner = at.child("values");
            for (index, value) in
                values.iter().enumerate().filter(|(index, value)| values[..*index].contains(value))
            {
                out.push(FieldError::duplicate(inner.index(index), *value));
            }
            reasons(out, key, &at.child("key"), names::qualified_name(key));
            if keys.contains(&key) {
                out.push(FieldError::duplicate(at.child("key"), key));
            }
            keys.push(key);
        }
        if requirements.is_empty() || all[..index].contains(term) {
            // What names no label is the same as what is not there.
            let before = all[..index].iter().filter(|other| *other == term).count();
            let times = if requirements.is_empty() { all.len() + before } else { before };
            out.extend((0..times).map(|_| FieldError::duplicate(at, "")));
        }
    }
}

/// A changed storage class.
pub(super) fn class_update(out: &mut Errors, new: &Value, old: &Value) {
    class(out, new);
    for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        immutable(out, &new[field], &old[field], &At::new(field));
    }
}

/// The name of a storage driver.
pub(super) fn driver_name(out: &mut Errors, source: &Value, field: &str, at: &At<'_>) {
    if !required(out, source, field, at) {
        return;
    }
    driver(out, text(source, field), &at.child(field));
}

/// The name of a driver that is there.
pub(super) fn driver(out: &mut Errors, name: &str, at: &At<'_>) {
    if name.len() > 63 {
        out.push(FieldError::too_long(at, 63));
    }
    reasons(out, name, at, names::dns1123_subdomain(&name.to_lowercase()));
}
