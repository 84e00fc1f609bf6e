//! The text of a configuration in parts, so that what has not changed is neither written nor compressed again.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::sync::Arc;

use flate2::{Compression, GzBuilder};
use windlass::World;

/// A configuration beyond this is compressed; the config reloader notices.
const PLAIN: usize = 100 * 1024;

/// On average so many parts are compressed together.
const TOGETHER: u64 = 32;

/// A piece of text that is shared and knows its hash.
#[derive(Clone)]
pub struct Part {
    text: Arc<str>,
    hash: u64,
}

impl Part {
    /// A piece.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self { hash: hash(text.as_bytes()), text: text.into() }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether what is compressed together ends here.
    fn is_last(&self) -> bool {
        (self.hash >> 32).is_multiple_of(TOGETHER)
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.text, &other.text) || (self.hash == other.hash && self.text == other.text)
    }
}

impl Eq for Part {}

impl Hash for Part {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A hash over words of eight bytes: the same in every process and release, since it decides what is compressed
/// together.
fn hash(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)))
}

/// A whole text.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(Vec<Part>);

impl Text {
    /// These parts, one after the other.
    #[must_use]
    pub fn new(parts: Vec<Part>) -> Self {
        Self(parts)
    }

    /// As it is, or compressed if it is long. The same text always gives the same bytes: where it is cut follows from
    /// the text, and no time is in it.
    ///
    /// Compressed texts may follow one another (RFC 1952), so each piece is compressed by itself, and again only when
    /// it has changed.
    pub(crate) fn packed(&self, world: &World) -> Vec<u8> {
        let length: usize = self.0.iter().map(|part| part.text.len()).sum();
        if length <= PLAIN {
            return self.to_string().into_bytes();
        }
        let mut packed = Vec::new();
        for together in self.0.split_inclusive(Part::is_last) {
            packed.extend_from_slice(&world.remember(&together.to_vec(), compress));
        }
        packed
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| f.write_str(&part.text))
    }
}

// The derivation is told apart from others by its type, with what it takes.
#[allow(clippy::ptr_arg, reason = "it takes what is remembered")]
fn compress(parts: &Vec<Part>) -> Vec<u8> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    for part in parts {
        // Writing into memory does not fail.
        let _ = encoder.write_all(part.text.as_bytes());
    }
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_equal_parts() {
        let (a, b) = (Part::new("same".into()), Part::new("same".into()));
        assert!(a == b && a != Part::new("other".into()));
    }
}
