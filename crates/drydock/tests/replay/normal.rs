//! Makes answers of different runs comparable: what differs from run to run becomes an ordinal, so that equal
//! things stay equal within a scenario.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use super::scenario::Answer;

const TIMES: [&str; 13] = [
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "lastTransitionTime",
    "lastUpdateTime",
    "startTime",
    "completionTime",
    "lastTimestamp",
    "firstTimestamp",
    "eventTime",
    "expirationTimestamp",
    "renewTime",
    "acquireTime",
];

/// The names given so far to what one side of a comparison uses.
#[derive(Default)]
pub(crate) struct Normal {
    uids: HashMap<String, usize>,
    versions: HashMap<String, Vec<String>>,
}

impl Normal {
    /// An answer in its comparable form.
    pub(crate) fn answer(&mut self, answer: &Answer) -> Value {
        let Answer { status, kind, warnings, body } = answer;
        self.walk(&json!({"body": body, "status": status, "type": kind, "warnings": warnings}), "")
    }

    fn uid(&mut self, uid: &str) -> String {
        let next = self.uids.len();
        format!("<uid {}>", self.uids.entry(uid.to_owned()).or_insert(next))
    }

    fn version(&mut self, uid: &str, version: &str) -> String {
        let name = self.uid(uid);
        let known = self.versions.entry(uid.to_owned()).or_default();
        let index = known.iter().position(|one| one == version).unwrap_or_else(|| {
            known.push(version.to_owned());
            known.len() - 1
        });
        format!("<rv {name}.{index}>")
    }

    fn walk(&mut self, value: &Value, key: &str) -> Value {
        match value {
            Value::Object(entries) => self.object(entries),
            Value::Array(elements) => {
                let mut list: Vec<Value> = elements.iter().map(|element| self.walk(element, key)).collect();
                match key {
                    "managedFields" => list.sort_by_cached_key(|entry| {
                        ["manager", "operation", "subresource"]
                            .map(|name| entry[name].as_str().unwrap_or_default().to_owned())
                    }),
                    "causes" | "resourceRules" | "nonResourceRules" => {
                        list.sort_by_cached_key(Value::to_string)
                    }
                    _ => {}
                }
                Value::Array(list)
            }
            Value::String(text) if key == "cells" && AGE.is_match(text) => json!("<age>"),
            Value::String(text) => Value::String(self.text(text)),
            other => other.clone(),
        }
    }

    fn object(&mut self, entries: &Map<String, Value>) -> Value {
        let mut sorted: Vec<_> = entries.iter().collect();
        sorted.sort_by_key(|(key, _)| *key);
        let mut out = Map::new();
        for (key, value) in sorted {
            // The prose of table columns is nobody's contract.
            if key == "description" && entries.contains_key("priority") && entries.contains_key("format") {
                continue;
            }
            let text = value.as_str();
            let generated = entries.get("generateName").and_then(Value::as_str);
            let new = match (key.as_str(), text) {
                ("resourceVersion", Some(version)) => match entries.get("uid").and_then(Value::as_str) {
                    Some(uid) => self.version(uid, version),
                    None => "<rv>".to_owned(),
                },
                ("continue", Some(token)) if !token.is_empty() => "<continue>".to_owned(),
                ("token", Some(token)) if token.len() > 100 => "<token>".to_owned(),
                (key, Some(_)) if TIMES.contains(&key) => "<time>".to_owned(),
                ("nodePort", None) if value.as_i64().is_some_and(is_allocated) => "<port>".to_owned(),
                ("name", Some(name)) if generated.is_some_and(|prefix| name.starts_with(prefix)) => {
                    format!("{}<suffix>", generated.unwrap_or_default())
                }
                _ => {
                    let name = self.text(key);
                    let value = self.walk(value, key);
                    out.insert(name, value);
                    continue;
                }
            };
            out.insert(key.clone(), Value::String(new));
        }
        Value::Object(out)
    }

    fn text(&mut self, text: &str) -> String {
        let text = UUID.replace_all(text, |found: &Captures<'_>| self.uid(&found[0]));
        let text = TIME.replace_all(&text, "<time>");
        let text = ACCESS.replace_all(&text, "kube-api-access-<suffix>");
        let text = VERSION.replace_all(&text, "${1}<rv>");
        let text = RECORD.replace_all(&text, "in record (<rv>)").into_owned();
        // The real server lists some errors in no fixed order.
        let sorted = if let Some(found) = INVALID.captures(&text) {
            let mut errors: Vec<&str> = found[2].split(", ").collect();
            errors.sort_unstable();
            format!("{}{}]", &found[1], errors.join(", "))
        } else if let Some((before, after)) = text.split_once("errors:\n") {
            let mut lines: Vec<&str> = after.lines().collect();
            lines.sort_unstable();
            format!("{before}errors:\n{}", lines.join("\n"))
        } else {
            text
        };
        ADDRESS.replace_all(&sorted, "<ip>").into_owned()
    }
}

fn is_allocated(port: i64) -> bool {
    (30000..=32767).contains(&port) && port != 30123
}

macro_rules! patterns {
    ($($name:ident = $pattern:literal;)*) => {
        $(static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).unwrap());)*
    };
}

patterns! {
    UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z";
    ACCESS = r"kube-api-access-[a-z0-9]{5}\b";
    VERSION = r#"(resourceVersion\\*":\\*")\d+"#;
    RECORD = r"in record \(\d+\)";
    INVALID = r"(?s)^(.* is invalid: \[)(.*)\]$";
    ADDRESS = r"\b10\.\d+\.\d+\.\d+\b";
    AGE = r"^(?:<unknown>|\d+[smh](\d+s)?)$";
}
