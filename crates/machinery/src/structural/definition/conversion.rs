//! How objects are converted between versions: the settings, and the webhook's address.

use base64::Engine as _;
use serde_json::Value;

use super::one_of;
use crate::invalid::{FieldError, Path};
use crate::names;
use crate::structural::props::Props;

/// What is wrong with `spec.conversion`. `established` is the old definition, if it is in use.
pub(super) fn check(
    conversion: Option<Props<'_>>,
    preserve: bool,
    established: Option<&Value>,
    path: &Path,
    out: &mut Vec<FieldError>,
) {
    let Some(conversion) = conversion else { return };
    let strategy = conversion.text("strategy");
    if strategy != "None" && preserve {
        let why = "must be None if spec.preserveUnknownFields is true";
        out.push(FieldError::invalid(path.child("strategy"), strategy, why));
    }
    out.extend(one_of(strategy, &["None", "Webhook"], &path.child("strategy")));
    let webhook = conversion.schema("webhook").unwrap_or(Props(&Value::Null));
    let (config_at, versions_at) =
        (path.child("webhookClientConfig"), path.child("conversionReviewVersions"));
    let config = webhook.schema("clientConfig");
    if strategy == "Webhook" {
        match config {
            None => out.push(FieldError::required(config_at, "required when strategy is set to Webhook")),
            Some(config) => client(config, established, &config_at, out),
        }
        review_versions(webhook, &versions_at, out);
    } else {
        let why = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            out.push(FieldError::forbidden(config_at, why));
        }
        if !webhook.list("conversionReviewVersions").is_empty() {
            out.push(FieldError::forbidden(versions_at, why));
        }
    }
}

fn client(config: Props<'_>, established: Option<&Value>, path: &Path, out: &mut Vec<FieldError>) {
    match (config.pointer("url"), config.schema("service")) {
        (Some(given), None) => url(given, &path.child("url"), out),
        (None, Some(given)) => service(given, &path.child("service"), out),
        _ => out.push(FieldError::required(path, "exactly one of url or service is required")),
    }
    let bundle = config.text("caBundle");
    // A definition that is not in use yet may have any bundle, and one that was bad may stay bad.
    let before = established.and_then(|old| old.pointer("/spec/conversion/webhook/clientConfig/caBundle"));
    let was_bad = before.and_then(Value::as_str).is_some_and(|old| !old.is_empty() && !is_certificate(old));
    if established.is_some() && !bundle.is_empty() && !was_bad && !is_certificate(bundle) {
        let why = "unable to load root certificates: unable to parse bytes as PEM block";
        out.push(FieldError::invalid(path.child("caBundle"), bundle, why));
    }
}

fn is_certificate(bundle: &str) -> bool {
    let bytes = base64::engine::general_purpose::STANDARD.decode(bundle).unwrap_or_default();
    String::from_utf8_lossy(&bytes).contains("-----BEGIN CERTIFICATE-----")
}

fn url(text: &str, path: &Path, out: &mut Vec<FieldError>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme{FORM}");
        out.push(FieldError::invalid(path, scheme, why));
    }
    if host.is_empty() {
        out.push(FieldError::invalid(path, "", format!("host must be specified{FORM}")));
    }
    for (part, why) in [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ] {
        if !part.is_empty() {
            out.push(FieldError::invalid(path, part, why));
        }
    }
}

fn service(given: Props<'_>, path: &Path, out: &mut Vec<FieldError>) {
    // The server has these two the wrong way round.
    for (name, told) in [("namespace", "name"), ("name", "namespace")] {
        if given.text(name).is_empty() {
            out.push(FieldError::required(path.child(told), ""));
        }
    }
    let port = given.integer("port").unwrap_or(443);
    let why = names::port_number(port);
    if !why.is_empty() {
        let why = format!("port is not valid: {}", why.join(", "));
        out.push(FieldError::invalid(path.child("port"), port, why));
    }
    let (text, at) = (given.text("path"), path.child("path"));
    match text {
        "" | "/" => return,
        "//" => {
            out.push(FieldError::invalid(at, text, "segment[0] may not be empty"));
            return;
        }
        _ => {}
    }
    if !text.starts_with('/') {
        out.push(FieldError::invalid(&at, text, "must start with a '/'"));
    }
    let mut steps = text.chars();
    steps.next();
    let steps = steps.as_str();
    for (index, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            out.push(FieldError::invalid(&at, text, format!("segment[{index}] may not be empty")));
            continue;
        }
        for why in names::dns1123_subdomain(step) {
            out.push(FieldError::invalid(&at, text, format!("segment[{index}]: {why}")));
        }
    }
}

fn review_versions(webhook: Props<'_>, path: &Path, out: &mut Vec<FieldError>) {
    let versions: Vec<&str> = webhook.strings("conversionReviewVersions").collect();
    if versions.is_empty() {
        out.push(FieldError::required(path, ""));
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        let at = path.index(index);
        if versions[..index].contains(version) {
            out.push(FieldError::invalid(at, *version, "duplicate version"));
            continue;
        }
        for why in names::dns1035_label(version) {
            out.push(FieldError::invalid(&at, *version, why));
        }
    }
    if !versions.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        let shown = webhook.get("conversionReviewVersions").unwrap_or(&Value::Null);
        out.push(FieldError::invalid(path, shown, "must include at least one of v1, v1beta1"));
    }
}
