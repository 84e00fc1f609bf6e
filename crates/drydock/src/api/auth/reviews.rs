//! Questions about users and what they may do: create-only resources that are answered and never stored.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use windlass_machinery::go;
use windlass_machinery::invalid::{FieldError, Path, Shown};
use windlass_machinery::names;
use windlass_machinery::selector::Labels;

use super::super::registry::Resource;
use super::super::status::{Failure, Outcome};
use super::super::write::{Write, encoded, metadata_of};
use super::rule::Rule;
use super::{Attributes, ResourceTarget, Target, User, token};

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// Whether a resource is one of those that are answered and not stored.
#[must_use]
pub fn is_review(resource: &Resource) -> bool {
    matches!(resource.group.as_str(), AUTHENTICATION | AUTHORIZATION) && resource.plural.ends_with("reviews")
}

/// Answers a review: the object with its status, in the form that objects are stored in.
///
/// # Errors
/// When the question makes no sense.
pub fn create(write: &Write<'_>, mut review: Value) -> Outcome<Bytes> {
    write.draft(&mut review)?;
    let mut answer = match write.resource.plural.as_str() {
        "selfsubjectreviews" => json!({
            "metadata": {"creationTimestamp": write.server.context.now_text()},
            "status": {"userInfo": user_info(write.user)},
        }),
        "tokenreviews" => token_review(write, review)?,
        "selfsubjectrulesreviews" => rules_review(write, &review)?,
        _ => access_review(write, review)?,
    };
    write.normalise(&mut answer);
    Ok(encoded(&answer))
}

fn user_info(user: &User) -> Value {
    json!({"username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra})
}

fn token_review(write: &Write<'_>, mut review: Value) -> Outcome<Value> {
    let token = review["spec"]["token"].as_str().unwrap_or_default().to_owned();
    if token.is_empty() {
        return Err(Failure::bad_request("token is required for TokenReview in authentication"));
    }
    let audiences = texts(&review["spec"]["audiences"]);
    let audiences: Vec<&str> = match audiences.as_slice() {
        [] => vec![token::AUDIENCE],
        some => some.iter().map(String::as_str).collect(),
    };
    review["status"] = match token::authenticate(write.server, &token, &audiences) {
        Ok((user, fitting)) => json!({"authenticated": true, "user": user_info(&user), "audiences": fitting}),
        Err(refusal) => json!({"error": refusal.to_string()}),
    };
    Ok(review)
}

fn rules_review(write: &Write<'_>, review: &Value) -> Outcome<Value> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Failure::bad_request("no namespace on request"));
    }
    let (rules, missing) = write.server.auth.policy().rules_for(write.user, namespace);
    let resources: Vec<&Rule> = rules.iter().filter(|rule| !rule.resources.is_empty()).collect();
    let paths: Vec<&Rule> = rules.iter().filter(|rule| !rule.non_resource_urls.is_empty()).collect();
    let mut status = json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
    if let Some(error) = missing.error() {
        status["evaluationError"] = error.into();
    }
    Ok(json!({"metadata": {}, "status": status}))
}

fn access_review(write: &Write<'_>, mut review: Value) -> Outcome<Value> {
    let plural = write.resource.plural.as_str();
    let errors = check(plural, &review);
    if !errors.is_empty() {
        return Err(Failure::invalid(AUTHORIZATION, "", "", &errors));
    }
    let spec = &review["spec"];
    let user = match plural {
        "selfsubjectaccessreviews" => write.user.clone(),
        _ => subject(spec),
    };
    let text = |attributes: &Value, field: &str| attributes[field].as_str().unwrap_or_default().to_owned();
    let decision = match spec.get("resourceAttributes") {
        Some(attributes) if attributes.is_object() => {
            let fields = ["verb", "group", "resource", "subresource", "namespace", "name"];
            let [verb, group, resource, subresource, namespace, name] =
                fields.map(|field| text(attributes, field));
            let target = ResourceTarget {
                group: &group,
                resource: &resource,
                subresource: &subresource,
                namespace: &namespace,
                name: &name,
            };
            write.server.auth.decide(&user, &Attributes { verb: &verb, target: Target::Resource(target) })
        }
        _ => {
            let attributes = &spec["nonResourceAttributes"];
            let (verb, path) = (text(attributes, "verb"), text(attributes, "path"));
            write.server.auth.decide(&user, &Attributes { verb: &verb, target: Target::Path(&path) })
        }
    };
    let mut status = json!({"allowed": decision.is_allowed(), "reason": decision.reason(&user)});
    let raw = &spec["resourceAttributes"]["labelSelector"]["rawSelector"];
    if raw.as_str().is_some_and(|raw| Labels::parse(raw).is_err()) {
        status["evaluationError"] = "spec.resourceAttributes.labelSelector ignored due to parse error".into();
    }
    review["status"] = status;
    Ok(review)
}

/// Whom an access review is about.
fn subject(spec: &Value) -> User {
    let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
    let extra: BTreeMap<String, Vec<String>> = spec["extra"]
        .as_object()
        .map(|extra| extra.iter().map(|(key, values)| (key.clone(), texts(values))).collect())
        .unwrap_or_default();
    User { name: text("user"), uid: text("uid"), groups: texts(&spec["groups"]), extra }
}

/// What is wrong with an access review.
fn check(plural: &str, review: &Value) -> Vec<FieldError> {
    let spec = &review["spec"];
    let local = plural == "localsubjectaccessreviews";
    let resource = spec.get("resourceAttributes").filter(|attributes| attributes.is_object());
    let path = spec.get("nonResourceAttributes").filter(|attributes| attributes.is_object());
    let mut errors = Vec::new();
    let non_resource = |detail: &str| {
        let text = |field: &str| {
            go::json(&path.and_then(|path| path.get(field)).cloned().unwrap_or_else(|| "".into()))
        };
        let shown = format!("{{\"Path\":{},\"Verb\":{}}}", text("path"), text("verb"));
        FieldError::invalid("spec.nonResourceAttributes", Shown::raw(shown), detail)
    };
    match (resource, path) {
        (Some(_), Some(_)) => {
            errors.push(non_resource("cannot be specified in combination with resourceAttributes"));
        }
        (None, None) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(FieldError::invalid("spec.resourceAttributes", Value::Null, detail));
        }
        _ => {}
    }
    let nobody = texts(&spec["groups"]).is_empty() && spec["user"].as_str().unwrap_or_default().is_empty();
    if nobody && plural != "selfsubjectaccessreviews" {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", "", detail));
    }
    if let Some(resource) = resource {
        let at = Path::new("spec.resourceAttributes");
        errors.extend(check_selector(&resource["fieldSelector"], &at.child("fieldSelector"), false));
        errors.extend(check_selector(&resource["labelSelector"], &at.child("labelSelector"), true));
    }
    let metadata = metadata_of(review);
    let kept = |field: &str| field == "managedFields" || (local && field == "namespace");
    if metadata.iter().any(|(field, value)| !kept(field) && !is_empty(value)) {
        let detail = if local { "must be empty except for namespace" } else { "must be empty" };
        errors.push(FieldError::invalid("metadata", Shown::raw(in_order(metadata)), detail));
    }
    if local && let Some(resource) = resource {
        let namespace = resource["namespace"].as_str().unwrap_or_default();
        if metadata.get("namespace").and_then(Value::as_str).unwrap_or_default() != namespace {
            let field = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(field, namespace, "must match metadata.namespace"));
        }
    }
    if local && path.is_some() {
        errors.push(non_resource("disallowed on this kind of request"));
    }
    errors
}

