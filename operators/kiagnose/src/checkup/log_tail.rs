//! The last lines of a checkup's log, for the status of one that failed.
//!
//! A status is read by more people than a log is, so what looks like a secret is left out.

use std::sync::LazyLock;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use kube::{Api, Client, ResourceExt as _};
use regex::Regex;
use windlass::{External, ExternalError, Halt, World};

use super::job::CONTAINER;
use super::results;

/// So many lines at most,
const LINES: i64 = 20;
/// of which so many bytes are asked for
const ASKED: i64 = 64 * 1024;
/// and so many letters kept.
const KEPT: usize = 4096;

/// Tokens, and what stands after words such as `password=`.
static SECRETS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x) eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)?
        | (?i:(?P<word>bearer\s+|(password|passwd|token|secret|api[_-]?key)[\x22']?\s*[:=]\s*)[^\s,;]+)",
    )
    .ok()
});

/// Reads the end of the log of a pod, called `namespace/name`.
pub struct LogTail {
    client: Client,
}

impl LogTail {
    /// Reads through this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

impl External for LogTail {
    const TYPE: &'static str = "LogTail";
    type Desired = ();
    type Observed = String;

    async fn observe(&self, id: &str) -> Result<Option<String>, ExternalError> {
        let (namespace, name) = id.split_once('/').ok_or("no pod is named")?;
        let params = LogParams {
            container: Some(CONTAINER.into()),
            tail_lines: Some(LINES),
            limit_bytes: Some(ASKED),
            ..LogParams::default()
        };
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        match pods.logs(name, &params).await {
            Ok(text) => Ok(Some(tail(&text))),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn apply(&self, id: &str, (): &()) -> Result<String, ExternalError> {
        Err(format!("{id} is only read").into())
    }

    async fn remove(&self, _: &str) -> Result<(), ExternalError> {
        Ok(())
    }

    fn differs(&self, (): &(), _: &String) -> bool {
        false
    }

    /// A log that has ended does not change.
    fn poll(&self) -> Option<Duration> {
        None
    }
}

/// The tail of the last pod's log; none if there is no pod any more, or it cannot be read.
pub(super) fn of(pods: &[Pod], world: &World) -> Result<Option<String>, Halt> {
    let Some(pod) = pods.last() else {
        return Ok(None);
    };
    let id = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    match world.external::<LogTail>(&id) {
        Err(halt) if halt.is_loading() => Err(halt),
        // A verdict does not wait for a log that cannot be read.
        Err(_) => Ok(None),
        Ok(tail) => Ok(tail.filter(|tail| !tail.is_empty())),
    }
}

/// The end of a log as it may be shown.
fn tail(log: &str) -> String {
    let clean = results::printable(log.trim_end());
    let clean = match SECRETS.as_ref() {
        Some(secrets) => secrets.replace_all(&clean, "$word<left out>").into_owned(),
        None => String::new(),
    };
    let skip = clean.chars().count().saturating_sub(KEPT);
    clean.chars().skip(skip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_control_characters_are_left_out() {
        let log = "one\u{1b}[31m\npassword=hunter2 next\nAuthorization: Bearer abc.def\n\
                   eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl\n";
        let tail = tail(log);
        for secret in ["hunter2", "abc.def", "eyJhbGci", "\u{1b}"] {
            assert!(!tail.contains(secret), "{tail}");
        }
        assert!(tail.starts_with("one") && tail.contains("next"), "{tail}");
    }

    #[test]
    fn it_is_bounded_and_keeps_the_end() {
        let log = format!("{}end", "x".repeat(100_000));
        let tail = tail(&log);
        assert!(tail.len() <= KEPT && tail.ends_with("end"));
    }
}
