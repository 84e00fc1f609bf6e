//! A place in a type, as field management sees it.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::fields::{FieldSet, PathElement};
use crate::go;
use crate::schema::{Field, ListKind, Scalar, Shape, Type};

/// A place in a type.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// A type that the schema names; `preserve` when unknown fields are kept here and below.
    Known { ty: Type<'a>, preserve: bool },
    /// Whatever is there: objects are granular, lists are atomic.
    Deduced,
    /// Whatever is there, as a whole.
    Whole,
}

/// What a place holds.
#[derive(Clone, Copy)]
pub(crate) enum Atom<'a> {
    Scalar(Kind),
    List(List<'a>),
    Map(Object<'a>),
}

/// Scalars as field management tells them apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Numeric,
    String,
    Boolean,
    Untyped,
}

#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    pub(crate) items: Place<'a>,
    kind: &'a ListKind,
}

#[derive(Clone, Copy)]
pub(crate) struct Object<'a> {
    place: Place<'a>,
    pub(crate) atomic: bool,
}

impl<'a> Place<'a> {
    pub(crate) fn of(ty: Type<'a>) -> Self {
        Self::below(ty, false)
    }

    fn below(ty: Type<'a>, preserve: bool) -> Self {
        match ty.shape() {
            Shape::Any if ty.node().atomic => Self::Whole,
            Shape::Any => Self::Deduced,
            _ => Self::Known { ty, preserve: preserve || ty.preserves() },
        }
    }

    /// What the place holds, given a value that is there.
    pub(crate) fn atom(self, value: &Value) -> Atom<'a> {
        match self {
            Self::Known { ty, preserve } => match ty.shape() {
                Shape::Scalar(scalar, _) => Atom::Scalar(kind(*scalar, ty)),
                Shape::List { items, kind } => {
                    Atom::List(List { items: Self::below(ty.to(*items), preserve), kind })
                }
                _ => Atom::Map(Object { place: self, atomic: ty.node().atomic }),
            },
            Self::Deduced | Self::Whole => match value {
                Value::Object(_) | Value::Null => {
                    Atom::Map(Object { place: self, atomic: matches!(self, Self::Whole) })
                }
                Value::Array(_) => Atom::List(List { items: Self::Whole, kind: &ListKind::Atomic }),
                _ => Atom::Scalar(Kind::Untyped),
            },
        }
    }

    /// What the place holds, given up to two values that are there; `null` takes the other's form.
    pub(crate) fn atom_of(self, left: Option<&Value>, right: Option<&Value>) -> Atom<'a> {
        let real = [right, left].into_iter().flatten().find(|value| !value.is_null());
        self.atom(real.unwrap_or(&Value::Null))
    }

    /// Whether two values in a place without a type have different forms.
    pub(crate) fn forms_differ(self, left: Option<&Value>, right: Option<&Value>) -> bool {
        fn form(value: &Value) -> u8 {
            match value {
                Value::Object(_) => 1,
                Value::Array(_) => 2,
                _ => 3,
            }
        }
        match (self, left, right) {
            (Self::Known { .. }, _, _) => false,
            (_, Some(left), Some(right)) => !left.is_null() && !right.is_null() && form(left) != form(right),
            _ => false,
        }
    }

    /// Where the path element leads, for sets of fields without values.
    pub(crate) fn child(self, element: &PathElement) -> Option<Place<'a>> {
        match (self.atom(&Value::Null), element) {
            (Atom::Map(object), PathElement::Field(name)) => object.member(name),
            (Atom::List(list), PathElement::Key(_) | PathElement::Value(_)) => Some(list.items),
            _ => None,
        }
    }

    /// The set with all named fields on the way to its members.
    pub(crate) fn with_named_fields(self, set: &FieldSet) -> FieldSet {
        let mut out = FieldSet::new();
        for entry in set.entries() {
            let named = match &entry.element {
                PathElement::Field(name) if !entry.children.is_empty() => self.names(name),
                _ => false,
            };
            let children = match self.child(&entry.element) {
                Some(place) => place.with_named_fields(&entry.children),
                None => entry.children.clone(),
            };
            out.push(entry.element.clone(), entry.member || named, children);
        }
        out
    }

    /// The set as it must be where lists and objects have become atomic since it was written.
    pub(crate) fn reconciled(self, set: &FieldSet) -> FieldSet {
        let mut out = FieldSet::new();
        for entry in set.entries() {
            let place = self.child(&entry.element);
            let atomic = place.is_some_and(|place| match place.atom(&Value::Null) {
                Atom::List(list) => list.is_atomic(),
                Atom::Map(object) => object.atomic,
                Atom::Scalar(_) => false,
            });
            let (member, children) = match place {
                _ if entry.children.is_empty() => (entry.member, FieldSet::new()),
                Some(_) if atomic => (true, FieldSet::new()),
                Some(place) => (entry.member, place.reconciled(&entry.children)),
                None => (entry.member, entry.children.clone()),
            };
            out.push(entry.element.clone(), member, children);
        }
        out
    }

    fn names(self, name: &str) -> bool {
        match self {
            Self::Known { ty, .. } => ty.field(name).is_some(),
            _ => false,
        }
    }
}