fn check_selector(selector: &Value, at: &Path, labels: bool) -> Vec<FieldError> {
    if !selector.is_object() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let raw = selector["rawSelector"].as_str().unwrap_or_default();
    let requirements = selector["requirements"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !raw.is_empty() && !requirements.is_empty() {
        let detail = "may not specified at the same time as requirements";
        errors.push(FieldError::invalid(at.child("rawSelector"), raw, detail));
    }
    if raw.is_empty() && requirements.is_empty() {
        let detail = format!("when {} is specified, requirements or rawSelector is required", at.as_str());
        errors.push(FieldError::required(at.child("requirements"), detail));
    }
    for (index, requirement) in requirements.iter().enumerate() {
        let at = at.child("requirements").index(index);
        let values = texts(&requirement["values"]);
        match requirement["operator"].as_str().unwrap_or_default() {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(at.child("values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(at.child("values"), detail));
            }
            _ => {}
        }
        let key = requirement["key"].as_str().unwrap_or_default();
        if labels {
            let wrong = names::qualified_name(key);
            errors.extend(wrong.into_iter().map(|why| FieldError::invalid(at.child("key"), key, why)));
            for (index, value) in values.iter().enumerate() {
                let wrong = names::label_value(value);
                let at = at.child("values").index(index);
                errors.extend(wrong.into_iter().map(|why| FieldError::invalid(&at, value, why)));
            }
        } else if key.is_empty() {
            errors.push(FieldError::required(at.child("key"), "must be specified"));
        }
    }
    errors
}

/// Metadata as Go writes it, in the order of its fields.
fn in_order(metadata: &Map<String, Value>) -> String {
    const METADATA: [&str; 15] = [
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ];
    const MANAGED: [&str; 7] =
        ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];
    let object = |map: &Map<String, Value>, order: &[&str], show: &dyn Fn(&str, &Value) -> String| {
        let fields = order.iter().filter_map(|field| map.get(*field).map(|value| (field, value)));
        let fields: Vec<String> =
            fields.map(|(name, value)| format!("\"{name}\":{}", show(name, value))).collect();
        format!("{{{}}}", fields.join(","))
    };
    let plain = |_: &str, value: &Value| go::json(value);
    object(metadata, &METADATA, &|name, value| match value.as_array() {
        Some(entries) if name == "managedFields" => {
            let entries = entries.iter().filter_map(Value::as_object);
            let entries: Vec<String> = entries.map(|entry| object(entry, &MANAGED, &plain)).collect();
            format!("[{}]", entries.join(","))
        }
        _ => go::json(value),
    })
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}
