//! Subresources: which of them is asked for, and who answers.

use std::sync::Arc;

use http::StatusCode;

use super::super::negotiation::{self, Answered};
use super::super::registry::Resource;
use super::super::request::ResourcePath;
use super::super::status::{Failure, Outcome};
use super::super::subresources::scale::{self, Wanted};
use super::super::subresources::{self, connect};
use super::super::write::{Change as _, Write};
use super::super::{auth, log, read};
use super::answer::{Answer, AnswerBody};
use super::{Call, Server};

impl Server {
    pub(super) async fn subresource(
        &self,
        call: &Call,
        path: &ResourcePath,
        resource: &Arc<Resource>,
        sub: &str,
        verb: &str,
        write: &mut Write<'_>,
    ) -> Outcome<Answer> {
        let name = path.name.as_deref().unwrap_or_default();
        // What is behind a proxy has paths of its own.
        let sub = if sub.starts_with("proxy/") { "proxy" } else { sub };
        let Some(known) = resource.subresources.get(sub) else {
            // A custom resource answers for subresources it might have had as for objects.
            return Err(match &resource.custom {
                Some(_) => Failure::not_found(resource, name),
                None => Failure::no_such_resource(),
            });
        };
        if !known.verbs.iter().any(|allowed| allowed == verb) {
            return Err(match &resource.custom {
                Some(_) => Failure::not_supported(resource, verb),
                None => Failure::method_not_allowed(),
            });
        }
        match (sub, verb) {
            (sub, _) if connect::is_connection(sub) => {
                connect::refuse(write, sub, name, &call.query)?;
                Err(Failure::no_such_resource())
            }
            ("scale", _) => self.scale(call, resource, name, verb, write).await,
            (auth::token_request::SUBRESOURCE, "create") => {
                let form = negotiation::accepted(&call.headers, Answered::Object)?;
                write.options = self.write_options("CreateOptions", call, false)?;
                let (kind, body) =
                    auth::token_request::create(write, &call.headers, &call.body, name).await?;
                let shown = read::shown(self, &kind, &body, form, &call.query)?;
                Ok(Answer::bytes(StatusCode::CREATED, form, shown))
            }
            ("log", "get") => {
                let key = write.key(name);
                Ok(match log::answer(self, resource, &key, &call.query)? {
                    Some(lines) => Answer::new(StatusCode::OK, "text/plain", AnswerBody::Events(lines)),
                    None => Answer::bare(StatusCode::NO_CONTENT),
                })
            }
            ("binding" | "eviction", "create") => {
                write.options = self.write_options("CreateOptions", call, false)?;
                let kind = resource.part(sub).map(Arc::new).ok_or_else(Failure::no_such_resource)?;
                let body = subresources::read_part(write, &kind, sub, &call.headers, &call.body)?;
                let status = match sub {
                    "binding" => subresources::bind(write, name, body).await?,
                    _ => subresources::evict(write, name, body, &call.query).await?,
                };
                Ok(Answer::json(StatusCode::CREATED, &status))
            }
            // All others are the object, of which they show and change a part.
            _ => self.object(call, path, resource, verb, write).await,
        }
    }

    async fn scale(
        &self,
        call: &Call,
        resource: &Arc<Resource>,
        name: &str,
        verb: &str,
        write: &mut Write<'_>,
    ) -> Outcome<Answer> {
        let form = negotiation::accepted(&call.headers, Answered::Object)?;
        let kind = scale::kind(write)?;
        let body = match verb {
            "get" => scale::read(write, name)?,
            "patch" => {
                let patch = self.patch(call, resource, name, write)?;
                if patch.owns() && resource.custom.is_some() {
                    scale::read(write, name)?;
                    return Err(Failure::internal(
                        "failed to create manager for existing fields: failed to convert live object (/; \
                         autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid \
                         group/version: autoscaling/v1",
                    ));
                }
                scale::write(write, &kind, name, Wanted::Patched(patch)).await?
            }
            _ => {
                write.options = self.write_options("UpdateOptions", call, false)?;
                let body = subresources::read_part(write, &kind, "scale", &call.headers, &call.body)?;
                write.check_name(&body, name)?;
                scale::write(write, &kind, name, Wanted::Replaced(body)).await?
            }
        };
        let shown = read::shown(self, &kind, &body, form, &call.query)?;
        Ok(Answer::bytes(StatusCode::OK, form, shown))
    }
}
