//! What an operator would do, found out by the same plan and the same comparison, and without a single write.
//!
//! Everything is read with single requests; no watch is opened. What would be made is put into a picture of the
//! cluster, and planned again, until nothing new comes: so a plan that reads what it makes is shown to its end.

mod snapshot;

use std::collections::BTreeMap;

use kube::Client;
use kube::api::{DynamicObject, ListParams};
use serde::Serialize;
use serde_json::{Value, json};
use windlass_machinery::Context;

use self::snapshot::Snapshot;
use crate::annotation::Wishes;
use crate::apply::{Action, decide};
use crate::cache::{Lookup, Stored};
use crate::controller::{Controller, Planned, Subject};
use crate::explain::{self, Change};
use crate::external;
use crate::plan::Dependent;
use crate::status::MADE;
use crate::{Kind, MANAGED_BY, ObjectName, Operator, Status};

/// How often it is planned again because something would be there that was not.
const ROUNDS: usize = 16;
/// The uid of what is not there yet.
const NEW: &str = "00000000-0000-0000-0000-000000000000";

/// What would be done for one primary.
#[derive(Clone, Debug, Serialize)]
pub struct Preview {
    /// The primary: `Monocle default/sample`.
    pub primary: String,
    /// What would be done, in order.
    pub steps: Vec<Step>,
    /// What is worth knowing: that it is paused, invalid, or that its plan stops somewhere.
    pub notes: Vec<String>,
}

/// One thing that would be done.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// What would be done.
    pub verb: Verb,
    /// To what: `Deployment default/sample-api`.
    pub object: String,
    /// The fields that would change. Values of Secrets are masked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The whole object, where it would be made. Values of Secrets are masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// When, or why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Step {
    fn new(verb: Verb, object: String, note: Option<String>) -> Self {
        Self { verb, object, changes: Vec::new(), manifest: None, note }
    }

    /// Something that would be made.
    fn create(dependent: &Dependent) -> Self {
        let manifest = Some(explain::masked(&dependent.kind, &dependent.desired));
        Self { manifest, ..Self::new(Verb::Create, title(dependent), None) }
    }
}

/// What would be done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verb {
    /// It is not there, and would be made.
    Create,
    /// It differs, and would be changed.
    Change,
    /// It is no longer wanted, and would be deleted.
    Delete,
    /// It would have to be touched, and must not be.
    Leave,
}

/// Why it could not be found out.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// Something could not be read.
    #[error("failed to read {what}: {message}")]
    Read {
        /// What.
        what: String,
        /// Why.
        message: String,
    },
    /// The operator does not manage this kind.
    #[error("{operator} does not manage {kind}")]
    NotManaged {
        /// The operator.
        operator: String,
        /// The kind.
        kind: String,
    },
}

impl Preview {
    /// Whether something would be written.
    #[must_use]
    pub fn changes_something(&self) -> bool {
        self.steps.iter().any(|step| step.verb != Verb::Leave)
    }
}

/// What `operator` would do for these objects, were they applied; or, without any, for all that is in the cluster.
///
/// # Errors
/// If the cluster cannot be read, or an object is not of a kind that the operator manages.
pub async fn preview(
    client: &Client,
    context: &Context,
    operator: &Operator,
    objects: Option<&[DynamicObject]>,
) -> Result<Vec<Preview>, PreviewError> {
    let mut snapshot = Snapshot::new(client, context, operator);
    let mut primaries: Vec<(&dyn Controller, Stored)> = Vec::new();
    match objects {
        None => {
            for controller in operator.controllers() {
                for stored in snapshot.list(controller.kind(), None, &ListParams::default()).await? {
                    primaries.push((controller.as_ref(), stored));
                }
            }
        }
        Some(objects) => {
            for object in objects {
                let controller = controller_of(operator, object)?;
                primaries.push((controller, snapshot.as_applied(controller.kind(), object).await?));
            }
        }
    }
    let mut previews = Vec::new();
    for (controller, stored) in primaries {
        previews.push(one(&mut snapshot, controller, &stored).await?);
    }
    Ok(previews)
}

fn controller_of<'a>(
    operator: &'a Operator,
    object: &DynamicObject,
) -> Result<&'a dyn Controller, PreviewError> {
    let types = object.types.clone().unwrap_or_default();
    let fits = |kind: &Kind| kind.name() == types.kind && kind.api_version() == types.api_version;
    let found = operator.controllers().iter().find(|controller| fits(controller.kind()));
    found.map(AsRef::as_ref).ok_or_else(|| PreviewError::NotManaged {
        operator: operator.name().into(),
        kind: format!("{} in {}", types.kind, types.api_version),
    })
}

