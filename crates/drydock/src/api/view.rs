//! Built-in resources that show the objects of another resource in words of their own: one object, two names for its
//! fields. Which they are is a table.

use serde_json::Value;
use windlass_machinery::encode;

use super::registry::Resource;

/// A resource that shows the objects of another.
struct View {
    group: &'static str,
    plural: &'static str,
    /// The resource whose objects they are: its group.
    of: &'static str,
    /// A field as it is stored, and as it is shown.
    fields: &'static [(&'static str, &'static str)],
}

const VIEWS: &[View] = &[View {
    group: "events.k8s.io",
    plural: "events",
    of: "",
    fields: &[
        ("involvedObject", "regarding"),
        ("message", "note"),
        ("source", "deprecatedSource"),
        ("firstTimestamp", "deprecatedFirstTimestamp"),
        ("lastTimestamp", "deprecatedLastTimestamp"),
        ("count", "deprecatedCount"),
        ("reportingComponent", "reportingController"),
    ],
}];

fn view(group: &str, plural: &str) -> Option<&'static View> {
    VIEWS.iter().find(|view| view.group == group && view.plural == plural)
}

/// The group under which the objects of a built-in resource are stored.
pub(super) fn storage_group<'a>(group: &'a str, plural: &str) -> &'a str {
    view(group, plural).map_or(group, |view| view.of)
}

/// Whether a resource shows the objects of another.
pub(super) fn is_view(resource: &Resource) -> bool {
    view(&resource.group, &resource.plural).is_some()
}

/// A stored object in the words of the resource. What is in them already stays as it is.
pub(super) fn shown(resource: &Resource, mut object: Value) -> Value {
    if let Some(view) = view(&resource.group, &resource.plural) {
        view.fields.iter().for_each(|(stored, shown)| rename(&mut object, stored, shown));
        encode::normalise(&mut object, resource.ty());
    }
    object
}

/// An object of the resource in the words of `stored`, the resource whose object it is.
pub(super) fn stored(resource: &Resource, stored: &Resource, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(view) = view(&resource.group, &resource.plural) {
        view.fields.iter().for_each(|(stored, shown)| rename(&mut object, shown, stored));
        encode::normalise(&mut object, stored.ty());
        encode::stored(&mut object, stored.ty());
    }
    object
}

/// The group and version of the resource whose objects these are, for one that shows another's.
pub(super) fn origin(resource: &Resource) -> Option<(&'static str, &str)> {
    view(&resource.group, &resource.plural).map(|view| (view.of, resource.version.as_str()))
}

fn rename(object: &mut Value, from: &str, to: &str) {
    let Some(map) = object.as_object_mut() else { return };
    if let Some(value) = map.remove(from) {
        map.insert(to.to_owned(), value);
    }
}
