//! Hashes of content, for annotations and names that change when, and only when, content does.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::Serialize;
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
    let mut hasher = DefaultHasher::new();
    feed(tree, &mut hasher);
    hasher.finish()
}

/// Every tree is a tag and what makes it up, so that no two different ones feed the same.
fn feed(tree: &Value, hasher: &mut DefaultHasher) {
    match tree {
        Value::Null => hasher.write_u8(0),
        Value::Bool(value) => (1u8, value).hash(hasher),
        Value::Number(number) => (2u8, number).hash(hasher),
        Value::String(text) => (3u8, text).hash(hasher),
        Value::Array(items) => {
            (4u8, items.len()).hash(hasher);
            items.iter().for_each(|item| feed(item, hasher));
        }
        Value::Object(map) => {
            (5u8, map.len()).hash(hasher);
            // In the order of the keys, whatever features `serde_json` was built with.
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in entries {
                key.hash(hasher);
                feed(value, hasher);
            }
        }
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
    use std::collections::HashMap;

    #[test]
    fn order_of_a_map_does_not_matter() {
        let a: HashMap<_, _> = (0..50).map(|i| (format!("k{i}"), i)).collect();
        let b: HashMap<_, _> = (0..50).rev().map(|i| (format!("k{i}"), i)).collect();
        assert_eq!(content_hash(&a), content_hash(&b));
        assert_ne!(content_hash(&a), content_hash("k"));
    }
}
