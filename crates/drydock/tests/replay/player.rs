//! Plays a scenario and compares.

use std::time::Duration;

use anyhow::Context as _;
use regex::Regex;
use serde_json::{Value, json};

use super::difference;
use super::normal::Normal;
use super::scenario::{self, Answer, Scenario};
use super::server::{Request, Response, Server};

const PATIENCE: Duration = Duration::from_secs(30);

/// What came of one step.
pub(crate) struct StepResult {
    pub(crate) step: usize,
    pub(crate) request: String,
    pub(crate) status_equal: bool,
    pub(crate) differences: Vec<String>,
    pub(crate) answer: Answer,
}

impl StepResult {
    /// The request and its first differences.
    pub(crate) fn summary(&self, most: usize) -> String {
        let shown: Vec<&str> = self.differences.iter().take(most).map(String::as_str).collect();
        let more = match self.differences.len() - shown.len() {
            0 => String::new(),
            more => format!("\n    (+{more} more)"),
        };
        format!("step {} {}\n    {}{more}", self.step, self.request, shown.join("\n    "))
    }
}

/// Sends all requests of a scenario, in order, and compares the answers.
pub(crate) async fn replay(scenario: &Scenario, server: &mut impl Server) -> Vec<StepResult> {
    let (mut wanted, mut given) = (Normal::default(), Normal::default());
    let mut answers = Vec::new();
    let mut results = Vec::new();
    for (step, recorded) in scenario.steps.iter().enumerate() {
        let request = &recorded.request;
        let got = match tokio::time::timeout(PATIENCE, run(request, &answers, server)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => failed(format!("{error:#}")),
            Err(_) => failed(format!("no answer after {PATIENCE:?}")),
        };
        results.push(StepResult {
            step,
            request: format!("{} {}", request.method, request.path),
            status_equal: got.status == recorded.response.status,
            differences: difference::between(&wanted.answer(&recorded.response), &given.answer(&got)),
            answer: got.clone(),
        });
        answers.push(got.body);
    }
    results
}

fn failed(why: String) -> Answer {
    Answer { status: 0, kind: String::new(), warnings: Vec::new(), body: json!(why) }
}

async fn run(
    request: &scenario::Request,
    answers: &[Value],
    server: &mut impl Server,
) -> anyhow::Result<Answer> {
    let request = request.filled(answers)?;
    let body = request.bytes();
    let mut headers: Vec<(String, String)> =
        vec![("Accept".into(), "application/json".into()), ("User-Agent".into(), "recorder".into())];
    if body.is_some() {
        headers.push(("Content-Type".into(), "application/json".into()));
    }
    for (name, value) in request.headers.iter().flatten() {
        headers.retain(|(known, _)| known != name);
        headers.push((name.clone(), value.as_str().unwrap_or_default().to_owned()));
    }
    let path = request.path.clone();
    let sent = Request { method: request.method, path: request.path, headers, body };
    decode(&path, server.send(sent).await?)
}

fn decode(path: &str, response: Response) -> anyhow::Result<Answer> {
    let header = |wanted: &str| {
        let values = response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        values.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ")
    };
    let text = String::from_utf8_lossy(&response.body);
    let mut body = if path.contains("watch=") && response.status == 200 {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let events = lines.map(|line| serde_json::from_str(line).context("failed to read an event"));
        Value::Array(events.collect::<anyhow::Result<_>>()?)
    } else {
        serde_json::from_str(&text).unwrap_or_else(|_| json!(text))
    };
    if let Some(columns) = body.get_mut("columnDefinitions").and_then(Value::as_array_mut) {
        columns.iter_mut().filter_map(Value::as_object_mut).for_each(|column| {
            column.remove("description");
        });
    }
    Ok(Answer {
        status: response.status,
        kind: header("Content-Type").split(';').next().unwrap_or_default().to_owned(),
        warnings: warnings(&header("Warning"))?,
        body,
    })
}

fn warnings(header: &str) -> anyhow::Result<Vec<String>> {
    let pattern = Regex::new(r#"299 - "((?:[^"\\]|\\.)*)""#)?;
    Ok(pattern.captures_iter(header).map(|found| unescape(&found[1])).collect())
}

/// Resolves backslashes as the recorder did, which took other bytes for characters one by one.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte != b'\\' {
            out.push(char::from(byte));
            continue;
        }
        let Some(&next) = bytes.get(at) else { break };
        at += 1;
        let mut coded = |digits: usize, radix: u32, from: usize| {
            let found = bytes.get(from..from + digits).and_then(|code| std::str::from_utf8(code).ok());
            let code = found.and_then(|code| u32::from_str_radix(code, radix).ok());
            out.extend(code.and_then(char::from_u32));
            from + digits
        };
        match next {
            b'x' => at = coded(2, 16, at),
            b'u' => at = coded(4, 16, at),
            b'U' => at = coded(8, 16, at),
            b'0'..=b'7' => {
                let more = bytes[at..].iter().take(2).take_while(|b| matches!(b, b'0'..=b'7')).count();
                at = coded(1 + more, 8, at - 1);
            }
            b'a' => out.push('\u{7}'),
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'v' => out.push('\u{b}'),
            b'\\' | b'\'' | b'"' => out.push(char::from(next)),
            other => out.extend(['\\', char::from(other)]),
        }
    }
    out
}
