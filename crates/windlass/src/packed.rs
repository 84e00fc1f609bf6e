//! Texts kept in a fraction of their size: each as its difference from a model, another text of the same sort.
//!
//! The children of a thousand primaries are alike but for a few names. The first text of a sort is its model, and is
//! kept whole for as long as the process lives; one that is unlike it is still packed by itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use lz4_flex::block::{compress_with_dict, decompress_with_dict};

/// So many sorts have a model; texts of others are packed by themselves.
const MODELS: usize = 256;

/// A packed text.
#[derive(Clone)]
pub(crate) struct Packed {
    bytes: Box<[u8]>,
    length: u32,
    model: Arc<str>,
}

/// The models of the sorts.
#[derive(Debug, Default)]
pub(crate) struct Models(Mutex<BTreeMap<String, Arc<str>>>);

impl Models {
    /// Packs a text of this sort.
    pub(crate) fn pack(&self, sort: &str, text: &str) -> Packed {
        let model = self.model(sort, text);
        let bytes = compress_with_dict(text.as_bytes(), model.as_bytes()).into();
        Packed { bytes, length: u32::try_from(text.len()).unwrap_or(u32::MAX), model }
    }

    fn model(&self, sort: &str, text: &str) -> Arc<str> {
        let mut models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = models.get(sort) {
            return Arc::clone(model);
        }
        if models.len() >= MODELS {
            return Arc::default();
        }
        let model: Arc<str> = text.into();
        models.insert(sort.to_owned(), Arc::clone(&model));
        model
    }
}

impl Packed {
    /// The text. It was packed here, so this does not fail.
    pub(crate) fn text(&self) -> String {
        let bytes = decompress_with_dict(&self.bytes, self.length as usize, self.model.as_bytes());
        bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    }

    /// How many bytes are kept of it.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_alike_take_little_and_come_back_as_they_were() {
        let models = Models::default();
        let text = |name: &str| {
            let fields: Vec<String> = (0..100).map(|field| format!("\"field-{field}\":{field}")).collect();
            format!("{{\"name\":\"{name}\",{}}}", fields.join(","))
        };
        let all: Vec<_> = ["first", "second", "ü"].iter().map(|name| text(name)).collect();
        let packed: Vec<_> = all.iter().map(|text| models.pack("sort", text)).collect();
        for (text, packed) in all.iter().zip(&packed) {
            assert_eq!(packed.text(), *text);
            assert!(packed.size() < 100, "{} bytes are kept of {}", packed.size(), text.len());
        }
    }

    #[test]
    fn texts_unlike_each_other_and_empty_ones_come_back_too() {
        let models = Models::default();
        for text in ["", "a", &"x".repeat(100_000), "ä€𝄞"] {
            assert_eq!(models.pack("sort", text).text(), text);
            assert_eq!(models.pack(text, text).text(), text);
        }
    }
}
