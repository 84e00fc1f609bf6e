//! `EnvVar` and `EnvFromSource`, and references to fields and resources.

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, entries, has, list, named, reasons, required, text};
use super::resources::quantity;

const ENV_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const VOLUME_FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const KNOWN_FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase"];
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const SIZES: &[&str] = &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// The variables of a container.
pub(super) fn variables(out: &mut Errors, container: &Value, at: &At<'_>) {
    let at = &at.child("env");
    for (index, variable) in list(container, "env").iter().enumerate() {
        let at = &at.index(index);
        if required(out, variable, "name", at) {
            named(out, variable, "name", at, names::env_var_name);
        }
        if has(variable, "valueFrom") {
            source(out, variable, &at.child("valueFrom"));
        }
    }
}

fn source(out: &mut Errors, variable: &Value, at: &At<'_>) {
    let from = &variable["valueFrom"];
    if has(from, "fieldRef") {
        field_reference(out, &from["fieldRef"], &at.child("fieldRef"), ENV_FIELDS);
    }
    if has(from, "resourceFieldRef") {
        resource_reference(out, &from["resourceFieldRef"], &at.child("resourceFieldRef"), false);
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        if has(from, kind) {
            key_reference(out, &from[kind], &at.child(kind));
        }
    }
    if has(from, "fileKeyRef") {
        file_reference(out, &from["fileKeyRef"], &at.child("fileKeyRef"));
    }
    let kinds = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let why = match kinds.iter().filter(|kind| has(from, kind)).count() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !text(variable, "value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    out.push(FieldError::invalid(at, "", why));
}

/// The maps and secrets whose entries become variables.
pub(super) fn sources(out: &mut Errors, container: &Value, at: &At<'_>) {
    let at = &at.child("envFrom");
    for (index, source) in list(container, "envFrom").iter().enumerate() {
        let one = &at.index(index);
        named(out, source, "prefix", one, names::env_var_name);
        let kinds = ["configMapRef", "secretRef"];
        for kind in kinds {
            let at = &one.child(kind);
            if has(source, kind) && required(out, &source[kind], "name", at) {
                named(out, &source[kind], "name", at, |name| names::subdomain_name(name, true));
            }
        }
        match kinds.iter().filter(|kind| has(source, kind)).count() {
            0 => out.push(FieldError::invalid(at, "", "must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => {
                out.push(FieldError::invalid(at, "", "may not have more than one field specified at a time"))
            }
        }
    }
}

/// A field of the pod, for a file of a volume.
pub(super) fn volume_field(out: &mut Errors, reference: &Value, at: &At<'_>) {
    field_reference(out, reference, at, VOLUME_FIELDS);
}

fn field_reference(out: &mut Errors, reference: &Value, at: &At<'_>, allowed: &[&str]) {
    if !required(out, reference, "apiVersion", at) || !required(out, reference, "fieldPath", at) {
        return;
    }
    let (version, path) = (text(reference, "apiVersion"), text(reference, "fieldPath"));
    let mut refuse = |why: String| {
        let why = format!("error converting fieldPath: {why}");
        out.push(FieldError::invalid(at.child("fieldPath"), path, why));
    };
    if version != "v1" {
        return refuse(format!("unsupported pod version: {version}"));
    }
    if let Some((field, key)) = subscript(path) {
        let key = match field {
            "metadata.annotations" => key.to_lowercase(),
            "metadata.labels" => key.to_owned(),
            _ => return refuse(format!("field label does not support subscript: {path}")),
        };
        reasons(out, &key, at, names::qualified_name(&key));
        return;
    }
    let path = if path == "spec.host" { "spec.nodeName" } else { path };
    if !ENV_FIELDS.contains(&path) && !KNOWN_FIELDS.contains(&path) {
        return refuse(format!("field label not supported: {path}"));
    }
    if !allowed.contains(&path) {
        out.push(FieldError::not_supported(at.child("fieldPath"), path, allowed));
    }
}

/// `path['key']`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (field, key) = path.strip_suffix("']")?.split_once("['")?;
    (!field.is_empty()).then_some((field, key))
}

/// A resource of a container; volumes have to say which container.
pub(super) fn resource_reference(out: &mut Errors, reference: &Value, at: &At<'_>, volume: bool) {
    let resource = text(reference, "resource");
    let huge = ["requests.hugepages-", "limits.hugepages-"].iter().any(|prefix| resource.starts_with(prefix));
    if volume && text(reference, "containerName").is_empty() {
        out.push(FieldError::required(at.child("containerName"), ""));
    } else if resource.is_empty() {
        out.push(FieldError::required(at.child("resource"), ""));
    } else if !RESOURCES.contains(&resource) && !huge {
        out.push(FieldError::not_supported(at.child("resource"), resource, RESOURCES));
    }
    let Some(divisor) = quantity(&reference["divisor"]).filter(|divisor| !divisor.is_zero()) else {
        return;
    };
    let (allowed, what): (&[&str], &str) = match resource {
        "limits.cpu" | "requests.cpu" => (&["1m", "1"], "cpu"),
        "limits.memory" | "requests.memory" => (SIZES, "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => (SIZES, "local ephemeral storage"),
        _ if huge => (SIZES, "hugepages"),
        _ => return,
    };
    if !allowed.contains(&divisor.to_string().as_str()) {
        let values = if what == "cpu" { "1m and 1".to_owned() } else { SIZES.join(", ") };
        let why = format!("only divisor's values {values} are supported with the {what} resource");
        out.push(FieldError::invalid(at.child("divisor"), resource, why));
    }
}

fn key_reference(out: &mut Errors, reference: &Value, at: &At<'_>) {
    let name = text(reference, "name");
    reasons(out, name, &at.child("name"), names::subdomain_name(name, false));
    if required(out, reference, "key", at) {
        named(out, reference, "key", at, names::config_map_key);
    }
}

fn file_reference(out: &mut Errors, reference: &Value, at: &At<'_>) {
    if required(out, reference, "key", at) {
        named(out, reference, "key", at, names::env_var_name);
    }
    if required(out, reference, "volumeName", at) {
        named(out, reference, "volumeName", at, names::dns1123_label);
    }
    if required(out, reference, "path", at) {
        super::volume::no_backsteps(out, text(reference, "path"), &at.child("path"));
    }
}

/// Files of a volume that hold fields of the pod.
pub(super) fn downward_file(out: &mut Errors, file: &Value, at: &At<'_>) {
    required(out, file, "path", at);
    super::volume::local_path(out, text(file, "path"), &at.child("path"));
    match (has(file, "fieldRef"), has(file, "resourceFieldRef")) {
        (true, both) => {
            volume_field(out, &file["fieldRef"], &at.child("fieldRef"));
            if both {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                out.push(FieldError::invalid(at, "resource", why));
            }
        }
        (false, true) => {
            resource_reference(out, &file["resourceFieldRef"], &at.child("resourceFieldRef"), true)
        }
        (false, false) => {
            out.push(FieldError::required(at, "one of fieldRef and resourceFieldRef is required"));
        }
    }
    super::volume::mode(out, file, "mode", at);
}

/// Whether a map has an entry; for rules about annotations.
pub(super) fn annotation<'v>(metadata: &'v Value, key: &str) -> Option<&'v str> {
    entries(metadata, "annotations").find(|(name, _)| *name == key).and_then(|(_, value)| value.as_str())
}
