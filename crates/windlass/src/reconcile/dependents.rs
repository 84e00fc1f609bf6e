//! Bringing the dependents of a plan into being, and those of an earlier one out of it.

use std::collections::BTreeSet;

use kube::api::DynamicObject;
use serde_json::Value;

use super::external::ignored;
use super::settlement::{Line, Observed, title};
use super::{Findings, Pass};
use crate::apply::{Action, ApplyError, decide, difference, difference_in_value};
use crate::cache::{Delivered, Lookup, Read, Stored};
use crate::controller::{Planned, Subject, UNDECLARED};
use crate::hash::quick_hash;
use crate::plan::Dependent;
use crate::status::{HELD, MADE, Outcome, Status};
use crate::{Condition, State};

/// What came of one dependent in one round.
pub(super) struct Settled {
    pub(super) condition: Condition,
    pub(super) observed: bool,
    pub(super) wrote: bool,
    pub(super) uid: Option<String>,
    /// Whether it counts although it was not asked to: it could not be brought into being.
    pub(super) matters: bool,
    /// How it was observed, if it was there.
    pub(super) seen: Option<Observed>,
    /// A hash of all that the plan says of it, if that is how it is.
    pub(super) planned: Option<u64>,
}

impl Pass<'_> {
    /// Goes through the dependents in order; true if something was written.
    pub(super) async fn apply_all(
        &self,
        subject: &dyn Subject,
        planned: &Planned,
        findings: &mut Findings,
    ) -> bool {
        let previous = self.previous_status();
        let namespace = subject.owner().name.namespace.as_str();
        let mut conditions: Vec<Condition> = Vec::new();
        let mut lines = Vec::with_capacity(planned.dependents.len());
        findings.agreed = true;
        let mut seen = BTreeSet::new();
        let mut wrote = false;
        let may_reach_out = self.hold(subject, planned, findings).await;
        for dependent in &planned.dependents {
            // Without it, the fact of an external thing would not be kept.
            if dependent.config.watched || dependent.kind.is_external() {
                findings.reads.insert(Read::named(dependent.kind.clone(), dependent.name.clone()));
            }
            let settled = if !seen.insert((&dependent.kind, &dependent.name)) {
                refused("DeclaredTwice", format!("{} {} is planned twice", dependent.kind, dependent.name))
            } else if let Some(message) = self.controller.declared().refuse(dependent, namespace) {
                refused(UNDECLARED, message)
            } else if !may_reach_out && self.controller.declared().holds(dependent, subject.owner()) {
                let message = "waiting until the primary says that it has to be cleaned up".to_owned();
                refused_with(Condition::pending("Finalizer", message))
            } else {
                let held = self.held(dependent, planned, &conditions);
                self.settle(subject, dependent, held, previous, findings).await
            };
            wrote |= settled.wrote;
            conditions.push(settled.condition.clone());
            let mut attributes = settled.condition.attributes.clone();
            attributes.extend(settled.uid.map(|uid| (MADE.to_owned(), uid)));
            let outcome = Outcome {
                type_name: dependent.type_name().to_owned(),
                name: title(namespace, &dependent.name),
                counts: dependent.config.checked_for_readiness || settled.matters || !settled.observed,
                condition: settled.condition,
                attributes,
            };
            findings.agreed &= !dependent.kind.is_external() && (!settled.wrote || settled.planned.is_some());
            lines.push(Line::new(dependent, settled.seen, settled.planned).telling(&outcome));
            findings.outcomes.push(outcome);
        }
        self.memory.keep_lines(lines);
        wrote
    }

    /// Deletes what this primary owns, this operator made, and a complete plan does not have.
    pub(super) async fn prune(&self, subject: &dyn Subject, planned: &Planned, findings: &mut Findings) {
        let planned: BTreeSet<_> = planned.dependents.iter().map(|d| (&d.kind, &d.name)).collect();
        let operator = &subject.owner().operator;
        for kind in self.controller.owns() {
            // Whether there is something to prune cannot be told: that must not go unsaid.
            self.note_trouble(kind, self.own_namespace(), findings);
        }
        for (kind, stored) in self.cache().owned(self.controller.owns(), &self.stored.uid) {
            if stored.deleting || !stored.is_made_by(operator) || planned.contains(&(&kind, &stored.name)) {
                continue;
            }
            if self.wishes.ignores(&Dependent::new(kind.clone(), stored.name.clone())) {
                continue;
            }
            tracing::info!(primary = %self.key.name, %kind, name = %stored.name, "pruning");
            match self.requests.delete(&kind, &stored).await {
                Ok(()) => self.cache().deleted(&kind, &stored),
                Err(error) => {
                    let message = format!("failed to delete {kind} {}: {error}", stored.name);
                    findings.problems.push(Condition::failed(error.reason(), message));
                    findings.retry = true;
                }
            }
        }
    }

    /// What a dependent has to wait for, if anything.
    fn held(&self, dependent: &Dependent, planned: &Planned, conditions: &[Condition]) -> Option<Condition> {
        let not_ready = |index: &&usize| conditions.get(**index).is_some_and(|before| !before.is_ready());
        let before = planned.dependents.get(*dependent.after.iter().find(not_ready)?)?;
        let message = format!("waiting for {} {}", before.kind, before.name.name);
        Some(Condition::pending(HELD, message))
    }

    async fn settle(
        &self,
        subject: &dyn Subject,
        dependent: &Dependent,
        held: Option<Condition>,
        previous: &Status,
        findings: &mut Findings,
    ) -> Settled {
        let title = title(&subject.owner().name.namespace, &dependent.name);
        let remembered = previous.entry(dependent.type_name(), &title.name);
        let remembered = remembered.and_then(|entry| entry.attributes.get(MADE)).filter(|_| dependent.once());
        if dependent.kind.is_external() {
            return self.settle_external(dependent, held, remembered.is_some(), findings).await;
        }
        let observed = match self.cache().named(self.key, &dependent.kind, &dependent.name) {
            Lookup::Failed(error) => {
                findings.agreed = false;
                return refused("CannotObserve", error);
            }
            Lookup::Loading => {
                self.note_loading(&dependent.kind, findings);
                let message = format!("{} are being loaded", dependent.kind.plural());
                return Settled { matters: true, ..refused_with(Condition::pending("Loading", message)) };
            }
            Lookup::Absent => None,
            Lookup::Present(stored) => Some(stored),
        };
        let seen = observed.as_deref().map(Observed::of);
        if self.wishes.ignores(dependent) {
            return Settled {
                seen,
                observed: observed.is_some(),
                uid: remembered.cloned(),
                matters: false,
                ..refused_with(ignored(observed.map(|now| dependent.judge(&now))))
            };
        }
        let adopt = self.wishes.adopts(dependent);
        let planned = dependent.fingerprint(subject.owner(), adopt);
        let agreement = observed.as_deref().and_then(|now| self.agreement(dependent, planned, now));
        let action = match agreement {
            Some(_) => Action::Nothing,
            None => decide(dependent, observed.as_deref(), subject.owner(), remembered.is_some(), adopt),
        };
        self.trace.compared(&dependent.kind, &dependent.name, || action.found());
        if let Some(held) = held
            && !matches!(action, Action::Nothing | Action::Leave(_))
        {
            return Settled { seen, observed: observed.is_some(), matters: true, ..refused_with(held) };
        }
        let written = match (&action, observed.as_deref()) {
            (Action::Nothing, _) => {
                self.memory.at_peace(&dependent.kind, &dependent.name);
                None
            }
            (Action::Leave(condition), _) => {
                let uid = remembered.cloned();
                return Settled {
                    seen,
                    observed: observed.is_some(),
                    uid,
                    ..refused_with(condition.clone())
                };
            }
            (Action::Create, _) => Some(self.create(dependent).await),
            (Action::RepairOwner, Some(now)) => {
                Some(self.requests.repair_owner(dependent, now).await.map_err(Condition::from))
            }
            (Action::Apply(path), Some(now)) => {
                tracing::debug!(primary = %self.key.name, kind = %dependent.kind, name = %dependent.name, path);
                self.contend(dependent, now).await
            }
            (Action::RepairOwner | Action::Apply(_), None) => None,
        };
        let wrote = written.is_some();
        let observed = match written {
            Some(Ok(object)) => Some(self.cache().wrote(self.key, &dependent.kind, &object)),
            Some(Err(condition)) => {
                // A fight is over when somebody gives in, not after a pause.
                findings.retry |= condition.reason != FIGHTING;
                return Settled { seen, observed: observed.is_some(), ..refused_with(condition) };
            }
            None => observed,
        };
        // What was just written is mostly as planned, and need not be compared again.
        let agreed = match observed.as_deref() {
            None => false,
            Some(now) if wrote => {
                let remembered = remembered.is_some();
                decide(dependent, Some(now), subject.owner(), remembered, adopt) == Action::Nothing
            }
            Some(_) => action == Action::Nothing,
        };
        let judged = observed.as_deref().map(|now| {
            let known = agreement.and_then(|before| before.judged(now));
            known.unwrap_or_else(|| dependent.judge(now))
        });
        Settled {
            condition: judged.unwrap_or_else(Condition::ready),
            observed: observed.is_some(),
            wrote,
            seen: observed.as_deref().map(Observed::of),
            planned: agreed.then_some(planned),
            uid: observed.filter(|_| dependent.once()).map(|now| now.uid.to_string()),
            matters: false,
        }
    }

    /// What was found of an object that was as planned, if neither has changed since.
    fn agreement(&self, dependent: &Dependent, planned: u64, now: &Stored) -> Option<Line> {
        let before = self.memory.line(&dependent.kind, &dependent.name)?;
        before.still_holds(now, planned).then_some(before)
    }

    async fn create(&self, dependent: &Dependent) -> Result<Delivered, Condition> {
        match self.requests.create(dependent).await {
            Err(conflict) if conflict.is_conflict() => {
                // It is there, although the watch has not said so yet: judge it in the next round.
                let found = self.requests.get(&dependent.kind, &dependent.name).await?;
                found.ok_or_else(|| conflict.into())
            }
            other => other.map_err(Condition::from),
        }
    }

    /// Applies with force, unless the same content has been written so often that somebody must be fighting, or
    /// the server is known to keep it otherwise. `None` if nothing was sent.
    async fn contend(
        &self,
        dependent: &Dependent,
        observed: &Stored,
    ) -> Option<Result<Delivered, Condition>> {
        let (kind, name) = (&dependent.kind, &dependent.name);
        let mut writes = self.memory.writes(kind, name, quick_hash(&dependent.desired));
        if writes.settled == Some(observed.content_hash()) {
            return None;
        }
        let given_in = match &writes.conflict {
            None => false,
            Some(conflict) => {
                let share = observed.share.as_ref().map_or(&Value::Null, |share| &share.fields);
                if difference_in_value(&dependent.desired, &observed.value(), share).is_some() {
                    return Some(Err(Condition::failed(FIGHTING, conflict)));
                }
                // The other has given in: share the field.
                true
            }
        };
        let force = !writes.is_fight();
        if !force && !given_in {
            let rival = self.rival(dependent, observed).await;
            writes.conflict = rival.as_ref().ok().cloned();
            self.memory.keep_writes(kind, name, writes);
            return Some(Err(rival.map_or_else(Condition::from, |rival| Condition::failed(FIGHTING, rival))));
        }
        let answer = self.requests.apply(dependent, observed, force).await;
        let answer = match answer {
            Err(error) => Err(error.into()),
            Ok(object) => {
                writes.conflict = None;
                writes.add();
                let stored = Stored::new(&object, self.cache().shares());
                let fields = stored.share.as_ref().map(|share| &share.fields);
                let differs = fields
                    .is_some_and(|share| difference(&dependent.desired, &stored.value(), share).is_some());
                writes.settled = differs.then(|| stored.content_hash());
                Ok(object)
            }
        };
        self.memory.keep_writes(kind, name, writes);
        Some(answer)
    }

    /// Who keeps changing a dependent back, and what, in words.
    async fn rival(&self, dependent: &Dependent, observed: &Stored) -> Result<String, ApplyError> {
        let what = format!("{} {} is changed back again and again", dependent.kind, dependent.name.name);
        match self.requests.probe(dependent, observed).await {
            // The server names the other manager and the fields.
            Err(error) if error.is_conflict() => Ok(format!("{what}: {error}{WAY_OUT}")),
            Err(error) => Err(error),
            // Nobody owns the fields: they are taken away, not set otherwise. Whoever does it may own others.
            Ok(object) => {
                let whole = object.decode::<DynamicObject>().ok();
                let entries = whole.and_then(|whole| whole.metadata.managed_fields).unwrap_or_default();
                let others = entries
                    .into_iter()
                    .filter(|entry| entry.manager.as_deref() != Some(self.requests.manager()))
                    .filter(|entry| entry.subresource.is_none());
                let last = others.max_by_key(|entry| entry.time.as_ref().map(|time| time.0));
                let last = last.and_then(|entry| entry.manager);
                Ok(match last {
                    Some(manager) => {
                        format!("{what} by somebody who removes fields, perhaps \"{manager}\"{WAY_OUT}")
                    }
                    None => format!("{what} by somebody who removes fields{WAY_OUT}"),
                })
            }
        }
    }
}

/// What to do about a fight.
const WAY_OUT: &str =
    "; have one of the two leave it, then take it back with a new text in the annotation windlass.dev/force";

/// The reason of a condition about a dependent that somebody else keeps changing.
const FIGHTING: &str = "Conflict";

impl From<ApplyError> for Condition {
    fn from(error: ApplyError) -> Self {
        // What the server could not be asked may yet be well, and a lost race is no fight.
        if error.is_conflict() && error.reason() == FIGHTING {
            return Self::pending("Contended", error.to_string());
        }
        let state = match &error {
            ApplyError::Refused(_) => State::Failed,
            ApplyError::Unreachable(_) | ApplyError::Silent | ApplyError::Deposed(_) => State::Pending,
        };
        Self { state, ..Self::failed(error.reason(), error.to_string()) }
    }
}

pub(super) fn refused(reason: &str, message: String) -> Settled {
    refused_with(Condition::failed(reason, message))
}

pub(super) fn refused_with(condition: Condition) -> Settled {
    Settled { condition, observed: false, wrote: false, uid: None, matters: true, seen: None, planned: None }
}
