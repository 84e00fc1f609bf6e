//! Types together with what is known of the sizes of their values.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ty::Type;

/// The largest request that a server takes: nothing in it is larger.
pub const MAX_REQUEST: i64 = 3 * 1024 * 1024;

/// A type, and what is known of its values.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The type.
    pub ty: Type,
    /// How many characters, elements or entries a value has at most.
    pub max_elements: i64,
    /// How many bytes of JSON a value has at least.
    pub min_size: i64,
    /// The elements of a list, the values of a map.
    pub element: Option<Arc<Declared>>,
    /// The fields of an object, by the names that expressions use.
    pub fields: BTreeMap<Box<str>, DeclaredField>,
    /// How the elements of a list are told apart.
    pub elements: Elements,
}

/// A field of an object.
#[derive(Clone, Debug)]
pub struct DeclaredField {
    /// Its name in JSON.
    pub name: Box<str>,
    /// Its type.
    pub declared: Arc<Declared>,
}

/// How the elements of a list are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Elements {
    /// By their place.
    #[default]
    Ordered,
    /// By their value.
    Set,
    /// By these fields.
    Keyed(Vec<Box<str>>),
}

impl Declared {
    /// A type whose values have no parts.
    #[must_use]
    pub fn simple(ty: Type, min_size: i64, max_elements: i64) -> Self {
        Self {
            ty,
            max_elements,
            min_size,
            element: None,
            fields: BTreeMap::new(),
            elements: Elements::Ordered,
        }
    }
}

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// How expressions write the name of a field, if they can.
#[must_use]
pub fn escape(name: &str) -> Option<String> {
    if name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(next) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("__") {
            out.push_str("__underscores__");
            rest = after;
            continue;
        }
        match next {
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            other if other.is_ascii_alphanumeric() || other == '_' => out.push(other),
            _ => return None,
        }
        rest = &rest[next.len_utf8()..];
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        let cases = [
            ("plain", Some("plain")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("namespace", Some("__namespace__")),
            ("1a", None),
            ("a$", None),
            ("", None),
        ];
        for (name, wanted) in cases {
            assert_eq!(escape(name).as_deref(), wanted, "{name}");
        }
    }
}
