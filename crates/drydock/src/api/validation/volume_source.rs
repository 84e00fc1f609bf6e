//! Where volumes come from, as far as pods and persistent volumes have it in common: mostly drivers of old.

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{
    At, Errors, count, entries, has, is, list, named, number, optional_choice, reasons, required, text,
};

/// What is wrong with a source; the last argument tells whether it is that of a persistent volume.
pub(super) type Rule = fn(&mut Errors, &Value, &At<'_>, bool);

/// The rule of a source, and the name under which its faults are told.
pub(super) fn rule(field: &str) -> Option<(&'static str, Rule)> {
    SOURCES.iter().find(|(known, ..)| *known == field).map(|(_, shown, rule)| (*shown, *rule))
}

static SOURCES: &[(&str, &str, Rule)] = &[
    ("gcePersistentDisk", "persistentDisk", |out, source, at, _| {
        needs(out, source, &["pdName"], at);
        partition(out, source, at);
    }),
    ("awsElasticBlockStore", "awsElasticBlockStore", |out, source, at, _| {
        needs(out, source, &["volumeID"], at);
        partition(out, source, at);
    }),
    ("glusterfs", "glusterfs", |out, source, at, _| {
        needs(out, source, &["endpoints", "path"], at);
        if let Some(namespace) = source["endpointsNamespace"].as_str() {
            let at = &at.child("endpointsNamespace");
            if namespace.is_empty() {
                let why = "if the endpointnamespace is set, it must be a valid namespace name";
                out.push(FieldError::invalid(at, namespace, why));
            } else {
                reasons(out, namespace, at, names::label_name(namespace, false));
            }
        }
    }),
    ("flocker", "flocker", flocker),
    ("rbd", "rbd", |out, source, at, _| {
        filled(out, source, "monitors", at);
        needs(out, source, &["image"], at);
    }),
    ("quobyte", "quobyte", quobyte),
    ("cephfs", "cephfs", |out, source, at, _| filled(out, source, "monitors", at)),
    ("iscsi", "iscsi", iscsi),
    ("cinder", "cinder", |out, source, at, persistent| {
        needs(out, source, &["volumeID"], at);
        secret(out, source, at, persistent);
    }),
    ("fc", "fc", fibre_channel),
    ("flexVolume", "flexVolume", |out, source, at, _| {
        needs(out, source, &["driver"], at);
        let at = &at.child("options");
        for (key, _) in entries(source, "options") {
            let domain = format!(".{}", key.split('/').next().unwrap_or_default().to_lowercase());
            if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
                let why = "kubernetes.io and k8s.io namespaces are reserved";
                out.push(FieldError::invalid(at.key(key), key, why));
            }
        }
    }),
    ("azureFile", "azureFile", |out, source, at, _| {
        needs(out, source, &["secretName", "shareName"], at);
        if source["secretNamespace"] == "" {
            out.push(FieldError::required(at.child("secretNamespace"), ""));
        }
    }),
    ("vsphereVolume", "vsphereVolume", |out, source, at, _| needs(out, source, &["volumePath"], at)),
    ("photonPersistentDisk", "photonPersistentDisk", |out, source, at, _| needs(out, source, &["pdID"], at)),
    ("portworxVolume", "portworxVolume", |out, source, at, _| needs(out, source, &["volumeID"], at)),
    ("azureDisk", "azureDisk", azure_disk),
    ("scaleIO", "scaleIO", |out, source, at, _| {
        needs(out, source, &["gateway", "system", "volumeName"], at);
    }),
    ("storageos", "storageos", |out, source, at, persistent| {
        needs(out, source, &["volumeName"], at);
        for field in ["volumeName", "volumeNamespace"] {
            named(out, source, field, at, names::dns1123_label);
        }
        secret(out, source, at, persistent);
    }),
];

fn needs(out: &mut Errors, source: &Value, fields: &[&str], at: &At<'_>) {
    for field in fields {
        required(out, source, field, at);
    }
}

fn filled(out: &mut Errors, source: &Value, field: &str, at: &At<'_>) {
    if list(source, field).is_empty() {
        out.push(FieldError::required(at.child(field), ""));
    }
}

fn partition(out: &mut Errors, source: &Value, at: &At<'_>) {
    let number = count(source, "partition");
    out.extend(
        names::in_range(number, 0, 255)
            .into_iter()
            .map(|why| FieldError::invalid(at.child("partition"), number, why)),
    );
}

fn secret(out: &mut Errors, source: &Value, at: &At<'_>, persistent: bool) {
    if has(source, "secretRef") {
        let fields: &[&str] = if persistent { &["name", "namespace"] } else { &["name"] };
        needs(out, &source["secretRef"], fields, &at.child("secretRef"));
    }
}

fn flocker(out: &mut Errors, source: &Value, at: &At<'_>, _: bool) {
    let (name, id) = (text(source, "datasetName"), text(source, "datasetUUID"));
    if name.is_empty() && id.is_empty() {
        out.push(FieldError::required(at, "one of datasetName and datasetUUID is required"));
    }
    if !name.is_empty() && !id.is_empty() {
        let why = "datasetName and datasetUUID can not be specified simultaneously";
        out.push(FieldError::invalid(at, "resource", why));
    }
    if name.contains('/') {
        out.push(FieldError::invalid(at.child("datasetName"), name, "must not contain '/'"));
    }
}

