//! What is wrong with one field of an object, in the words of the API.
//!
//! [`FieldError`] is one cause of a `Status` with reason `Invalid`; [`Path`] names the field. Which rules
//! there are is decided elsewhere.

use std::fmt;

use serde_json::{Value, json};

use crate::go::{self, quote};

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The kind of problem.
    pub kind: Kind,
    /// The field's path (`spec.containers[0].name`).
    pub field: String,
    /// The value that was found, as the message shows it.
    pub value: Option<String>,
    /// What should have been, if anything can be said.
    pub detail: String,
}

/// A value as messages show it: strings quoted, numbers bare, all else as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown(String);

/// Kinds of problems, as `Status` causes tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// What the value refers to is not there.
    NotFound,
    /// There is no value.
    Required,
    /// The value is there a second time.
    Duplicate,
    /// The value breaks a rule.
    Invalid,
    /// The value is none of those allowed.
    NotSupported,
    /// The value is not allowed here.
    Forbidden,
    /// The value has too many bytes or characters.
    TooLong,
    /// The value has too few characters.
    TooShort,
    /// The list or map has too many elements.
    TooMany,
    /// The list or map has too few elements.
    TooFew,
    /// The value is of another type.
    TypeInvalid,
    /// The server itself failed.
    Internal,
}

impl FieldError {
    /// `Invalid value: …: detail`.
    pub fn invalid(field: impl ToString, value: impl Into<Shown>, detail: impl Into<String>) -> Self {
        Self::with(Kind::Invalid, field, Some(value.into().0), detail)
    }

    /// As [`FieldError::invalid`], for a value of the wrong type.
    pub fn type_invalid(field: impl ToString, value: impl Into<Shown>, detail: impl Into<String>) -> Self {
        Self::with(Kind::TypeInvalid, field, Some(value.into().0), detail)
    }

    /// `Required value: detail`; an empty detail is left out.
    pub fn required(field: impl ToString, detail: impl Into<String>) -> Self {
        Self::with(Kind::Required, field, None, detail)
    }

    /// `Duplicate value: …`.
    pub fn duplicate(field: impl ToString, value: impl Into<Shown>) -> Self {
        Self::with(Kind::Duplicate, field, Some(value.into().0), "")
    }

    /// `Not found: …`.
    pub fn not_found(field: impl ToString, value: impl Into<Shown>) -> Self {
        Self::with(Kind::NotFound, field, Some(value.into().0), "")
    }

    /// `Forbidden: detail`.
    pub fn forbidden(field: impl ToString, detail: impl Into<String>) -> Self {
        Self::with(Kind::Forbidden, field, None, detail)
    }

    /// `Unsupported value: …: supported values: "a", "b"`.
    pub fn not_supported<S: AsRef<str>>(
        field: impl ToString,
        value: impl Into<Shown>,
        supported: impl IntoIterator<Item = S>,
    ) -> Self {
        let supported: Vec<String> = supported.into_iter().map(|one| quote(one.as_ref())).collect();
        let detail = match supported.as_slice() {
            [] => String::new(),
            some => format!("supported values: {}", some.join(", ")),
        };
        Self::with(Kind::NotSupported, field, Some(value.into().0), detail)
    }

    /// `Too long: may not be more than 5 bytes`.
    pub fn too_long(field: impl ToString, most: usize) -> Self {
        let detail = format!("may not be more than {most} {}", plural(most, "byte"));
        Self::with(Kind::TooLong, field, None, detail)
    }

    /// `Too long: may not be more than 5 characters`.
    pub fn too_long_characters(field: impl ToString, most: usize) -> Self {
        let detail = format!("may not be more than {most} {}", plural(most, "character"));
        Self::with(Kind::TooLong, field, None, detail)
    }

    /// `Too short: must be at least 2 characters`.
    pub fn too_short(field: impl ToString, least: usize) -> Self {
        let detail = format!("must be at least {least} {}", plural(least, "character"));
        Self::with(Kind::TooShort, field, None, detail)
    }

    /// `Too many: 3: must have at most 2 items`.
    pub fn too_many(field: impl ToString, found: usize, most: usize) -> Self {
        let detail = format!("must have at most {most} {}", plural(most, "item"));
        Self::with(Kind::TooMany, field, Some(found.to_string()), detail)
    }

    /// `Internal error: detail`.
    pub fn internal(field: impl ToString, detail: impl Into<String>) -> Self {
        Self::with(Kind::Internal, field, None, detail)
    }

