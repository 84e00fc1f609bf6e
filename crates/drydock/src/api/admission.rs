//! Admission: what changes or refuses a write between defaulting and storing.
//!
//! Built-in plugins in the order of the real server: first those that change an object, then, once it has been
//! validated, those that only look at it.

mod lifecycle;
mod pod;
mod pod_security;
pub mod policy;
mod quota;

use std::sync::Arc;

use serde_json::Value;

use super::auth::User;
use super::registry::Resource;
use super::server::Server;
use super::status::Outcome;
use super::write::metadata_mut;

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
    lifecycle::check(admission, object)?;
    if admission.operation == Operation::Create && admission.subresource.is_none() {
        protect(admission, object);
    }
    if admission.is_for("", "pods") && admission.subresource.is_none() {
        if admission.operation == Operation::Create {
            pod::service_account(admission, object)?;
            pod::priority(object);
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
    }
    pod_security::check(admission, object)?;
    policy::validate(admission, object)?;
    // Last, since what it takes is only given back by a count of what there is.
    quota::charge(admission, object).await
}
