//! `pods/NAME/log`: what a container wrote, once or as it comes.
//!
//! Which log it is, the pod's status says: the node keeps them by container id.

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream, StreamExt as _};
use jiff::Timestamp;
use serde_json::Value;
use windlass_machinery::go::quote;
use windlass_machinery::invalid::FieldError;

use super::registry::Resource;
use super::request::Query;
use super::server::Server;
use super::status::{Failure, Outcome};
use super::write::decoded;
use crate::logs::{Line, Log, Logs};
use crate::store::Key;

/// What a client wants of a log.
#[derive(Debug, Default)]
struct Options {
    container: Option<String>,
    follow: bool,
    previous: bool,
    timestamps: bool,
    since: Option<Timestamp>,
    tail: Option<usize>,
    limit: Option<usize>,
}

/// The log that a request asks for; `None` for a pod that is on no node yet.
///
/// # Errors
/// When there is no such pod or container, or it has not written yet and cannot have.
pub fn answer(
    server: &Server,
    resource: &Resource,
    key: &Key,
    query: &Query,
) -> Outcome<Option<BoxStream<'static, Bytes>>> {
    let stored =
        server.store.get(resource.table, key).ok_or_else(|| Failure::not_found(resource, &key.name))?;
    of_pod(&decoded(&stored)?, &key.name, query, &server.logs, server.context.now())
}

/// The same for a pod as it is in the API.
///
/// # Errors
/// When it has no such container, or it has not written yet and cannot have.
pub fn of_pod(
    pod: &Value,
    name: &str,
    query: &Query,
    logs: &Logs,
    now: Timestamp,
) -> Outcome<Option<BoxStream<'static, Bytes>>> {
    let options = Options::parse(query, name, now)?;
    let container = container(pod, name, options.container.as_deref())?;
    if pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty() {
        return Ok(None);
    }
    let id = container_id(pod, name, &container, options.previous).map_err(Failure::bad_request)?;
    // One that the node no longer keeps is empty.
    let log = logs.get(&id).unwrap_or_else(|| {
        let none = Log::default();
        none.close();
        none
    });
    Ok(Some(content(log, options)))
}

impl Options {
    fn parse(query: &Query, name: &str, now: Timestamp) -> Outcome<Self> {
        let number = |field: &str| -> Outcome<Option<i64>> {
            let Some(text) = query.get(field) else {
                return Ok(None);
            };
            text.parse().map(Some).map_err(|_| {
                Failure::bad_request(format!("strconv.ParseInt: parsing {}: invalid syntax", quote(text)))
            })
        };
        let (tail, limit, seconds) = (number("tailLines")?, number("limitBytes")?, number("sinceSeconds")?);
        let time = query.get("sinceTime").map(|text| {
            text.parse::<Timestamp>().map_err(|_| {
                let (text, layout) = (quote(text), quote("2006-01-02T15:04:05Z07:00"));
                Failure::bad_request(format!(
                    "parsing time {text} as {layout}: cannot parse {text} as \"2006\""
                ))
            })
        });
        let time = time.transpose()?;
        let mut errors = Vec::new();
        if let Some(tail) = tail.filter(|tail| *tail < 0) {
            errors.push(FieldError::invalid("tailLines", tail, "must be greater than or equal to 0"));
        }
        for (field, value) in [("limitBytes", limit), ("sinceSeconds", seconds)] {
            if let Some(value) =
                value.filter(|value| *value < 1 && !(field == "sinceSeconds" && time.is_some()))
            {
                errors.push(FieldError::invalid(field, value, "must be greater than 0"));
            }
        }
        if seconds.is_some() && time.is_some() {
            let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(FieldError::forbidden("[]", detail));
        }
        if query.get("stream").is_some() {
            errors.push(FieldError::forbidden("stream", "may not be specified"));
        }
        if !errors.is_empty() {
            return Err(Failure::invalid("", "PodLogOptions", name, &errors));
        }
        let ago = seconds.and_then(|seconds| now.checked_sub(jiff::SignedDuration::from_secs(seconds)).ok());
        Ok(Self {
            container: query.get("container").map(ToOwned::to_owned),
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            since: time.or(ago),
            tail: tail.and_then(|tail| usize::try_from(tail).ok()),
            limit: limit.and_then(|limit| usize::try_from(limit).ok()),
        })
    }
}

