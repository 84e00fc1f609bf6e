//! A primary's type, erased: what the runtime needs of it.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use kube::core::object::HasStatus;
use serde_json::Value;

use crate::admission::{Admitted, with_changes};
use crate::apply::without_nulls;
use crate::cache::{Reads, Stored};
use crate::plan::{Dependent, Owner};
use crate::world::Source;
use crate::{Condition, Halt, Invalid, Kind, ObjectName, Plan, Primary, Status, World};

/// All primaries of one type.
pub(crate) trait Controller: Send + Sync {
    fn kind(&self) -> &Kind;
    fn owns(&self) -> &[Kind];
    fn operator(&self) -> &str;
    /// Decodes one of them and fills in its defaults.
    fn open(&self, stored: &Stored) -> Result<Box<dyn Subject>, Poison>;
    /// Fills in the defaults of an object on its way into the cluster, and says what is wrong with it.
    fn admit(&self, object: &Value) -> Result<Admitted, Poison>;
}

/// One primary.
pub(crate) trait Subject: Send + Sync {
    fn owner(&self) -> &Owner;
    fn validity(&self) -> Result<Vec<Invalid>, Poison>;
    fn plan(&self, source: Box<dyn Source>) -> Planned;
    /// The whole status: the operator's own fields, and `report`.
    fn status(&self, source: Box<dyn Source>, report: &Status) -> Result<(Value, Reads), Poison>;
}

/// Why one object cannot be worked on at all; the others can.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Poison {
    #[error("failed to decode {0}: {1}")]
    Undecodable(ObjectName, #[source] serde_json::Error),
    #[error("the operator panicked in {0}: {1}")]
    Panicked(&'static str, String),
}

impl Poison {
    /// What it comes to for the primary.
    pub(crate) fn condition(&self) -> Condition {
        let reason = match self {
            Self::Undecodable(..) => "Undecodable",
            Self::Panicked(..) => PANICKED,
        };
        Condition::failed(reason, self.to_string())
    }
}

/// The reason of a condition about a panic. Unlike what is wrong with an object, it may pass.
pub(crate) const PANICKED: &str = "Panicked";

/// What came of planning.
#[derive(Default)]
pub(crate) struct Planned {
    pub(crate) dependents: Vec<Dependent>,
    pub(crate) problems: Vec<Condition>,
    pub(crate) halt: Option<Halt>,
    pub(crate) panicked: bool,
    pub(crate) reads: Reads,
    /// When to plan again even if nothing has changed.
    pub(crate) look_again: Option<Duration>,
}

/// The controller of `P` within an operator.
pub(crate) struct ControllerOf<P> {
    operator: String,
    kind: Kind,
    owns: Vec<Kind>,
    primary: PhantomData<fn() -> P>,
}

impl<P: Primary> ControllerOf<P> {
    pub(crate) fn new(operator: &str) -> Self {
        Self { operator: operator.into(), kind: Kind::of::<P>(), owns: P::owns(), primary: PhantomData }
    }
}

impl<P: Primary> Controller for ControllerOf<P> {
    fn kind(&self) -> &Kind {
        &self.kind
    }

    fn owns(&self) -> &[Kind] {
        &self.owns
    }

    fn operator(&self) -> &str {
        &self.operator
    }

    fn open(&self, stored: &Stored) -> Result<Box<dyn Subject>, Poison> {
        let primary = stored.decode().map_err(|error| Poison::Undecodable(stored.name.clone(), error))?;
        Ok(Box::new(SubjectOf::<P>::new(primary, &self.operator)?))
    }

    fn admit(&self, object: &Value) -> Result<Admitted, Poison> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let undecodable =
            |error| Poison::Undecodable(ObjectName::new(text("namespace"), text("name")), error);
        let before: P = serde_json::from_value(object.clone()).map_err(undecodable)?;
        let mut after = before.clone();
        catch("defaults", || after.defaults())?;
        let invalid = catch("validity", || after.validity())?;
        let tree = |primary: &P| serde_json::to_value(primary).map(without_nulls).map_err(undecodable);
        Ok(Admitted { object: with_changes(object, &tree(&before)?, &tree(&after)?), invalid })
    }
}

pub(crate) struct SubjectOf<P> {
    primary: P,
    owner: Owner,
}

impl<P: Primary> SubjectOf<P> {
    pub(crate) fn new(mut primary: P, operator: &str) -> Result<Self, Poison> {
        let owner = Owner {
            operator: operator.into(),
            name: ObjectName::of(&primary),
            reference: primary.controller_owner_ref(&()).unwrap_or_default(),
        };
        catch("defaults", || primary.defaults())?;
        Ok(Self { primary, owner })
    }
}

impl<P: Primary> Subject for SubjectOf<P> {
    fn owner(&self) -> &Owner {
        &self.owner
    }

    fn validity(&self) -> Result<Vec<Invalid>, Poison> {
        catch("validity", || self.primary.validity())
    }

    fn plan(&self, source: Box<dyn Source>) -> Planned {
        let world = World::new(source, &self.owner.name.namespace);
        let mut plan = Plan::new(self.owner.clone());
        let result = catch("plan", || self.primary.plan(&world, &mut plan));
        let (mut dependents, problems, look_again) = plan.finish();
        for dependent in &mut dependents {
            dependent.desired = without_nulls(std::mem::take(&mut dependent.desired));
        }
        let panicked = result.is_err();
        let halt = match result {
            Ok(result) => result.err(),
            Err(poison) => Some(Halt::failed(PANICKED, poison.to_string())),
        };
        let problems = problems.into_iter().map(|problem| problem.0).collect();
        Planned {
            dependents,
            problems,
            halt,
            panicked,
            reads: world.into_reads(),
            look_again: look_again.into_iter().chain(self.primary.look_again()).min(),
        }
    }

    fn status(&self, source: Box<dyn Source>, report: &Status) -> Result<(Value, Reads), Poison> {
        let undecodable = |error| Poison::Undecodable(self.owner.name.clone(), error);
        let previous = HasStatus::status(&self.primary);
        let mut tree = previous.map_or(Ok(Value::Null), serde_json::to_value).map_err(undecodable)?;
        if !tree.is_object() {
            tree = Value::Object(Default::default());
        }
        overlay(&mut tree, report);
        let mut status: <P as HasStatus>::Status =
            serde_json::from_value(tree.clone()).map_err(undecodable)?;
        let world = World::new(source, &self.owner.name.namespace);
        // A halt here leaves the fields that could not be told as they were.
        let _ = catch("own_status", || self.primary.own_status(&world, report, &mut status))?;
        let mut tree = serde_json::to_value(&status).map_err(undecodable)?;
        overlay(&mut tree, report);
        Ok((without_nulls(tree), world.into_reads()))
    }
}

/// Replaces the framework's part of a status.
pub(crate) fn overlay(status: &mut Value, report: &Status) {
    if let Some(fields) = status.as_object_mut() {
        for field in ["observedGeneration", "conditions", "dependents"] {
            fields.remove(field);
        }
        if let Ok(Value::Object(report)) = serde_json::to_value(report) {
            fields.extend(report);
        }
    }
}

/// Runs the operator's code; a panic is its error.
fn catch<T>(what: &'static str, code: impl FnOnce() -> T) -> Result<T, Poison> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| Poison::Panicked(what, text(panic.as_ref())))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown cause".into())
}