async fn one(
    snapshot: &mut Snapshot<'_>,
    controller: &dyn Controller,
    stored: &Stored,
) -> Result<Preview, PreviewError> {
    let mut preview = Preview {
        primary: format!("{} {}", controller.kind(), stored.name),
        steps: Vec::new(),
        notes: Vec::new(),
    };
    let tree = stored.value();
    let wishes = Wishes::of(&tree);
    if wishes.paused || stored.deleting {
        let why = if wishes.paused { "it is paused" } else { "it is being deleted" };
        preview.notes.push(format!("nothing would be done: {why}"));
        return Ok(preview);
    }
    let subject = controller.open(stored);
    let subject = match subject.and_then(|subject| subject.validity().map(|invalid| (subject, invalid))) {
        Ok((subject, invalid)) if invalid.is_empty() => subject,
        Ok((_, invalid)) => {
            preview.notes.extend(invalid.iter().map(|one| format!("invalid: {one}")));
            return Ok(preview);
        }
        Err(poison) => {
            preview.notes.push(poison.to_string());
            return Ok(preview);
        }
    };
    let status: Status = serde_json::from_value(tree["status"].clone()).unwrap_or_default();
    let mut walk =
        Walk { subject: subject.as_ref(), wishes: &wishes, status: &status, done: BTreeMap::new() };
    let mut planned = Planned::default();
    for _ in 0..ROUNDS {
        planned = snapshot.plan(subject.as_ref()).await?;
        if !walk.round(snapshot, &planned).await? {
            break;
        }
    }
    preview.steps.extend(walk.steps(&planned));
    let problems = planned.problems.iter();
    preview.notes.extend(problems.map(|problem| problem.message.clone()));
    match &planned.halt {
        Some(halt) => preview.notes.push(format!("the plan goes no further yet: {halt}")),
        None if planned.is_complete() => {
            preview.steps.extend(pruned(snapshot, controller, stored, &planned).await?);
        }
        None => preview.notes.push("nothing would be deleted as long as something cannot be decoded".into()),
    }
    Ok(preview)
}

struct Walk<'a> {
    subject: &'a dyn Subject,
    wishes: &'a Wishes,
    status: &'a Status,
    done: BTreeMap<(Kind, ObjectName), Option<Step>>,
}

