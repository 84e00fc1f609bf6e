//! An object as the server sends it: its text, read no further than somebody needs.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use kube::{Resource, ResourceExt as _};
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::ObjectName;
use crate::hash::Key;

/// An object as the server sends it. Most are news to nobody, such as the echo of our own write; what tells that is
/// read at once, the rest when it is [taken in](super::Stored::new).
#[derive(Clone, Debug)]
pub(crate) struct Delivered {
    /// No more of it than name, uid and version.
    metadata: ObjectMeta,
    text: Box<RawValue>,
}

impl Delivered {
    /// An object that was not delivered, but made here.
    pub(crate) fn made<T: Serialize>(object: &T) -> Self {
        let text = serde_json::value::to_raw_value(object);
        Self::of(text.unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    fn of(text: Box<RawValue>) -> Self {
        // What is no object in form has no name; whoever decodes it says what is wrong.
        let Names { name, namespace, uid, resource_version } = Names::read(text.get());
        let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        let metadata = ObjectMeta {
            name: owned(name),
            namespace: owned(namespace),
            uid: owned(uid),
            resource_version: owned(resource_version),
            ..ObjectMeta::default()
        };
        Self { metadata, text }
    }

    pub(crate) fn name(&self) -> ObjectName {
        ObjectName::new(
            self.namespace().unwrap_or_default(),
            self.metadata.name.as_deref().unwrap_or_default(),
        )
    }

    /// The version as a number; nothing if it has none.
    pub(crate) fn version(&self) -> u64 {
        self.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
    }

    pub(crate) fn text(&self) -> &str {
        self.text.get()
    }

    /// The whole object.
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }
}

/// What tells whether an object is news.
#[derive(Default)]
struct Names<'a> {
    name: Option<Cow<'a, str>>,
    namespace: Option<Cow<'a, str>>,
    uid: Option<Cow<'a, str>>,
    resource_version: Option<Cow<'a, str>>,
}

impl<'a> Names<'a> {
    /// Reads no further than it has to: metadata comes first, and in it what grows comes last.
    fn read(text: &'a str) -> Self {
        let mut names = Self::default();
        let mut reader = serde_json::Deserializer::from_str(text);
        // An error, mostly the one that says that all is read, leaves what was read by then.
        let _ = reader.deserialize_map(NamesVisitor { names: &mut names, within: false });
        names
    }

    fn is_complete(&self) -> bool {
        let all = [&self.name, &self.namespace, &self.uid, &self.resource_version];
        all.into_iter().all(Option::is_some)
    }
}

struct NamesVisitor<'n, 'a> {
    names: &'n mut Names<'a>,
    /// Whether this is the metadata.
    within: bool,
}

impl<'de> Visitor<'de> for NamesVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Key<'de>>()? {
            let slot = match (self.within, &*key) {
                (false, "metadata") => {
                    map.next_value_seed(NamesVisitor { names: &mut *self.names, within: true })?;
                    return Err(A::Error::custom("all is read"));
                }
                (true, "name") => &mut self.names.name,
                (true, "namespace") => &mut self.names.namespace,
                (true, "uid") => &mut self.names.uid,
                (true, "resourceVersion") => &mut self.names.resource_version,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *slot = Some(map.next_value::<Key<'de>>()?.into_text());
            if self.names.is_complete() {
                return Err(A::Error::custom("all is read"));
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for NamesVisitor<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Deserialize<'de> for Delivered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Deserialize::deserialize(deserializer).map(Self::of)
    }
}

impl Serialize for Delivered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl Resource for Delivered {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_wherever_they_stand() {
        for text in [
            r#"{"kind":"K","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"},"spec":{}}"#,
            r#"{"spec":{"name":"x"},"metadata":{"resourceVersion":"7","labels":{"name":"y"},"uid":"u","name":"a","namespace":"n"}}"#,
        ] {
            let object: Delivered = serde_json::from_str(text).unwrap();
            assert_eq!((object.name(), object.version()), (ObjectName::new("n", "a"), 7));
            assert_eq!((object.uid().as_deref(), object.text()), (Some("u"), text));
        }
        let object: Delivered = serde_json::from_str(r#"{"metadata":{"name":"a"}}"#).unwrap();
        assert_eq!((object.name(), object.version()), (ObjectName::new("", "a"), 0));
    }

    #[test]
    fn what_is_no_object_has_no_name() {
        for text in ["[]", "{}", "null", r#"{"metadata":[]}"#, r#"{"metadata":{"name":1}}"#] {
            let object: Delivered = serde_json::from_str(text).unwrap();
            assert_eq!(object.name(), ObjectName::default());
        }
    }
}
