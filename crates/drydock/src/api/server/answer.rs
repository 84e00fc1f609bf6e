//! An answer, from what a handler found to what goes to the client.

use std::convert::Infallible;

use bytes::Bytes;
use futures::StreamExt as _;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use serde_json::Value;

use super::super::negotiation::{self, Form};
use super::super::read;
use super::super::status::Failure;
use super::Body;

/// An answer, not yet sent.
pub(super) struct Answer {
    pub(super) code: StatusCode,
    /// The media type; empty where nothing is said of it.
    pub(super) kind: &'static str,
    pub(super) body: AnswerBody,
    pub(super) warnings: Vec<String>,
    pub(super) headers: Vec<(HeaderName, String)>,
}

pub(super) enum AnswerBody {
    Whole(Bytes),
    Events(read::Events),
}

impl Answer {
    pub(super) fn new(code: StatusCode, kind: &'static str, body: AnswerBody) -> Self {
        Self { code, kind, body, warnings: Vec::new(), headers: Vec::new() }
    }

    pub(super) fn json(code: StatusCode, value: &Value) -> Self {
        Self::bytes(code, Form::PLAIN, Bytes::from(value.to_string()))
    }

    pub(super) fn bytes(code: StatusCode, form: Form, body: Bytes) -> Self {
        let kind = if form.yaml { "application/yaml" } else { "application/json" };
        Self::new(code, kind, AnswerBody::Whole(body))
    }

    pub(super) fn text(code: StatusCode, text: &str) -> Self {
        Self::new(code, "text/plain; charset=utf-8", AnswerBody::Whole(Bytes::from(text.to_owned())))
    }

    /// A code and nothing else.
    pub(super) fn bare(code: StatusCode) -> Self {
        Self::new(code, "", AnswerBody::Whole(Bytes::new()))
    }

    /// The path is none that the server knows.
    pub(super) fn no_page() -> Self {
        Self::text(StatusCode::NOT_FOUND, "404 page not found\n")
    }

    pub(super) fn failure(failure: &Failure, headers: &HeaderMap) -> Self {
        let form = negotiation::told(headers);
        let json = Bytes::from(failure.status().to_string());
        let body = read::encode(json.clone(), form).unwrap_or(json);
        Self::bytes(failure.code, form, body)
    }

    pub(super) fn with_header(mut self, name: HeaderName, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(super) fn response(self) -> Response<Body> {
        let body = match self.body {
            AnswerBody::Whole(bytes) => Full::new(bytes).boxed_unsync(),
            AnswerBody::Events(events) => {
                let frames = events.map(|event| Ok::<_, Infallible>(Frame::data(event)));
                StreamBody::new(frames).boxed_unsync()
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        if !self.kind.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        for warning in limited(&self.warnings) {
            let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
                headers.append(HeaderName::from_static("warning"), value);
            }
        }
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
        response
    }
}

/// Each warning once, and all of them not too long: where they are, each is cut, and the last ones are left out.
fn limited(warnings: &[String]) -> Vec<String> {
    const MOST: usize = 4 * 1024;
    const MOST_OF_ONE: usize = 256;
    let mut all: Vec<&str> = Vec::with_capacity(warnings.len());
    let mut known = std::collections::HashSet::with_capacity(warnings.len());
    all.extend(warnings.iter().map(String::as_str).filter(|warning| known.insert(*warning)));
    let length = |text: &str| text.chars().count();
    if all.iter().map(|warning| length(warning)).sum::<usize>() <= MOST {
        return all.into_iter().map(ToOwned::to_owned).collect();
    }
    let mut written = 0;
    let mut out = Vec::new();
    for warning in all {
        if written >= MOST {
            break;
        }
        let cut: String = warning.chars().take(MOST_OF_ONE).collect();
        written += length(&cut);
        out.push(cut);
    }
    out
}
