//! Who manages which fields of an object: `metadata.managedFields`, kept on updates and decided by applies.
//!
//! Objects come in the form Go writes them. Both functions are pure: the time is an argument, and what a write
//! must not own (status through the main endpoint, spec through the status endpoint) is given as a set of reset
//! fields. Entries of other API versions are treated as if they were of the object's own: nothing is converted.

mod cap;
mod conflict;
mod last_applied;
mod record;
mod scale;

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::apply::{self, Comparison, Duplicates, Place, ValidationErrors, compare_objects, merge_objects};
use crate::encode;
use crate::fields::{FieldSet, equal};
use crate::schema::Type;

pub use conflict::{Conflict, Conflicts};
pub use record::ManagedFieldsError;
pub use scale::{scale_to_parent, scale_view};

use record::Records;

/// Who writes.
#[derive(Clone, Copy, Debug)]
pub struct Manager<'a> {
    /// The field manager's name.
    pub name: &'a str,
    /// The API version of the request.
    pub api_version: &'a str,
    /// The subresource, empty for the object itself.
    pub subresource: &'a str,
}

/// Why an apply is refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ApplyError {
    /// The configuration carries managed fields.
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsInConfig,
    /// The live object's managed fields cannot be read.
    #[error("failed to decode managed fields: {0}")]
    ManagedFields(#[from] ManagedFieldsError),
    /// The configuration is not of its type.
    #[error("failed to create typed patch object ({object}): {errors}")]
    Config {
        /// Which object.
        object: String,
        /// What is wrong with it.
        errors: ValidationErrors,
    },
    /// The live object is not of its type.
    #[error("failed to create typed live object ({object}): {errors}")]
    Live {
        /// Which object.
        object: String,
        /// What is wrong with it.
        errors: ValidationErrors,
    },
    /// Others manage the fields.
    #[error("{0}")]
    Conflict(#[from] Conflicts),
}

/// Fields that nobody manages.
static UNMANAGED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// Writes the managed fields of an object that was created, updated or patched.
///
/// `live` is the object as it was, `new` as it shall be stored, with the managed fields that the request sent.
pub fn update(
    live: Option<&Value>,
    new: &mut Value,
    ty: Type<'_>,
    who: &Manager<'_>,
    reset: &FieldSet,
    now: &str,
) {
    let sent = take_managed_fields(new);
    let stored = live.and_then(managed_fields);
    let chosen = match &sent {
        _ if !who.subresource.is_empty() => stored,
        Some(sent) if record::is_reset(sent) => None,
        Some(sent) if stored == Some(sent) => stored,
        Some(sent) if Records::parse(sent).is_ok_and(|sent| !sent.is_empty()) => Some(sent),
        _ => stored,
    };
    let is_stored = match (chosen, stored) {
        (Some(chosen), Some(stored)) => std::ptr::eq(chosen, stored),
        (chosen, stored) => chosen.is_none() && stored.is_none(),
    };
    let change = changes(live, new, ty, reset);
    if change.is_same() && is_stored {
        return put_managed_fields(new, chosen.cloned());
    }
    // Fields that cannot be read are forgotten.
    let mut records = chosen.and_then(|chosen| Records::parse(chosen).ok()).unwrap_or_default();
    // Objects that have no managers get none, but when they are created or applied.
    if records.is_empty() && live.is_some_and(|live| !uid(live).is_empty()) {
        return;
    }
    records.reconcile(ty);
    take_over(&mut records, change, who, now);
    cap::cap(&mut records);
    put_managed_fields(new, records.into_json(chosen));
}

/// Whether managed fields can be read.
///
/// # Errors
/// When an entry is not what it should be.
pub fn check(fields: &Value) -> Result<(), ManagedFieldsError> {
    Records::parse(fields).map(drop)
}

/// Applies a configuration to an object and writes its managed fields.
///
/// The result is the live object merged with the configuration, without what the manager no longer applies. Where
/// nothing changes it is the live object.
///
/// # Errors
/// When the configuration is not of its type, or changes what others manage and is not forced.
pub fn apply(
    live: Option<&Value>,
    config: Value,
    ty: Type<'_>,
    who: &Manager<'_>,
    force: bool,
    reset: &FieldSet,
    now: &str,
) -> Result<Value, ApplyError> {
    let records = match live.and_then(managed_fields) {
        Some(fields) => Records::parse(fields)?,
        None => Records::default(),
    };
    if managed_fields(&config).is_some() {
        return Err(ApplyError::ManagedFieldsInConfig);
    }
    apply::validate(&config, ty, Duplicates::Refused)
        .map_err(|errors| ApplyError::Config { object: describe(&config), errors })?;
    let Some(live) = live else {
        let mut set = apply::to_field_set(&config, ty);
        set.subtract_recursive(reset);
        set.subtract(&UNMANAGED);
        let mut records = Records::default();
        records.push_apply(who, set, Some(now.into()));
        let mut object = config;
        put_managed_fields(&mut object, records.into_json(None));
        return Ok(object);
    };
    let request = Apply { live, config: &config, ty, who, reset, now };
    let (mut object, records) = if who.name == "kubectl" {
        let (mut object, records) = request.run_for_kubectl(records, force)?;
        last_applied::refresh(&mut object, &config);
        (object, records)
    } else {
        request.run(records, force)?
    };
    put_managed_fields(&mut object, records.into_json(managed_fields(live)));
    Ok(object)
}

struct Apply<'a> {
    live: &'a Value,
    config: &'a Value,
    ty: Type<'a>,
    who: &'a Manager<'a>,
    reset: &'a FieldSet,
    now: &'a str,
}

