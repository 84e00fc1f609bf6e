//! Admission and conversion reviews, answered from the primary's own defaults and validity. Pure: a review in, a
//! review out. What serves them over TLS is elsewhere.
//!
//! The same [`Primary::defaults`](crate::Primary::defaults) and [`Primary::validity`](crate::Primary::validity) hold
//! in the reconciler, so that an operator without webhooks behaves the same, only later.

mod certificates;

use std::sync::Arc;

use serde_json::{Value, json};

pub use self::certificates::{CertificateError, Certificates};
use crate::{Invalid, Object, Operator};

/// The path below which defaults are filled in.
pub const MUTATE: &str = "/mutate";
/// The path below which validity is decided.
pub const VALIDATE: &str = "/validate";
/// The path below which versions are converted.
pub const CONVERT: &str = "/convert";

/// Converts one version of a kind into another.
#[derive(Clone)]
pub(crate) struct Conversion {
    kind: String,
    from: String,
    to: String,
    convert: Arc<dyn Fn(Value) -> Result<Value, String> + Send + Sync>,
}

impl Conversion {
    pub(crate) fn new<F: Object, T: Object>(convert: impl Fn(F) -> T + Send + Sync + 'static) -> Self {
        let (from, to) = (F::kind_of(), T::kind_of());
        let version = to.api_version();
        Self {
            kind: from.name().into(),
            from: from.api_version(),
            to: version.clone(),
            convert: Arc::new(move |object| {
                let metadata = object["metadata"].clone();
                let object = serde_json::from_value(object).map_err(|error| error.to_string())?;
                let mut converted =
                    serde_json::to_value(convert(object)).map_err(|error| error.to_string())?;
                // The API server demands that a conversion leaves all of it alone.
                converted["metadata"] = metadata;
                converted["apiVersion"] = version.as_str().into();
                Ok(converted)
            }),
        }
    }
}

/// What a primary's code says of an object.
pub(crate) struct Admitted {
    /// The object with its defaults filled in.
    pub(crate) object: Value,
    pub(crate) invalid: Vec<Invalid>,
}

impl Operator {
    /// Answers an `AdmissionReview` with a patch that fills in the defaults.
    #[must_use]
    pub fn mutate(&self, review: &Value) -> Value {
        answer(review, |request| {
            let Some(admitted) = self.admit(request) else {
                return json!({"allowed": true});
            };
            match admitted {
                // What cannot be decoded is refused by the validating review, with a reason.
                Err(_) => json!({"allowed": true}),
                Ok(admitted) => {
                    let patch = json_patch::diff(&request["object"], &admitted.object);
                    if patch.0.is_empty() {
                        return json!({"allowed": true});
                    }
                    let text = serde_json::to_vec(&patch).unwrap_or_default();
                    json!({"allowed": true, "patchType": "JSONPatch", "patch": base64(&text)})
                }
            }
        })
    }

    /// Answers an `AdmissionReview` with whether the object is valid, and which of its fields are not.
    #[must_use]
    pub fn validate(&self, review: &Value) -> Value {
        answer(review, |request| match self.admit(request) {
            None => json!({"allowed": true}),
            Some(Err(undecodable)) => refused(&undecodable, &[]),
            Some(Ok(admitted)) if admitted.invalid.is_empty() => json!({"allowed": true}),
            Some(Ok(admitted)) => {
                let fields: Vec<_> = admitted.invalid.iter().map(ToString::to_string).collect();
                refused(&fields.join("; "), &admitted.invalid)
            }
        })
    }

    /// Answers a `ConversionReview`.
    #[must_use]
    pub fn convert(&self, review: &Value) -> Value {
        let request = &review["request"];
        let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
        let objects = request["objects"].as_array().cloned().unwrap_or_default();
        let converted: Result<Vec<Value>, String> =
            objects.into_iter().map(|object| self.convert_one(object, wanted)).collect();
        let mut response = json!({"uid": request["uid"]});
        match converted {
            Ok(objects) => {
                response["convertedObjects"] = objects.into();
                response["result"] = json!({"status": "Success"});
            }
            Err(message) => response["result"] = json!({"status": "Failure", "message": message}),
        }
        json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
    }

    fn convert_one(&self, object: Value, wanted: &str) -> Result<Value, String> {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let (kind, from) = (text("kind"), text("apiVersion"));
        if from == wanted {
            return Ok(object);
        }
        let fits = |one: &&Conversion| one.kind == kind && one.from == from && one.to == wanted;
        let found = self.conversions().iter().find(fits);
        let found = found.ok_or_else(|| format!("no conversion of {kind} from {from} to {wanted}"))?;
        (found.convert)(object).map_err(|error| format!("failed to convert {kind} from {from}: {error}"))
    }

    /// What the code of the object's kind says of it; `None` if it is none of this operator's or is going.
    fn admit(&self, request: &Value) -> Option<Result<Admitted, String>> {
        if !matches!(request["operation"].as_str(), Some("CREATE" | "UPDATE")) {
            return None;
        }
        let object = &request["object"];
        // A finalizer must be removable however invalid the object has become.
        if object.pointer("/metadata/deletionTimestamp").is_some() {
            return None;
        }
        let kind = &request["kind"];
        let controller = self.controllers().iter().find(|controller| {
            controller.kind().name() == kind["kind"] && controller.kind().group() == kind["group"]
        })?;
        Some(controller.admit(object).map_err(|poison| poison.to_string()))
    }
}

fn answer(review: &Value, decide: impl FnOnce(&Value) -> Value) -> Value {
    let request = &review["request"];
    let mut response = decide(request);
    response["uid"] = request["uid"].clone();
    json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
}

fn refused(message: &str, invalid: &[Invalid]) -> Value {
    let causes: Vec<_> = invalid
        .iter()
        .map(|one| json!({"reason": "FieldValueInvalid", "field": one.field, "message": one.message}))
        .collect();
    json!({"allowed": false, "status": {
        "code": 422, "reason": "Invalid", "message": message, "details": {"causes": causes},
    }})
}

/// The object with what the defaults changed in its typed form. All else stays as the user wrote it, down to fields
/// that the type does not know.
pub(crate) fn with_changes(object: &Value, before: &Value, after: &Value) -> Value {
    let mut changed = object.clone();
    merge(&mut changed, before, after);
    changed
}

fn merge(target: &mut Value, before: &Value, after: &Value) {
    if before == after {
        return;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        *target = after.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in after {
        match before.get(key) {
            Some(before) if before == value => {}
            before => merge(&mut target[key], before.unwrap_or(&Value::Null), value),
        }
    }
    if let Some(target) = target.as_object_mut() {
        target.retain(|key, _| after.contains_key(key) || !before.contains_key(key));
    }
}

fn base64(bytes: &[u8]) -> Value {
    // `ByteString` is how the API writes bytes.
    serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).unwrap_or_default()
}

#[cfg(test)]
mod tests;