fn quobyte(out: &mut Errors, source: &Value, at: &At<'_>, _: bool) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = text(source, "registry");
    if registry.is_empty() {
        out.push(FieldError::required(at.child("registry"), PAIRS));
    } else if text(source, "tenant").len() > 64 {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        out.push(FieldError::required(at.child("tenant"), why));
    } else {
        for pair in registry.split(',') {
            let host = pair.rsplit_once(':').map(|(host, _)| host);
            if host.is_none_or(|host| host.contains(':') && !(host.starts_with('[') && host.ends_with(']'))) {
                out.push(FieldError::invalid(at.child("registry"), registry, PAIRS));
            }
        }
    }
    needs(out, source, &["volume"], at);
}

fn iscsi(out: &mut Errors, source: &Value, at: &At<'_>, persistent: bool) {
    needs(out, source, &["targetPortal", "iqn"], at);
    let wrong = |name: &str| {
        let known = ["iqn", "eui", "naa"].iter().any(|prefix| name.starts_with(prefix));
        match (known, is_initiator(name)) {
            (false, _) if !persistent => Some("must be valid format starting with iqn, eui, or naa"),
            (_, false) => Some("must be valid format"),
            _ => None,
        }
    };
    let iqn = text(source, "iqn");
    if let Some(why) = wrong(iqn).filter(|_| !iqn.is_empty()) {
        out.push(FieldError::invalid(at.child("iqn"), iqn, why));
    }
    let lun = count(source, "lun");
    let range = names::in_range(lun, 0, 255);
    out.extend(range.into_iter().map(|why| FieldError::invalid(at.child("lun"), lun, why)));
    if (is(source, "chapAuthDiscovery") || is(source, "chapAuthSession")) && !has(source, "secretRef") {
        out.push(FieldError::required(at.child("secretRef"), ""));
    }
    if persistent && has(source, "secretRef") {
        needs(out, &source["secretRef"], &["name"], &at.child("secretRef"));
    }
    if let Some(name) = source["initiatorName"].as_str()
        && let Some(why) = wrong(name)
    {
        out.push(FieldError::invalid(at.child("initiatorname"), name, why));
    }
}

/// Whether a text names an initiator: `iqn.2004-10.com.example:name`, `eui.` or `naa.` with hexadecimal digits.
fn is_initiator(name: &str) -> bool {
    let hexadecimal = |digits: &str, lengths: &[usize]| {
        lengths.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    match (name.strip_prefix("iqn."), name.strip_prefix("eui."), name.strip_prefix("naa.")) {
        (_, Some(digits), _) => hexadecimal(digits, &[16]),
        (_, _, Some(digits)) => hexadecimal(digits, &[16, 32]),
        (Some(rest), ..) => {
            let date = rest.get(..7).unwrap_or_default();
            let dated = date.bytes().enumerate().all(|(index, byte)| match index {
                4 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
            let (domain, unique) = rest.get(7..).unwrap_or_default().split_once(':').unwrap_or_default();
            let parts = domain.strip_prefix('.').map(|domain| {
                domain.split('.').all(|part| {
                    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
                    let bytes = part.as_bytes();
                    edge(bytes.first())
                        && edge(bytes.last())
                        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
                })
            });
            date.len() == 7
                && dated
                && parts == Some(true)
                && !unique.is_empty()
                && !unique.contains(|c: char| c.is_whitespace() || c == '_')
        }
        _ => false,
    }
}

fn fibre_channel(out: &mut Errors, source: &Value, at: &At<'_>, _: bool) {
    let (targets, ids) = (list(source, "targetWWNs"), list(source, "wwids"));
    let place = &at.child("targetWWNs");
    if targets.is_empty() && ids.is_empty() {
        out.push(FieldError::required(place, "must specify either targetWWNs or wwids, but not both"));
    }
    if !targets.is_empty() && !ids.is_empty() {
        let why = "targetWWNs and wwids can not be specified simultaneously";
        out.push(FieldError::invalid(place, &source["targetWWNs"], why));
    }
    if !targets.is_empty() {
        match number(source, "lun") {
            None => {
                let why = "lun is required if targetWWNs is specified";
                out.push(FieldError::required(at.child("lun"), why));
            }
            Some(lun) => out.extend(
                names::in_range(lun, 0, 255)
                    .into_iter()
                    .map(|why| FieldError::invalid(at.child("lun"), lun, why)),
            ),
        }
    }
}

fn azure_disk(out: &mut Errors, source: &Value, at: &At<'_>, _: bool) {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    needs(out, source, &["diskName", "diskURI"], at);
    optional_choice(out, source, "cachingMode", at, &["None", "ReadOnly", "ReadWrite"]);
    optional_choice(out, source, "kind", at, &["Dedicated", "Managed", "Shared"]);
    let address = text(source, "diskURI");
    let (wanted, form) = match source["kind"].as_str() {
        Some("Managed") => ("/subscriptions/", MANAGED),
        Some(_) => ("https://", BLOB),
        None => return,
    };
    if !address.starts_with(wanted) {
        out.push(FieldError::not_supported(at.child("diskURI"), address, [form]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initiators_have_one_of_three_forms() {
        for good in [
            "iqn.2004-10.com.example:storage",
            "eui.0123456789abcdef",
            "naa.62004567BA64678D0123456789ABCDEF",
        ] {
            assert!(is_initiator(good), "{good}");
        }
        for bad in ["iqn", "iqn.2004-1.com:x", "iqn.2004-10.com", "eui.0123", "naa.x", "x"] {
            assert!(!is_initiator(bad), "{bad}");
        }
    }
}
