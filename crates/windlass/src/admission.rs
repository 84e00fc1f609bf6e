//! Admission and conversion reviews, answered from the primary's own defaults and validity, and what serves them.
//!
//! The same [`Primary::defaults`](crate::Primary::defaults) and [`Primary::validity`](crate::Primary::validity) hold
//! in the reconciler, so that an operator without webhooks behaves the same, only later. The answers are pure: a review
//! in, a review out. `endpoint` serves them over TLS, `keeper` has the certificates for that (`keyring`, `certificates`),
//! and `registration` tells the API server of it.

mod certificates;
mod endpoint;
mod keeper;
mod keyring;
mod registration;
mod webhooks;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Value, json};

pub use self::endpoint::Endpoint;
pub(crate) use self::keeper::{Keeper, Shared};
pub(crate) use self::registration::{KEY, Registrar};
pub use self::webhooks::{FailurePolicy, Permissions, Webhooks};
pub(crate) use self::webhooks::{Registration, has_versions};
use crate::{Invalid, Object, Operator};

/// The path below which defaults are filled in.
const MUTATE: &str = "/mutate";
/// The path below which validity is decided.
const VALIDATE: &str = "/validate";
/// The path below which versions are converted.
const CONVERT: &str = "/convert";

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
                let converted = catch_unwind(AssertUnwindSafe(|| convert(object)));
                let converted =
                    converted.map_err(|_| "the operator panicked in its conversion".to_owned())?;
                let mut converted = serde_json::to_value(converted).map_err(|error| error.to_string())?;
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
    pub(crate) warnings: Vec<String>,
}

impl Operator {
    /// Answers an `AdmissionReview` with a patch that fills in the defaults.
    #[must_use]
    pub fn mutate(&self, review: &Value) -> Value {
        answer(review, |request| {
            let Some(Ok(admitted)) = self.admit(request).filter(|_| !is_as_before(request)) else {
                // What cannot be decoded is refused by the validating review, with a reason.
                return json!({"allowed": true});
            };
            let mut response = json!({"allowed": true});
            let patch = json_patch::diff(&request["object"], &admitted.object);
            if !patch.0.is_empty() {
                let text = serde_json::to_vec(&patch).unwrap_or_default();
                response["patchType"] = "JSONPatch".into();
                response["patch"] = base64(&text);
            }
            // Of what the user wrote; the validating review sees it with the defaults.
            if !admitted.warnings.is_empty() {
                response["warnings"] = admitted.warnings.into();
            }
            response
        })
    }

    /// Answers an `AdmissionReview` with whether the object is valid, and which of its fields are not. What has been
    /// invalid before and is not touched is let through, with a warning: it must be possible to annotate it.
    #[must_use]
    pub fn validate(&self, review: &Value) -> Value {
        answer(review, |request| {
            let (message, invalid) = match self.admit(request) {
                None => return json!({"allowed": true}),
                Some(Ok(admitted)) if admitted.invalid.is_empty() => return json!({"allowed": true}),
                Some(Ok(admitted)) => (Invalid::message(&admitted.invalid), admitted.invalid),
                Some(Err(poison)) => (poison, Vec::new()),
            };
            if is_as_before(request) {
                return json!({"allowed": true, "warnings": [message]});
            }
            refused(request, &message, &invalid)
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
        let of_kind = || self.conversions().iter().filter(|one| one.kind == kind);
        let direct = of_kind().find(|one| one.from == from && one.to == wanted).map(|one| vec![one]);
        // Or through a version that both know, mostly the one that is stored.
        let through = || {
            let firsts = of_kind().filter(|one| one.from == from);
            let mut pairs = firsts.flat_map(|first| of_kind().map(move |second| vec![first, second]));
            pairs.find(|pair| pair[0].to == pair[1].from && pair[1].to == wanted)
        };
        let steps = direct.or_else(through);
        let steps = steps.ok_or_else(|| format!("no conversion of {kind} from {from} to {wanted}"))?;
        steps.into_iter().try_fold(object, |object, step| {
            let failed =
                |error| format!("failed to convert {kind} from {} to {}: {error}", step.from, step.to);
            (step.convert)(object).map_err(failed)
        })
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

/// Whether an update leaves everything as it was that defaults and validity look at.
fn is_as_before(request: &Value) -> bool {
    let but_metadata = |object: &Value| {
        let mut object = object.as_object().cloned().unwrap_or_default();
        object.remove("metadata");
        object.remove("status");
        object
    };
    request["operation"] == "UPDATE"
        && but_metadata(&request["object"]) == but_metadata(&request["oldObject"])
}

fn answer(review: &Value, decide: impl FnOnce(&Value) -> Value) -> Value {
    let request = &review["request"];
    let mut response = decide(request);
    response["uid"] = request["uid"].clone();
    json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
}

fn refused(request: &Value, message: &str, invalid: &[Invalid]) -> Value {
    let causes: Vec<_> = invalid
        .iter()
        .map(|one| json!({"reason": "FieldValueInvalid", "field": one.field, "message": one.message}))
        .collect();
    let details = json!({"group": request["kind"]["group"], "kind": request["kind"]["kind"],
        "name": request["name"].as_str().unwrap_or_default(), "causes": causes});
    json!({"allowed": false, "status": {
        "code": 422, "reason": "Invalid", "message": message, "details": details,
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
