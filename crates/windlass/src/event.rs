//! Events: what is newly wrong with a primary, for `kubectl describe`; or with an operator that may not even look at its
//! primaries, on their definition.
//!
//! An Event is posted only when the status comes to say something new, so that neither a retry nor a restart
//! repeats it. Its name follows from what it says: the same thing said again, by whatever replica or process, is
//! counted in the series of the first Event while that is there.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::DynamicObject;
use serde_json::Value;
use windlass_machinery::Context;

use crate::Kind;
use crate::content_hash;

/// The longest note that the API takes.
const LONGEST_NOTE: usize = 1024;
/// The longest name.
const LONGEST_NAME: usize = 253;

pub(crate) fn kind() -> Kind {
    Kind::of::<Event>()
}

/// A warning about an object, by an operator.
pub(crate) fn warning(
    context: &Context,
    operator: &str,
    (about, object): (&Kind, &Value),
    reason: &str,
    message: &str,
) -> DynamicObject {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let namespace = text("/metadata/namespace").unwrap_or_else(|| "default".into());
    let name = text("/metadata/name").unwrap_or_default();
    let note: String = message.chars().take(LONGEST_NOTE).collect();
    let said = content_hash(&(operator, text("/metadata/uid"), reason, &note));
    let title: String = name.chars().take(LONGEST_NAME - said.len() - 1).collect();
    let event = Event {
        metadata: ObjectMeta {
            name: Some(format!("{title}.{said}")),
            namespace: Some(namespace.clone()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(context.now())),
        reporting_controller: Some(operator.into()),
        reporting_instance: Some(operator.into()),
        action: Some("Reconcile".into()),
        reason: Some(if reason.is_empty() { "Failed".into() } else { reason.into() }),
        note: Some(note),
        type_: Some("Warning".into()),
        regarding: Some(ObjectReference {
            api_version: Some(about.api_version()),
            kind: Some(about.name().into()),
            namespace: text("/metadata/namespace"),
            name: Some(name),
            uid: text("/metadata/uid"),
            resource_version: text("/metadata/resourceVersion"),
            ..ObjectReference::default()
        }),
        ..Event::default()
    };
    let tree = serde_json::to_value(&event).and_then(serde_json::from_value);
    tree.unwrap_or_else(|_| DynamicObject::new("", &kind().resource()))
}
