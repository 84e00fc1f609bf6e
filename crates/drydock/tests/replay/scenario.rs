//! Recordings: requests with the answers that a real server gave.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::Context as _;
use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A sequence of requests that build on each other.
#[derive(Clone, Deserialize)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

/// One request and the recorded answer.
#[derive(Clone, Deserialize)]
pub(crate) struct Step {
    pub(crate) request: Request,
    pub(crate) response: Answer,
}

/// A request. `{{N.a.b}}` in it stands for field `a.b` of the answer to step N of the same run.
#[derive(Clone, Deserialize)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) headers: Option<Map<String, Value>>,
    /// As it stands in the recording: the order of fields decides the order of complaints about them.
    #[serde(default)]
    pub(crate) body: Option<Box<RawValue>>,
    /// A text and how many times it makes the body.
    #[serde(default)]
    pub(crate) repeat_body: Option<(String, usize)>,
}

/// An answer, decoded: a watch's body is the list of its events.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

/// All recordings, by name: those of the project, or those of the folder in `REPLAY_FROM`.
pub(crate) fn all() -> anyhow::Result<Vec<Scenario>> {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let directory = std::env::var_os("REPLAY_FROM").map_or_else(own, PathBuf::from);
    let mut files: Vec<_> =
        std::fs::read_dir(&directory)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> anyhow::Result<Scenario> {
    let text = std::fs::read_to_string(file)?;
    serde_json::from_str(&text).with_context(|| format!("failed to read {}", file.display()))
}

impl Request {
    /// The request with its references resolved.
    pub(crate) fn filled(&self, answers: &[Value]) -> anyhow::Result<Request> {
        let headers =
            self.headers.clone().map(|headers| fill(&Value::Object(headers), answers)).transpose()?;
        Ok(Request {
            method: self.method.clone(),
            path: fill_text(&self.path, answers)?,
            headers: headers.and_then(|headers| headers.as_object().cloned()),
            body: self.body.as_ref().map(|body| fill_raw(body, answers)).transpose()?,
            repeat_body: self.repeat_body.clone(),
        })
    }

    /// The bytes of the body.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        if let Some((text, times)) = &self.repeat_body {
            return Some(text.repeat(*times).into_bytes());
        }
        let body = self.body.as_ref().map(|body| body.get()).filter(|body| *body != "null")?;
        Some(match serde_json::from_str::<String>(body) {
            Ok(text) => text.into_bytes(),
            Err(_) => spaced(body).into_bytes(),
        })
    }
}

/// JSON with the spaces that the recorder wrote: one after each colon and comma, and no others.
fn spaced(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut quoted, mut escaped) = (false, false);
    for char in json.chars() {
        if !quoted && char.is_ascii_whitespace() {
            continue;
        }
        out.push(char);
        if quoted {
            quoted = char != '"' || escaped;
            escaped = char == '\\' && !escaped;
        } else if matches!(char, ':' | ',') {
            out.push(' ');
        } else {
            quoted = char == '"';
        }
    }
    out
}

static REFERENCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{\{(\d+)\.([^}]+)\}\}").expect("the pattern is valid"));

fn fill(value: &Value, answers: &[Value]) -> anyhow::Result<Value> {
    Ok(match value {
        Value::Object(entries) => {
            let filled = entries.iter().map(|(key, entry)| Ok((key.clone(), fill(entry, answers)?)));
            Value::Object(filled.collect::<anyhow::Result<_>>()?)
        }
        Value::Array(elements) => Value::Array(
            elements.iter().map(|element| fill(element, answers)).collect::<anyhow::Result<_>>()?,
        ),
        Value::String(text) => Value::String(fill_text(text, answers)?),
        other => other.clone(),
    })
}

fn fill_raw(body: &RawValue, answers: &[Value]) -> anyhow::Result<Box<RawValue>> {
    Ok(RawValue::from_string(fill_text(body.get(), answers)?)?)
}

fn fill_text(text: &str, answers: &[Value]) -> anyhow::Result<String> {
    let mut missing = None;
    let filled = REFERENCE.replace_all(text, |found: &Captures<'_>| {
        look_up(&found[1], &found[2], answers).unwrap_or_else(|| {
            missing = Some(found[0].to_owned());
            String::new()
        })
    });
    match missing {
        None => Ok(filled.into_owned()),
        Some(reference) => anyhow::bail!("there is nothing at {reference}"),
    }
}

fn look_up(step: &str, path: &str, answers: &[Value]) -> Option<String> {
    let mut value = answers.get(step.parse::<usize>().ok()?)?;
    for part in path.split('.') {
        value = match value {
            Value::Array(elements) => elements.get(part.parse::<usize>().ok()?)?,
            other => other.get(part)?,
        };
    }
    Some(match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}