    /// The machine-readable reason of the cause (`FieldValueInvalid`).
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.kind.reason()
    }

    /// The message of the cause: all but the field.
    #[must_use]
    pub fn message(&self) -> String {
        let mut out = self.kind.to_string();
        if let (Some(value), true) = (&self.value, self.kind.shows_value()) {
            out.push_str(": ");
            out.push_str(value);
        }
        if !self.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }

    /// The cause as it stands in `Status.details.causes`.
    #[must_use]
    pub fn cause(&self) -> Value {
        json!({"reason": self.reason(), "message": self.message(), "field": self.field})
    }

    fn with(kind: Kind, field: impl ToString, value: Option<String>, detail: impl Into<String>) -> Self {
        Self { kind, field: field.to_string(), value, detail: detail.into() }
    }
}

/// `field: message`.
impl fmt::Display for FieldError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.field, self.message())
    }
}

impl std::error::Error for FieldError {}

/// All errors as the message of a `Status` puts them: one bare, several in brackets, each once.
#[must_use]
pub fn summary(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::with_capacity(errors.len());
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}

impl Kind {
    /// The machine-readable reason of a cause.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    fn shows_value(self) -> bool {
        !matches!(self, Self::Required | Self::Forbidden | Self::TooLong | Self::TooShort | Self::Internal)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        })
    }
}

impl Shown {
    /// Text that is already in its final form.
    pub fn raw(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<&Value> for Shown {
    fn from(value: &Value) -> Self {
        Self(match value {
            Value::String(text) => quote(text),
            Value::Number(_) => go::value(value),
            other => go::json(other),
        })
    }
}

impl From<Value> for Shown {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl From<&str> for Shown {
    fn from(text: &str) -> Self {
        Self(quote(text))
    }
}

impl From<&String> for Shown {
    fn from(text: &String) -> Self {
        Self(quote(text))
    }
}

impl From<String> for Shown {
    fn from(text: String) -> Self {
        Self(quote(&text))
    }
}

impl From<i32> for Shown {
    fn from(number: i32) -> Self {
        Self(number.to_string())
    }
}

impl From<i64> for Shown {
    fn from(number: i64) -> Self {
        Self(number.to_string())
    }
}

impl From<f64> for Shown {
    fn from(number: f64) -> Self {
        Self(go::value(&json!(number)))
    }
}

impl From<bool> for Shown {
    fn from(value: bool) -> Self {
        Self(value.to_string())
    }
}

/// The path of a field. [`Path::default`] is the root, which the API writes as `<nil>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(String);

impl Path {
    /// A path of one field, or one already written out (`spec.template`).
    pub fn new(field: impl Into<String>) -> Self {
        Self(field.into())
    }

    /// A field below this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self([&self.0, ".", name].concat()) }
    }

    /// An element of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// An entry of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// Whether this is the root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path as text, the root as nothing.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

impl From<&str> for Path {
    fn from(field: &str) -> Self {
        Self::new(field)
    }
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_the_apis() {
        let error = FieldError::invalid("spec.size", 30, "too big");
        assert_eq!(error.to_string(), "spec.size: Invalid value: 30: too big");
        assert_eq!(error.reason(), "FieldValueInvalid");
        let error = FieldError::not_supported("spec.color", "blue", ["red", "green"]);
        assert_eq!(error.message(), "Unsupported value: \"blue\": supported values: \"red\", \"green\"");
        assert_eq!(FieldError::required("a", "").message(), "Required value");
        assert_eq!(FieldError::too_many("a", 3, 2).message(), "Too many: 3: must have at most 2 items");
        assert_eq!(FieldError::too_long("a", 1).message(), "Too long: may not be more than 1 byte");
        assert_eq!(
            FieldError::duplicate("a", json!({"k": "<"})).message(),
            "Duplicate value: {\"k\":\"\\u003c\"}"
        );
    }

    #[test]
    fn several_are_in_brackets_and_each_is_told_once() {
        let one = FieldError::required("a", "");
        assert_eq!(summary(std::slice::from_ref(&one)), "a: Required value");
        let two = FieldError::required("b", "");
        assert_eq!(summary(&[one.clone(), two, one]), "[a: Required value, b: Required value]");
    }

    #[test]
    fn paths_name_fields_elements_and_entries() {
        let path = Path::new("spec").child("containers").index(0).child("name");
        assert_eq!(path.to_string(), "spec.containers[0].name");
        assert_eq!(Path::new("properties").key("a").to_string(), "properties[a]");
        assert_eq!(Path::default().to_string(), "<nil>");
    }
}
