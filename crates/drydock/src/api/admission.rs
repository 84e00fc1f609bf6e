//! Admission: what changes or refuses a write between defaulting and storing.
//!
//! Built-in plugins in the order of the real server: first those that change an object, then, once it has been
//! validated, those that only look at it.

pub(super) mod amounts;
mod ingress;
mod lifecycle;
mod limits;
mod matching;
mod pod;
mod pod_security;
pub mod policy;
mod priority;
mod quota;
mod request;
mod runtime_class;
mod storage;
pub mod webhook;

use std::sync::Arc;

use serde_json::{Map, Value, json};
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
        self.resource.plural == plural && self.resource.group == group
    }
}

/// Lets the plugins change the object.
///
/// # Errors
/// When one refuses.
pub async fn mutate(admission: &mut Admission<'_>, object: &mut Value) -> Outcome<()> {
    once_owned(admission, object, "contains duplicate entries");
    plugins(admission, object)?;
    if !policy::may_mutate(admission.server) && !admission.server.hooks.may_mutate(admission.server) {
        return Ok(());
    }
    let mut policies = policy::Rounds::default();
    let mut rounds = webhook::Rounds::default();
    let managed = metadata_of(object).get("managedFields").cloned();
    let by_policies = policy::mutate(admission, object, &mut policies)?;
    let by_webhooks = webhook::mutate(admission, object, &mut rounds).await?;
    if !by_policies && !by_webhooks {
        return Ok(());
    }
    plugins(admission, object)?;
    policy::mutate(admission, object, &mut policies)?;
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
    once_owned(admission, object, "contains duplicate entries after mutating admission happens");
}

/// An object names each of its owners once.
fn once_owned(admission: &mut Admission<'_>, object: &mut Value, what: &str) {
    let owners = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("ownerReferences"));
    let Some(owners) = owners.and_then(Value::as_array_mut) else { return };
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
            ".metadata.ownerReferences {what}; API server dedups owner references in 1.20+, and may reject such \
             requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
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
    limits::fill(admission, object)?;
    taint(admission, object);
    storage::default_class(admission, object)?;
    ingress::default_class(admission, object)?;
    if !admission.is_for("", "pods") || admission.subresource.is_some() {
        return Ok(());
    }
    match admission.operation {
        Operation::Create => {
            pod::service_account(admission, object)?;
            priority::assign(admission, object)?;
            pod::tolerations(object);
            runtime_class::fill(admission, object)
        }
        Operation::Update => {
            priority::keep(admission, object);
            pod::tolerations(object);
            Ok(())
        }
        Operation::Delete => Ok(()),
    }
}

/// TaintNodesByCondition: nobody is scheduled to a new node before it says that it is ready.
fn taint(admission: &Admission<'_>, node: &mut Value) {
    const KEY: &str = "node.kubernetes.io/not-ready";
    if !admission.is_for("", "nodes")
        || admission.subresource.is_some()
        || admission.operation != Operation::Create
    {
        return;
    }
    let taint = json!({"key": KEY, "effect": "NoSchedule"});
    match node["spec"]["taints"].as_array_mut() {
        Some(taints) if taints.contains(&taint) => {}
        Some(taints) => taints.push(taint),
        None => node["spec"]["taints"] = json!([taint]),
    }
}

/// StorageObjectInUseProtection: claims and volumes stay until nobody uses them.
fn protect(admission: &Admission<'_>, object: &mut Value) {
    const PROTECTED: [(&str, &str, &str); 3] = [
        ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
        ("", "persistentvolumes", "kubernetes.io/pv-protection"),
        ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
    ];
    let known = PROTECTED.iter().find(|(group, plural, _)| admission.is_for(group, plural));
    let Some((_, _, finalizer)) = known else {
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
    limits::check(admission, object)?;
    if admission.is_for("", "pods")
        && admission.subresource.is_none()
        && admission.operation == Operation::Create
    {
        pod::references(admission, object)?;
    }
    pod_security::check(admission, object)?;
    priority::check_class(admission, object)?;
    storage::resize(admission, object)?;
    runtime_class::check(admission, object)?;
    policy::validate(admission, object)?;
    webhook::validate(admission, object).await?;
    // Last, since what it takes is only given back by a count of what there is.
    quota::charge(admission, object).await
}
