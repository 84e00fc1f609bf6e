//! What a pass rests on, so that the next need not plan again where that has not changed.
//!
//! A plan is pure: as long as the primary and what the plan looked at are as they were, it says the same. Then a change of
//! a dependent's status asks only how that dependent is now, and often not even that has to be told at once. This is
//! kept while a primary is on the move, when its dependents change most.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Reconciler;
use super::memory::Memory;
use super::report::waits;
use crate::cache::{PrimaryKey, Share, Stored};
use crate::controller::Controller;
use crate::hash::seeded;
use crate::plan::Dependent;
use crate::status::{MADE, Outcome};
use crate::world::Glimpse;
use crate::{Condition, Kind, ObjectName, readiness};

/// What the last pass rests on.
pub(super) struct Settlement {
    /// Hashes of the primary and of its status.
    pub(super) primary: (u64, u64),
    /// What the plan looked at.
    pub(super) plan: Vec<Glimpse>,
    /// When to plan again even if nothing has changed.
    pub(super) again: Option<Instant>,
}

/// What was found of one dependent.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) kind: Kind,
    pub(super) name: ObjectName,
    /// How it was observed, if it was there.
    pub(super) observed: Option<Observed>,
    /// A hash of all that the plan says of it, if it was found as planned: then, as long as neither the plan nor the
    /// object changes, there is nothing to compare.
    pub(super) planned: Option<u64>,
    /// Whether it is the user's, once it is there.
    users: bool,
    /// Whether its condition follows from what is observed by the rule for its kind alone.
    judged_by_kind: bool,
    /// What was said of it, unless it was ready.
    said: Option<Box<Condition>>,
    /// Whether it counts for the readiness of the primary.
    counts: bool,
    /// Its uid, if that is told, since it is made once.
    made: Option<Box<str>>,
    /// What its kind is called in the status, if otherwise than its name.
    type_name: Option<Box<str>>,
    /// What has to be ready before it, as places in the plan.
    after: Box<[usize]>,
}

/// How an object was observed.
#[derive(Clone)]
pub(super) struct Observed {
    name: ObjectName,
    uid: u64,
    /// Hashes of all of it.
    whole: (u64, u64),
    ownership: u64,
    share: Option<Arc<Share>>,
}

impl Observed {
    pub(super) fn of(stored: &Stored) -> Self {
        Self {
            name: stored.name.clone(),
            uid: seeded(&stored.uid),
            whole: (stored.content_hash(), stored.status_hash()),
            ownership: stored.ownership_hash(),
            share: stored.share.clone(),
        }
    }

    fn is_same(&self, now: &Stored) -> bool {
        self.whole == (now.content_hash(), now.status_hash()) && self.is_ours_as_before(now)
    }

    /// Whether whose it is, and what of it is ours, is as it was. The server takes a field out of the share of a manager
    /// when another changes or removes it: as long as the share is the same, so are the fields.
    fn is_ours_as_before(&self, now: &Stored) -> bool {
        let same = self.ownership == now.ownership_hash() && self.uid == seeded(&now.uid);
        same && self.share == now.share && !now.deleting
    }
}

impl Line {
    pub(super) fn new(dependent: &Dependent, observed: Option<Observed>, planned: Option<u64>) -> Self {
        Self {
            kind: dependent.kind.clone(),
            // One copy of the name, as long as there is an object of it.
            name: observed.as_ref().map_or(&dependent.name, |observed| &observed.name).clone(),
            observed,
            planned,
            users: dependent.once() || dependent.keep,
            judged_by_kind: dependent.judged_by_kind(),
            said: None,
            counts: false,
            made: None,
            type_name: dependent.config.type_name.as_deref().map(Into::into),
            after: dependent.after.as_slice().into(),
        }
    }

    /// With what is told of it.
    pub(super) fn telling(self, outcome: &Outcome) -> Self {
        let made = outcome.attributes.get(MADE).map(|uid| uid.as_str().into());
        Self { made, counts: outcome.counts, ..self }.saying(&outcome.condition)
    }

    fn saying(self, condition: &Condition) -> Self {
        let said = Some(condition).filter(|said| **said != Condition::ready());
        Self { said: said.cloned().map(Box::new), ..self }
    }

    pub(super) fn is_of(&self, kind: &Kind, name: &ObjectName) -> bool {
        self.name == *name && self.kind == *kind
    }

    pub(super) fn is_ready(&self) -> bool {
        self.said.as_ref().is_none_or(|said| said.is_ready())
    }

    /// Whether it is still as planned, if it was so by this plan.
    pub(super) fn still_holds(&self, now: &Stored, planned: u64) -> bool {
        self.planned == Some(planned) && self.is_as_planned(now)
    }

    fn is_as_planned(&self, now: &Stored) -> bool {
        self.planned.is_some()
            && self.observed.as_ref().is_some_and(|before| {
                let shared = before.share.is_some() || self.users;
                before.is_ours_as_before(now) && (shared || before.whole.0 == now.content_hash())
            })
    }

    /// What was said of it by the rule for its kind, if it is all as it was.
    pub(super) fn judged(&self, now: &Stored) -> Option<Condition> {
        let same = self.observed.as_ref().is_some_and(|before| before.is_same(now));
        (same && self.judged_by_kind).then(|| self.condition())
    }

    fn condition(&self) -> Condition {
        self.said.as_deref().cloned().unwrap_or_else(Condition::ready)
    }

    /// What is told of it in the status of a primary in this namespace.
    pub(super) fn outcome(&self, namespace: &str) -> Outcome {
        let condition = self.condition();
        let mut attributes: BTreeMap<_, _> = condition.attributes.clone();
        attributes.extend(self.made.iter().map(|uid| (MADE.to_owned(), uid.to_string())));
        Outcome {
            type_name: self.type_name.as_deref().unwrap_or(self.kind.name()).to_owned(),
            name: title(namespace, &self.name),
            condition,
            counts: self.counts,
            attributes,
        }
    }
}

