//! MutatingAdmissionPolicy: changes of objects before they are stored.
//!
//! Policies run one after the other, each on what those before it made of the object. Where one changed it, the
//! built-in plugins, and the policies that ask for it, have a second look. Nobody comes to own what they set.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::{Value, json};
use windlass_machinery::apply::{self, Duplicates};
use windlass_machinery::{decode, patch};

use super::super::super::registry::Resource;
use super::super::super::status::{Failure, Outcome};
use super::super::super::write::body::with_type;
use super::super::super::write::name_of;
use super::super::webhook::{internal, read};
use super::super::{Admission, Operation};
use super::program::{Change, Policy};
use super::{Bound, bound, params};

/// What tells one use of a policy from others: the policy, its binding, the parameter.
type Use = (String, String, Option<(String, String)>);

/// What the first round leaves for the second.
#[derive(Default)]
pub(in super::super) struct Rounds {
    again: bool,
    /// What was done, and may be again.
    done: BTreeSet<Use>,
    /// Of that, what others changed the object after.
    due: BTreeSet<Use>,
    /// The object as the policies left it.
    left: Option<Value>,
}

impl Rounds {
    fn changed(&mut self) {
        self.due.append(&mut self.done);
    }
}

/// Why a change came to nothing.
enum Refusal {
    /// What that means is the policy's failure policy.
    Failed(String),
    /// The request fails, whatever the policy says.
    Denied(Failure),
}

/// Lets policies change the object. Says whether one did, so that there is to be another round.
pub(in super::super) fn mutate(
    admission: &Admission<'_>,
    object: &mut Value,
    rounds: &mut Rounds,
) -> Outcome<bool> {
    if admission.operation == Operation::Delete {
        return Ok(false);
    }
    let of = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings");
    let policies = bound(admission, object, of)?;
    if policies.is_empty() {
        rounds.again = true;
        return Ok(false);
    }
    if rounds.again && rounds.left.as_ref().is_some_and(|left| left != object) {
        rounds.changed();
    }
    let mut round = Round { admission, rounds, changed: false, refusals: Vec::new() };
    for policy in &policies {
        round.run(policy, object)?;
    }
    let Round { changed, refusals, .. } = round;
    if changed {
        rounds.changed();
    }
    rounds.left = Some(object.clone());
    rounds.again = true;
    match refusal(admission, object, refusals) {
        Some(failure) => Err(failure),
        None => Ok(changed),
    }
}

struct Round<'r, 'a> {
    admission: &'r Admission<'a>,
    rounds: &'r mut Rounds,
    changed: bool,
    refusals: Vec<String>,
}

impl Round<'_, '_> {
    fn run(&mut self, bound: &Bound, object: &mut Value) -> Outcome<()> {
        let Bound { definition, policy, bindings } = bound;
        let (name, spec) = (name_of(definition), &definition["spec"]);
        let ignores = spec["failurePolicy"] == "Ignore";
        for binding in bindings {
            let bound = name_of(binding);
            let mut refused = Vec::new();
            match params::collect(self.admission, &spec["paramKind"], &binding["spec"]["paramRef"]) {
                Ok(params) => {
                    for param in &params {
                        let this: Use = (name.to_owned(), bound.to_owned(), param.as_ref().map(identity));
                        let again = spec["reinvocationPolicy"] == "IfNeeded";
                        self.invoke(policy, this, again, object, param.as_ref(), &mut refused)?;
                    }
                }
                Err(why) => refused.push(format!("failed to configure binding: {why}")),
            }
            if !ignores {
                let told = |why| format!("policy '{name}' with binding '{bound}' denied request: {why}");
                self.refusals.extend(refused.into_iter().map(told));
            }
        }
        Ok(())
    }

