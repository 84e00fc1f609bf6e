//! Objects and lists of them: what each verb does.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use http::StatusCode;
use windlass_machinery::decode;

use super::super::negotiation::{self, Answered, Form, View};
use super::super::options::{DeleteOptions, WriteOptions};
use super::super::registry::Resource;
use super::super::request::{Query, ResourcePath};
use super::super::status::{Failure, Outcome};
use super::super::write::body::as_json;
use super::super::write::delete::Deleted;
use super::super::write::patch::{Patch, PatchKind};
use super::super::write::{Replace, Write, Written};
use super::super::{auth, read, subresources};
use super::answer::{Answer, AnswerBody};
use super::{Call, Server, user_agent};
use crate::store::Key;

impl Server {
    pub(super) async fn object(
        &self,
        call: &Call,
        path: &ResourcePath,
        resource: &Arc<Resource>,
        verb: &str,
        write: &mut Write<'_>,
    ) -> Outcome<Answer> {
        let answered = match verb {
            "watch" => Answered::Events,
            "list" => Answered::List,
            _ => Answered::Object,
        };
        let form = negotiation::accepted(&call.headers, answered)?;
        let name = path.name.as_deref().unwrap_or_default();
        let namespace = path.namespace.as_deref().filter(|_| resource.namespaced);
        let key = Key::new(namespace.unwrap_or_default(), name);
        match verb {
            "get" => {
                let object = read::get(self, resource, &key, form, &call.query, call.as_of).await?;
                Ok(Answer::bytes(StatusCode::OK, form, object))
            }
            "list" => {
                let list = read::list(self, resource, namespace, form, &call.query, call.as_of).await?;
                Ok(Answer::bytes(StatusCode::OK, form, list))
            }
            "watch" => {
                let events =
                    read::watch(self, resource, namespace, path.name.as_deref(), form, &call.query).await?;
                // No event is a list, and what cannot be shown ends a watch.
                let events = match form.view {
                    View::MetadataList => futures::stream::empty().boxed(),
                    _ => events,
                };
                Ok(Answer::new(StatusCode::OK, "application/json", AnswerBody::Events(events)))
            }
            "create" => {
                write.options = self.write_options("CreateOptions", call, false)?;
                let object = write.read_body(&call.headers, &call.body)?;
                if let Some(posted) = subresources::posted(resource) {
                    let status = posted(write, object).await?;
                    return Ok(Answer::json(StatusCode::CREATED, &status));
                }
                if auth::reviews::is_review(resource) {
                    let body = auth::reviews::create(write, object)?;
                    let shown = read::shown(self, resource, &body, form, &call.query)?;
                    return Ok(Answer::bytes(StatusCode::CREATED, form, shown));
                }
                let written = write.create(object).await?;
                self.written(resource, &written, form, &call.query)
            }
            "update" => {
                write.options = self.write_options("UpdateOptions", call, false)?;
                let object = write.read_body(&call.headers, &call.body)?;
                write.check_name(&object, name)?;
                let written = write.update(name, &Replace(object)).await?;
                self.written(resource, &written, form, &call.query)
            }
            "patch" => {
                let patch = self.patch(call, resource, name, write)?;
                let written = write.update(name, &patch).await?;
                self.written(resource, &written, form, &call.query)
            }
            "delete" => {
                let options = self.delete_options(call)?;
                match write.delete(name, &options).await? {
                    Deleted::Gone(status) => {
                        let json = Bytes::from(status.to_string());
                        Ok(Answer::bytes(StatusCode::OK, form, read::encode(json, form)?))
                    }
                    Deleted::Object(body) => {
                        let shown = read::shown(self, resource, &body, form, &call.query)?;
                        Ok(Answer::bytes(StatusCode::OK, form, shown))
                    }
                }
            }
            _ => self.delete_all(call, resource, namespace, form, write).await,
        }
    }

    async fn delete_all(
        &self,
        call: &Call,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        form: Form,
        write: &mut Write<'_>,
    ) -> Outcome<Answer> {
        let options = DeleteOptions { collection: true, ..self.delete_options(call)? };
        // Collections are deleted page by page: a revision that is named is the one that is meant.
        let mut query = call.query.clone();
        if query.get("resourceVersion").is_some() && query.get("limit").is_none() {
            query.push("limit", "10000");
        }
        let read::Page { items, metadata } = read::page(self, resource, namespace, &query, None)?;
        for stored in &items {
            match write.delete(&stored.key.name, &options).await {
                Err(failure) if failure.reason != "NotFound" => return Err(failure),
                _ => {}
            }
        }
        let list = read::list_body(self, resource, &items, metadata, form, &call.query)?;
        Ok(Answer::bytes(StatusCode::OK, form, list))
    }

    pub(super) fn write_options(&self, kind: &str, call: &Call, apply: bool) -> Outcome<WriteOptions> {
        WriteOptions::parse(kind, &call.query, user_agent(&call.headers), apply)
    }

    fn delete_options(&self, call: &Call) -> Outcome<DeleteOptions> {
        if call.body.is_empty() {
            return DeleteOptions::parse(None, &call.query);
        }
        let ty = self.built_in.schemas.at(self.built_in.delete_options);
        let (json, _) = as_json(&call.headers, &call.body, ty, "DeleteOptions")?;
        let unreadable = |error: decode::DecodeError| {
            Failure::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
        };
        let (any, _) = decode::text(&json, None).map_err(unreadable)?;
        if any.is_array() {
            return Err(Failure::bad_request(format!(
                "couldn't get version/kind; json parse error: {}",
                decode::not_a_head("array")
            )));
        }
        if let (Some(version), Some(kind)) = (any["apiVersion"].as_str(), any["kind"].as_str())
            && kind != "DeleteOptions"
        {
            return Err(Failure::bad_request(format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
            )));
        }
        let (body, _) =
            decode::text(&json, Some(ty)).map_err(|error| Failure::bad_request(error.to_string()))?;
        DeleteOptions::parse(Some(&body), &call.query)
    }

    pub(super) fn patch(
        &self,
        call: &Call,
        resource: &Resource,
        name: &str,
        write: &mut Write<'_>,
    ) -> Outcome<Patch> {
        let kind = PatchKind::of(&call.headers, resource)?;
        write.options = self.write_options("PatchOptions", call, kind == PatchKind::Apply)?;
        Ok(Patch::new(kind, call.body.clone(), name))
    }

    pub(super) fn written(
        &self,
        resource: &Resource,
        written: &Written,
        form: Form,
        query: &Query,
    ) -> Outcome<Answer> {
        let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
        Ok(Answer::bytes(code, form, read::shown(self, resource, &written.body, form, query)?))
    }
}
