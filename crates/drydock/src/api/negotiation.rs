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
    /// The version of the view's own type, where it has one.
    pub version: &'static str,
}

impl Form {
    /// JSON, all of it.
    pub const PLAIN: Self = Self { yaml: false, view: View::Whole, version: META };

    /// That view, in the type's usual version.
    #[must_use]
    pub fn of(view: View) -> Self {
        Self { view, ..Self::PLAIN }
    }
}

const META: &str = "meta.k8s.io/v1";
const OLD_META: &str = "meta.k8s.io/v1beta1";
const OFFERED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// What is shown of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// All of it.
    Whole,
    /// A table for people.
    Table,
    /// Its metadata only.
    Metadata,
    /// The metadata only of the objects of a list.
    MetadataList,
}

/// The form the client wants for an object, a list, or a watch.
///
/// # Errors
/// When it takes none that the server has.
pub fn accepted(headers: &HeaderMap) -> Outcome<Form> {
    let Some(accept) = headers.get(ACCEPT).and_then(|value| value.to_str().ok()) else {
        return Ok(Form::PLAIN);
    };
    if accept.trim().is_empty() {
        return Ok(Form::PLAIN);
    }
    let mut readable = false;
    for clause in accept.split(',') {
        let mut parts = clause.split(';').map(str::trim);
        let yaml = match parts.next().unwrap_or_default() {
            "application/json" | "application/*" | "*/*" => false,
            "application/yaml" => true,
            _ => continue,
        };
        readable = true;
        let (mut view, mut group, mut version) = ("", "", "");
        for parameter in parts {
            match parameter.split_once('=') {
                Some(("as", value)) => view = value,
                Some(("g", value)) => group = value,
                Some(("v", value)) => version = value,
                _ => {}
            }
        }
        let version = match (group, version) {
            ("meta.k8s.io", "v1") => META,
            ("meta.k8s.io", "v1beta1") => OLD_META,
            _ if view.is_empty() => META,
            _ => continue,
        };
        let view = match view {
            "" => View::Whole,
            "Table" => View::Table,
            "PartialObjectMetadata" => View::Metadata,
            "PartialObjectMetadataList" => View::MetadataList,
            _ => continue,
        };
        return Ok(Form { yaml, view, version });
    }
    // Whoever takes none of the server's forms is told so before anything else.
    Err(if readable { Failure::not_acceptable(OFFERED) } else { Failure::no_representation(OFFERED) })
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

const READ: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// In which form the body is.
///
/// # Errors
/// When it is none that the server reads.
pub fn body_form(headers: &HeaderMap) -> Outcome<BodyForm> {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // Go reads no media type whose parameters make no sense.
    let readable = value.split(';').skip(1).all(|parameter| parameter.contains('='));
    match content_type(headers) {
        _ if !readable => Err(Failure::unsupported_media(&READ)),
        "" | "application/json" => Ok(BodyForm::Json),
        "application/yaml" => Ok(BodyForm::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(BodyForm::Protobuf),
        _ => Err(Failure::unsupported_media(&READ)),
    }
}

/// The media type of the body, without parameters.
#[must_use]
pub fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}
