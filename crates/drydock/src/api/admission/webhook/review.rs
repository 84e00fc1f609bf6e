//! The AdmissionReview that a webhook is sent, and what its answer must be.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::super::super::destination::{self, Reply};
use super::super::super::status::Failure;
use super::super::{Admission, Operation};
use super::hook::Hook;
use super::{Refusal, Versioned};

/// What a webhook answered.
pub(super) struct Verdict {
    /// The operations of its patch.
    pub(super) patch: Option<Vec<u8>>,
    pub(super) patch_type: String,
    /// Why not, where it says no.
    pub(super) denial: Option<Failure>,
    pub(super) warnings: Vec<String>,
}

/// Calls a webhook about a write.
pub(super) async fn call(
    admission: &Admission<'_>,
    hook: &Hook,
    versions: &Versioned,
    mutating: bool,
) -> Result<Verdict, Refusal> {
    if admission.dry_run && !hook.harmless {
        let why = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(Refusal::Denied(Failure::bad_request(why)));
    }
    let Some(version) = hook.review else {
        let why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
        return Err(Refusal::Failed(format!("could not create admission objects: {why}")));
    };
    let uid = admission.server.context.uid();
    let mut request = admission.request(&versions.object, &versions.resource);
    request["uid"] = uid.as_str().into();
    request["object"] = match admission.operation {
        Operation::Delete => Value::Null,
        _ => versions.typed(admission, &versions.object),
    };
    request["oldObject"] = versions.old.as_ref().map_or(Value::Null, |old| versions.typed(admission, old));
    let api = format!("admission.k8s.io/{version}");
    let body =
        Bytes::from(json!({"kind": "AdmissionReview", "apiVersion": api, "request": request}).to_string());
    let failed = |why: String| Refusal::Failed(format!("failed to call webhook: {why}"));
    let answer = hook.destination.call(admission.server, body, hook.timeout).await;
    let answer = answer.map_err(|error| match error {
        destination::CallError::Client(why) => Refusal::Failed(format!("could not get REST client: {why}")),
        destination::CallError::Call(why) => failed(why),
    })?;
    let reply = Reply { api: "admission.k8s.io", version, kind: "AdmissionReview" };
    let review = reply.read(&answer).map_err(failed)?;
    verified(&review, &uid, version, mutating, hook).map_err(|problem| match problem {
        Problem::Unreadable(why) => failed(why),
        Problem::Invalid(why) => Refusal::Failed(format!("received invalid webhook response: {why}")),
    })
}

enum Problem {
    /// It is not of its type.
    Unreadable(String),
    /// It does not answer the question.
    Invalid(String),
}

fn verified(
    review: &Value,
    uid: &str,
    version: &str,
    mutating: bool,
    hook: &Hook,
) -> Result<Verdict, Problem> {
    check_types(review).map_err(Problem::Unreadable)?;
    let invalid = |why: &str| Problem::Invalid(why.to_owned());
    let response = &review["response"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let patch = match response["patch"].as_str() {
        Some(encoded) => Some(STANDARD.decode(encoded.replace(['\r', '\n'], "")).map_err(|error| {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                _ => encoded.len() / 4 * 4,
            };
            Problem::Unreadable(format!("illegal base64 data at input byte {at}"))
        })?),
        None => None,
    };
    let patch = patch.filter(|bytes| !bytes.is_empty());
    if response.is_null() {
        return Err(invalid("webhook response was absent"));
    }
    let given = response.get("patchType").filter(|kind| !kind.is_null());
    let mut patch_type = "JSONPatch".to_owned();
    if version == "v1" {
        if response["uid"] != uid {
            let got = text(&response["uid"]);
            return Err(Problem::Invalid(format!("expected response.uid={uid:?}, got {got:?}")));
        }
        let (api, kind) = (text(&review["apiVersion"]), text(&review["kind"]));
        if api != "admission.k8s.io/v1" || kind != "AdmissionReview" {
            let shown = if api.contains('/') { api } else { format!("/{api}") };
            return Err(Problem::Invalid(format!(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {shown}, Kind={kind}"
            )));
        }
        match (mutating, &patch, given) {
            (true, Some(_), None) => {
                return Err(invalid("webhook returned response.patch but not response.patchType"));
            }
            (true, None, Some(_)) => {
                return Err(invalid("webhook returned response.patchType but not response.patch"));
            }
            (true, Some(_), Some(kind)) => {
                patch_type = text(kind);
                if patch_type.is_empty() {
                    return Err(invalid("webhook returned invalid response.patchType of \"\""));
                }
            }
            (false, Some(_), _) => return Err(invalid("validating webhook may not return response.patch")),
            (false, None, Some(_)) => {
                return Err(invalid("validating webhook may not return response.patchType"));
            }
            _ => {}
        }
    }
    let warnings = response["warnings"].as_array().into_iter().flatten().map(text);
    let allowed = response["allowed"].as_bool().unwrap_or_default();
    Ok(Verdict {
        patch: patch.filter(|_| mutating),
        patch_type,
        denial: (!allowed).then(|| denial(&hook.name, &response["status"])),
        warnings: warnings.filter(|warning| !warning.is_empty()).collect(),
    })
}

/// The fields that decide something must be of their types, as Go reads them.
fn check_types(review: &Value) -> Result<(), String> {
    const FIELDS: [(&str, &str); 6] = [
        ("uid", "string"),
        ("allowed", "bool"),
        ("status", "object"),
        ("patch", "string"),
        ("patchType", "string"),
        ("warnings", "array"),
    ];
    let response = &review["response"];
    if !response.is_object() && !response.is_null() {
        let found = destination::json_type(response);
        return Err(format!(
            "json: cannot unmarshal {found} into Go struct field AdmissionReview.response of type v1.AdmissionResponse"
        ));
    }
    for (field, wanted) in FIELDS {
        let found = &response[field];
        let kind = destination::json_type(found);
        if !found.is_null() && kind != wanted {
            let go = match field {
                "uid" => "types.UID",
                "status" => "v1.Status",
                "patch" => "[]uint8",
                "patchType" => "v1.PatchType",
                "warnings" => "[]string",
                _ => "bool",
            };
            return Err(format!(
                "json: cannot unmarshal {kind} into Go struct field AdmissionResponse.response.{field} of type {go}"
            ));
        }
    }
    Ok(())
}

/// The status of a denial, as it is passed on.
fn denial(name: &str, status: &Value) -> Failure {
    let text = |field: &str| status[field].as_str().unwrap_or_default();
    let denied = format!("admission webhook {name:?} denied the request");
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400);
    let code = code.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::BAD_REQUEST);
    let mut whole = Map::new();
    let metadata = status["metadata"].as_object().cloned().unwrap_or_default();
    whole.insert("kind".into(), "Status".into());
    whole.insert("apiVersion".into(), "v1".into());
    whole.insert("metadata".into(), metadata.into());
    let state =
        if text("status").is_empty() || text("status") == "Success" { "Failure" } else { text("status") };
    whole.insert("status".into(), state.into());
    whole.insert("message".into(), message.clone().into());
    if !text("reason").is_empty() {
        whole.insert("reason".into(), text("reason").into());
    }
    if let Some(details) = status.get("details").filter(|details| details.is_object()) {
        whole.insert("details".into(), details.clone());
    }
    whole.insert("code".into(), code.as_u16().into());
    Failure { code, message, ..Failure::internal("") }.with_status(Value::Object(whole))
}
