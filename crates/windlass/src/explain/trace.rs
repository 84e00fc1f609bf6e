//! The record of a pass while it goes on.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::diff::changes;
use super::{Comparison, Pass, Write};
use crate::cache::Stored;
use crate::{Kind, ObjectName};

/// So many entries of each sort are kept of one pass.
const MOST: usize = 64;

/// The record of a pass while it goes on.
#[derive(Debug, Default)]
pub(crate) struct Trace(Mutex<Pass>);

/// A write that is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent<'a> {
    pub(crate) verb: &'static str,
    pub(crate) kind: &'a Kind,
    pub(crate) name: &'a ObjectName,
    /// What the object was like, as far as it is known.
    pub(crate) before: Option<&'a Stored>,
    pub(crate) body: &'a Value,
}

impl Trace {
    pub(crate) fn new(pass: Pass) -> Self {
        Self(Mutex::new(pass))
    }

    pub(crate) fn compared(&self, kind: &Kind, name: &ObjectName, found: impl FnOnce() -> String) {
        let mut pass = self.lock();
        if pass.compared.len() < MOST {
            let (object, found) = (format!("{kind} {name}"), found());
            // In a later round, after a write.
            match pass.compared.iter_mut().find(|known| known.object == object) {
                Some(known) if known.found.ends_with(&found) => {}
                Some(known) => known.found = format!("{}, then {found}", known.found),
                None => pass.compared.push(Comparison { object, found }),
            }
        }
    }

    pub(crate) fn wrote(&self, sent: &Sent<'_>, error: Option<String>) {
        let mut pass = self.lock();
        if pass.writes.len() >= MOST {
            return;
        }
        let changes = sent.before.map(|before| match sent.verb {
            "status" => {
                let before = before.value();
                let status = |tree: &Value| tree.get("status").cloned().unwrap_or_default();
                let found = changes(sent.kind, &status(&before), &status(sent.body), true);
                found.into_iter().filter(|change| !is_time(&change.path)).collect()
            }
            _ => changes(sent.kind, &before.value(), sent.body, false),
        });
        pass.writes.push(Write {
            verb: sent.verb.to_owned(),
            object: format!("{} {}", sent.kind, sent.name),
            changes: changes.unwrap_or_default(),
            error,
        });
    }

    pub(crate) fn note(&self, change: impl FnOnce(&mut Pass)) {
        let mut pass = self.lock();
        change(&mut pass);
        pass.reads.truncate(MOST);
        pass.problems.truncate(MOST);
    }

    pub(super) fn finish(&self) -> Pass {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Pass> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_time(path: &str) -> bool {
    path.ends_with("lastTransitionTime")
}
