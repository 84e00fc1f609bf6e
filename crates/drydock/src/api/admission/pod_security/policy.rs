//! The labels of a namespace that say how much its pods may do.

use std::fmt;

use serde_json::Value;
use windlass_machinery::invalid::{FieldError, Path};

const PREFIX: &str = "pod-security.kubernetes.io/";

/// How much a pod may do, the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Anything.
    Privileged,
    /// Nothing that is known to break out of a container.
    Baseline,
    /// Only what good practice allows.
    Restricted,
}

/// A level as it was in a version of Kubernetes; none is the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelVersion {
    /// The level.
    pub(super) level: Level,
    /// The minor version.
    pub(super) version: Option<u32>,
}

/// What a namespace asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// What is refused.
    pub(super) enforce: LevelVersion,
    /// What would be noted in an audit log.
    pub(super) audit: LevelVersion,
    /// What is warned of.
    pub(super) warn: LevelVersion,
}

impl Default for Policy {
    fn default() -> Self {
        let open = LevelVersion { level: Level::Privileged, version: None };
        Self { enforce: open, audit: open, warn: open }
    }
}

impl Policy {
    /// Reads the labels of a namespace. A policy is returned even where they are wrong.
    pub(super) fn of(labels: &Value) -> (Self, Vec<FieldError>) {
        let mut policy = Self::default();
        let mut errors = Vec::new();
        let enforce = policy.enforce.read(labels, "enforce", &mut errors);
        if !enforce && labels.get(format!("{PREFIX}enforce")).is_some() {
            policy.enforce.level = Level::Restricted;
        }
        policy.audit.read(labels, "audit", &mut errors);
        policy.warn.read(labels, "warn", &mut errors);
        let said = |mode: &str| labels.get(format!("{PREFIX}{mode}")).is_some();
        if !said("warn") && enforce && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if !said("warn-version") {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, errors)
    }

    /// Whether nothing is refused, noted or warned of.
    pub(super) fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|mode| mode.level == Level::Privileged)
    }
}

impl LevelVersion {
    /// Reads the labels of one mode; whether they name a level.
    fn read(&mut self, labels: &Value, mode: &str, errors: &mut Vec<FieldError>) -> bool {
        let label = |name: &str| labels.get(name).and_then(Value::as_str);
        let path = Path::new("metadata").child("labels");
        let mut named = false;
        let name = format!("{PREFIX}{mode}");
        if let Some(level) = label(&name) {
            match level {
                "privileged" => self.level = Level::Privileged,
                "baseline" => self.level = Level::Baseline,
                "restricted" => self.level = Level::Restricted,
                _ => {
                    let why = "must be one of privileged, baseline, restricted";
                    errors.push(FieldError::invalid(path.key(&name), level, why));
                }
            }
            named = matches!(level, "privileged" | "baseline" | "restricted");
        }
        let name = format!("{PREFIX}{mode}-version");
        if let Some(version) = label(&name) {
            let minor = version.strip_prefix("v1.").filter(|minor| {
                minor.chars().all(|c| c.is_ascii_digit()) && (*minor == "0" || !minor.starts_with('0'))
            });
            match minor.and_then(|minor| minor.parse().ok()) {
                Some(minor) => self.version = Some(minor),
                None if version == "latest" => self.version = None,
                None => {
                    let why = "must be \"latest\" or \"v1.x\"";
                    errors.push(FieldError::invalid(path.key(&name), version, why));
                }
            }
        }
        named
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.level {
            Level::Privileged => "privileged:",
            Level::Baseline => "baseline:",
            Level::Restricted => "restricted:",
        })?;
        match self.version {
            Some(minor) => write!(out, "v1.{minor}"),
            None => out.write_str("latest"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_make_a_policy() {
        let (policy, errors) = Policy::of(&json!({
            "pod-security.kubernetes.io/enforce": "baseline",
            "pod-security.kubernetes.io/enforce-version": "v1.30",
        }));
        assert!(errors.is_empty());
        assert_eq!(policy.enforce.to_string(), "baseline:v1.30");
        // What is refused later is warned of in templates.
        assert_eq!(policy.warn.to_string(), "baseline:v1.30");
        assert_eq!(policy.audit.to_string(), "privileged:latest");
        let (policy, errors) = Policy::of(&json!({
            "pod-security.kubernetes.io/enforce": "wrong",
            "pod-security.kubernetes.io/warn-version": "v2",
        }));
        assert_eq!(policy.enforce.to_string(), "restricted:latest");
        assert_eq!(errors.len(), 2);
        assert!(Policy::of(&Value::Null).0.is_privileged());
    }
}
