//! The values of expressions.
//!
//! Lists and maps of objects stay the JSON they are and are read where an expression looks; a [`Declared`] type
//! tells what their strings and numbers mean.

mod collection;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value as Json;

pub(super) use collection::{Key, List, Map};

use super::authorizer::Authorizer;
use super::change::Made;
use super::declared::Declared;
use super::functions::{semver::Semver, time, url::Url};
use super::ty::Type;
use crate::quantity::Quantity;

/// A value.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number with a sign.
    Int(i64),
    /// A whole number without.
    Uint(u64),
    /// A number.
    Double(f64),
    /// Text.
    String(Text<'a>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A span of time, in nanoseconds.
    Duration(i64),
    /// A moment.
    Timestamp(Timestamp),
    /// A list.
    List(List<'a>),
    /// A map or an object.
    Map(Map<'a>),
    /// A value that may be absent.
    Optional(Option<Arc<Value<'a>>>),
    /// The name of a type.
    Type(Arc<str>),
    /// A quantity.
    Quantity(Arc<Quantity>),
    /// An address.
    Ip(IpAddr),
    /// A range of addresses.
    Cidr(IpAddr, u8),
    /// A URL.
    Url(Arc<Url>),
    /// A semantic version.
    Semver(Arc<Semver>),
    /// A named format.
    Format(&'static str),
    /// A question about what somebody may do.
    Authorizer(Arc<Authorizer<'a>>),
    /// An object that an expression made, to change another.
    Made(Made<'a>),
}

/// Text that is the data's or an expression's own.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// Of the data.
    Borrowed(&'a str),
    /// Of an expression.
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl<'a> Value<'a> {
    /// JSON of a type, or of any.
    #[must_use]
    pub fn json(json: &'a Json, declared: Option<&'a Declared>) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => {
                let double = declared.is_some_and(|declared| declared.ty == Type::Double);
                match (number.as_i64(), number.as_u64()) {
                    (Some(value), _) if double => Self::Double(value as f64),
                    (Some(value), _) => Self::Int(value),
                    (None, Some(value)) if !double => Self::Uint(value),
                    _ => Self::Double(number.as_f64().unwrap_or_default()),
                }
            }
            Json::String(text) => Self::text_as(text, declared.map_or(&Type::Dyn, |declared| &declared.ty)),
            Json::Array(items) => Self::List(List::Json { items, declared }),
            Json::Object(fields) => Self::Map(Map::Json { fields, declared }),
        }
    }

    fn text_as(text: &'a str, ty: &Type) -> Self {
        let parsed = match ty {
            Type::Timestamp => time::parse_datetime(text).map(Self::Timestamp),
            Type::Duration => time::parse_duration(text).map(Self::Duration),
            Type::Bytes => STANDARD.decode(text).ok().map(|bytes| Self::Bytes(bytes.into())),
            _ => None,
        };
        parsed.unwrap_or(Self::String(Text::Borrowed(text)))
    }

    /// Text of an expression's own.
    #[must_use]
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    /// A list.
    #[must_use]
    pub fn list(items: Vec<Value<'a>>) -> Self {
        Self::List(List::Made(Arc::new(items)))
    }

    /// A present optional.
    #[must_use]
    pub fn present(value: Value<'a>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// Its text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is `true`, if it is a boolean.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The name of its type.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Ip(_) => "net.IP",
            Self::Cidr(..) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Authorizer(authorizer) => authorizer.type_name(),
            Self::Made(_) => "Object",
        }
    }

    /// What costs count as its size.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::String(text) => text.chars().count() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Optional(Some(value)) => value.size(),
            Self::Ip(IpAddr::V4(_)) => 4,
            Self::Ip(IpAddr::V6(_)) => 16,
            Self::Cidr(_, bits) => u64::from(bits.div_ceil(8)),
            _ => 1,
        }
    }

    /// Whether two values are the same; numbers also across their types.
    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(two)) => one == two,
            (Self::String(one), Self::String(two)) => **one == **two,
            (Self::Bytes(one), Self::Bytes(two)) => one == two,
            (Self::Duration(one), Self::Duration(two)) => one == two,
            (Self::Timestamp(one), Self::Timestamp(two)) => one == two,
            (Self::List(one), Self::List(two)) => one.equals(two),
            (Self::Map(one), Self::Map(two)) => one.equals(two),
            (Self::Optional(None), Self::Optional(None)) => true,
            (Self::Optional(Some(one)), Self::Optional(Some(two))) => one.equals(two),
            (Self::Type(one), Self::Type(two)) => one == two,
            (Self::Quantity(one), Self::Quantity(two)) => one == two,
            (Self::Ip(one), Self::Ip(two)) => one == two,
            (Self::Cidr(one, a), Self::Cidr(two, b)) => one == two && a == b,
            (Self::Url(one), Self::Url(two)) => one.text == two.text,
            (Self::Semver(one), Self::Semver(two)) => one.compare(two).is_eq(),
            (Self::Format(one), Self::Format(two)) => one == two,
            (Self::Authorizer(one), Self::Authorizer(two)) => Arc::ptr_eq(one, two),
            (Self::Made(one), Self::Made(two)) => one.equals(two),
            _ => self.compare_numbers(other) == Some(Ordering::Equal),
        }
    }

    /// The order of two values that have one.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(one), Self::Bool(two)) => Some(one.cmp(two)),
            (Self::String(one), Self::String(two)) => Some((**one).cmp(&**two)),
            (Self::Bytes(one), Self::Bytes(two)) => Some(one.cmp(two)),
            (Self::Duration(one), Self::Duration(two)) => Some(one.cmp(two)),
            (Self::Timestamp(one), Self::Timestamp(two)) => Some(one.cmp(two)),
            _ => self.compare_numbers(other),
        }
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Uint(_) | Self::Double(_))
    }

    fn compare_numbers(&self, other: &Self) -> Option<Ordering> {
        let mixed = |double: f64, whole: i128| {
            if double.is_nan() {
                return None;
            }
            let bound = 2f64.powi(100);
            if double >= bound {
                return Some(Ordering::Greater);
            }
            if double <= -bound {
                return Some(Ordering::Less);
            }
            let floor = double.floor();
            let order = (floor as i128).cmp(&whole);
            Some(if order.is_eq() && double > floor { Ordering::Greater } else { order })
        };
        let whole = |value: &Self| match value {
            Self::Int(value) => Some(i128::from(*value)),
            Self::Uint(value) => Some(i128::from(*value)),
            _ => None,
        };
        match (self, other) {
            (Self::Double(one), Self::Double(two)) => one.partial_cmp(two),
            (Self::Double(one), two) => mixed(*one, whole(two)?),
            (one, Self::Double(two)) => mixed(*two, whole(one)?).map(Ordering::reverse),
            (one, two) => Some(whole(one)?.cmp(&whole(two)?)),
        }
    }

    /// Whether it is what `optional.ofNonZeroValue` takes for nothing.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::Null | Self::Bool(false) | Self::Int(0) | Self::Uint(0) | Self::Duration(0) => true,
            Self::Double(value) => *value == 0.0,
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::List(list) => list.len() == 0,
            Self::Map(map) => map.len() == 0,
            Self::Optional(None) => true,
            Self::Made(made) => made.is_empty(),
            _ => false,
        }
    }

    /// As JSON, for callers that store results.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match self {
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(value) => (*value).into(),
            Self::Uint(value) => (*value).into(),
            Self::Double(value) => (*value).into(),
            Self::List(list) => list.iter().map(|item| item.to_json()).collect(),
            Self::Map(map) => {
                let entry =
                    |(key, value): (Value<'a>, Value<'a>)| Some((key.as_str()?.to_owned(), value.to_json()));
                Json::Object(map.entries().into_iter().filter_map(entry).collect())
            }
            Self::String(text) => Json::String(text.to_string()),
            Self::Timestamp(time) => Json::String(time::timestamp_text(*time)),
            Self::Duration(span) => Json::String(time::duration_text(*span)),
            Self::Bytes(bytes) => Json::String(STANDARD.encode(bytes)),
            Self::Made(made) => made.to_json(),
            _ => Json::Null,
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(Text::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl<'a> From<Cow<'a, str>> for Value<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        match text {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        }
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<usize> for Value<'_> {
    fn from(value: usize) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}
