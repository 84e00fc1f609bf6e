//! Claims, volumes and storage classes.

use serde_json::{Map, Value};
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::env::annotation;
use super::field::{
    At, Errors, entries, has, immutable, list, named, optional_choice, reasons, required, strings, text,
};
use super::resources::{self, quantity};
use super::selector::label_selector;
use super::{internal, scheduling};

const SPEC: At<'static> = At::new("spec");
const MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// A claim.
pub(super) fn claim(out: &mut Errors, claim: &Value) {
    claim_spec(out, &claim["spec"], &SPEC);
}

/// A changed claim.
pub(super) fn claim_update(out: &mut Errors, new: &Value, old: &Value) {
    claim(out, new);
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
    let size = |value: &Value| quantity(&value["storage"]);
    let (wanted, had) = (size(&spec["resources"]["requests"]), size(&was["resources"]["requests"]));
    let capacity = size(&old["status"]["capacity"]);
    if let (Some(wanted), Some(had)) = (wanted, had)
        && wanted < had
        && capacity.map_or(wanted.sign() <= 0, |capacity| wanted <= capacity)
    {
        let why = "field can not be less than status.capacity";
        out.push(FieldError::forbidden("spec.resources.requests.storage", why));
    }
    immutable(out, &spec["volumeMode"], &was["volumeMode"], &At::new("volumeMode"));
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
        out.extend(why.map(|why| FieldError::invalid(at, at.child("dataSource").to_string(), why)));
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
    named(out, source, "apiGroup", at, names::dns1123_subdomain);
    named(out, source, "namespace", at, |name| names::label_name(name, false));
}

/// A volume.
pub(super) fn volume(out: &mut Errors, volume: &Value) {
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
        match quantity(value) {
            Some(size) if size.sign() <= 0 => {
                out.push(FieldError::invalid(at, size.to_string(), "must be greater than zero"));
            }
            _ => resources::amount(out, name, value, at),
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
                "hostPath" | "local" => _ = required(out, source, "path", at),
                "csi" => {
                    driver_name(out, source, "driver", at);
                    required(out, source, "volumeHandle", at);
                }
                "nfs" => {
                    required(out, source, "server", at);
                    required(out, source, "path", at);
                }
                _ => {}
            }
            if *first == "local" && affinity.is_null() {
                let at = SPEC.child("nodeAffinity");
                out.push(FieldError::required(at, "Local volume requires node affinity"));
            }
        }
    }
    for extra in found {
        out.push(FieldError::forbidden(SPEC.child(extra), "may not specify more than 1 volume type"));
    }
    named(out, spec, "storageClassName", &SPEC, |name| names::subdomain_name(name, false));
    optional_choice(out, spec, "volumeMode", &SPEC, &["Block", "Filesystem"]);
}

/// A storage class.
pub(super) fn class(out: &mut Errors, class: &Value) {
    let provisioner = text(class, "provisioner").to_lowercase();
    let at = &At::new("provisioner");
    if provisioner.is_empty() {
        out.push(FieldError::required(at, ""));
    } else {
        reasons(out, &provisioner, at, names::qualified_name(&provisioner));
    }
    for (key, _) in entries(class, "parameters").filter(|(key, _)| key.is_empty()) {
        out.push(FieldError::invalid("parameters", key, "field can not be empty."));
    }
    let policy = text(class, "reclaimPolicy");
    if !matches!(policy, "" | "Delete" | "Retain") {
        out.push(FieldError::not_supported("reclaimPolicy", policy, ["Delete", "Retain"]));
    }
    match text(class, "volumeBindingMode") {
        "Immediate" | "WaitForFirstConsumer" => {}
        "" => out.push(FieldError::required("volumeBindingMode", "")),
        mode => {
            out.push(FieldError::not_supported(
                "volumeBindingMode",
                mode,
                ["Immediate", "WaitForFirstConsumer"],
            ));
        }
    }
}

/// A changed storage class.
pub(super) fn class_update(out: &mut Errors, new: &Value, old: &Value) {
    for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        immutable(out, &new[field], &old[field], &At::new(field));
    }
}

/// The name of a storage driver.
pub(super) fn driver_name(out: &mut Errors, source: &Value, field: &str, at: &At<'_>) {
    if !required(out, source, field, at) {
        return;
    }
    let (name, at) = (text(source, field), &at.child(field));
    if name.len() > 63 {
        out.push(FieldError::too_long(at, 63));
    }
    reasons(out, name, at, names::dns1123_subdomain(&name.to_lowercase()));
}