impl Walk<'_> {
    /// Looks at the dependents that have not been looked at; true if something would be made or changed.
    async fn round(&mut self, snapshot: &mut Snapshot<'_>, planned: &Planned) -> Result<bool, PreviewError> {
        let mut again = false;
        for dependent in &planned.dependents {
            let key = (dependent.kind.clone(), dependent.name.clone());
            if self.done.contains_key(&key) {
                continue;
            }
            let step = match dependent.kind.is_external() {
                true => self.external(snapshot, dependent).await?,
                false => self.object(snapshot, dependent).await?,
            };
            if let Some(step) = &step
                && step.verb != Verb::Leave
            {
                again = true;
            }
            self.done.insert(key, step);
        }
        Ok(again)
    }

    async fn object(
        &self,
        snapshot: &mut Snapshot<'_>,
        dependent: &Dependent,
    ) -> Result<Option<Step>, PreviewError> {
        let observed = snapshot.get(&dependent.kind, &dependent.name).await?;
        if self.wishes.ignores(dependent) {
            return Ok(None);
        }
        let entry = self.status.entry(dependent.type_name(), &dependent.name.name);
        let made = entry.is_some_and(|entry| entry.attributes.contains_key(MADE));
        let adopt = self.wishes.adopts(dependent);
        let action = decide(dependent, observed.as_deref(), self.subject.owner(), made, adopt);
        let before = observed.as_ref().map(|observed| observed.value());
        let step = |verb, note| Step::new(verb, title(dependent), note);
        let changed = |before: &Value| explain::changes(&dependent.kind, before, &dependent.desired, false);
        Ok(match (action, before) {
            (Action::Nothing, _) => None,
            (Action::Leave(condition), _) => Some(step(Verb::Leave, Some(condition.message))),
            (Action::Create, _) => {
                snapshot.put(&dependent.kind, &made_of(dependent, None));
                Some(Step::create(dependent))
            }
            (Action::Apply(path), before) => {
                let before = before.unwrap_or_default();
                snapshot.put(&dependent.kind, &made_of(dependent, Some(before.clone())));
                let changes = changed(&before);
                let note = changes.is_empty().then(|| format!("{path} would be taken back"));
                Some(Step { changes, ..step(Verb::Change, note) })
            }
            (Action::RepairOwner, _) => Some(step(Verb::Change, Some("its owner would be set".into()))),
        })
    }

    async fn external(
        &self,
        snapshot: &mut Snapshot<'_>,
        dependent: &Dependent,
    ) -> Result<Option<Step>, PreviewError> {
        let found = snapshot.get(&dependent.kind, &dependent.name).await?;
        let now = found.map(|stored| external::observed(&stored));
        let config = &dependent.config;
        let differs = match &now {
            None => config.created,
            Some(now) => config.updated && snapshot.differs(&dependent.kind, &dependent.desired, now),
        };
        if !differs || self.wishes.ignores(dependent) {
            return Ok(None);
        }
        Ok(Some(match now {
            None => Step::create(dependent),
            Some(now) => Step {
                changes: explain::changes(&dependent.kind, &now, &dependent.desired, false),
                ..Step::new(Verb::Change, title(dependent), None)
            },
        }))
    }

    /// The steps in the order of the plan, with what they would wait for.
    fn steps(&mut self, planned: &Planned) -> Vec<Step> {
        let mut steps = Vec::new();
        for dependent in &planned.dependents {
            let key = (dependent.kind.clone(), dependent.name.clone());
            let Some(mut step) = self.done.remove(&key).flatten() else {
                continue;
            };
            let before = dependent.after.iter().filter_map(|at| planned.dependents.get(*at));
            let before: Vec<_> = before.map(title).collect();
            if step.note.is_none() && !before.is_empty() {
                step.note = Some(format!("once {} is ready", before.join(", ")));
            }
            steps.push(step);
        }
        steps
    }
}

/// What this primary owns and its plan does not have.
async fn pruned(
    snapshot: &mut Snapshot<'_>,
    controller: &dyn Controller,
    primary: &Stored,
    planned: &Planned,
) -> Result<Vec<Step>, PreviewError> {
    let mut steps = Vec::new();
    if &*primary.uid == NEW {
        return Ok(steps);
    }
    let ours = ListParams::default().labels(&format!("{MANAGED_BY}={}", controller.operator()));
    let own = Some(primary.name.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let place = own.filter(|_| !controller.declared().reaches_out);
    for kind in controller.owns() {
        for stored in snapshot.list(kind, place, &ours).await? {
            let wanted = |one: &Dependent| one.kind == *kind && one.name == stored.name;
            if stored.is_owned_by(&primary.uid) && !planned.dependents.iter().any(wanted) {
                steps.push(Step::new(Verb::Delete, format!("{kind} {}", stored.name), None));
            }
        }
    }
    Ok(steps)
}

fn title(dependent: &Dependent) -> String {
    format!("{} {}", dependent.kind, dependent.name)
}

/// An object as it would be after an apply, as far as a plan can tell.
fn made_of(dependent: &Dependent, before: Option<Value>) -> Value {
    let mut now = before.unwrap_or_else(|| json!({"metadata": {"uid": NEW}}));
    overlay(&mut now, &dependent.desired);
    now
}

fn overlay(now: &mut Value, desired: &Value) {
    match (now, desired) {
        (Value::Object(now), Value::Object(desired)) => {
            for (key, value) in desired {
                overlay(now.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (now, desired) => *now = desired.clone(),
    }
}

impl Snapshot<'_> {
    /// Plans, and reads whatever the plan asks for, until it asks for nothing new.
    async fn plan(&mut self, subject: &dyn Subject) -> Result<Planned, PreviewError> {
        loop {
            let planned = subject.plan(self.source());
            if !self.load_missing().await? {
                return Ok(planned);
            }
        }
    }

    async fn get(
        &mut self,
        kind: &Kind,
        name: &ObjectName,
    ) -> Result<Option<std::sync::Arc<Stored>>, PreviewError> {
        loop {
            match self.look(kind, name) {
                Lookup::Present(stored) => return Ok(Some(stored)),
                Lookup::Absent | Lookup::Failed(_) => return Ok(None),
                Lookup::Loading => self.load_missing().await?,
            };
        }
    }
}
