//! ConfigMaps and Secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::env::annotation;
use super::field::{At, Errors, entries, has, immutable, is, reasons, text};

/// The most that one object holds.
const MOST: usize = 1024 * 1024;
const DATA: At<'static> = At::new("data");
const BINARY: At<'static> = At::new("binaryData");

/// A config map.
pub(super) fn config_map(out: &mut Errors, map: &Value) {
    let mut size = 0;
    for (key, value) in entries(map, "data") {
        let at = &DATA.key(key);
        reasons(out, key, at, names::config_map_key(key));
        if has(&map["binaryData"], key) {
            out.push(FieldError::invalid(at, key, "duplicate of key present in binaryData"));
        }
        size += value.as_str().unwrap_or_default().len();
    }
    for (key, value) in entries(map, "binaryData") {
        reasons(out, key, &BINARY.key(key), names::config_map_key(key));
        size += decoded_length(value);
    }
    if size > MOST {
        // So the server writes the path of the whole object.
        out.push(FieldError::too_long("[]", MOST));
    }
}

/// A changed config map.
pub(super) fn config_map_update(out: &mut Errors, new: &Value, old: &Value) {
    frozen(out, new, old, &["data", "binaryData"]);
    config_map(out, new);
}

/// A secret.
pub(super) fn secret(out: &mut Errors, secret: &Value) {
    let mut size = 0;
    for (key, value) in entries(secret, "data") {
        reasons(out, key, &DATA.key(key), names::config_map_key(key));
        size += decoded_length(value);
    }
    if size > MOST {
        out.push(FieldError::too_long(DATA, MOST));
    }
    let data = &secret["data"];
    let need = |out: &mut Errors, key: &str| {
        if !has(data, key) {
            out.push(FieldError::required(DATA.key(key), ""));
        }
    };
    match text(secret, "type") {
        "kubernetes.io/service-account-token" => {
            const ACCOUNT: &str = "kubernetes.io/service-account.name";
            if annotation(&secret["metadata"], ACCOUNT).is_none_or(str::is_empty) {
                let at = At::new("metadata.annotations");
                out.push(FieldError::required(at.key(ACCOUNT), ""));
            }
        }
        "kubernetes.io/dockercfg" => registry(out, data, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => registry(out, data, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" if !has(data, "username") && !has(data, "password") => {
            need(out, "username");
            need(out, "password");
        }
        "kubernetes.io/ssh-auth" if text(data, "ssh-privatekey").is_empty() => {
            out.push(FieldError::required(DATA.key("ssh-privatekey"), ""));
        }
        "kubernetes.io/tls" => {
            need(out, "tls.crt");
            need(out, "tls.key");
        }
        _ => {}
    }
}

/// A changed secret.
pub(super) fn secret_update(out: &mut Errors, new: &Value, old: &Value) {
    immutable(out, &new["type"], &old["type"], &At::new("type"));
    frozen(out, new, old, &["data"]);
    secret(out, new);
}

fn frozen(out: &mut Errors, new: &Value, old: &Value, fields: &[&str]) {
    if !is(old, "immutable") {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    if !is(new, "immutable") {
        out.push(FieldError::forbidden("immutable", why));
    }
    for field in fields.iter().filter(|field| new[**field] != old[**field]) {
        out.push(FieldError::forbidden(*field, why));
    }
}

/// Credentials of a registry have to be an object.
fn registry(out: &mut Errors, data: &Value, key: &str) {
    let at = DATA.key(key);
    let Some(encoded) = data[key].as_str() else {
        out.push(FieldError::required(at, ""));
        return;
    };
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    let why = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => {
            let what = match other {
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            format!("json: cannot unmarshal {what} into Go value of type map[string]interface {{}}")
        }
        Err(error) if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Err(error) => {
            // Go reads bytes, and shows one as if it were a character.
            match windlass_machinery::decode::syntax::complaint(&bytes) {
                Some(complaint) => complaint,
                None => error.to_string(),
            }
        }
    };
    out.push(FieldError::invalid(at, "<secret contents redacted>", why));
}

/// How many bytes base64 holds.
pub(super) fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    text.len() / 4 * 3 - text.bytes().rev().take_while(|byte| *byte == b'=').count().min(text.len() / 4 * 3)
}
