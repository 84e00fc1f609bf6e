//! ConfigMaps and Secrets without their contents.
//!
//! There may be very many of them, and nobody in this process reads more of them all than their names, revisions and
//! keys: everything else is skipped where it is read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

/// What is held of an object of the kind `K`.
#[derive(Clone, Debug, Serialize)]
#[serde(bound = "")]
pub(crate) struct Outline<K> {
    /// Name, namespace, uid and revision; nothing else.
    pub(crate) metadata: ObjectMeta,
    #[serde(skip)]
    keys: Box<[Box<str>]>,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

impl<K> Outline<K> {
    /// Whether its data has a value under that key.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        self.keys.iter().any(|known| **known == *key)
    }
}

impl<'de, K> Deserialize<'de> for Outline<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Read {
            metadata: Head,
            data: Option<Keys>,
            binary_data: Option<Keys>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head {
            name: Option<String>,
            namespace: Option<String>,
            uid: Option<String>,
            resource_version: Option<String>,
        }
        type Keys = BTreeMap<Box<str>, IgnoredAny>;

        let Read { metadata, data, binary_data } = Read::deserialize(deserializer)?;
        let keys = data.into_iter().chain(binary_data).flat_map(BTreeMap::into_keys).collect();
        let metadata = ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            ..ObjectMeta::default()
        };
        Ok(Self { metadata, keys, kind: PhantomData })
    }
}

impl<K: kube::Resource<DynamicType = ()>> kube::Resource for Outline<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind(of: &()) -> Cow<'_, str> {
        K::kind(of)
    }

    fn group(of: &()) -> Cow<'_, str> {
        K::group(of)
    }

    fn version(of: &()) -> Cow<'_, str> {
        K::version(of)
    }

    fn plural(of: &()) -> Cow<'_, str> {
        K::plural(of)
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
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_keys_are_held_and_nothing_else() {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "n", "resourceVersion": "5", "labels": {"x": "y"},
                "managedFields": [{"manager": "m"}]},
            "data": {"one": "1"}, "binaryData": {"two": "Mg=="},
        });
        let read: Outline<ConfigMap> = serde_json::from_value(object).unwrap();
        assert_eq!(read.metadata.resource_version.as_deref(), Some("5"));
        assert!(read.metadata.labels.is_none() && read.metadata.managed_fields.is_none());
        assert!(read.has_key("one") && read.has_key("two") && !read.has_key("three"));
    }
}
