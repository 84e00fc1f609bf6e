//! In which form the client wants its answer, and in which it sent its body.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

use super::status::{Failure, Outcome};

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// YAML instead of JSON.
    pub yaml: bool,
    /// Another view of the object.
    pub view: View,
}

/// What is shown of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// All of it.
    Whole,
    /// A table for people.
    Table,
    /// Its metadata only.
    Metadata,
}

/// The form the client wants for an object, a list, or a watch.
///
/// # Errors
/// When it takes none that the server has.
pub fn accepted(headers: &HeaderMap) -> Outcome<Form> {
    let plain = Form { yaml: false, view: View::Whole };
    let Some(accept) = headers.get(ACCEPT).and_then(|value| value.to_str().ok()) else {
        return Ok(plain);
    };
    if accept.trim().is_empty() {
        return Ok(plain);
    }
    for clause in accept.split(',') {
        let mut parts = clause.split(';').map(str::trim);
        let yaml = match parts.next().unwrap_or_default() {
            "application/json" | "application/*" | "*/*" => false,
            "application/yaml" => true,
            _ => continue,
        };
        let (mut view, mut group, mut version) = ("", "", "");
        for parameter in parts {
            match parameter.split_once('=') {
                Some(("as", value)) => view = value,
                Some(("g", value)) => group = value,
                Some(("v", value)) => version = value,
                _ => {}
            }
        }
        let view = match view {
            "" => View::Whole,
            "Table" if group == "meta.k8s.io" && version == "v1" => View::Table,
            "PartialObjectMetadata" | "PartialObjectMetadataList"
                if group == "meta.k8s.io" && version == "v1" =>
            {
                View::Metadata
            }
            _ => continue,
        };
        return Ok(Form { yaml, view });
    }
    let offered = "application/json, application/yaml, application/json;stream=watch";
    Err(Failure::not_acceptable(offered))
}

/// In which form a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyForm {
    /// JSON, also where the client does not say.
    Json,
    /// YAML.
    Yaml,
    /// Protocol Buffers.
    Protobuf,
}

/// In which form the body is.
///
/// # Errors
/// When it is none that the server reads.
pub fn body_form(headers: &HeaderMap) -> Outcome<BodyForm> {
    match content_type(headers) {
        "" | "application/json" => Ok(BodyForm::Json),
        "application/yaml" => Ok(BodyForm::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(BodyForm::Protobuf),
        _ => Err(Failure::unsupported_media(&[
            "application/json",
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
        ])),
    }
}

/// The media type of the body, without parameters.
#[must_use]
pub fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}