/// The container that is meant: the one named, or the only one.
pub(super) fn container(pod: &Value, name: &str, wanted: Option<&str>) -> Outcome<String> {
    let names = |list: &str| -> Vec<String> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).map(ToOwned::to_owned).collect()
    };
    let main = names("containers");
    let all = [names("initContainers"), main.clone(), names("ephemeralContainers")].concat();
    match (wanted, main.as_slice()) {
        (Some(wanted), _) if all.iter().any(|known| known == wanted) => Ok(wanted.to_owned()),
        (Some(wanted), _) => {
            Err(Failure::bad_request(format!("container {wanted} is not valid for pod {name}")))
        }
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(Failure::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            all.join(" ")
        ))),
    }
}

/// The id of the life of a container whose log is meant, as a kubelet chooses it.
fn container_id(pod: &Value, name: &str, container: &str, previous: bool) -> Result<String, String> {
    let place = format!("container {} in pod {}", quote(container), quote(name));
    let statuses = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let status = statuses
        .iter()
        .flat_map(|list| pod["status"][*list].as_array().into_iter().flatten())
        .find(|status| status["name"] == container)
        .ok_or_else(|| format!("{place} is not available"))?;
    let id = |value: &Value| value.as_str().filter(|id| !id.is_empty()).map(ToOwned::to_owned);
    let last = id(&status["lastState"]["terminated"]["containerID"]);
    let state = &status["state"];
    if previous {
        return last.ok_or_else(|| format!("previous terminated {place} not found"));
    }
    if state["running"].is_object() {
        return id(&status["containerID"]).ok_or_else(|| format!("{place} is not available"));
    }
    if state["terminated"].is_object() {
        let own = id(&state["terminated"]["containerID"]);
        return own.or(last).ok_or_else(|| format!("{place} is terminated"));
    }
    if status["lastState"]["terminated"].is_object() {
        return last.ok_or_else(|| format!("{place} is terminated"));
    }
    Err(match state["waiting"]["reason"].as_str() {
        Some("ErrImagePull") => format!("{place} is waiting to start: image can't be pulled"),
        Some("ImagePullBackOff") => format!("{place} is waiting to start: trying and failing to pull image"),
        Some(reason) => format!("{place} is waiting to start: {reason}"),
        None => format!("{place} is waiting to start - no logs yet"),
    })
}

/// The lines of a log as the client is sent them.
fn content(log: Log, options: Options) -> BoxStream<'static, Bytes> {
    struct Reader {
        log: Log,
        options: Options,
        next: u64,
        /// Bytes that may still be sent.
        left: usize,
        first: bool,
        done: bool,
    }
    let left = options.limit.unwrap_or(usize::MAX);
    let reader = Reader { log, options, next: 0, left, first: true, done: false };
    stream::unfold(reader, |mut reader| async move {
        loop {
            if reader.done {
                return None;
            }
            // Subscribed before it is read: what comes between is not missed.
            let mut changes = reader.log.changes();
            let read = reader.log.read(reader.next);
            reader.next = read.next;
            let mut lines = read.lines;
            if let Some(since) = reader.options.since {
                lines.retain(|line| line.at >= since);
            }
            if let Some(tail) = reader.options.tail.filter(|_| reader.first) {
                lines.drain(..lines.len().saturating_sub(tail));
            }
            reader.first = false;
            let mut chunk = text(&lines, reader.options.timestamps);
            chunk.truncate(reader.left);
            reader.left -= chunk.len();
            reader.done = read.closed || !reader.options.follow || reader.left == 0;
            if !chunk.is_empty() {
                return Some((chunk.freeze(), reader));
            }
            if !reader.done && changes.changed().await.is_err() {
                return None;
            }
        }
    })
    .boxed()
}

fn text(lines: &[Line], timestamps: bool) -> BytesMut {
    let mut text = BytesMut::new();
    for line in lines {
        if timestamps {
            text.extend_from_slice(line.at.strftime("%Y-%m-%dT%H:%M:%S.%9fZ ").to_string().as_bytes());
        }
        text.extend_from_slice(&line.text);
    }
    text
}