/// What a dependent is called in the status: with its namespace where that is not the primary's.
pub(super) fn title(namespace: &str, name: &ObjectName) -> ObjectName {
    if name.namespace.is_empty() || name.namespace == namespace {
        return name.clone();
    }
    ObjectName::new(name.namespace.clone(), name.to_string())
}

/// What a look at a primary and all that concerns it comes to.
pub(super) enum Glance {
    /// It has to be planned.
    Plan,
    /// It would be planned as before, but this is now to be told of its dependents.
    Report(Vec<Outcome>),
    /// There is nothing to do, or not before this time has passed.
    Rest(Option<Duration>),
}

impl Reconciler {
    /// Looks whether something has changed that a plan or a status depends on.
    pub(super) fn glance(
        &self,
        controller: &dyn Controller,
        key: &PrimaryKey,
        stored: &Stored,
        memory: &Memory,
    ) -> Glance {
        let Some(mut settlement) = memory.take_settlement() else { return Glance::Plan };
        let mut lines = memory.take_lines();
        let rests = self.rests_on(controller, stored, &mut settlement);
        let change = rests.then(|| self.look_at(controller, stored, &mut lines)).flatten();
        memory.keep_lines(lines);
        let Some(change) = change else { return Glance::Plan };
        memory.keep_settlement(settlement);
        let told = self.still_tells(stored, memory);
        let waiting = match change {
            _ if !told => None,
            Change::Gist => None,
            Change::Nothing if !self.memories.is_unsaid(key) => Some(None),
            Change::Nothing | Change::Detail => waits(&self.memories, key, memory).map(Some),
        };
        match waiting {
            None => Glance::Report(memory.outcomes(&key.name.namespace)),
            Some(pause) => Glance::Rest(pause.into_iter().chain(memory.again()).min()),
        }
    }

    /// Whether the primary, and what its plan looked at, are as they were.
    fn rests_on(&self, controller: &dyn Controller, stored: &Stored, settlement: &mut Settlement) -> bool {
        let primary = (stored.content_hash(), stored.status_hash());
        let due = settlement.again.is_some_and(|at| at <= Instant::now());
        let same = !stored.deleting && settlement.primary == primary && !due;
        same && !controller.kind().is_external() && self.cache.holds(&mut settlement.plan)
    }

    /// Looks at the dependents; nothing, if that takes their plan.
    fn look_at(&self, controller: &dyn Controller, stored: &Stored, lines: &mut [Line]) -> Option<Change> {
        if self.has_unplanned(controller, stored, lines) {
            return None;
        }
        let found = self.cache.peek(lines.iter().map(|line| (&line.kind, &line.name)))?;
        let mut changed = Vec::new();
        for (place, (line, now)) in lines.iter().zip(&found).enumerate() {
            if let Some(new) = judge(line, now.as_deref())? {
                changed.push((place, new));
            }
        }
        // What waits for another may go on, or not any more.
        let turned = |place: &usize| {
            let new = changed.iter().find(|(changed, _)| changed == place);
            new.is_some_and(|(_, new)| lines.get(*place).is_none_or(|old| old.is_ready() != new.is_ready()))
        };
        if lines.iter().any(|line| line.planned.is_none() && line.after.iter().any(turned)) {
            return None;
        }
        let mut change = Change::Nothing;
        for (place, new) in changed {
            let Some(old) = lines.get_mut(place) else { continue };
            let gist = old.is_ready() != new.is_ready() || is_failure(old) || is_failure(&new);
            change = match old.said == new.said {
                true => change,
                false if gist => Change::Gist,
                false => change.max(Change::Detail),
            };
            *old = new;
        }
        Some(change)
    }

    /// Whether nothing has changed that the operator's own part of the status depends on, but the framework's.
    pub(super) fn still_tells(&self, stored: &Stored, memory: &Memory) -> bool {
        let Some((primary, mut told)) = memory.take_told() else { return false };
        // Somebody else may have changed the status itself.
        let now = (stored.content_hash(), stored.status_hash());
        let same = primary == now && self.cache.holds(&mut told);
        if same {
            memory.told(primary, Some(told));
        }
        same
    }

    /// Whether there is an object of the primary that the plan does not have, and that has to go.
    fn has_unplanned(&self, controller: &dyn Controller, stored: &Stored, lines: &[Line]) -> bool {
        let operator = controller.operator();
        self.cache.owned(controller.owns(), &stored.uid).iter().any(|(kind, owned)| {
            if owned.deleting || lines.iter().any(|line| line.is_of(kind, &owned.name)) {
                return false;
            }
            owned.is_made_by(operator)
        })
    }
}

/// What has changed of the dependents, for whoever reads the status.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Nothing,
    Detail,
    Gist,
}

/// What is now found of a dependent, if it has changed; nothing, if that takes its plan.
fn judge(line: &Line, now: Option<&Stored>) -> Option<Option<Line>> {
    match (&line.observed, now) {
        (None, None) => Some(None),
        (Some(before), Some(now)) if before.is_same(now) => Some(None),
        (Some(_), Some(now)) if line.is_as_planned(now) && line.judged_by_kind => {
            let observed = Some(Observed::of(now));
            Some(Some(Line { observed, ..line.clone() }.saying(&readiness::of(&line.kind, now))))
        }
        _ => None,
    }
}

fn is_failure(line: &Line) -> bool {
    line.said.as_ref().is_some_and(|said| said.state == crate::State::Failed)
}
