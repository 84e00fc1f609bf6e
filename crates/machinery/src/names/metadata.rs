//! The rules for the metadata that all objects share.

use serde_json::{Map, Value};

use super::{is_print, label_name, label_value, qualified_name};
use crate::go::{self, quote};
use crate::invalid::{FieldError, Path, Shown};

const ANNOTATIONS_LIMIT: usize = 256 * 1024;
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Checks the metadata of a new object. Its name has been generated already.
pub fn object_meta(
    meta: &Value,
    namespaced: bool,
    name_rule: impl Fn(&str, bool) -> Vec<String>,
    path: &Path,
) -> Vec<FieldError> {
    let mut out = Vec::new();
    let generate = text(meta, "generateName");
    if !generate.is_empty() {
        let at = path.child("generateName");
        out.extend(name_rule(generate, true).into_iter().map(|why| FieldError::invalid(&at, generate, why)));
    }
    let name = text(meta, "name");
    let named = || path.child("name");
    if name.is_empty() {
        out.push(FieldError::required(named(), "name or generateName is required"));
    } else {
        out.extend(name_rule(name, false).into_iter().map(|why| FieldError::invalid(named(), name, why)));
    }
    let namespace = text(meta, "namespace");
    let placed = || path.child("namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => out.push(FieldError::required(placed(), "")),
        (true, false) => out.extend(
            label_name(namespace, false).into_iter().map(|why| FieldError::invalid(placed(), namespace, why)),
        ),
        (false, false) => out.push(FieldError::forbidden(placed(), "not allowed on this type")),
        (false, true) => {}
    }
    let generation = meta["generation"].as_i64().unwrap_or_default();
    if generation < 0 {
        let at = path.child("generation");
        out.push(FieldError::invalid(at, generation, "must be greater than or equal to 0"));
    }
    at(meta, "labels", path, labels, &mut out);
    at(meta, "annotations", path, annotations, &mut out);
    at(meta, "ownerReferences", path, owner_references, &mut out);
    at(meta, "finalizers", path, finalizers, &mut out);
    at(meta, "managedFields", path, managed_fields, &mut out);
    out
}

