//! The finalizer of a primary, and the note of what was made for it where garbage collection does not reach: things
//! outside Kubernetes, and objects in other namespaces.
//!
//! Both are written before the first such thing is made, in one request, and go with the last.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::{Findings, Next, Pass};
use crate::annotation::{HOLDS, finalizer};
use crate::cache::Stored;
use crate::controller::{Planned, Subject};
use crate::plan::Dependent;
use crate::{Condition, Kind, ObjectName};

/// What a primary says it holds.
#[derive(Debug, PartialEq)]
struct Ledger {
    finalizer: bool,
    /// External things as `Type/id`.
    holds: BTreeSet<String>,
}

impl Ledger {
    fn of(tree: &Value, operator: &str) -> Self {
        let finalizers = tree.pointer("/metadata/finalizers").and_then(Value::as_array);
        let ours = finalizer(operator);
        let annotations = tree.pointer("/metadata/annotations");
        let holds = annotations.and_then(|all| all.get(HOLDS)).and_then(Value::as_str);
        Self {
            finalizer: finalizers.is_some_and(|all| all.iter().any(|one| *one == ours)),
            holds: holds.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
        }
    }
}

impl Pass<'_> {
    /// Makes sure that what a plan is about to make outside the reach of garbage collection will be cleaned up.
    /// False if that could not be said on the primary: then none of it may be made.
    pub(super) async fn hold(
        &self,
        subject: &dyn Subject,
        planned: &Planned,
        findings: &mut Findings,
    ) -> bool {
        let declared = self.controller.declared();
        let beyond: Vec<&Dependent> = planned
            .dependents
            .iter()
            .filter(|dependent| declared.holds(dependent, subject.owner()))
            .collect();
        if beyond.is_empty() {
            return true;
        }
        let now = self.ledger();
        let mut wanted = Ledger { finalizer: true, holds: now.holds.clone() };
        let externals = beyond.iter().filter(|dependent| dependent.kind.is_external());
        wanted.holds.extend(externals.map(|dependent| entry(dependent)));
        wanted == now || self.write(&wanted, findings).await
    }

    /// Removes the external things that a complete plan no longer has, and the finalizer with the last of them.
    pub(super) async fn let_go(&self, subject: &dyn Subject, planned: &Planned, findings: &mut Findings) {
        let now = self.ledger();
        if !now.finalizer && now.holds.is_empty() {
            return;
        }
        let owner = subject.owner();
        let declared = self.controller.declared();
        let beyond = planned.dependents.iter().filter(|dependent| declared.holds(dependent, owner));
        let (externals, objects): (Vec<_>, Vec<_>) =
            beyond.partition(|dependent| dependent.kind.is_external());
        let planned: BTreeSet<String> = externals.into_iter().map(entry).collect();
        let mut holds = now.holds.clone();
        for entry in now.holds.difference(&planned) {
            match self.remove(entry).await {
                Ok(()) => drop(holds.remove(entry)),
                Err(condition) => {
                    findings.problems.push(condition);
                    findings.retry = true;
                }
            }
        }
        let finalizer = !holds.is_empty() || !objects.is_empty() || !self.objects_beyond().is_empty();
        let wanted = Ledger { finalizer, holds };
        if wanted != now {
            self.write(&wanted, findings).await;
        }
    }

    /// What has to happen before a primary may go.
    pub(super) async fn cleanup(&mut self) -> Next {
        let ledger = self.ledger();
        if !ledger.finalizer {
            return Next::Settled;
        }
        if self.wishes.paused {
            return self.report_paused().await;
        }
        if !self.cache().is_loaded(self.key, self.controller.owns()) {
            return Next::Settled;
        }
        let mut findings = Findings::default();
        for entry in &ledger.holds {
            if let Err(condition) = self.remove(entry).await {
                findings.problems.push(condition);
                findings.retry = true;
            }
        }
        for kind in self.controller.owns() {
            findings.retry |= self.note_trouble(kind, self.own_namespace(), &mut findings);
        }
        let mut left = Vec::new();
        for (kind, stored) in self.objects_beyond() {
            left.push(format!("{kind} {}", stored.name));
            if stored.deleting {
                continue;
            }
            // What it owns may be in use until it is gone itself.
            match self.requests.delete_last(&kind, &stored).await {
                Ok(()) => self.cache().deleted(&kind, &stored),
                Err(error) => {
                    let message = format!("failed to delete {kind} {}: {error}", stored.name);
                    findings.problems.push(Condition::failed("CleanupFailed", message));
                    findings.retry = true;
                }
            }
        }
        self.cache().record(self.key, &self.stored.uid, &findings.reads);
        if findings.problems.is_empty() && left.is_empty() {
            let done = Ledger { finalizer: false, holds: BTreeSet::new() };
            if self.write(&done, &mut findings).await {
                return Next::Settled;
            }
        }
        if !left.is_empty() {
            let message = format!("waiting for {} to be gone", left.join(", "));
            findings.problems.push(Condition::pending("Deleting", message));
        }
        let written = self.report(None, &mut findings).await;
        match (findings.retry, written) {
            (true, _) | (_, Err(())) => Next::Retry,
            (false, Ok(Some(pause))) => Next::After(pause),
            (false, Ok(None)) => Next::Settled,
        }
    }

    fn ledger(&self) -> Ledger {
        let current = self.cache().primary(self.controller.kind(), &self.key.name);
        let newer = current.filter(|now| now.uid == self.stored.uid && !Arc::ptr_eq(now, &self.stored));
        let newer = newer.map(|now| now.value());
        Ledger::of(newer.as_ref().unwrap_or(&self.tree), self.controller.operator())
    }

    async fn write(&self, ledger: &Ledger, findings: &mut Findings) -> bool {
        let kind = self.controller.kind();
        let finalizer = ledger.finalizer.then(|| finalizer(self.controller.operator()));
        match self.requests.hold(kind, &self.stored, finalizer.as_deref(), &ledger.holds).await {
            Ok(object) => {
                self.cache().wrote(self.key, kind, &object);
                true
            }
            // It is gone, and its own event is on the way.
            Err(error) if error.is_not_found() => true,
            Err(error) => {
                let message = format!("failed to note what is to be cleaned up: {error}");
                findings.problems.push(Condition::failed(error.reason(), message));
                findings.retry = true;
                false
            }
        }
    }

    /// Removes an external thing.
    async fn remove(&self, entry: &str) -> Result<(), Condition> {
        let (kind, id) = entry.split_once('/').unwrap_or((entry, ""));
        let (kind, name) = (Kind::external(kind), ObjectName::new("", id));
        let failed = |error: &str| {
            let message = format!("failed to remove {kind} {id}: {error}");
            Condition::failed("CleanupFailed", message)
        };
        let external = self.reconciler.externals.get(&kind);
        let external = external.ok_or_else(|| failed("the operator was given no code for it"))?;
        tracing::info!(primary = %self.key.name, %kind, id, "removing");
        let remove = self.requests.outside("delete", &kind, &name, external.remove(id));
        remove.await.map_err(|error| failed(&error))?;
        self.cache().wrote_fact(&kind, &name, None);
        Ok(())
    }

    /// Objects of this primary that garbage collection does not reach, or not soon enough.
    fn objects_beyond(&self) -> Vec<(Kind, Arc<Stored>)> {
        let owned = self.cache().owned(self.controller.owns(), &self.stored.uid);
        let (namespace, first) = (&self.key.name.namespace, &self.controller.declared().stops_first);
        let beyond = |stored: &Stored| !namespace.is_empty() && stored.name.namespace != *namespace;
        owned.into_iter().filter(|(kind, stored)| beyond(stored) || first.contains(kind)).collect()
    }
}

/// How the note names an external dependent.
fn entry(dependent: &Dependent) -> String {
    format!("{}/{}", dependent.kind.name(), dependent.name.name)
}
