//! Requests for certificates.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;

use super::field::{At, Errors, list, number, reasons, strings, text};

const SPEC: At<'static> = At::new("spec");
const CONDITIONS: At<'static> = At::new("status.conditions");
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// A request.
pub(super) fn request(out: &mut Errors, request: &Value) {
    let spec = &request["spec"];
    if let Some(why) = unreadable(text(spec, "request")) {
        out.push(FieldError::invalid(SPEC.child("request"), &spec["request"], why));
    }
    let at = &SPEC.child("usages");
    let usages: Vec<&str> = strings(spec, "usages").collect();
    if usages.is_empty() {
        out.push(FieldError::required(at, ""));
    }
    for (index, usage) in usages.iter().enumerate().filter(|(_, usage)| !USAGES.contains(usage)) {
        out.push(FieldError::not_supported(at.index(index), *usage, USAGES));
    }
    for (index, usage) in usages.iter().enumerate().filter(|(index, usage)| usages[..*index].contains(usage))
    {
        out.push(FieldError::duplicate(at.index(index), *usage));
    }
    signer(out, text(spec, "signerName"), &SPEC.child("signerName"));
    if let Some(seconds) = number(spec, "expirationSeconds").filter(|seconds| *seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        out.push(FieldError::invalid(SPEC.child("expirationSeconds"), seconds, why));
    }
    conditions(out, request);
}

/// A changed request.
pub(super) fn update(out: &mut Errors, new: &Value, old: &Value) {
    request(out, new);
    kept(out, new, old);
    added(out, new, old, &["Approved", "Denied"]);
}

/// A request that was approved or denied.
pub(super) fn approval(out: &mut Errors, new: &Value, old: &Value) {
    request(out, new);
    kept(out, new, old);
}

fn unreadable(encoded: &str) -> Option<String> {
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    let block = Pem::iter_from_buffer(&bytes).find_map(Result::ok);
    let Some(block) = block.filter(|block| block.label == "CERTIFICATE REQUEST") else {
        return Some("PEM block type must be CERTIFICATE REQUEST".to_owned());
    };
    let parsed = X509CertificationRequest::from_der(&block.contents);
    parsed.is_err().then(|| "asn1: structure error: malformed certificate request".to_owned())
}

fn signer(out: &mut Errors, name: &str, at: &At<'_>) {
    const LEGACY: &str = "kubernetes.io/legacy-unknown";
    if name == LEGACY {
        let why = "the legacy signerName is not allowed via this API version";
        out.push(FieldError::invalid(at, name, why));
        return;
    }
    if name.is_empty() {
        out.push(FieldError::required(at, ""));
        return;
    }
    let (domain, path) = match name.split('/').collect::<Vec<_>>().as_slice() {
        [domain, path] => (*domain, *path),
        _ => {
            let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            out.push(FieldError::invalid(at, name, why));
            return;
        }
    };
    reasons(out, domain, at, names::dns1123_subdomain(domain));
    if domain.split('.').count() < 2 {
        let why = "should be a domain with at least two segments separated by dots";
        out.push(FieldError::invalid(at, domain, why));
    }
    reasons(out, path, at, names::dns1123_subdomain(path));
    const LONGEST: usize = 571;
    if name.len() > LONGEST {
        out.push(FieldError::too_long(at, LONGEST));
    }
}

fn conditions(out: &mut Errors, request: &Value) {
    let mut known: Vec<&str> = Vec::new();
    for (index, condition) in list(&request["status"], "conditions").iter().enumerate() {
        let at = &CONDITIONS.index(index);
        let (kind, status) = (text(condition, "type"), text(condition, "status"));
        if kind.is_empty() {
            out.push(FieldError::required(at.child("type"), ""));
        }
        let allowed: &[&str] = match kind {
            "Approved" | "Denied" | "Failed" => &["True"],
            _ => &["False", "True", "Unknown"],
        };
        if status.is_empty() {
            out.push(FieldError::required(at.child("status"), ""));
        } else if !allowed.contains(&status) {
            out.push(FieldError::not_supported(at.child("status"), status, allowed));
        }
        let other = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !other.is_empty() && known.contains(&other) {
            let why = "Approved and Denied conditions are mutually exclusive";
            out.push(FieldError::invalid(CONDITIONS, kind, why));
        }
        if known.contains(&kind) {
            out.push(FieldError::duplicate(at.child("type"), kind));
        }
        known.push(kind);
    }
}

fn of_type<'v>(request: &'v Value, kind: &str) -> Vec<&'v Value> {
    list(&request["status"], "conditions")
        .iter()
        .filter(|condition| text(condition, "type") == kind)
        .collect()
}

fn kept(out: &mut Errors, new: &Value, old: &Value) {
    for kind in ["Approved", "Denied", "Failed"] {
        if of_type(new, kind).len() < of_type(old, kind).len() {
            let why = format!("updates may not remove a condition of type {kind:?}");
            out.push(FieldError::forbidden(CONDITIONS, why));
        }
    }
}

fn added(out: &mut Errors, new: &Value, old: &Value, kinds: &[&str]) {
    for kind in kinds {
        if of_type(new, kind).len() > of_type(old, kind).len() {
            let why = format!("updates may not add a condition of type {kind:?}");
            out.push(FieldError::forbidden(CONDITIONS, why));
        }
    }
}