impl Apply<'_> {
    /// The new object, without its managed fields, and the managers it has then.
    fn run(&self, mut records: Records, force: bool) -> Result<(Value, Records), ApplyError> {
        let (live, place) = (self.live, Place::of(self.ty));
        if self.ty.custom().is_some() {
            apply::validate(live, self.ty, Duplicates::Allowed)
                .map_err(|errors| ApplyError::Live { object: describe(live), errors })?;
        }
        if records.is_empty() {
            let before = Manager { name: "before-first-apply", ..*self.who };
            take_over(&mut records, changes(None, live, self.ty, self.reset), &before, self.now);
        }
        records.reconcile(self.ty);
        let mut set = apply::to_field_set(self.config, self.ty);
        set.subtract_recursive(self.reset);
        let own = records.take_apply(self.who);
        let mut new = merge_objects(live, self.config, place);
        if let Some(last) = own.as_ref().filter(|own| !own.set.is_subset(&set)) {
            new = prune(&new, &last.set, &set, &records, self.ty);
        }
        let change = without(compare_objects(live, &new, place), self.reset);
        if let Some(conflicts) = records.release(&change, force) {
            return Err(conflicts.into());
        }
        let changed = !equal_objects(live, &new);
        let time = if changed { Some(self.now.into()) } else { own.and_then(|own| own.time) };
        set.subtract(&UNMANAGED);
        records.push_apply(self.who, set, time);
        Ok((new, records))
    }

    /// As [`Apply::run`], but what client-side apply has set may be taken over.
    fn run_for_kubectl(&self, records: Records, force: bool) -> Result<(Value, Records), ApplyError> {
        match self.run(records.clone(), force) {
            Err(ApplyError::Conflict(conflicts)) => {
                let Some(allowed) = last_applied::owned(self.live, self.ty, self.who) else {
                    return Err(conflicts.into());
                };
                match conflicts.without(&allowed) {
                    Some(left) => Err(left.into()),
                    None => self.run(records, true),
                }
            }
            outcome => outcome,
        }
    }
}

