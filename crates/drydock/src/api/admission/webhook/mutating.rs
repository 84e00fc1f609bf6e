//! Mutating webhooks: one after the other, each sees what those before it made of the object.
//!
//! Where one changed it, the built-in plugins and the webhooks that ask for it have a second look.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_machinery::patch::{self, PatchError};
use windlass_machinery::{decode, structural};

use super::super::super::registry::Resource;
use super::super::super::status::Outcome;
use super::super::super::write::body::{with_type, without_type};
use super::super::super::{defaults, destination};
use super::super::Admission;
use super::hook::Hook;
use super::review::{self, Verdict};
use super::{Refusal, Versioned, internal, is_exempt, wanted};

/// What the first round leaves for the second.
#[derive(Default)]
pub(in super::super) struct Rounds {
    again: bool,
    /// Webhooks that were called, and may be again.
    called: BTreeSet<String>,
    /// Of those, the ones that others changed the object after.
    due: BTreeSet<String>,
    /// The object as the webhooks left it.
    left: Option<Value>,
}

impl Rounds {
    fn changed(&mut self) {
        self.due.append(&mut self.called);
    }
}

/// Lets mutating webhooks change the object. Says whether one did, so that there is to be another round.
pub(in super::super) async fn mutate(
    admission: &mut Admission<'_>,
    object: &mut Value,
    rounds: &mut Rounds,
) -> Outcome<bool> {
    let hooks = admission.server.hooks.mutating.hooks(admission.server);
    if hooks.is_empty() || is_exempt(admission.resource) {
        return Ok(false);
    }
    if rounds.again && rounds.left.as_ref().is_some_and(|left| left != object) {
        rounds.changed();
    }
    let mut versions = Versioned::new(admission, object);
    let mut dirty = false;
    let mut changed = false;
    for hook in hooks.iter() {
        let Some(seen) = wanted(admission, hook, &mut versions).await? else { continue };
        if rounds.again && !rounds.due.contains(&hook.id) {
            continue;
        }
        versions.turn(admission, &seen).await?;
        let outcome = invoke(admission, hook, &mut versions).await;
        match outcome {
            Ok(Change::None) => {}
            Ok(change) => {
                dirty = true;
                if change == Change::Different {
                    changed = true;
                    rounds.changed();
                }
            }
            Err(refusal) => {
                if let Some(failure) = refusal.settle(hook) {
                    return Err(failure);
                }
            }
        }
        if hook.again {
            rounds.called.insert(hook.id.clone());
        }
    }
    if dirty {
        let own = std::sync::Arc::clone(admission.resource);
        versions.turn(admission, &own).await?;
        match admission.put_back {
            Some(put_back) => put_back(admission.resource, object, &versions.object),
            None => *object = versions.object,
        }
    }
    rounds.left = Some(object.clone());
    rounds.again = true;
    Ok(changed)
}

#[derive(PartialEq, Eq)]
enum Change {
    /// There was no patch.
    None,
    /// The patch changed nothing.
    Same,
    /// The patch changed something.
    Different,
}

async fn invoke(
    admission: &mut Admission<'_>,
    hook: &Hook,
    versions: &mut Versioned,
) -> Result<Change, Refusal> {
    let verdict = review::call(admission, hook, versions, true).await?;
    let Verdict { patch, patch_type, denial, warnings } = verdict;
    admission.warnings.extend(warnings);
    if let Some(denial) = denial {
        return Err(Refusal::Denied(denial));
    }
    let Some(text) = patch else { return Ok(Change::None) };
    let unreadable =
        |why: String| Refusal::Failed(format!("received undecodable patch in webhook response: {why}"));
    let patch: Value =
        serde_json::from_slice(&text).map_err(|error| unreadable(decode::go_syntax_error(&text, &error)))?;
    let operations = match &patch {
        Value::Array(operations) => operations,
        other => {
            let found = destination::json_type(other);
            return Err(unreadable(format!(
                "json: cannot unmarshal {found} into Go value of type jsonpatch.Patch"
            )));
        }
    };
    if operations.is_empty() {
        return Ok(Change::None);
    }
    let denied = |why: String| Refusal::Denied(internal(why));
    if versions.object.is_null() {
        return Err(denied(format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            hook.name
        )));
    }
    if patch_type != "JSONPatch" {
        return Err(Refusal::Failed(format!("unsupported patch type {patch_type:?}")));
    }
    let kind = admission.kind(&versions.resource);
    let patched = patch::json(&with_type(&versions.object, kind), &patch).map_err(|error| {
        denied(match error {
            PatchError::BadRequest(why)
            | PatchError::Unprocessable(why)
            | PatchError::TooLarge(why)
            | PatchError::Internal(why) => why,
        })
    })?;
    let new = read(admission, kind, patched).map_err(denied)?;
    let change = if new == versions.object { Change::Same } else { Change::Different };
    versions.object = new;
    Ok(change)
}

/// A patched object as it is decoded and given its defaults again.
pub(in super::super) fn read(
    admission: &Admission<'_>,
    kind: &Resource,
    patched: Value,
) -> Result<Value, String> {
    let text = |field: &str| patched[field].as_str().unwrap_or_default().to_owned();
    let (api, name) = (text("apiVersion"), text("kind"));
    if kind.custom.is_some() {
        if name.is_empty() {
            return Err(format!("Object 'Kind' is missing in '{patched}'"));
        }
        let mut object = without_type(patched);
        if let Some(metadata) = object.get_mut("metadata") {
            let read = decode::value(metadata, admission.server.built_in.metadata());
            *metadata = read.map_err(|error| error.to_string())?.0;
        }
        structural::default(&mut object, kind.ty());
        return Ok(object);
    }
    let other = (!api.is_empty() && api != kind.api_version()) || (!name.is_empty() && name != kind.kind);
    if other && admission.server.registry().of_kind(&api, &name).is_none() {
        return Err(format!(
            "no kind {name:?} is registered for version {api:?} in scheme \"pkg/runtime/scheme.go:111\""
        ));
    }
    if other {
        return Err(format!("the patch makes the object a {name} of {api}"));
    }
    let (object, _) = decode::value(&patched, kind.ty()).map_err(|error| error.to_string())?;
    let mut object = without_type(object);
    defaults::apply(&mut object, kind.ty(), admission.old.is_some());
    windlass_machinery::encode::normalise(&mut object, kind.ty());
    Ok(object)
}
