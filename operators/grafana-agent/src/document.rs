//! A configuration as a tree, and the tree as YAML.
//!
//! The agent's pods substitute environment variables in the text, twice: the config reloader `$(NAME)`, the agent
//! `${NAME}`. Both look at the text, not at YAML, so a `$` that is to stay is written as `"\x24"`: only YAML reads
//! that. What comes out of a Secret is [`Document::Secret`] and always stays as it is; elsewhere only the variables
//! that the pods have are substituted, so that a stray `$(` cannot stop the reloader, nor `${1}` lose its group.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Number, Value};

use crate::text::{Part, Text};

/// The name of a field. Most are known beforehand, and there are thousands of each.
pub type Name = Cow<'static, str>;

/// A piece of a configuration. Keys are sorted.
#[derive(Clone, PartialEq)]
pub enum Document {
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(String),
    /// A text that nobody may see, and that stays as it is.
    Secret(String),
    /// A list.
    List(Vec<Document>),
    /// Named pieces.
    Map(BTreeMap<Name, Document>),
    /// Items of a list that were [written](Document::items) before.
    Written(Vec<Part>),
}

impl Document {
    /// From JSON, without what is null.
    #[must_use]
    pub fn from_json(value: Value) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(value) => Self::Number(value),
            Value::String(value) => Self::Text(value),
            Value::Array(values) => Self::List(values.into_iter().filter_map(Self::from_json).collect()),
            Value::Object(fields) => Self::Map(
                fields
                    .into_iter()
                    .filter_map(|(name, value)| Some((name.into(), Self::from_json(value)?)))
                    .collect(),
            ),
        })
    }

    /// As YAML, substituting these variables and no others.
    #[must_use]
    pub fn to_text(&self, variables: &Variables) -> Text {
        let mut writer = Writer { parts: Vec::new(), out: String::new(), variables };
        writer.block(self, 0);
        writer.flush();
        Text::new(writer.parts)
    }

    /// Items of a list as YAML, for a list that stands so far to the right.
    #[must_use]
    pub fn items(items: Vec<Self>, indent: usize, variables: &Variables) -> Part {
        let mut writer = Writer { parts: Vec::new(), out: String::new(), variables };
        if !items.is_empty() {
            writer.block(&Self::List(items), indent);
        }
        Part::new(writer.out)
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::List(list) => list.is_empty(),
            Self::Map(map) => map.is_empty(),
            Self::Written(parts) => parts.iter().all(|part| part.text().is_empty()),
            Self::Bool(_) | Self::Number(_) | Self::Secret(_) => false,
        }
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::Secret(_) => f.write_str("<secret>"),
            Self::Written(_) => f.write_str("<written>"),
            Self::List(list) => list.fmt(f),
            Self::Map(map) => map.fmt(f),
        }
    }
}