/// Checks the metadata of an object that replaces another.
#[must_use]
pub fn object_meta_update(meta: &Value, old: &Value, path: &Path) -> Vec<FieldError> {
    let mut out = Vec::new();
    if !old["deletionTimestamp"].is_null() {
        out.extend(no_new_finalizers(&meta["finalizers"], &old["finalizers"], &path.child("finalizers")));
    }
    if text(meta, "resourceVersion").is_empty() {
        out.push(FieldError::invalid(path.child("resourceVersion"), "", "must be specified for an update"));
    }
    let generation = |meta: &Value| meta["generation"].as_i64().unwrap_or_default();
    if generation(meta) < generation(old) {
        out.push(FieldError::invalid(path.child("generation"), generation(meta), "must not be decremented"));
    }
    for field in ["name", "namespace", "uid"] {
        let value = text(meta, field);
        if value != text(old, field) {
            out.push(FieldError::invalid(path.child(field), value, "field is immutable"));
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if meta[field] != old[field] {
            out.push(FieldError::invalid(path.child(field), &meta[field], "field is immutable"));
        }
    }
    at(meta, "labels", path, labels, &mut out);
    at(meta, "annotations", path, annotations, &mut out);
    at(meta, "ownerReferences", path, owner_references, &mut out);
    at(meta, "managedFields", path, managed_fields, &mut out);
    out
}

/// Checks a part of metadata, where it is there.
fn at(
    meta: &Value,
    field: &str,
    path: &Path,
    check: fn(&Value, &Path) -> Vec<FieldError>,
    out: &mut Vec<FieldError>,
) {
    if let Some(part) = meta.get(field) {
        out.append(&mut check(part, &path.child(field)));
    }
}

/// Checks labels.
#[must_use]
pub fn labels(labels: &Value, path: &Path) -> Vec<FieldError> {
    let mut out = Vec::new();
    for (key, value) in entries(labels) {
        let value = value.as_str().unwrap_or_default();
        out.extend(qualified_name(key).into_iter().map(|why| FieldError::invalid(path, key, why)));
        out.extend(label_value(value).into_iter().map(|why| FieldError::invalid(path, value, why)));
    }
    out
}

/// What built-in kinds ask of finalizers on top: a domain, or one of the API's own names. `path` is that of
/// the metadata.
#[must_use]
pub fn finalizers_qualified(meta: &Value, path: &Path) -> Vec<FieldError> {
    let known = |name: &str| matches!(name, ORPHAN | FOREGROUND | "kubernetes");
    let path = path.child("finalizers");
    let names = strings(&meta["finalizers"]).enumerate();
    names
        .filter(|(_, name)| !name.contains('/') && !known(name))
        .map(|(index, name)| {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            FieldError::invalid(path.index(index), name, why)
        })
        .collect()
}

fn annotations(annotations: &Value, path: &Path) -> Vec<FieldError> {
    let mut out = Vec::new();
    let mut size = 0;
    for (key, value) in entries(annotations) {
        let why = qualified_name(&key.to_lowercase());
        out.extend(why.into_iter().map(|why| FieldError::invalid(path, key, why)));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > ANNOTATIONS_LIMIT {
        out.push(FieldError::too_long(path, ANNOTATIONS_LIMIT));
    }
    out
}

fn owner_references(references: &Value, path: &Path) -> Vec<FieldError> {
    let mut out = Vec::new();
    let mut controller: Option<String> = None;
    let all: &[Value] = references.as_array().map_or(&[], Vec::as_slice);
    for reference in all {
        let api_version = text(reference, "apiVersion");
        // A version that cannot be read counts as none.
        let version = match api_version.matches('/').count() {
            0 => api_version,
            1 => api_version.split('/').nth(1).unwrap_or_default(),
            _ => "",
        };
        if version.is_empty() {
            let at = path.child("apiVersion");
            out.push(FieldError::invalid(at, api_version, "version must not be empty"));
        }
        for field in ["kind", "name", "uid"] {
            if text(reference, field).is_empty() {
                out.push(FieldError::invalid(path.child(field), "", "must not be empty"));
            }
        }
        let kind = text(reference, "kind");
        if api_version == "v1" && kind == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            out.push(FieldError::invalid(path, Shown::raw(owner_reference(reference)), why));
        }
        if reference["controller"].as_bool() == Some(true) {
            let this = format!("{kind}/{}", text(reference, "name"));
            match &controller {
                None => controller = Some(this),
                Some(first) => {
                    let shown: Vec<String> = all.iter().map(owner_reference).collect();
                    let why = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    out.push(FieldError::invalid(path, Shown::raw(format!("[{}]", shown.join(","))), why));
                }
            }
        }
    }
    out
}

/// An owner reference with its fields in Go's order.
fn owner_reference(reference: &Value) -> String {
    let mut fields = Vec::new();
    for field in ["apiVersion", "kind", "name", "uid"] {
        fields.push(format!("\"{field}\":{}", go::json(&text(reference, field).into())));
    }
    for field in ["controller", "blockOwnerDeletion"] {
        if let Some(set) = reference[field].as_bool() {
            fields.push(format!("\"{field}\":{set}"));
        }
    }
    format!("{{{}}}", fields.join(","))
}

fn finalizers(finalizers: &Value, path: &Path) -> Vec<FieldError> {
    let mut out = Vec::new();
    for name in strings(finalizers) {
        out.extend(qualified_name(name).into_iter().map(|why| FieldError::invalid(path, name, why)));
    }
    let has = |wanted: &str| strings(finalizers).any(|name| name == wanted);
    if has(ORPHAN) && has(FOREGROUND) {
        let why = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        out.push(FieldError::invalid(path, finalizers, why));
    }
    out
}

fn no_new_finalizers(new: &Value, old: &Value, path: &Path) -> Option<FieldError> {
    let mut extra: Vec<&str> =
        strings(new).filter(|name| !strings(old).any(|known| known == *name)).collect();
    extra.sort_unstable();
    extra.dedup();
    if extra.is_empty() {
        return None;
    }
    let extra: Vec<String> = extra.into_iter().map(quote).collect();
    Some(FieldError::forbidden(
        path,
        format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            extra.join(", ")
        ),
    ))
}

fn managed_fields(entries: &Value, path: &Path) -> Vec<FieldError> {
    let mut out = Vec::new();
    for (index, entry) in entries.as_array().into_iter().flatten().enumerate() {
        let at = |field: &str| path.index(index).child(field);
        let operation = text(entry, "operation");
        if !matches!(operation, "Apply" | "Update") {
            out.push(FieldError::invalid(at("operation"), operation, "must be `Apply` or `Update`"));
        }
        let form = text(entry, "fieldsType");
        if !form.is_empty() && form != "FieldsV1" {
            out.push(FieldError::invalid(at("fieldsType"), form, "must be `FieldsV1`"));
        }
        let manager = text(entry, "manager");
        if manager.len() > 128 {
            out.push(FieldError::too_long(at("manager"), 128));
        }
        for (position, c) in manager.char_indices().filter(|(_, c)| !is_print(*c)) {
            let why = format!("invalid character U+{:04X} (at position {position})", u32::from(c));
            out.push(FieldError::invalid(at("manager"), manager, why));
        }
        if text(entry, "subresource").len() > 256 {
            out.push(FieldError::too_long(at("subresource"), 256));
        }
    }
    out
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

fn entries(map: &Value) -> impl Iterator<Item = (&String, &Value)> {
    map.as_object().into_iter().flat_map(Map::iter)
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}
