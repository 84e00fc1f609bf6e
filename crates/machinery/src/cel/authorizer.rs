//! Asking in an expression whether somebody may do something.

use std::fmt;
use std::sync::Arc;

use super::Error;
use super::value::Value;
use crate::names;

/// Who answers.
pub trait Authorize: Send + Sync {
    /// Whether somebody may do that.
    fn authorize(&self, question: &Question) -> Answer;
}

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The service account in whose name it is asked, where that is not who makes the request: namespace, name.
    pub account: Option<(String, String)>,
    /// The verb of the API, or of HTTP.
    pub verb: String,
    /// A path, where it is not about a resource.
    pub path: Option<String>,
    /// The API group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// A selector of fields, if there is one.
    pub field_selector: String,
    /// A selector of labels, if there is one.
    pub label_selector: String,
}

/// What is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Whether they may.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong.
    pub error: Option<String>,
}

/// A question on its way.
#[derive(Clone)]
pub struct Authorizer<'a> {
    who: &'a dyn Authorize,
    stage: Stage,
    question: Question,
    answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Path,
    Group,
    Resource,
    Decision,
}

impl fmt::Debug for Authorizer<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Authorizer").field("stage", &self.stage).finish_non_exhaustive()
    }
}

impl<'a> Authorizer<'a> {
    /// One that has not been asked anything yet.
    #[must_use]
    pub fn value(who: &'a dyn Authorize) -> Value<'a> {
        let (question, answer) = (Question::default(), Answer::default());
        Value::Authorizer(Arc::new(Self { who, stage: Stage::Start, question, answer }))
    }

    /// One that is already asked about a resource; only the verb is missing.
    #[must_use]
    pub fn resource(who: &'a dyn Authorize, question: Question) -> Value<'a> {
        Value::Authorizer(Arc::new(Self { who, stage: Stage::Resource, question, answer: Answer::default() }))
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self.stage {
            Stage::Start => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => "kubernetes.authorization.ResourceCheck",
            Stage::Decision => "kubernetes.authorization.Decision",
        }
    }

    pub(super) fn call(&self, function: &str, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
        let text = |index: usize| args.get(index).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut next = self.clone();
        let question = &mut next.question;
        match (self.stage, function) {
            (Stage::Start, "path") => {
                if text(0).is_empty() {
                    return Err(Error::new("path must not be empty"));
                }
                question.path = Some(text(0));
                next.stage = Stage::Path;
            }
            (Stage::Start, "group") => {
                question.group = text(0);
                next.stage = Stage::Group;
            }
            (Stage::Start, "serviceAccount") => {
                if !names::subdomain_name(&text(1), false).is_empty() {
                    return Err(Error::new("Invalid service account name"));
                }
                if !names::label_name(&text(0), false).is_empty() {
                    return Err(Error::new("Invalid service account namespace"));
                }
                question.account = Some((text(0), text(1)));
            }
            (Stage::Group, "resource") => {
                if text(0).is_empty() {
                    return Err(Error::new("resource must not be empty"));
                }
                question.resource = text(0);
                next.stage = Stage::Resource;
            }
            (Stage::Resource, "subresource") => question.subresource = text(0),
            (Stage::Resource, "namespace") => question.namespace = text(0),
            (Stage::Resource, "name") => question.name = text(0),
            (Stage::Resource, "fieldSelector") => question.field_selector = text(0),
            (Stage::Resource, "labelSelector") => question.label_selector = text(0),
            (Stage::Resource | Stage::Path, "check") => {
                question.verb = text(0);
                next.answer = self.who.authorize(&next.question);
                next.stage = Stage::Decision;
            }
            (Stage::Decision, "allowed") => return Ok(self.answer.allowed.into()),
            (Stage::Decision, "reason") => return Ok(self.answer.reason.clone().into()),
            (Stage::Decision, "errored") => return Ok(self.answer.error.is_some().into()),
            (Stage::Decision, "error") => return Ok(self.answer.error.clone().unwrap_or_default().into()),
            _ => return Err(Error::overload()),
        }
        Ok(Value::Authorizer(Arc::new(next)))
    }
}
