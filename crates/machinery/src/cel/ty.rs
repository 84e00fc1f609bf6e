//! The types of expressions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The type of an expression or a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Anything; found out when it is evaluated.
    Dyn,
    /// What an expression with an error has.
    Error,
    /// `null`.
    Null,
    /// `true` and `false`.
    Bool,
    /// Whole numbers with a sign.
    Int,
    /// Whole numbers without.
    Uint,
    /// Numbers with a fraction.
    Double,
    /// Text.
    String,
    /// Bytes.
    Bytes,
    /// A span of time.
    Duration,
    /// A moment.
    Timestamp,
    /// A list.
    List(Box<Type>),
    /// A map from keys to values.
    Map(Box<(Type, Type)>),
    /// A value that may be absent.
    Optional(Box<Type>),
    /// An object with named fields.
    Object(Arc<ObjectType>),
    /// A type of a library, with functions and no fields.
    Named(&'static str),
    /// The type of types.
    Type(Option<Box<Type>>),
    /// A type that is still to be found.
    Param(u32),
}

/// An object type.
#[derive(Clone, Debug, Default)]
pub struct ObjectType {
    /// Its name, which tells it from others.
    pub name: Box<str>,
    /// Its fields, by the names that expressions use.
    pub fields: BTreeMap<Box<str>, Type>,
    /// Whether it has fields of any other name, of whatever type.
    pub open: bool,
}

impl ObjectType {
    /// The type of a field. A closed type has none that it does not name.
    pub(super) fn field(&self, name: &str) -> Option<Type> {
        let found = self.fields.get(name).or_else(|| self.fields.get(&*reserved(name)?));
        found.cloned().or_else(|| self.open.then_some(Type::Dyn))
    }
}

/// The name of a field that is a word of the language, as expressions escape it.
pub(super) fn reserved(name: &str) -> Option<String> {
    const WORDS: [&str; 21] = [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "namespace",
        "null",
        "package",
        "return",
        "true",
        "var",
        "void",
        "while",
    ];
    WORDS.contains(&name).then(|| format!("__{name}__"))
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// `net.IP`.
pub(super) const IP: Type = Type::Named("net.IP");
/// `net.CIDR`.
pub(super) const CIDR: Type = Type::Named("net.CIDR");
/// What asks whether somebody may do something.
pub const AUTHORIZER: Type = Type::Named("kubernetes.authorization.Authorizer");
/// A question about a resource.
pub const RESOURCE_CHECK: Type = Type::Named("kubernetes.authorization.ResourceCheck");

/// The names that signatures use for types of libraries.
const NAMED: [(&str, &str); 11] = [
    ("ip", "net.IP"),
    ("cidr", "net.CIDR"),
    ("url", "kubernetes.URL"),
    ("quantity", "kubernetes.Quantity"),
    ("semver", "kubernetes.Semver"),
    ("format", "kubernetes.NamedFormat"),
    ("authorizer", "kubernetes.authorization.Authorizer"),
    ("pathcheck", "kubernetes.authorization.PathCheck"),
    ("groupcheck", "kubernetes.authorization.GroupCheck"),
    ("resourcecheck", "kubernetes.authorization.ResourceCheck"),
    ("decision", "kubernetes.authorization.Decision"),
];

impl Type {
    /// A list of a type.
    #[must_use]
    pub fn list(of: Type) -> Self {
        Self::List(Box::new(of))
    }

    /// A map from one type to another.
    #[must_use]
    pub fn map(keys: Type, values: Type) -> Self {
        Self::Map(Box::new((keys, values)))
    }

    /// A type that may be absent.
    #[must_use]
    pub fn optional(of: Type) -> Self {
        Self::Optional(Box::new(of))
    }

    /// An object type of these fields.
    #[must_use]
    pub fn object(name: &str, fields: impl IntoIterator<Item = (&'static str, Type)>) -> Self {
        let fields = fields.into_iter().map(|(name, ty)| (name.into(), ty)).collect();
        Self::Object(Arc::new(ObjectType { name: name.into(), fields, open: false }))
    }

    pub(super) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// Whether `null` may stand for a value.
    pub(super) fn is_nullable(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Optional(_)
                | Self::Named(_)
                | Self::Object(_)
                | Self::Duration
                | Self::Timestamp
        )
    }

    /// A type as signatures write it; capital letters are parameters.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (name, inner) = match text.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')')?),
            None => (text, ""),
        };
        Some(match name {
            "dyn" => Self::Dyn,
            "null" => Self::Null,
            "bool" => Self::Bool,
            "int" => Self::Int,
            "uint" => Self::Uint,
            "double" => Self::Double,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "duration" => Self::Duration,
            "timestamp" => Self::Timestamp,
            "list" => Self::list(Self::parse(inner)?),
            "optional" => Self::optional(Self::parse(inner)?),
            "type" => Self::Type(Some(Box::new(Self::parse(inner)?))),
            "map" => {
                let (keys, values) = inner.split_once(',')?;
                Self::map(Self::parse(keys)?, Self::parse(values)?)
            }
            "A" => Self::Param(0),
            "B" => Self::Param(1),
            other => Self::Named(NAMED.iter().find(|(short, _)| *short == other)?.1),
        })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => out.write_str("dyn"),
            Self::Error => out.write_str("!error!"),
            Self::Null => out.write_str("null"),
            Self::Bool => out.write_str("bool"),
            Self::Int => out.write_str("int"),
            Self::Uint => out.write_str("uint"),
            Self::Double => out.write_str("double"),
            Self::String => out.write_str("string"),
            Self::Bytes => out.write_str("bytes"),
            Self::Duration => out.write_str("duration"),
            Self::Timestamp => out.write_str("timestamp"),
            Self::List(of) => write!(out, "list({of})"),
            Self::Map(of) => write!(out, "map({}, {})", of.0, of.1),
            Self::Optional(of) => write!(out, "optional_type({of})"),
            Self::Object(object) => out.write_str(&object.name),
            Self::Named(name) => out.write_str(name),
            Self::Type(None) => out.write_str("type"),
            Self::Type(Some(of)) => write!(out, "type({of})"),
            Self::Param(id) => write!(out, "_var{id}"),
        }
    }
}