/// Removes what the manager applied the last time, does not apply now, and nobody else manages.
fn prune(merged: &Value, last: &FieldSet, set: &FieldSet, others: &Records, ty: Type<'_>) -> Value {
    let place = Place::of(ty);
    let named = |set: &FieldSet| place.with_named_fields(set);
    let last = named(last);
    let merged_set = named(&apply::to_field_set(merged, ty));
    let pruned = apply::remove_items(merged, &last, ty);
    let pruned_set = named(&apply::to_field_set(&pruned, ty));
    let managed = others.iter().fold(set.clone(), |all, record| all.union(record.set.clone()));
    // What somebody manages is added back.
    let unmanaged = merged_set.difference(&pruned_set.union(named(&managed)));
    let pruned = apply::remove_items(merged, &unmanaged, ty);
    // So is what the manager never applied.
    let pruned_set = named(&apply::to_field_set(&pruned, ty));
    apply::remove_items(merged, &merged_set.difference(&pruned_set).intersection(&last), ty)
}

/// What a write changes, without what nobody manages and what is reset.
fn changes(live: Option<&Value>, new: &Value, ty: Type<'_>, reset: &FieldSet) -> Comparison {
    let empty;
    let live = match live {
        Some(live) => live,
        None => {
            empty = empty_object(new, ty);
            &empty
        }
    };
    without(compare_objects(live, new, Place::of(ty)), reset)
}

fn without(change: Comparison, reset: &FieldSet) -> Comparison {
    change.map(|mut set| {
        set.subtract_recursive(reset);
        set.subtract(&UNMANAGED);
        set
    })
}

/// Changed fields go from those who managed them to the writer.
fn take_over(records: &mut Records, change: Comparison, who: &Manager<'_>, now: &str) {
    let _ = records.release(&change, true);
    let set = change.modified.union(change.added);
    if !set.is_empty() {
        records.add_update(who, set, now);
    }
}

/// The object before it is created: Go's zero value, or nothing but its type for custom resources.
fn empty_object(new: &Value, ty: Type<'_>) -> Value {
    let mut empty = Map::new();
    for name in ["apiVersion", "kind"] {
        if let Some(value) = new.get(name) {
            empty.insert(name.to_owned(), value.clone());
        }
    }
    let mut empty = Value::Object(empty);
    let built_in = ty.structure().is_some_and(|structure| !structure.name.is_empty());
    if built_in && ty.custom().is_none() {
        encode::normalise(&mut empty, ty);
    }
    empty
}

/// Whether objects are equal apart from their managed fields.
fn equal_objects(left: &Value, right: &Value) -> bool {
    fn same(left: &Map<String, Value>, right: &Map<String, Value>, top: bool) -> bool {
        let ignored = |name: &str| !top && name == "managedFields";
        let count =
            |map: &Map<String, Value>| map.len() - usize::from(!top && map.contains_key("managedFields"));
        count(left) == count(right)
            && left.iter().filter(|(name, _)| !ignored(name)).all(|(name, left)| {
                match (left, right.get(name)) {
                    (Value::Object(left), Some(Value::Object(right))) if top && name == "metadata" => {
                        same(left, right, false)
                    }
                    (left, Some(right)) => equal(left, right),
                    (_, None) => false,
                }
            })
    }
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => same(left, right, true),
        _ => equal(left, right),
    }
}

fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields").filter(|fields| !fields.is_null())
}

fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields").filter(|fields| !fields.is_null())
}

fn put_managed_fields(object: &mut Value, fields: Option<Value>) {
    let metadata = object
        .as_object_mut()
        .map(|object| object.entry("metadata").or_insert_with(|| Value::Object(Map::new())));
    let Some(Value::Object(metadata)) = metadata else {
        return;
    };
    match fields {
        Some(fields) => metadata.insert("managedFields".to_owned(), fields),
        None => metadata.remove("managedFields"),
    };
}

fn uid(object: &Value) -> &str {
    object.get("metadata").and_then(|metadata| metadata.get("uid")?.as_str()).unwrap_or_default()
}

/// `namespace/name; group/version, Kind=kind`, as messages name objects.
fn describe(object: &Value) -> String {
    let meta = |name: &str| object.get("metadata").and_then(|m| m.get(name)?.as_str()).unwrap_or_default();
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let version = text("apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{}/{}; {slash}{version}, Kind={}", meta("namespace"), meta("name"), text("kind"))
}

#[cfg(test)]
mod tests;
