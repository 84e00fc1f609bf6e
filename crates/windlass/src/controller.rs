//! A primary's type, erased: what the runtime needs of it.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use kube::core::object::HasStatus;
use serde_json::Value;

use crate::admission::{Admitted, with_changes};
use crate::apply::without_nulls;
use crate::cache::{Reads, Stored, Undecodable};
use crate::declared::Declared;
use crate::memo::Derived;
use crate::plan::{Dependent, Finished, Owner};
use crate::status::CONDITIONS;
use crate::world::{Glimpse, Looked, Source};
use crate::{Condition, Halt, Invalid, Kind, ObjectName, Plan, Primary, Status, World};

/// All primaries of one type.
pub(crate) trait Controller: Send + Sync {
    /// What its plans do with which kinds.
    fn declared(&self) -> &Declared;
    fn operator(&self) -> &str;
    fn kind(&self) -> &Kind {
        &self.declared().kind
    }
    fn owns(&self) -> &[Kind] {
        &self.declared().owns
    }
    /// The least time from one change of a primary's dependents to the next.
    fn pace(&self) -> Duration;
    /// Whether primaries have a status only while something is wrong.
    fn quiet(&self) -> bool;
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
    /// The whole status: the operator's own fields, which start as they are in `current`, and `report`.
    fn status(&self, source: Box<dyn Source>, current: &Value, report: &Status) -> Result<Told, Poison>;
}

/// Why one object cannot be worked on at all; the others can.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Poison {
    #[error("failed to decode {0}: {1}")]
    Undecodable(ObjectName, #[source] Undecodable),
    #[error("{0}")]
    Undeclared(String),
    #[error("the operator panicked in {0}: {1}")]
    Panicked(&'static str, String),
}

impl Poison {
    /// What it comes to for the primary.
    pub(crate) fn condition(&self) -> Condition {
        let reason = match self {
            Self::Undecodable(..) => "Undecodable",
            Self::Undeclared(_) => UNDECLARED,
            Self::Panicked(..) => PANICKED,
        };
        Condition::failed(reason, self.to_string())
    }
}

/// The reason of a condition about a kind that the operator uses otherwise than it declares.
pub(crate) const UNDECLARED: &str = "Undeclared";

/// The reason of a condition about a panic. Unlike what is wrong with an object, it may pass.
pub(crate) const PANICKED: &str = "Panicked";

/// A whole status, and what it was made from.
pub(crate) struct Told {
    pub(crate) status: Value,
    pub(crate) reads: Reads,
    /// What it looked at, and how that was, if it can be told when that changes.
    pub(crate) glimpses: Option<Vec<Glimpse>>,
}

/// What came of planning.
#[derive(Default)]
pub(crate) struct Planned {
    pub(crate) dependents: Vec<Dependent>,
    pub(crate) problems: Vec<Condition>,
    pub(crate) halt: Option<Halt>,
    /// Whether some of what it selected was left out, since it cannot be decoded.
    pub(crate) left_out: bool,
    pub(crate) panicked: bool,
    pub(crate) reads: Reads,
    /// What it looked at, and how that was, if it can be told when that changes.
    pub(crate) glimpses: Option<Vec<Glimpse>>,
    /// What it derived, for the next plan.
    pub(crate) derived: Vec<Arc<Derived>>,
    /// When to plan again even if nothing has changed.
    pub(crate) look_again: Option<Duration>,
    /// Whether the primary itself is to go.
    pub(crate) retire: bool,
}

impl Planned {
    /// Whether what it does not have is not wanted.
    pub(crate) fn is_complete(&self) -> bool {
        self.halt.is_none() && !self.left_out
    }
}

/// The controller of `P` within an operator.
pub(crate) struct ControllerOf<P> {
    operator: String,
    declared: Arc<Declared>,
    primary: PhantomData<fn() -> P>,
}

impl<P: Primary> ControllerOf<P> {
    pub(crate) fn new(operator: &str) -> Self {
        let declared = Arc::new(Declared::of::<P>());
        Self { operator: operator.into(), declared, primary: PhantomData }
    }
}

impl<P: Primary> Controller for ControllerOf<P> {
    fn declared(&self) -> &Declared {
        &self.declared
    }

    fn operator(&self) -> &str {
        &self.operator
    }

    fn pace(&self) -> Duration {
        P::pace()
    }

    fn quiet(&self) -> bool {
        P::quiet()
    }

    fn open(&self, stored: &Stored) -> Result<Box<dyn Subject>, Poison> {
        let primary = stored.decode().map_err(|error| Poison::Undecodable(stored.name.clone(), error))?;
        Ok(Box::new(SubjectOf::<P>::new(primary, &self.operator, Arc::clone(&self.declared))?))
    }

    fn admit(&self, object: &Value) -> Result<Admitted, Poison> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let undecodable =
            |error| Poison::Undecodable(ObjectName::new(text("namespace"), text("name")), error);
        let broken = |error: serde_json::Error| undecodable(Undecodable::from(&error));
        // From text, so that the error has a place.
        let whole = object.to_string();
        let before: P =
            serde_json::from_str(&whole).map_err(|error| undecodable(Undecodable::of(&whole, &error)))?;
        let warnings = catch("warnings", || before.warnings())?;
        let mut after = before.clone();
        catch("defaults", || after.defaults())?;
        let invalid = catch("validity", || after.validity())?;
        let tree = |primary: &P| serde_json::to_value(primary).map(without_nulls).map_err(broken);
        let object = with_changes(object, &tree(&before)?, &tree(&after)?);
        Ok(Admitted { object, invalid, warnings })
    }
}

