//! Hashes of content, for annotations and names that change when, and only when, content does.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher as _, Hash};
use std::ops::Deref;
use std::sync::LazyLock;

use foldhash::quality::RandomState;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A short, stable hash of anything that serialises: 16 hexadecimal digits.
///
/// Equal content gives equal hashes in every process and every release; maps are taken in the order of their
/// keys. Hash the content that matters (a Secret's `data`), never a whole object with its resourceVersion.
#[must_use]
pub fn content_hash<T: Serialize + ?Sized>(content: &T) -> String {
    let digest = Sha256::digest(sorted_text(serde_json::to_value(content).unwrap_or_default()).as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A 64-bit hash of a tree, for comparing within this process.
pub(crate) fn quick_hash(tree: &Value) -> u64 {
    Hashed::deserialize(tree).map(|hashed| hashed.0).unwrap_or_default()
}

/// Hashes with a seed of this process: nobody outside can look for two contents that are hashed alike.
pub(crate) fn seeded<T: Hash>(content: T) -> u64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);
    SEED.hash_one(content)
}

/// The [quick hash](quick_hash) of whatever it is deserialised from, found without making a tree of it.
pub(crate) struct Hashed(pub(crate) u64);

impl Hashed {
    /// That of a text.
    pub(crate) fn of(text: &str) -> Self {
        Self(seeded((3u8, text)))
    }
}

/// Makes up the hash of a map from its entries, in whatever order they come.
#[derive(Default)]
pub(crate) struct Entries {
    sum: u64,
    count: u64,
}

impl Entries {
    pub(crate) fn add(&mut self, key: &str, value: &Hashed) {
        self.sum = self.sum.wrapping_add(seeded((key, value.0)));
        self.count += 1;
    }

    pub(crate) fn finish(&self) -> Hashed {
        Hashed(seeded((5u8, self.count, self.sum)))
    }
}

/// Every tree is a tag and what makes it up, so that no two different ones are hashed alike.
impl<'de> Deserialize<'de> for Hashed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HashVisitor)
    }
}

struct HashVisitor;

impl<'de> Visitor<'de> for HashVisitor {
    type Value = Hashed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<Hashed, E> {
        Ok(Hashed(seeded(0u8)))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Hashed, E> {
        Ok(Hashed(seeded((1u8, value))))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Hashed, E> {
        Ok(Hashed(seeded((2u8, value))))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Hashed, E> {
        Ok(Hashed(seeded((6u8, value))))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Hashed, E> {
        Ok(Hashed(seeded((7u8, value.to_bits()))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Hashed, E> {
        Ok(Hashed::of(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Hashed, A::Error> {
        let mut hash = seeded(4u8);
        while let Some(item) = items.next_element::<Hashed>()? {
            hash = seeded((hash, item.0));
        }
        Ok(Hashed(hash))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Hashed, A::Error> {
        let mut entries = Entries::default();
        while let Some(key) = map.next_key::<Key<'de>>()? {
            entries.add(&key, &map.next_value()?);
        }
        Ok(entries.finish())
    }
}

/// A key or text of JSON, borrowed where it holds no escapes.
pub(crate) struct Key<'a>(Cow<'a, str>);

impl<'a> Key<'a> {
    pub(crate) fn into_text(self) -> Cow<'a, str> {
        self.0
    }
}

impl Deref for Key<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}

/// The tree as text with the keys of its maps in order, whatever features `serde_json` was built with.
fn sorted_text(mut tree: Value) -> String {
    tree.sort_all_objects();
    tree.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn order_of_a_map_does_not_matter() {
        let a: HashMap<_, _> = (0..50).map(|i| (format!("k{i}"), i)).collect();
        let b: HashMap<_, _> = (0..50).rev().map(|i| (format!("k{i}"), i)).collect();
        assert_eq!(content_hash(&a), content_hash(&b));
        assert_ne!(content_hash(&a), content_hash("k"));
    }

    #[test]
    fn a_text_is_hashed_as_its_tree_whatever_the_order() {
        let texts = [
            r#"{"a": [1, -1, 1.5, true, null, "x\n"], "b": {"c": "", "d": []}}"#,
            r#"{"b": {"d": [], "c": ""}, "a": [1, -1, 1.5, true, null, "x\n"]}"#,
        ];
        let hashes = texts.map(|text| serde_json::from_str::<Hashed>(text).unwrap().0);
        assert_eq!(hashes[0], hashes[1]);
        assert_eq!(hashes[0], quick_hash(&serde_json::from_str(texts[0]).unwrap()));
    }

    #[test]
    fn what_differs_is_hashed_otherwise() {
        let texts =
            ["null", "false", "0", "[]", "{}", "\"\"", "[[]]", "[{}]", "{\"a\":{}}", "[0,1]", "[1,0]", "-1"];
        let hashes: HashSet<u64> =
            texts.iter().map(|text| serde_json::from_str::<Hashed>(text).unwrap().0).collect();
        assert_eq!(hashes.len(), texts.len());
    }
}