impl From<bool> for Document {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Document {
    fn from(value: i64) -> Self {
        Self::Number(value.into())
    }
}

impl From<&str> for Document {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Document {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Fields> for Document {
    fn from(fields: Fields) -> Self {
        Self::Map(fields.0)
    }
}

impl<T: Into<Document>> From<Vec<T>> for Document {
    fn from(values: Vec<T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

impl From<&BTreeMap<String, String>> for Document {
    fn from(values: &BTreeMap<String, String>) -> Self {
        Self::Map(values.iter().map(|(name, value)| (name.clone().into(), value.as_str().into())).collect())
    }
}

/// The fields of a [`Document::Map`] under construction.
#[derive(Clone, Debug, Default)]
pub struct Fields(BTreeMap<Name, Document>);

impl Fields {
    /// No field.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a field, also to something empty.
    #[must_use]
    pub fn with(mut self, name: impl Into<Name>, value: impl Into<Document>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// Sets a field if there is a value, also an empty one.
    #[must_use]
    pub fn maybe(self, name: &'static str, value: Option<impl Into<Document>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Sets a field if there is a value that is not empty.
    #[must_use]
    pub fn filled(self, name: &'static str, value: impl Into<Document>) -> Self {
        let value = value.into();
        if value.is_empty() { self } else { self.with(name, value) }
    }

    /// Sets a field to a text that is given and not empty.
    #[must_use]
    pub fn text(self, name: &'static str, value: &Option<String>) -> Self {
        self.filled(name, value.as_deref().unwrap_or_default())
    }

    /// Sets a field to a number that is given and not zero.
    #[must_use]
    pub fn number(self, name: &'static str, value: Option<i64>) -> Self {
        self.maybe(name, value.filter(|value| *value != 0))
    }

    /// Sets a field to `true` if the value is.
    #[must_use]
    pub fn flag(self, name: &'static str, value: Option<bool>) -> Self {
        self.maybe(name, value.filter(|value| *value))
    }

    /// Whether no field is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The environment variables that the text may name.
#[derive(Clone, Debug, Default)]
pub struct Variables(Vec<String>);

impl Variables {
    /// These variables.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Whether the `$` that `rest` follows begins the name of one of them.
    fn begin(&self, rest: &str) -> bool {
        let close = match rest.chars().next() {
            Some('(') => ')',
            Some('{') => '}',
            _ => return false,
        };
        let name = rest[1..].split(close).next().unwrap_or_default();
        self.0.iter().any(|variable| variable == name)
    }

    /// Whether a `$` before `rest` would be taken for a substitution that is not meant.
    fn mislead(&self, rest: &str) -> bool {
        rest.starts_with(['(', '{']) && !self.begin(rest)
    }
}

struct Writer<'a> {
    parts: Vec<Part>,
    out: String,
    variables: &'a Variables,
}

impl Writer<'_> {
    /// A piece on lines of its own.
    fn block(&mut self, document: &Document, indent: usize) {
        match document {
            Document::Map(fields) if !fields.is_empty() => {
                for (name, value) in fields {
                    self.pad(indent);
                    self.field(name, value, indent);
                }
            }
            Document::List(items) if !items.is_empty() => {
                for item in items {
                    self.pad(indent);
                    self.item(item, indent);
                }
            }
            scalar => {
                self.pad(indent);
                self.scalar(scalar);
                self.out.push('\n');
            }
        }
    }

    fn field(&mut self, name: &str, value: &Document, indent: usize) {
        self.text(name, false);
        self.out.push(':');
        match value {
            Document::Map(fields) if !fields.is_empty() => {
                self.out.push('\n');
                self.block(value, indent + 2);
            }
            // A list stands as far left as its name, as Go writes it.
            Document::List(items) if !items.is_empty() => {
                self.out.push('\n');
                self.block(value, indent);
            }
            Document::Written(parts) if !value.is_empty() => {
                self.out.push('\n');
                self.flush();
                self.parts.extend(parts.iter().filter(|part| !part.text().is_empty()).cloned());
            }
            scalar => {
                self.out.push(' ');
                self.scalar(scalar);
                self.out.push('\n');
            }
        }
    }

    fn item(&mut self, item: &Document, indent: usize) {
        self.out.push_str("- ");
        match item {
            Document::Map(fields) if !fields.is_empty() => {
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        self.pad(indent + 2);
                    }
                    self.field(name, value, indent + 2);
                }
            }
            Document::List(items) if !items.is_empty() => {
                for (index, inner) in items.iter().enumerate() {
                    if index > 0 {
                        self.pad(indent + 2);
                    }
                    self.item(inner, indent + 2);
                }
            }
            scalar => {
                self.scalar(scalar);
                self.out.push('\n');
            }
        }
    }

    fn scalar(&mut self, document: &Document) {
        match document {
            Document::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Document::Number(value) => self.out.push_str(&value.to_string()),
            Document::Text(text) => self.text(text, false),
            Document::Secret(text) => self.text(text, true),
            Document::List(_) | Document::Written(_) => self.out.push_str("[]"),
            Document::Map(_) => self.out.push_str("{}"),
        }
    }

    fn text(&mut self, text: &str, literal: bool) {
        let masked = |rest: &str| literal && !rest.is_empty() && rest.starts_with(['(', '{', '$']);
        let misleads = |(at, _): (usize, &str)| {
            let rest = &text[at + 1..];
            masked(rest) || self.variables.mislead(rest)
        };
        if is_plain(text) && !text.match_indices('$').any(misleads) {
            self.out.push_str(text);
            return;
        }
        self.out.push('"');
        for (at, letter) in text.char_indices() {
            match letter {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\t' => self.out.push_str("\\t"),
                '\r' => self.out.push_str("\\r"),
                '$' if literal || self.variables.mislead(&text[at + 1..]) => self.out.push_str("\\x24"),
                other if needs_escape(other) => {
                    let code = u32::from(other);
                    let escaped =
                        if code > 0xffff { format!("\\U{code:08x}") } else { format!("\\u{code:04x}") };
                    self.out.push_str(&escaped);
                }
                other => self.out.push(other),
            }
        }
        self.out.push('"');
    }

    fn flush(&mut self) {
        if !self.out.is_empty() {
            self.parts.push(Part::new(std::mem::take(&mut self.out)));
        }
    }

    fn pad(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }
}

fn needs_escape(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Whether a text needs no quotes: it begins with a letter, `/`, `_` or `$`, holds nothing that YAML sees a meaning
/// in, and is no word that YAML 1.1 takes for something else than a text.
fn is_plain(text: &str) -> bool {
    let first = |letter: char| letter.is_ascii_alphabetic() || matches!(letter, '/' | '_' | '$' | '(');
    let inner = |letter: char| letter.is_ascii_graphic() && !matches!(letter, '#' | '"' | '\'' | '`' | '\\');
    let last = |letter: char| letter != ':';
    text.starts_with(first)
        && text.ends_with(last)
        && text.chars().all(inner)
        && !text.contains(": ")
        && !is_word(text)
}

fn is_word(text: &str) -> bool {
    const WORDS: &[&str] = &["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"];
    WORDS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml(document: impl Into<Document>) -> String {
        document.into().to_text(&Variables::new(["SHARD".to_owned()])).to_string()
    }

    fn read(text: &str) -> Value {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn it_reads_back_as_what_it_was() {
        let odd = serde_json::json!({
            "texts": ["", " ", "yes", "No", "1", "1e3", "0x1f", "~", "null", "a: b", "a #b", "- x", "[", "{x", "*a",
                "&a", "!t", "%d", "@x", "`x", "'", "\"", "\\", "line\nbreak\n", "tab\t", "ü", "😀", "\u{7}", "x:",
                ":x", "$1", "$1://$2$3", "${1}", "a$(b)c$", "2020-01-01", "1:20", "=", "<<", "?", "? x", "|", ">",
                "key: |", "\u{2028}", "---", "...", "(.+)", "a,b", "a]", "a}"],
            "empty": {}, "none": [], "nested": [[1, 2], [{"a": [{"b": {}}]}]], "number": 1.5, "yes": true,
            "on": {"1": 2, "": 3, "a b": {"c": null}},
        });
        let document = Document::from_json(odd).unwrap();
        let text = document.to_text(&Variables::default()).to_string();
        assert_eq!(Document::from_json(read(&text)).unwrap(), document, "{text}");
    }

    #[test]
    fn what_was_written_before_fits_in() {
        let items = serde_json::json!([{"a": [{"b": "$(X)"}], "c": 1}, "x", [1, 2]]);
        let Some(Document::List(items)) = Document::from_json(items) else { panic!() };
        let variables = Variables::default();
        let whole = |list: Document| {
            let inner = Fields::new().with("list", list).with("name", "n");
            let document: Document = Fields::new().with("outer", vec![inner]).into();
            document.to_text(&variables).to_string()
        };
        let (first, rest) = items.split_at(1);
        let parts = [first, &[], rest].map(|items| Document::items(items.to_vec(), 2, &variables));
        assert_eq!(whole(Document::Written(parts.into())), whole(Document::List(items)));
        assert_eq!(
            whole(Document::Written(vec![Part::new(String::new())])),
            whole(Document::List(Vec::new()))
        );
    }

    #[test]
    fn only_variables_of_the_pod_are_substituted() {
        assert_eq!(yaml("$(SHARD)"), "$(SHARD)\n");
        assert_eq!(yaml("$1:${1}"), "\"$1:\\x24{1}\"\n");
        assert_eq!(yaml("$(OTHER)"), "\"\\x24(OTHER)\"\n");
    }

    #[test]
    fn a_secret_is_never_substituted_nor_shown() {
        let secret = Document::Secret("$(SHARD)${X}$$".into());
        let text = yaml(secret.clone());
        assert_eq!(text, "\"\\x24(SHARD)\\x24{X}\\x24\\x24\"\n");
        assert_eq!(read(&text), "$(SHARD)${X}$$");
        assert_eq!(format!("{secret:?}"), "<secret>");
    }
}