pub(crate) struct SubjectOf<P> {
    primary: P,
    owner: Owner,
    declared: Arc<Declared>,
}

impl<P: Primary> SubjectOf<P> {
    pub(crate) fn new(mut primary: P, operator: &str, declared: Arc<Declared>) -> Result<Self, Poison> {
        let owner = Owner {
            operator: operator.into(),
            name: ObjectName::of(&primary),
            reference: primary.controller_owner_ref(&()).unwrap_or_default(),
        };
        catch("defaults", || primary.defaults())?;
        Ok(Self { primary, owner, declared })
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
        let plan = Plan::new(self.owner.clone());
        let planned = planned(&self.declared, world, plan, |world, plan| self.primary.plan(world, plan));
        let look_again = planned.look_again.into_iter().chain(self.primary.look_again()).min();
        Planned { look_again, ..planned }
    }

    fn status(&self, source: Box<dyn Source>, current: &Value, report: &Status) -> Result<Told, Poison> {
        let undecodable = |error: serde_json::Error| {
            Poison::Undecodable(self.owner.name.clone(), Undecodable::from(&error))
        };
        let mut tree = current.clone();
        overlay(&mut tree, report);
        let mut status: <P as HasStatus>::Status = serde_json::from_value(tree).map_err(undecodable)?;
        let world = World::new(source, &self.owner.name.namespace);
        // A halt here leaves the fields that could not be told as they were.
        let _ = catch("own_status", || self.primary.own_status(&world, report, &mut status))?;
        let mut tree = serde_json::to_value(&status).map_err(undecodable)?;
        overlay(&mut tree, report);
        let mut looked = world.finish();
        match self.declared.refuse_reads(&looked.reads) {
            Some(message) => Err(Poison::Undeclared(message)),
            None => {
                Ok(Told { status: without_nulls(tree), glimpses: looked.certain(None), reads: looked.reads })
            }
        }
    }
}

/// What comes of a plan that `make` makes.
pub(crate) fn planned(
    declared: &Declared,
    world: World,
    mut plan: Plan,
    make: impl FnOnce(&World, &mut Plan) -> Result<(), Halt>,
) -> Planned {
    let result = catch("plan", || make(&world, &mut plan));
    let Finished { mut dependents, problems, look_again, retire } = plan.finish();
    for dependent in &mut dependents {
        dependent.desired = without_nulls(std::mem::take(&mut dependent.desired));
    }
    let panicked = result.is_err();
    let halt = match result {
        Ok(result) => result.err(),
        Err(poison) => Some(Halt::failed(PANICKED, poison.to_string())),
    };
    let mut looked = world.finish();
    let glimpses = looked.certain(look_again);
    let Looked { reads, derived, left_out, .. } = looked;
    let undeclared = declared.refuse_reads(&reads).or_else(|| declared.refuse_retirement(retire));
    let halt = undeclared.map(|message| Halt::failed(UNDECLARED, message)).or(halt);
    let partial = !left_out.is_empty();
    let problems = problems.into_iter().map(|problem| problem.0).chain(left_out).collect();
    let left_out = partial;
    Planned { dependents, problems, halt, left_out, panicked, reads, glimpses, derived, look_again, retire }
}

/// Replaces the framework's part of a status. Conditions of other types than the framework's are the operator's own.
pub(crate) fn overlay(status: &mut Value, report: &Status) {
    let own = own_conditions(status);
    if let Some(fields) = status.as_object_mut() {
        for field in ["observedGeneration", "conditions", "dependents"] {
            fields.remove(field);
        }
        if let Ok(Value::Object(report)) = serde_json::to_value(report) {
            fields.extend(report);
        }
        let said = |one: &Value| report.conditions.iter().any(|other| one["type"] == other.type_);
        let own: Vec<Value> = own.into_iter().filter(|one| !said(one)).collect();
        if !own.is_empty() {
            let conditions = fields.entry("conditions").or_insert_with(|| Value::Array(Vec::new()));
            conditions.as_array_mut().into_iter().for_each(|all| all.extend(own.iter().cloned()));
        }
    }
}

/// The conditions of a status that are not the framework's.
pub(crate) fn own_conditions(status: &Value) -> Vec<Value> {
    let all = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    all.into_iter().filter(|one| !CONDITIONS.iter().any(|framework| one["type"] == *framework)).collect()
}

/// Runs the operator's code; a panic is its error.
fn catch<T>(what: &'static str, code: impl FnOnce() -> T) -> Result<T, Poison> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| Poison::Panicked(what, text(panic.as_ref())))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown cause".into())
}
