//! `Volume` and its sources.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{
    At, Errors, annotations, has, labels, list, number, optional_choice, reasons, required, text,
};
use super::resources::quantity;
use super::{env, storage, volume_source};

/// The volumes of a pod that containers can mount, by name.
pub(super) type Volumes<'v> = BTreeMap<&'v str, &'v Value>;

type Rule = fn(&mut Errors, &Value, &At<'_>);

/// The sources of a volume, in the order they are looked at: the field, the name by which a second one is
/// refused, and the rule.
static SOURCES: &[(&str, &str, Rule)] = &[
    ("hostPath", "hostPath", host_path),
    ("gitRepo", "gitRepo", |out, source, at| {
        required(out, source, "repository", at);
        local_path(out, text(source, "directory"), &at.child("directory"));
    }),
    ("gcePersistentDisk", "gcePersistentDisk", COMMON),
    ("awsElasticBlockStore", "awsElasticBlockStore", COMMON),
    ("secret", "secret", |out, source, at| key_files(out, source, "secretName", at)),
    ("nfs", "nfs", nfs),
    ("iscsi", "iscsi", COMMON),
    ("glusterfs", "glusterfs", COMMON),
    ("flocker", "flocker", COMMON),
    ("persistentVolumeClaim", "persistentVolumeClaim", |out, source, at| {
        _ = required(out, source, "claimName", at)
    }),
    ("rbd", "rbd", COMMON),
    ("cinder", "cinder", COMMON),
    ("cephfs", "cephFS", COMMON),
    ("quobyte", "quobyte", COMMON),
    ("downwardAPI", "downwarAPI", |out, source, at| {
        mode(out, source, "defaultMode", at);
        for file in list(source, "items") {
            env::downward_file(out, file, at);
        }
    }),
    ("fc", "fc", COMMON),
    ("flexVolume", "flexVolume", COMMON),
    ("configMap", "configMap", |out, source, at| key_files(out, source, "name", at)),
    ("azureFile", "azureFile", COMMON),
    ("vsphereVolume", "vsphereVolume", COMMON),
    ("photonPersistentDisk", "photonPersistentDisk", COMMON),
    ("portworxVolume", "portworxVolume", COMMON),
    ("azureDisk", "azureDisk", COMMON),
    ("storageos", "storageos", COMMON),
    ("projected", "projected", projected),
    ("scaleIO", "scaleIO", COMMON),
    ("csi", "csi", |out, source, at| {
        storage::driver_name(out, source, "driver", at);
        let secret = &source["nodePublishSecretRef"];
        if has(source, "nodePublishSecretRef") {
            let name = text(secret, "name");
            if required(out, secret, "name", &at.child("nodePublishSecretRef")) {
                reasons(out, name, &at.child("name"), names::subdomain_name(name, false));
            }
        }
    }),
    ("ephemeral", "ephemeral", ephemeral),
    ("image", "image", |out, source, at| {
        required(out, source, "reference", at);
        optional_choice(out, source, "pullPolicy", at, &["Always", "IfNotPresent", "Never"]);
    }),
];

/// What persistent volumes have as well is in [`volume_source`].
const COMMON: Rule = |_, _, _| {};

/// The volumes of a pod; `pod` is its name, if it has one.
pub(super) fn volumes<'v>(out: &mut Errors, spec: &'v Value, pod: &str, at: &At<'_>) -> Volumes<'v> {
    let at = &at.child("volumes");
    let all = list(spec, "volumes");
    let made: BTreeSet<String> = all
        .iter()
        .filter(|volume| !pod.is_empty() && has(volume, "ephemeral") && !text(volume, "name").is_empty())
        .map(|volume| format!("{pod}-{}", text(volume, "name")))
        .collect();
    let mut known = Volumes::new();
    for (index, volume) in all.iter().enumerate() {
        let at = &at.index(index);
        let before = out.len();
        source(out, volume, at);
        let name = text(volume, "name");
        if required(out, volume, "name", at) {
            reasons(out, name, &at.child("name"), names::dns1123_label(name));
        }
        if known.contains_key(name) {
            out.push(FieldError::duplicate(at.child("name"), name));
        }
        if out.len() == before {
            known.insert(name, volume);
        }
        let made_name = format!("{pod}-{name}");
        if made.contains(&made_name) {
            for why in names::subdomain_name(&made_name, false) {
                let why = format!("PVC name {made_name:?}: {why}");
                out.push(FieldError::invalid(at.child("name"), name, why));
            }
        }
        let claim = text(&volume["persistentVolumeClaim"], "claimName");
        if made.contains(claim) {
            let at = at.child("persistentVolumeClaim");
            let why = "must not reference a PVC that gets created for an ephemeral volume";
            out.push(FieldError::invalid(at.child("claimName"), claim, why));
        }
    }
    known
}

fn source(out: &mut Errors, volume: &Value, at: &At<'_>) {
    let mut found = false;
    if has(volume, "emptyDir") {
        found = true;
        if quantity(&volume["emptyDir"]["sizeLimit"]).is_some_and(|limit| limit.sign() < 0) {
            let at = at.child("emptyDir");
            let why = "SizeLimit field must be a valid resource quantity";
            out.push(FieldError::forbidden(at.child("sizeLimit"), why));
        }
    }
    for (field, refused, rule) in SOURCES {
        if !has(volume, field) {
            continue;
        }
        if found {
            out.push(FieldError::forbidden(at.child(refused), "may not specify more than 1 volume type"));
        } else {
            found = true;
            rule(out, &volume[*field], &at.child(field));
            if let Some((shown, rule)) = volume_source::rule(field) {
                rule(out, &volume[*field], &at.child(shown), false);
            }
        }
    }
    if !found {
        out.push(FieldError::required(at, "must specify a volume type"));
    }
}

/// A path on a node.
pub(super) fn host_path(out: &mut Errors, source: &Value, at: &At<'_>) {
    const TYPES: &[&str] = &[
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    if required(out, source, "path", at) {
        no_backsteps(out, text(source, "path"), &at.child("path"));
        optional_choice(out, source, "type", at, TYPES);
    }
}

/// A directory of a server.
pub(super) fn nfs(out: &mut Errors, source: &Value, at: &At<'_>) {
    required(out, source, "server", at);
    required(out, source, "path", at);
    let path = text(source, "path");
    if !path.starts_with('/') {
        out.push(FieldError::invalid(at.child("path"), path, "must be an absolute path"));
    }
}

fn key_files(out: &mut Errors, source: &Value, name: &str, at: &At<'_>) {
    required(out, source, name, at);
    mode(out, source, "defaultMode", at);
    let at = &at.child("items");
    for (index, item) in list(source, "items").iter().enumerate() {
        key_file(out, item, &at.index(index));
    }
}

fn key_file(out: &mut Errors, item: &Value, at: &At<'_>) {
    required(out, item, "key", at);
    required(out, item, "path", at);
    local_path(out, text(item, "path"), &at.child("path"));
    mode(out, item, "mode", at);
}

fn projected(out: &mut Errors, volume: &Value, at: &At<'_>) {
    mode(out, volume, "defaultMode", at);
    let mut paths = BTreeSet::new();
    let sources = &at.child("sources");
    for (index, source) in list(volume, "sources").iter().enumerate() {
        let one = &sources.index(index);
        for kind in ["secret", "configMap"] {
            let (source, items) = (&source[kind], &one.child(kind));
            if source.is_null() {
                continue;
            }
            required(out, source, "name", items);
            let items = &items.child("items");
            for (index, item) in list(source, "items").iter().enumerate() {
                key_file(out, item, &items.index(index));
                let path = text(item, "path");
                if !path.is_empty() && !paths.insert(path) {
                    out.push(FieldError::invalid(at, text(source, "name"), "conflicting duplicate paths"));
                }
            }
        }
        for file in list(&source["downwardAPI"], "items") {
            env::downward_file(out, file, &one.child("downwardAPI"));
            let path = text(file, "path");
            if !path.is_empty() && !paths.insert(path) {
                out.push(FieldError::invalid(at, path, "conflicting duplicate paths"));
            }
        }
        if has(source, "serviceAccountToken") {
            token(out, &source["serviceAccountToken"], &one.child("serviceAccountToken"), at);
        }
        let kinds = [
            "secret",
            "configMap",
            "downwardAPI",
            "serviceAccountToken",
            "clusterTrustBundle",
            "podCertificate",
        ];
        if kinds.iter().filter(|kind| has(source, kind)).count() > 1 {
            out.push(FieldError::forbidden(one, "may not specify more than 1 volume type per source"));
        }
    }
}

fn token(out: &mut Errors, token: &Value, at: &At<'_>, volume: &At<'_>) {
    let seconds = number(token, "expirationSeconds").unwrap_or_default();
    let expires = at.child("expirationSeconds");
    if seconds < 600 {
        out.push(FieldError::invalid(expires, seconds, "may not specify a duration less than 10 minutes"));
    }
    if seconds > 1 << 32 {
        out.push(FieldError::invalid(
            expires,
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        ));
    }
    // The server names the volume here, not the source.
    if required(out, token, "path", volume) {
        local_path(out, text(token, "path"), &volume.child("path"));
    }
}

fn ephemeral(out: &mut Errors, source: &Value, at: &At<'_>) {
    let (template, at) = (&source["volumeClaimTemplate"], &at.child("volumeClaimTemplate"));
    if template.is_null() {
        out.push(FieldError::required(at, ""));
        return;
    }
    let metadata = &at.child("metadata");
    annotations(out, &template["metadata"], "annotations", metadata);
    labels(out, &template["metadata"], "labels", metadata);
    storage::new_claim_spec(out, &template["spec"], &at.child("spec"));
}

/// The mode of a file.
pub(super) fn mode(out: &mut Errors, object: &Value, field: &str, at: &At<'_>) {
    if let Some(mode) = number(object, field).filter(|mode| !(0..=0o777).contains(mode)) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        out.push(FieldError::invalid(at.child(field), mode, why));
    }
}

/// A path that stays where it is.
pub(super) fn descending_path(out: &mut Errors, path: &str, at: &At<'_>) {
    if path.starts_with('/') {
        out.push(FieldError::invalid(at, path, "must be a relative path"));
    }
    no_backsteps(out, path, at);
}

/// A path that stays where it is and does not look like one of the kubelet's own.
pub(super) fn local_path(out: &mut Errors, path: &str, at: &At<'_>) {
    descending_path(out, path, at);
    if path.starts_with("..") && !path.starts_with("../") {
        out.push(FieldError::invalid(at, path, "must not start with '..'"));
    }
}

/// A path without steps back.
pub(super) fn no_backsteps(out: &mut Errors, path: &str, at: &At<'_>) {
    if path.split('/').any(|part| part == "..") {
        out.push(FieldError::invalid(at, path, "must not contain '..'"));
    }
}
