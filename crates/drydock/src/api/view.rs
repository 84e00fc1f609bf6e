//! Built-in resources that show the objects of another resource in words of their own: one object, two names for its
//! fields. Which they are is a table.

use std::borrow::Cow;

use serde_json::Value;
use windlass_machinery::encode;

use super::registry::Resource;

mod autoscaler;

/// A resource that shows the objects of another.
struct View {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    /// The resource whose objects they are: its group and version.
    of: (&'static str, &'static str),
    /// A field as it is stored, and as it is shown.
    fields: &'static [(&'static str, &'static str)],
    /// What is not the same under another name: as it is shown, and as it is stored.
    changes: (Change, Change),
}

/// A change of an object in place.
type Change = fn(&mut Value);

const VIEWS: &[View] = &[
    View {
        group: "events.k8s.io",
        version: "v1",
        plural: "events",
        of: ("", "v1"),
        fields: &[
            ("involvedObject", "regarding"),
            ("message", "note"),
            ("source", "deprecatedSource"),
            ("firstTimestamp", "deprecatedFirstTimestamp"),
            ("lastTimestamp", "deprecatedLastTimestamp"),
            ("count", "deprecatedCount"),
            ("reportingComponent", "reportingController"),
        ],
        changes: (|_| {}, |_| {}),
    },
    View {
        group: "autoscaling",
        version: "v1",
        plural: "horizontalpodautoscalers",
        of: ("autoscaling", "v2"),
        fields: &[],
        changes: (autoscaler::shown, autoscaler::stored),
    },
];

fn view(resource: &Resource) -> Option<&'static View> {
    VIEWS.iter().find(|view| {
        view.group == resource.group && view.version == resource.version && view.plural == resource.plural
    })
}

/// The group under which the objects of a built-in resource are stored.
pub(super) fn storage_group<'a>(group: &'a str, plural: &str) -> &'a str {
    let view = VIEWS.iter().find(|view| view.group == group && view.plural == plural);
    view.map_or(group, |view| view.of.0)
}

/// Whether a resource shows the objects of another.
pub(super) fn is_view(resource: &Resource) -> bool {
    view(resource).is_some()
}

/// A stored object in the words of the resource. What is in them already stays as it is.
pub(super) fn shown(resource: &Resource, mut object: Value) -> Value {
    if let Some(view) = view(resource) {
        view.fields.iter().for_each(|(stored, shown)| rename(&mut object, stored, shown));
        (view.changes.0)(&mut object);
        encode::normalise(&mut object, resource.ty());
    }
    object
}

/// An object of the resource in the words of `stored`, the resource whose object it is.
pub(super) fn stored(resource: &Resource, stored: &Resource, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(view) = view(resource) {
        view.fields.iter().for_each(|(stored, shown)| rename(&mut object, shown, stored));
        (view.changes.1)(&mut object);
        encode::normalise(&mut object, stored.ty());
        encode::stored(&mut object, stored.ty());
    }
    object
}

/// What tables are made of: the object in the words in which it is stored.
pub(super) fn counted<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    match view(resource) {
        Some(view) => {
            let mut object = object.clone();
            view.fields.iter().for_each(|(stored, shown)| rename(&mut object, shown, stored));
            (view.changes.1)(&mut object);
            Cow::Owned(object)
        }
        None => Cow::Borrowed(object),
    }
}

/// The group and version of the resource whose objects these are, for one that shows another's.
pub(super) fn origin(resource: &Resource) -> Option<(&'static str, &'static str)> {
    view(resource).map(|view| view.of)
}

fn rename(object: &mut Value, from: &str, to: &str) {
    let Some(map) = object.as_object_mut() else { return };
    if let Some(value) = map.remove(from) {
        map.insert(to.to_owned(), value);
    }
}
