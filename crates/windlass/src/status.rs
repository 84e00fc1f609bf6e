//! The framework's part of a primary's status, computed from scratch at every pass.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as Standard, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, Kind, ObjectName, State};

/// What every primary reports. Flatten it into the status type of your own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, `Progressing` and `Degraded`, and the operator's own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Standard>,
    /// One entry for each dependent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<DependentStatus>,
}

/// What is reported of one dependent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependentStatus {
    /// How it is: `Ready`, `Pending`, `Failed`, or a name that its operator has for its state.
    #[serde(rename = "type")]
    pub state: String,
    /// Its kind.
    pub dependent_type: String,
    /// Its name.
    pub dependent_name: String,
    /// When its state last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Why, as one word for programs.
    #[serde(default)]
    pub reason: String,
    /// Why, as a sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// More about it. `uid` is that of an object that is made once: were it gone, it was made before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// The types of the framework's own conditions.
pub(crate) const CONDITIONS: [&str; 4] = ["Ready", "Progressing", "Degraded", "Paused"];

/// The attribute that remembers the object that was made once.
pub(crate) const MADE: &str = "uid";

/// The reason of a dependent that waits for another: the other is the cause, and is named first.
pub(crate) const HELD: &str = "Held";

/// What a pass found out about one dependent.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// What its kind is called in the status.
    pub(crate) type_name: String,
    pub(crate) name: ObjectName,
    pub(crate) condition: Condition,
    /// Whether it counts for the readiness of the primary.
    pub(crate) counts: bool,
    pub(crate) attributes: BTreeMap<String, String>,
}

impl Status {
    /// The entry of a dependent.
    #[must_use]
    pub fn dependent(&self, kind: &Kind, name: &str) -> Option<&DependentStatus> {
        self.entry(kind.name(), name)
    }

    pub(crate) fn entry(&self, type_name: &str, name: &str) -> Option<&DependentStatus> {
        self.dependents.iter().find(|entry| entry.dependent_type == type_name && entry.dependent_name == name)
    }

    /// One line about a dependent: `Ready`, or its state and why.
    #[must_use]
    pub fn line(&self, kind: &Kind, name: &str) -> String {
        match self.dependent(kind, name) {
            Some(entry) if entry.message.is_empty() => entry.state.clone(),
            Some(entry) => format!("{}: {}", entry.state, entry.message),
            None => "Pending".into(),
        }
    }

    /// Whether the primary is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    }

    /// The status after a pass that found these outcomes, and problems that belong to no dependent. Of `previous`
    /// only times are taken over, where nothing has changed.
    pub(crate) fn compute(
        previous: &Status,
        generation: Option<i64>,
        outcomes: &[Outcome],
        problems: &[Condition],
        now: Timestamp,
    ) -> Self {
        let now = Time(now);
        let mut dependents: Vec<_> = outcomes.iter().map(|outcome| outcome.entry(previous, &now)).collect();
        dependents.sort_by(|a, b| {
            (&a.dependent_type, &a.dependent_name).cmp(&(&b.dependent_type, &b.dependent_name))
        });
        let mut troubles: Vec<Trouble> = outcomes
            .iter()
            .filter(|outcome| outcome.counts && !outcome.condition.is_ready())
            .map(Trouble::of)
            .chain(problems.iter().map(|problem| Trouble { what: String::new(), condition: problem.clone() }))
            .collect();
        troubles.sort_by_key(|trouble| {
            let condition = &trouble.condition;
            (Reverse(condition.state), condition.reason == HELD, trouble.what.clone())
        });
        let worst = troubles.first().map_or(State::Ready, |trouble| trouble.condition.state);
        let of = |state: State| troubles.iter().filter(move |trouble| trouble.condition.state == state);

        let mut conditions = Vec::new();
        let mut say = |kind: &str, holds: bool, reason: &str, message: String| {
            let status = if holds { "True" } else { "False" };
            let before = previous.conditions.iter().find(|before| before.type_ == kind);
            let unchanged = before.filter(|before| before.status == status);
            conditions.push(Standard {
                type_: kind.into(),
                status: status.into(),
                reason: reason.into(),
                message,
                observed_generation: generation,
                last_transition_time: unchanged
                    .map_or(now.clone(), |before| before.last_transition_time.clone()),
            });
        };
        let reason = |state: State, none: &str| {
            of(state).next().map_or(none.to_owned(), |trouble| trouble.condition.reason.clone())
        };
        let all = |state: State| of(state).map(Trouble::to_string).collect::<Vec<_>>().join("; ");
        say("Ready", worst == State::Ready, &reason(worst, "Ready"), all(worst));
        let moving = of(State::Pending).next().is_some();
        say("Progressing", moving, &reason(State::Pending, "Settled"), all(State::Pending));
        let broken = of(State::Failed).next().is_some();
        say("Degraded", broken, &reason(State::Failed, "Healthy"), all(State::Failed));

        Self { observed_generation: generation, conditions, dependents }
    }

    /// Whether a reader should learn of the change from `previous` at once: other than progress in detail.
    pub(crate) fn is_urgent_after(&self, previous: &Status) -> bool {
        let gist = |status: &Status| -> Vec<(String, String)> {
            let gist = status.conditions.iter().map(|condition| {
                let detail = if condition.type_ == "Degraded" { condition.message.as_str() } else { "" };
                (condition.type_.clone(), format!("{} {detail}", condition.status))
            });
            gist.collect()
        };
        self.observed_generation != previous.observed_generation || gist(self) != gist(previous)
    }

    /// What is newly wrong since `previous`: reason and message of each.
    pub(crate) fn news_since(&self, previous: &Status) -> Option<(String, String)> {
        let degraded = |status: &Status| {
            let found = status.conditions.iter().find(|condition| condition.type_ == "Degraded");
            let broken = found.filter(|condition| condition.status == "True");
            broken.map(|condition| (condition.reason.clone(), condition.message.clone()))
        };
        degraded(self).filter(|now| Some(now) != degraded(previous).as_ref())
    }
}

impl DependentStatus {
    /// Whether it says that the dependent is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state == State::Ready.to_string()
    }
}

impl Outcome {
    fn entry(&self, previous: &Status, now: &Time) -> DependentStatus {
        let before = previous.entry(&self.type_name, &self.name.name);
        let state = self.condition.title();
        let unchanged = before.filter(|before| before.state == state);
        DependentStatus {
            state,
            dependent_type: self.type_name.clone(),
            dependent_name: self.name.name.clone(),
            last_transition_time: unchanged
                .map_or(Some(now.clone()), |before| before.last_transition_time.clone()),
            reason: self.condition.reason.clone(),
            message: self.condition.message.clone(),
            attributes: self.attributes.clone(),
        }
    }
}

struct Trouble {
    what: String,
    condition: Condition,
}

impl Trouble {
    fn of(outcome: &Outcome) -> Self {
        Self {
            what: format!("{} {}", outcome.type_name, outcome.name.name),
            condition: outcome.condition.clone(),
        }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.what.as_str(), self.condition.message.as_str()) {
            ("", message) => f.write_str(message),
            (what, "") => write!(f, "{what}: {}", self.condition.reason),
            // A message that names the object needs no prefix.
            (what, message) if message.starts_with(what.split(' ').next().unwrap_or(what)) => {
                f.write_str(message)
            }
            (what, message) => write!(f, "{what}: {message}"),
        }
    }
}

#[cfg(test)]
mod tests;
