//! An object's stored form, made before the store gives it a revision, so that nobody waits for it to be written.

use std::cell::Cell;

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::{Map, Value};

use super::metadata_mut;
use crate::store::Revision;

const FIELD: &str = "resourceVersion";
/// Memory that a thread keeps for the next object.
const KEPT: usize = 64 * 1024;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The JSON of an object, complete but for its revision.
pub(super) struct Draft {
    text: Vec<u8>,
    /// Where the revision goes.
    at: usize,
    labels: Vec<(String, String)>,
}

impl Draft {
    /// The draft of an object; what it says of its revision is left out.
    pub(super) fn of(object: &mut Value) -> Self {
        let labels = labels(metadata_mut(object));
        let (mut text, mut at) = (spare(), 0);
        let members = object.as_object().into_iter().flatten();
        text.push(b'{');
        for (index, (name, value)) in members.enumerate() {
            put_name(&mut text, index > 0, name);
            match value {
                Value::Object(metadata) if name == "metadata" => at = put_metadata(&mut text, metadata),
                other => put(&mut text, other),
            }
        }
        text.push(b'}');
        Self { text, at, labels }
    }

    /// The stored form at a revision, and the labels.
    pub(super) fn at(self, revision: Revision) -> (Bytes, Vec<(String, String)>) {
        let revision = revision.to_string();
        let mut body = BytesMut::with_capacity(self.text.len() + revision.len());
        let (before, after) = self.text.split_at(self.at);
        body.put_slice(before);
        body.put_slice(revision.as_bytes());
        body.put_slice(after);
        give_back(self.text);
        (body.freeze(), self.labels)
    }
}

/// The JSON of a value in as much memory as it takes.
pub(super) fn encoded(value: &Value) -> Bytes {
    let mut text = spare();
    put(&mut text, value);
    let body = Bytes::copy_from_slice(&text);
    give_back(text);
    body
}

/// The labels in an object's metadata.
pub(super) fn labels(metadata: &Map<String, Value>) -> Vec<(String, String)> {
    let labels = metadata.get("labels").and_then(Value::as_object).into_iter().flatten();
    labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

/// Writes metadata with an empty revision, and gives the place of it. Members are in order of their names.
fn put_metadata(text: &mut Vec<u8>, metadata: &Map<String, Value>) -> usize {
    let mut at = None;
    let mut revision = |text: &mut Vec<u8>| {
        put_name(text, text.last() != Some(&b'{'), FIELD);
        text.push(b'"');
        at = Some(text.len());
        text.push(b'"');
    };
    let mut written = false;
    text.push(b'{');
    for (name, value) in metadata.iter().filter(|(name, _)| *name != FIELD) {
        if !written && name.as_str() > FIELD {
            revision(text);
            written = true;
        }
        put_name(text, text.last() != Some(&b'{'), name);
        put(text, value);
    }
    if !written {
        revision(text);
    }
    text.push(b'}');
    at.unwrap_or_default()
}

fn put_name(text: &mut Vec<u8>, comma: bool, name: &str) {
    if comma {
        text.push(b',');
    }
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(&mut *text, name);
    text.push(b':');
}

fn put(text: &mut Vec<u8>, value: &Value) {
    let _ = serde_json::to_writer(text, value);
}

fn spare() -> Vec<u8> {
    SPARE.take()
}

fn give_back(mut text: Vec<u8>) {
    if text.capacity() <= KEPT {
        text.clear();
        SPARE.set(text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::committed;
    use super::*;

    #[test]
    fn a_draft_at_a_revision_is_the_object_at_that_revision() {
        for mut object in [
            json!({"metadata": {"name": "a", "labels": {"b": "c"}, "uid": "u"}, "data": {"x": "\"1\""}}),
            json!({"metadata": {"uid": "u", "resourceVersion": "3"}, "zeta": [1, {"a": null}]}),
            json!({"metadata": {"name": "a"}}),
            json!({"metadata": {}}),
            json!({"apiVersion": "g/v1"}),
        ] {
            let drafted = Draft::of(&mut object).at(1234);
            assert_eq!(drafted, committed(&mut object, 1234));
        }
    }
}
