//! The annotation of client-side apply, which `kubectl apply --server-side` takes over and keeps up to date.

use serde_json::{Map, Value};

use super::Manager;
use crate::apply::{self, Duplicates};
use crate::fields::FieldSet;
use crate::go;
use crate::schema::Type;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Annotations of an object may not be longer than this, all together.
const LIMIT: usize = 256 * 1024;

/// The fields that client-side apply set and that nobody has changed since.
pub(super) fn owned(live: &Value, ty: Type<'_>, who: &Manager<'_>) -> Option<FieldSet> {
    let annotation = live.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    apply::validate(live, ty, Duplicates::Refused).ok()?;
    let last: Value = serde_json::from_str(annotation).ok()?;
    if last.get("apiVersion")?.as_str()? != who.api_version {
        return None;
    }
    apply::validate(&last, ty, Duplicates::Refused).ok()?;
    let change = apply::compare(&last, live, ty);
    let set = apply::to_field_set(&last, ty);
    Some(set.difference(&change.modified).difference(&change.added).difference(&change.removed))
}

/// Writes the annotation for a configuration where the object has it already.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    let Some(annotations) = annotations(object) else {
        return;
    };
    if annotations.get(ANNOTATION).and_then(Value::as_str).is_none_or(str::is_empty) {
        return;
    }
    annotations.insert(ANNOTATION.to_owned(), text(config).into());
    let size: usize =
        annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > LIMIT {
        annotations.remove(ANNOTATION);
    }
}

fn text(config: &Value) -> String {
    let mut config = config.clone();
    if let Some(annotations) = annotations(&mut config) {
        annotations.remove(ANNOTATION);
    }
    let mut text = go::json(&config);
    text.push('\n');
    text
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}
