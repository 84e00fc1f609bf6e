//! What is taken from the text of an object in one reading, without making a tree of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::annotation::OWNER;
use crate::hash::{Entries, Hashed, Key, seeded};

/// What is kept of an object beside its text.
#[derive(Default)]
pub(super) struct Head<'a> {
    pub(super) kind: Cow<'a, str>,
    pub(super) deleting: bool,
    pub(super) labels: BTreeMap<String, String>,
    /// Hashes of the uids of its owners.
    pub(super) owners: Vec<u64>,
    /// A hash of what it says of its owners.
    pub(super) ownership: u64,
    pub(super) managed_fields: Option<&'a RawValue>,
    /// A hash of all but the status, and but what changes at every write and means nothing.
    pub(super) content: u64,
    /// A hash of the status.
    pub(super) status: u64,
}

impl<'de: 'a, 'a> Deserialize<'de> for Head<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeadVisitor)
    }
}

struct HeadVisitor;

impl<'de> Visitor<'de> for HeadVisitor {
    type Value = Head<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Head<'de>, A::Error> {
        let mut head = Head::default();
        let mut content = Entries::default();
        while let Some(key) = map.next_key::<Key<'de>>()? {
            match &*key {
                "metadata" => {
                    let metadata: Metadata<'de> = map.next_value()?;
                    content.add(&key, &metadata.hash);
                    head.deleting = metadata.deleting;
                    head.owners = metadata.owners.iter().map(|owner| seeded(&*owner.uid)).collect();
                    head.owners.extend(metadata.labels.get(OWNER).map(|uid| seeded(uid.as_str())));
                    head.ownership = metadata.ownership;
                    head.labels = metadata.labels;
                    head.managed_fields = metadata.managed_fields;
                }
                "status" => head.status = map.next_value::<Hashed>()?.0,
                "kind" => {
                    let kind: Key<'de> = map.next_value()?;
                    content.add(&key, &Hashed::of(&kind));
                    head.kind = kind.into_text();
                }
                _ => content.add(&key, &map.next_value()?),
            }
        }
        head.content = content.finish().0;
        Ok(head)
    }
}

struct Metadata<'a> {
    deleting: bool,
    labels: BTreeMap<String, String>,
    owners: Vec<Owner<'a>>,
    ownership: u64,
    managed_fields: Option<&'a RawValue>,
    hash: Hashed,
}

#[derive(Deserialize)]
struct Owner<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Metadata<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetadataVisitor)
    }
}

struct MetadataVisitor;

impl<'de> Visitor<'de> for MetadataVisitor {
    type Value = Metadata<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the metadata of an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metadata<'de>, A::Error> {
        let (mut deleting, mut labels, mut owners, mut ownership, mut managed_fields) = Default::default();
        let mut entries = Entries::default();
        while let Some(key) = map.next_key::<Key<'de>>()? {
            match &*key {
                "managedFields" => managed_fields = Some(map.next_value()?),
                "resourceVersion" => drop(map.next_value::<serde::de::IgnoredAny>()?),
                "deletionTimestamp" => {
                    deleting = true;
                    entries.add(&key, &map.next_value()?);
                }
                "labels" => {
                    let raw: &RawValue = map.next_value()?;
                    entries.add(&key, &hash_of(raw));
                    labels = read(raw);
                }
                "ownerReferences" => {
                    let raw: &'de RawValue = map.next_value()?;
                    let hash = hash_of(raw);
                    entries.add(&key, &hash);
                    ownership = hash.0;
                    owners = read(raw);
                }
                _ => entries.add(&key, &map.next_value()?),
            }
        }
        Ok(Metadata { deleting, labels, owners, ownership, managed_fields, hash: entries.finish() })
    }
}

fn hash_of(raw: &RawValue) -> Hashed {
    read::<Option<Hashed>>(raw).unwrap_or(Hashed(0))
}

/// What a part of the text says; nothing if it is null, or not what it should be.
fn read<'a, T: Deserialize<'a> + Default>(raw: &'a RawValue) -> T {
    serde_json::from_str::<Option<T>>(raw.get()).ok().flatten().unwrap_or_default()
}

/// The text of an object without one of its fields, of which `value` is the part of `text` that holds its value.
pub(super) fn without(text: &str, field: &str, value: &str) -> String {
    let begin = (value.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    let (Some(before), Some(after)) = (text.get(..begin), text.get(begin + value.len()..)) else {
        return text.to_owned();
    };
    let Some(before) = before.trim_end().strip_suffix(':') else { return text.to_owned() };
    let quoted = format!("\"{field}\"");
    let Some(before) = before.trim_end().strip_suffix(&quoted) else { return text.to_owned() };
    // One of the commas around it goes with it.
    let (before, after) = match before.trim_end().strip_suffix(',') {
        Some(before) => (before, after),
        None => (before, after.trim_start().strip_prefix(',').unwrap_or(after)),
    };
    [before, after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_goes_with_one_comma() {
        for (text, left) in [
            (r#"{"a":1,"x":[2],"b":3}"#, r#"{"a":1,"b":3}"#),
            (r#"{"x":[2],"b":3}"#, r#"{"b":3}"#),
            (r#"{"a":1 , "x" : [2]}"#, r#"{"a":1 }"#),
            (r#"{"x":[2]}"#, "{}"),
        ] {
            let begin = text.find("[2]").unwrap();
            assert_eq!(without(text, "x", &text[begin..begin + 3]), left);
        }
    }

    #[test]
    fn versions_and_managed_fields_change_no_hash_and_a_status_only_its_own() {
        let head = |text: &'static str| serde_json::from_str::<Head<'_>>(text).unwrap();
        let one = head(
            r#"{"kind":"K","metadata":{"name":"a","resourceVersion":"1","labels":{"l":"v"}},"data":{}}"#,
        );
        let two = head(
            r#"{"data":{},"status":{"x":1},"kind":"K","metadata":{"labels":{"l":"v"},"managedFields":[{}],"name":"a"}}"#,
        );
        assert_eq!((one.content, &*one.kind), (two.content, "K"));
        assert_ne!(one.status, two.status);
        assert_eq!(one.labels, two.labels);
        assert_ne!(
            one.content,
            head(r#"{"kind":"K","metadata":{"name":"b","labels":{"l":"v"}},"data":{}}"#).content
        );
    }
}