impl<'a> Object<'a> {
    /// The field of that name, where the type names it.
    pub(crate) fn named(self, name: &str) -> Option<&'a Field> {
        match self.place {
            Place::Known { ty, .. } => ty.field(name),
            _ => None,
        }
    }

    /// The place of the value under a key; none where the type does not allow the key.
    pub(crate) fn member(self, name: &str) -> Option<Place<'a>> {
        match self.place {
            Place::Known { ty, preserve } => match ty.member(name) {
                Some(member) => Some(Place::below(member, preserve)),
                // An object type without any field is free-form.
                None if preserve || ty.structure().is_none_or(|structure| structure.fields.is_empty()) => {
                    Some(Place::Deduced)
                }
                None => None,
            },
            same => Some(same),
        }
    }

    /// As [`Object::member`], where fields that the type does not know do no harm.
    pub(crate) fn any_member(self, name: &str) -> Place<'a> {
        self.member(name).unwrap_or(Place::Deduced)
    }
}

impl List<'_> {
    pub(crate) fn is_atomic(&self) -> bool {
        *self.kind == ListKind::Atomic
    }

    /// The path element of a list's element, or why it has none.
    pub(crate) fn element(&self, item: &Value) -> Result<PathElement, String> {
        match self.kind {
            ListKind::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            ListKind::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".to_owned())
                }
                scalar => Ok(PathElement::Value(Box::new(scalar.clone()))),
            },
            ListKind::Map(keys) => match item {
                Value::Null => Err("associative list with keys may not have a null element".to_owned()),
                Value::Object(fields) => self.key(keys, fields),
                _ => Err("associative list with keys may not have non-map elements".to_owned()),
            },
        }
    }

    fn key(&self, keys: &[Box<str>], fields: &Map<String, Value>) -> Result<PathElement, String> {
        let mut parts: Vec<(Box<str>, Value)> = Vec::with_capacity(keys.len());
        for key in keys {
            if let Some(value) = fields.get(&**key).or_else(|| self.default(key)) {
                parts.push((key.clone(), value.clone()));
            }
        }
        if parts.is_empty() {
            let keys: Vec<_> = keys.iter().map(|key| go::quote(key)).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
                 values for any key fields)",
                keys.join(" ")
            ));
        }
        parts.sort_by(|(left, _), (right, _)| left.cmp(right));
        Ok(PathElement::Key(parts.into()))
    }

    /// The default of a key, where the schema has one.
    fn default(&self, key: &str) -> Option<&Value> {
        let Place::Known { ty, .. } = self.items else {
            return None;
        };
        let field = ty.field(key)?;
        // The schemas of built-in kinds give an empty default to texts that must be there.
        if field.required
            && ty.custom().is_none()
            && matches!(ty.to(field.node).shape(), Shape::Scalar(Scalar::String, _))
        {
            return Some(field.default.as_ref().unwrap_or(&EMPTY));
        }
        let custom = || ty.to(field.node).custom().and_then(|custom| custom.default.as_ref());
        field.default.as_ref().or_else(custom).filter(|default| !default.is_null())
    }
}

static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::String(String::new()));

fn kind(scalar: Scalar, ty: Type<'_>) -> Kind {
    let format = || ty.custom().and_then(|custom| custom.rules.get("format")?.as_str()).unwrap_or_default();
    match scalar {
        Scalar::Bool => Kind::Boolean,
        Scalar::Int32 | Scalar::Int64 | Scalar::Float => Kind::Numeric,
        // Strings of a format are anything, but bytes are strings.
        Scalar::String if !matches!(format(), "" | "byte") => Kind::Untyped,
        Scalar::String | Scalar::Bytes | Scalar::Duration => Kind::String,
        Scalar::Time | Scalar::MicroTime | Scalar::Quantity | Scalar::IntOrString => Kind::Untyped,
    }
}