    fn invoke(
        &mut self,
        policy: &Policy,
        this: Use,
        again: bool,
        object: &mut Value,
        param: Option<&Value>,
        refused: &mut Vec<String>,
    ) -> Outcome<()> {
        match policy.concerns(self.admission, object, param) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(why) => {
                refused.push(why);
                return Ok(());
            }
        }
        if self.rounds.again && !self.rounds.due.contains(&this) {
            return Ok(());
        }
        let before = object.clone();
        for index in 0..policy.mutations() {
            match change(self.admission, policy, index, object, param) {
                Ok(new) => *object = new,
                Err(Refusal::Failed(why)) => refused.push(why),
                Err(Refusal::Denied(failure)) => return Err(failure),
            }
        }
        if before != *object {
            self.changed = true;
            self.rounds.changed();
        }
        if again {
            self.rounds.done.insert(this);
        }
        Ok(())
    }
}

fn identity(param: &Value) -> (String, String) {
    let text = |field: &str| param["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// The object after one change.
fn change(
    admission: &Admission<'_>,
    policy: &Policy,
    index: usize,
    object: &Value,
    param: Option<&Value>,
) -> Result<Value, Refusal> {
    let (change, told) =
        policy.mutation(index, admission, object, param).map_err(|why| Refusal::Failed(told_plainly(why)))?;
    let kind = admission.kind(admission.resource);
    let shown = with_type(&admission.seen(object), kind);
    let patched = match change {
        Change::Merge if admission.part.is_some() => {
            return Err(Refusal::Failed(format!(
                "error applying patch: failed to convert patch object to typed object: no corresponding type for \
                 {}, Kind={}",
                kind.api_version(),
                kind.kind
            )));
        }
        Change::Merge => merged(&shown, &told, kind).map_err(Refusal::Failed)?,
        Change::Steps => match patch::json(&shown, &told) {
            Ok(patched) => {
                strict(&patched, kind).map_err(|why| Refusal::Denied(internal(why)))?;
                patched
            }
            // A test that fails keeps the rest from being done, and is no failure.
            Err(error) if error.to_string().ends_with(": test failed") => return Ok(object.clone()),
            Err(error) => return Err(Refusal::Failed(format!("JSON Patch: {error}"))),
        },
    };
    let new = read(admission, kind, patched).map_err(|why| Refusal::Denied(internal(why)))?;
    let mut out = object.clone();
    match admission.put_back {
        Some(put_back) => put_back(admission.resource, &mut out, &new),
        None => out = new,
    }
    Ok(out)
}

/// The budget of a change is told of in other words than that of a validation.
fn told_plainly(why: String) -> String {
    why.strip_prefix("compilation error: ").map(ToOwned::to_owned).unwrap_or(why)
}

/// The object with a configuration merged into it. Parts that are replaced as a whole may not be in it, since what
/// it does not name of them would be lost.
fn merged(object: &Value, config: &Value, kind: &Resource) -> Result<Value, String> {
    let failed = |why: String| format!("error applying patch: {why}");
    let config = with_type(config, kind);
    apply::validate(&config, kind.ty(), Duplicates::Refused)
        .map_err(|why| failed(format!("failed to convert patch object to typed object: {why}")))?;
    let atomic = apply::atomic_parts(&config, kind.ty());
    if !atomic.is_empty() {
        return Err(failed(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomic.join(", ")
        )));
    }
    Ok(apply::merge(object, &config, kind.ty()))
}

/// What a patch makes of an object of a built-in kind may have no unknown fields.
fn strict(patched: &Value, kind: &Resource) -> Result<(), String> {
    if kind.custom.is_some() {
        return Ok(());
    }
    let (_, strictness) = decode::value(patched, kind.ty()).map_err(|error| error.to_string())?;
    if strictness.is_empty() {
        Ok(())
    } else {
        Err(format!("strict decoding error: {}", strictness.joined()))
    }
}

fn refusal(admission: &Admission<'_>, object: &Value, refusals: Vec<String>) -> Option<Failure> {
    let message = refusals.first()?.clone();
    let mut failure = Failure::forbidden(admission.resource, admission.called(object), &message);
    failure.code = StatusCode::FORBIDDEN;
    failure.reason =
        if message.contains(": failed to configure binding: ") { "Forbidden" } else { "Invalid" };
    failure.message = message;
    let causes: Vec<Value> = refusals.iter().map(|message| json!({"message": message})).collect();
    if let Some(details) = &mut failure.details {
        details.insert("causes".into(), causes.into());
    }
    Some(failure)
}
