//! Bringing the external dependents of a plan into being.

use super::dependents::{Settled, refused, refused_with};
use super::{Findings, Pass};
use crate::Condition;
use crate::cache::Lookup;
use crate::external::{observed, stored};
use crate::plan::Dependent;

impl Pass<'_> {
    pub(super) async fn settle_external(
        &self,
        dependent: &Dependent,
        held: Option<Condition>,
        made_before: bool,
        findings: &mut Findings,
    ) -> Settled {
        let (kind, id) = (&dependent.kind, dependent.name.name.as_str());
        let Some(external) = self.reconciler.externals.get(kind) else {
            return refused("Unknown", format!("the operator was given no code for {kind} {id}"));
        };
        let now = match self.cache().named(self.key, kind, &dependent.name) {
            Lookup::Loading => {
                findings.loading = true;
                return refused_with(Condition::pending(
                    "Loading",
                    format!("{kind} {id} is being looked at"),
                ));
            }
            Lookup::Failed(error) => {
                let message = format!("failed to observe {kind} {id}: {error}");
                return refused_with(Condition::failed("CannotObserve", message));
            }
            Lookup::Absent => None,
            Lookup::Present(stored) => Some(observed(&stored)),
        };
        let settled = |condition| Settled {
            observed: true,
            matters: false,
            uid: dependent.once().then(|| id.to_owned()),
            ..refused_with(condition)
        };
        if self.wishes.ignores(dependent) {
            return settled(ignored(now.as_ref().map(|now| external.condition(now))));
        }
        let config = &dependent.config;
        let differs = match &now {
            None if !config.created => {
                let message = format!("{kind} {id} is not there, and is not made here");
                return refused_with(Condition::pending("Absent", message));
            }
            None if dependent.once() && made_before => {
                let message = format!("{kind} {id} was made once and is gone; make it again to go on");
                return Settled {
                    uid: Some(id.to_owned()),
                    ..refused_with(Condition::failed("Deleted", message))
                };
            }
            None => Ok(true),
            Some(_) if !config.updated => Ok(false),
            Some(now) => external.differs(&dependent.desired, now),
        };
        match (differs, held, now) {
            (Err(error), ..) => refused("Undecodable", format!("failed to compare {kind} {id}: {error}")),
            (Ok(false), _, Some(now)) => settled(external.condition(&now)),
            (Ok(_), Some(held), now) => Settled { observed: now.is_some(), ..refused_with(held) },
            (Ok(_), None, before) => {
                tracing::info!(primary = %self.key.name, %kind, id, "applying");
                let apply = external.apply(id, &dependent.desired);
                match self.requests.outside("apply", kind, &dependent.name, apply).await {
                    Ok(now) => {
                        let wrote = before.as_ref() != Some(&now);
                        let condition = external.condition(&now);
                        self.cache().wrote_fact(kind, &dependent.name, Some(stored(id, now)));
                        // What applying does not change is tried again, but not at once.
                        findings.retry |= !wrote;
                        Settled { wrote, ..settled(condition) }
                    }
                    Err(error) => {
                        findings.retry = true;
                        let message = format!("failed to apply {kind} {id}: {error}");
                        Settled {
                            observed: before.is_some(),
                            ..refused_with(Condition::failed("ExternalFailed", message))
                        }
                    }
                }
            }
        }
    }
}

/// The condition of a dependent that the user wants to be left alone.
pub(super) fn ignored(found: Option<Condition>) -> Condition {
    let mut condition = found.unwrap_or_else(|| Condition::pending("Absent", "not there"));
    let note = "left alone as its primary's annotation asks";
    condition.message = match condition.message.as_str() {
        "" => note.to_owned(),
        message => format!("{message} ({note})"),
    };
    condition.reason = "Ignored".into();
    condition
}
