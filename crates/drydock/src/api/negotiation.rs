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

/// What a request is for, as far as the forms of its answer go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// An object, or a list of deleted ones.
    Object,
    /// A list, or a watch: they share an address.
    List,
    /// A stream of events.
    Events,
}

/// The form the client wants for an answer.
///
/// # Errors
/// When it takes none that the server has.
pub fn accepted(headers: &HeaderMap, answered: Answered) -> Outcome<Form> {
    let Some(accept) = accept(headers) else { return Ok(Form::PLAIN) };
    if matches!(accept, "application/json" | "*/*") {
        return Ok(Form::PLAIN);
    }
    // The address is chosen first, by names alone; what the parameters say is looked at afterwards.
    if !accept.split(',').any(|clause| KNOWN.contains(&media_type(clause))) {
        let streams = if answered == Answered::Object { "" } else { STREAMS };
        return Err(Failure::no_representation(&format!("{OFFERED}{streams}")));
    }
    let found = clauses(accept).into_iter().find_map(|clause| clause.form(answered));
    // What a stream cannot be is one thing, what an object cannot be shown as another.
    let streams = accept.split(',').any(|clause| media_type(clause) != "application/yaml");
    found.ok_or_else(|| match answered {
        Answered::Events if !streams => Failure::not_acceptable(STREAMS.trim_start_matches(", ")),
        _ => refused(),
    })
}

/// That the server has no form that the client takes.
#[must_use]
pub fn refused() -> Failure {
    Failure::not_acceptable(OFFERED)
}

/// The form in which a client is told of a failure: never as a table, and as JSON where it takes nothing.
#[must_use]
pub fn told(headers: &HeaderMap) -> Form {
    let plain = |clause: Clause<'_>| clause.form(Answered::Object).filter(|form| form.view == View::Whole);
    accept(headers).and_then(|accept| clauses(accept).into_iter().find_map(plain)).unwrap_or(Form::PLAIN)
}

const KNOWN: [&str; 4] =
    ["*/*", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAMS: &str = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

fn accept(headers: &HeaderMap) -> Option<&str> {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).filter(|accept| !accept.trim().is_empty())
}

fn media_type(clause: &str) -> &str {
    clause.split(';').next().unwrap_or_default().trim()
}

/// One of the forms that a client takes.
#[derive(Clone, Copy)]
struct Clause<'a>(&'a str);

/// The forms that a client takes, those it likes best first.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = accept.split(',').map(Clause).collect();
    clauses.sort_by(|left, right| right.weight().total_cmp(&left.weight()));
    clauses
}

impl Clause<'_> {
    fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.0.split(';').skip(1).filter_map(|parameter| parameter.trim().split_once('='));
        pairs.map(|(name, value)| (name.trim(), value.trim()))
    }

    fn weight(&self) -> f64 {
        let given = self.parameters().find(|(name, _)| *name == "q");
        given.and_then(|(_, weight)| weight.parse().ok()).unwrap_or(1.0)
    }

    /// The form that it asks for, where the server has it.
    fn form(self, answered: Answered) -> Option<Form> {
        let yaml = match media_type(self.0) {
            "application/json" | "application/*" | "*/*" => false,
            // A stream has lines of JSON.
            "application/yaml" => (answered != Answered::Events).then_some(true)?,
            _ => return None,
        };
        let given =
            |wanted: &str| self.parameters().find(|(name, _)| *name == wanted).map(|(_, value)| value);
        if given("stream").is_some_and(|stream| stream != "watch" || yaml) {
            return None;
        }
        let view = given("as").unwrap_or_default();
        let version = match (given("g"), given("v")) {
            (Some("meta.k8s.io"), Some("v1")) => META,
            (Some("meta.k8s.io"), Some("v1beta1")) => OLD_META,
            _ if view.is_empty() => META,
            _ => return None,
        };
        let view = match view {
            "" => View::Whole,
            "Table" => View::Table,
            "PartialObjectMetadata" => View::Metadata,
            "PartialObjectMetadataList" => View::MetadataList,
            _ => return None,
        };
        Some(Form { yaml, view, version })
    }
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
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().trim();
    // Go reads no media type whose parameters make no sense, but for one semicolon too many.
    let value = value.strip_suffix(';').unwrap_or(value);
    let readable = value.split(';').skip(1).all(|parameter| parameter.contains('='));
    let kind = content_type(headers);
    let known = READ.iter().position(|known| kind.eq_ignore_ascii_case(known));
    match (readable, known) {
        (true, Some(0)) => Ok(BodyForm::Json),
        (true, Some(1)) => Ok(BodyForm::Yaml),
        (true, Some(2)) => Ok(BodyForm::Protobuf),
        (true, None) if kind.is_empty() => Ok(BodyForm::Json),
        _ => Err(Failure::unsupported_media(&READ)),
    }
}

/// The media type of the body, without parameters.
#[must_use]
pub fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}
