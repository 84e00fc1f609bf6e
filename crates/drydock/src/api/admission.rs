//! Admission: what changes or refuses a write between defaulting and storing.
//!
//! Built-in plugins in the order of the real server: first those that change an object, then, once it has been
//! validated, those that only look at it.

mod ingress;
mod lifecycle;
mod matching;
mod pod;
mod pod_security;
pub mod policy;
mod priority;
mod quota;
mod request;
mod storage;
pub mod webhook;

use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_machinery::managed;

use super::auth::User;
use super::registry::Resource;
use super::server::Server;
use super::status::Outcome;
use super::write::{metadata_mut, metadata_of, replace};

/// What is about to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change.
    Update,
    /// A deletion.
    Delete,
}

/// What stands for an object where a part of it with a kind of its own is written.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Its kind.
    pub kind: &'a Resource,
    /// What it shows of an object.
    pub shown: fn(&Resource, &Value) -> Value,
    /// Brings a change of what is shown back into the object.
    pub put_back: fn(&Resource, &mut Value, &Value),
}

/// A write that asks to be admitted.
pub struct Admission<'a> {
    /// The server.
    pub server: &'a Server,
    /// What is written.
    pub resource: &'a Arc<Resource>,
    /// The part of it.
    pub subresource: Option<&'a str>,
    /// Where.
    pub namespace: &'a str,
    /// What is done.
    pub operation: Operation,
    /// By whom.
    pub user: &'a User,
    /// The object as it is now.
    pub old: Option<&'a Value>,
    /// The name in the request, where it is not the object's own.
    pub name: Option<&'a str>,
    /// The kind of what is written, where a part of the object has a kind of its own.
    pub part: Option<&'a Resource>,
    /// What is shown of the object, where that is not the whole.
    pub shown: Option<fn(&Resource, &Value) -> Value>,
    /// Brings a change of what is shown back into the object.
    pub put_back: Option<fn(&Resource, &mut Value, &Value)>,
    /// The options of the request.
    pub options: &'a Map<String, Value>,
    /// Whether it is only a rehearsal.
    pub dry_run: bool,
    /// What the client is told besides.
    pub warnings: Vec<String>,
}

impl Admission<'_> {
    fn is_for(&self, group: &str, plural: &str) -> bool {
        self.resource.group == group && self.resource.plural == plural
    }
}

/// Lets the plugins change the object.
///
/// # Errors
/// When one refuses.
pub async fn mutate(admission: &mut Admission<'_>, object: &mut Value) -> Outcome<()> {
    plugins(admission, object)?;
    let mut rounds = webhook::Rounds::default();
    let managed = metadata_of(object).get("managedFields").cloned();
    if !webhook::mutate(admission, object, &mut rounds).await? {
        return Ok(());
    }
    plugins(admission, object)?;
    webhook::mutate(admission, object, &mut rounds).await?;
    settle(admission, object, managed);
    Ok(())
}

/// What webhooks may not leave behind: managed fields that cannot be read, and an owner twice.
fn settle(admission: &mut Admission<'_>, object: &mut Value, before: Option<Value>) {
    let metadata = metadata_mut(object);
    let now = metadata.get("managedFields").filter(|now| Some(*now) != before.as_ref());
    if let Some(why) = now.and_then(|now| managed::check(now).err()) {
        admission.warnings.push(format!(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated \
             mutating admission controller; please fix your requests: {why}"
        ));
        replace(metadata, "managedFields", before);
    }
    let Some(owners) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) else { return };
    let mut known: Vec<Value> = Vec::new();
    let mut twice = Vec::new();
    owners.retain(|owner| {
        let first = !known.contains(owner);
        if first {
            known.push(owner.clone());
        } else {
            twice.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
        first
    });
    if !twice.is_empty() {
        admission.warnings.push(format!(
            ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server \
             dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        ));
    }
}

/// The built-in plugins that change an object.
fn plugins(admission: &mut Admission<'_>, object: &mut Value) -> Outcome<()> {
    lifecycle::check(admission, object)?;
    if admission.operation == Operation::Create && admission.subresource.is_none() {
        protect(admission, object);
    }
    storage::default_class(admission, object)?;
    ingress::default_class(admission, object)?;
    if admission.is_for("", "pods") && admission.subresource.is_none() {
        if admission.operation == Operation::Create {
            pod::service_account(admission, object)?;
            priority::assign(admission, object)?;
        }
        if admission.operation != Operation::Delete {
            pod::tolerations(object);
        }
    }
    Ok(())
}

/// StorageObjectInUseProtection: claims and volumes stay until nobody uses them.
fn protect(admission: &Admission<'_>, object: &mut Value) {
    const PROTECTED: [(&str, &str); 2] = [
        ("persistentvolumeclaims", "kubernetes.io/pvc-protection"),
        ("persistentvolumes", "kubernetes.io/pv-protection"),
    ];
    let Some((_, finalizer)) = PROTECTED.iter().find(|(plural, _)| admission.is_for("", plural)) else {
        return;
    };
    let finalizers = metadata_mut(object).entry("finalizers").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|known| known == finalizer)
    {
        list.push((*finalizer).into());
    }
}

/// Lets the plugins refuse the object.
///
/// # Errors
/// When one does.
pub async fn validate(admission: &mut Admission<'_>, object: &Value) -> Outcome<()> {
    if admission.operation == Operation::Delete {
        lifecycle::check(admission, object)?;
        webhook::mutate(admission, &mut Value::Null, &mut webhook::Rounds::default()).await?;
    }
    pod_security::check(admission, object)?;
    storage::resize(admission, object)?;
    policy::validate(admission, object)?;
    webhook::validate(admission, object).await?;
    // Last, since what it takes is only given back by a count of what there is.
    quota::charge(admission, object).await
}
