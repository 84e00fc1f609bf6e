//! The API's `Status`: how every failure, and a few successes, reach the client.

use http::StatusCode;
use serde_json::{Map, Value, json};
use windlass_machinery::go::quote;
use windlass_machinery::invalid::FieldError;

use super::registry::Resource;

/// A failure that the client is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The HTTP status.
    pub code: StatusCode,
    /// The machine-readable reason; empty where the real server has none.
    pub reason: &'static str,
    /// What happened.
    pub message: String,
    /// What it is about; `Some` of an empty map is written as `{}`.
    pub details: Option<Map<String, Value>>,
    /// Where a list that cannot go on as it was may go on nevertheless.
    pub from: Option<String>,
    /// A whole `Status` that somebody else made, passed on as it is.
    pub passed: Option<Box<Value>>,
}

/// What a request comes to.
pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, from: None, passed: None }
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 401: nobody we know.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// 404 for a path that is no resource.
    #[must_use]
    pub fn no_such_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with_details(json!({}))
    }

    /// 404 for an object.
    #[must_use]
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {} not found", resource.qualified(), quote(name));
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(resource, name)
    }

    /// 405: the resource has no such verb.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).with_details(json!({}))
    }

    /// 406: no form of the answer that the client takes.
    #[must_use]
    pub fn not_acceptable(offered: &str) -> Self {
        let message = format!("only the following media types are accepted: {offered}");
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 406 where the client takes no form of an answer at all.
    #[must_use]
    pub fn no_representation(offered: &str) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {offered}");
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message).with_details(json!({}))
    }

    /// 406 where a view does not fit what is asked for.
    #[must_use]
    pub fn unfit_view(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 409: there is one already.
    #[must_use]
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {} already exists", resource.qualified(), quote(name));
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(resource, name)
    }

    /// 409: somebody else was faster.
    #[must_use]
    pub fn modified(resource: &Resource, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 409, with what is in the way.
    #[must_use]
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {}: {why}", resource.qualified(), quote(name));
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(resource, name)
    }

    /// 409 for a part of an object, with what is in the way.
    #[must_use]
    pub fn conflict_name(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let qualified = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        let message = format!("Operation cannot be fulfilled on {qualified} {}: {why}", quote(name));
        Self::new(StatusCode::CONFLICT, "Conflict", message).about_name(group, plural, name)
    }

    /// 503: what would answer is not there.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// 405 as custom resources say it.
    #[must_use]
    pub fn not_supported(resource: &Resource, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {:?}", resource.qualified());
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about(resource, "")
    }

    /// 409 of server-side apply, with the fields other managers own.
    #[must_use]
    pub fn apply_conflict(message: impl Into<String>, causes: Vec<Value>) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message).with_details(json!({"causes": causes}))
    }

    /// 403: not for this user, or not for anybody.
    #[must_use]
    pub fn forbidden(resource: &Resource, name: &str, why: impl std::fmt::Display) -> Self {
        Self::forbidden_name(&resource.group, &resource.plural, name, why)
    }

    /// 403 for a resource that need not exist.
    #[must_use]
    pub fn forbidden_name(group: &str, plural: &str, name: &str, why: impl std::fmt::Display) -> Self {
        let qualified = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        let message = match name {
            "" => format!("{qualified} is forbidden: {why}"),
            name => format!("{qualified} {} is forbidden: {why}", quote(name)),
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about_name(group, plural, name)
    }

    /// 403 for a path that is no resource.
    #[must_use]
    pub fn forbidden_path(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).with_details(json!({}))
    }

    /// 413: more than the server reads.
    #[must_use]
    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// 415: a body in a form that the server does not read.
    pub fn unsupported_media(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// 415 for a patch of no known type.
    #[must_use]
    pub fn unsupported_patch() -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", "415: Unsupported Media Type")
            .with_details(json!({}))
    }

    /// 422 without causes, as a JSON patch that does not apply gets.
    #[must_use]
    pub fn rejected() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with_details(json!({}))
    }

    /// 422: an object whose fields are wrong.
    #[must_use]
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let subject = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut texts = Vec::<String>::with_capacity(errors.len());
        for error in errors {
            let text = error.to_string();
            // The message names an error once, however many causes repeat it.
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let all = match texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let mut details = Map::new();
        for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
            if !value.is_empty() {
                details.insert(key.into(), value.into());
            }
        }
        let causes = errors.iter().map(FieldError::cause).collect::<Vec<_>>();
        details.insert("causes".into(), causes.into());
        Self {
            code: StatusCode::UNPROCESSABLE_ENTITY,
            reason: "Invalid",
            message: format!("{subject} {} is invalid: {all}", quote(name)),
            details: Some(details),
            from: None,
            passed: None,
        }
    }

    /// 410: history that is forgotten.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 500 with a bare message, as the real server answers where it did not foresee an error.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// 501 for what does not exist here.
    pub fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message)
    }

    /// 429 for an eviction that a disruption budget holds back.
    pub fn too_many_requests(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message)
    }

    fn about(self, resource: &Resource, name: &str) -> Self {
        self.about_name(&resource.group, &resource.plural, name)
    }

    fn about_name(self, group: &str, plural: &str, name: &str) -> Self {
        let mut details = Map::new();
        for (key, value) in [("name", name), ("group", group), ("kind", plural)] {
            if !value.is_empty() {
                details.insert(key.into(), value.into());
            }
        }
        Self { details: Some(details), ..self }
    }

    /// Replaces the details.
    #[must_use]
    pub fn with_details(self, details: Value) -> Self {
        let details = match details {
            Value::Object(map) => Some(map),
            _ => None,
        };
        Self { details, ..self }
    }

    /// Passes on a whole `Status`.
    #[must_use]
    pub fn with_status(self, status: Value) -> Self {
        Self { passed: Some(Box::new(status)), ..self }
    }

    /// The `Status` object.
    #[must_use]
    pub fn status(&self) -> Value {
        if let Some(passed) = &self.passed {
            return Value::clone(passed);
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(from) = &self.from {
            status["metadata"]["continue"] = from.as_str().into();
        }
        if let Some(details) = &self.details {
            status["details"] = Value::Object(details.clone());
        }
        status
    }
}

/// The `Status` of a deletion that is done.
#[must_use]
pub fn deleted(resource: &Resource, name: &str, uid: &str) -> Value {
    let mut details = Map::new();
    details.insert("name".into(), name.into());
    if !resource.group.is_empty() {
        details.insert("group".into(), resource.group.clone().into());
    }
    details.insert("kind".into(), resource.plural.clone().into());
    if !uid.is_empty() {
        details.insert("uid".into(), uid.into());
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
