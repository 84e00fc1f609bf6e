//! Subresources that are not simply a part of their object.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::HeaderMap;
use serde_json::{Value, json};

use super::admission::{self, Admission, Operation};
use super::registry::Resource;
use super::status::Outcome;
use super::write::Write;

mod binding;
pub mod connect;
mod eviction;
pub mod scale;

pub use binding::bind;
pub use eviction::evict;

/// What is done with objects of a kind that are posted and never stored.
pub type Posted = for<'a, 'w> fn(&'a mut Write<'w>, Value) -> BoxFuture<'a, Outcome<Value>>;

/// What becomes of a posted object, where it is not stored.
#[must_use]
pub fn posted(resource: &Resource) -> Option<Posted> {
    static TABLE: &[(&str, &str, Posted)] = &[("", "bindings", binding::post)];
    let found =
        TABLE.iter().find(|(group, plural, _)| *group == resource.group && *plural == resource.plural);
    found.map(|(_, _, posted)| *posted)
}

/// The same write, of another kind that the resource, or a part of it, is written as.
fn within<'k>(write: &Write<'k>, kind: &'k Arc<Resource>, part: &'k str) -> Write<'k> {
    Write {
        server: write.server,
        resource: kind,
        subresource: Some(part),
        namespace: write.namespace,
        user: write.user,
        options: write.options.clone(),
        warnings: Vec::new(),
    }
}

/// Reads a body of the kind of a part; versions of it that came before are read as it is.
///
/// # Errors
/// When it is not one.
pub fn read_part(
    write: &mut Write<'_>,
    kind: &Arc<Resource>,
    part: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Outcome<Value> {
    let mut own = within(write, kind, part);
    let read = own.read_body(headers, body);
    let mut warnings = std::mem::take(&mut own.warnings);
    write.warnings.append(&mut warnings);
    read
}

/// Lets admission look at what is posted to a part of an object.
async fn admit(write: &mut Write<'_>, part: &str, name: &str, mut object: Value) -> Outcome<Value> {
    let Some(kind) = write.resource.part(part).map(Arc::new) else { return Ok(object) };
    let own = within(write, &kind, part);
    own.draft(&mut object)?;
    let mut admission = Admission {
        server: write.server,
        resource: write.resource,
        subresource: Some(part),
        namespace: write.namespace,
        operation: Operation::Create,
        user: write.user,
        old: None,
        name: Some(name),
        part: Some(&kind),
        shown: None,
        put_back: None,
        options: &own.options.given,
        dry_run: write.options.dry_run,
        warnings: Vec::new(),
    };
    let mut outcome = admission::mutate(&mut admission, &mut object).await;
    if outcome.is_ok() {
        outcome = admission::validate(&mut admission, &object).await;
    }
    write.warnings.append(&mut admission.warnings);
    outcome.map(|()| object)
}

fn set_condition(pod: &mut Value, condition: Value) {
    match pod["status"]["conditions"].as_array_mut() {
        Some(list) => match list.iter_mut().find(|known| known["type"] == condition["type"]) {
            Some(known) => *known = condition,
            None => list.push(condition),
        },
        None => pod["status"]["conditions"] = json!([condition]),
    }
}

fn success(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code})
}
