//! Lists and maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::super::declared::{Declared, Elements};
use super::super::ty::{Type, reserved};
use super::Value;

/// A list.
#[derive(Clone, Debug)]
pub enum List<'a> {
    /// One that an expression made.
    Made(Arc<Vec<Value<'a>>>),
    /// One of the data.
    Json {
        /// Its elements.
        items: &'a [Json],
        /// Its type.
        declared: Option<&'a Declared>,
    },
}

/// A map or an object.
#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// One that an expression made.
    Made(Arc<BTreeMap<Key, (Value<'a>, Value<'a>)>>),
    /// One of the data.
    Json {
        /// Its fields.
        fields: &'a serde_json::Map<String, Json>,
        /// Its type.
        declared: Option<&'a Declared>,
    },
}

/// The key of a map, such that equal numbers of different types are one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Number(i128),
    /// Text.
    String(Arc<str>),
}

impl Key {
    /// The key that a value is, if it can be one.
    pub(in super::super) fn of(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Number(i128::from(*value)),
            Value::Uint(value) => Self::Number(i128::from(*value)),
            Value::Double(value) if value.fract() == 0.0 && value.abs() < 1e30 => {
                Self::Number(*value as i128)
            }
            Value::String(text) => Self::String((**text).into()),
            _ => return None,
        })
    }
}

impl<'a> List<'a> {
    pub(in super::super) fn len(&self) -> usize {
        match self {
            Self::Made(items) => items.len(),
            Self::Json { items, .. } => items.len(),
        }
    }

    pub(in super::super) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Made(items) => items.get(index).cloned(),
            Self::Json { items, declared } => {
                items.get(index).map(|item| Value::json(item, element(*declared)))
            }
        }
    }

    /// Its elements.
    pub fn items(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        self.iter()
    }

    pub(in super::super) fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    fn elements(&self) -> &Elements {
        match self {
            Self::Json { declared: Some(declared), .. } => &declared.elements,
            _ => &Elements::Ordered,
        }
    }

    /// Whether two lists are the same; sets and lists with keys in whatever order.
    pub(super) fn equals(&self, other: &Self) -> bool {
        if self.len() != other.len() {
            return false;
        }
        match self.elements() {
            Elements::Ordered => self.iter().zip(other.iter()).all(|(one, two)| one.equals(&two)),
            Elements::Set => self.iter().all(|one| other.iter().any(|two| one.equals(&two))),
            Elements::Keyed(keys) => {
                self.iter().all(|one| other.iter().any(|two| same(keys, &one, &two) && one.equals(&two)))
            }
        }
    }

    /// Two lists in one; what a set or a list with keys has already is not there twice.
    pub(in super::super) fn concat(&self, other: &Self) -> Vec<Value<'a>> {
        let mut out: Vec<Value<'a>> = Vec::with_capacity(self.len() + other.len());
        out.extend(self.iter());
        for item in other.iter() {
            let place = match self.elements() {
                Elements::Ordered => None,
                Elements::Set => out.iter().position(|known| known.equals(&item)),
                Elements::Keyed(keys) => out.iter().position(|known| same(keys, known, &item)),
            };
            match place {
                Some(place) => out[place] = item,
                None => out.push(item),
            }
        }
        out
    }
}

fn same(keys: &[Box<str>], one: &Value<'_>, two: &Value<'_>) -> bool {
    let (Value::Map(one), Value::Map(two)) = (one, two) else {
        return false;
    };
    keys.iter().all(|key| match (one.field(key), two.field(key)) {
        (Some(one), Some(two)) => one.equals(&two),
        (None, None) => true,
        _ => false,
    })
}

fn element(declared: Option<&Declared>) -> Option<&Declared> {
    declared.and_then(|declared| declared.element.as_deref())
}

impl<'a> Map<'a> {
    pub(in super::super) fn len(&self) -> usize {
        match self {
            Self::Made(entries) => entries.len(),
            Self::Json { fields, declared } => match declared {
                Some(declared) if matches!(declared.ty, Type::Object(_)) => {
                    declared.fields.values().filter(|field| fields.contains_key(&*field.name)).count()
                }
                _ => fields.len(),
            },
        }
    }

    /// The value of a key that is text: of an object, the field that expressions call so.
    pub(in super::super) fn field(&self, name: &str) -> Option<Value<'a>> {
        match self {
            Self::Made(_) => self.get(&Value::text(name)),
            Self::Json { fields, declared } => match declared {
                Some(declared) if matches!(declared.ty, Type::Object(_)) => {
                    let known = declared.fields.get(name);
                    let field = known.or_else(|| declared.fields.get(&*reserved(name)?))?;
                    fields.get(&*field.name).map(|value| Value::json(value, Some(&field.declared)))
                }
                declared => fields.get(name).map(|value| Value::json(value, element(*declared))),
            },
        }
    }

    /// The fields of an object that expressions cannot see: they count only where objects are compared.
    fn hidden(&self) -> BTreeMap<&str, &Json> {
        let Self::Json { fields, declared: Some(declared) } = self else {
            return BTreeMap::new();
        };
        if !matches!(declared.ty, Type::Object(_)) {
            return BTreeMap::new();
        }
        let seen = |name: &str| declared.fields.values().any(|field| *field.name == *name);
        fields.iter().filter(|(name, _)| !seen(name)).map(|(name, value)| (name.as_str(), value)).collect()
    }

    pub(in super::super) fn get(&self, key: &Value<'_>) -> Option<Value<'a>> {
        match self {
            Self::Made(entries) => entries.get(&Key::of(key)?).map(|(_, value)| value.clone()),
            Self::Json { .. } => self.field(key.as_str()?),
        }
    }

    pub(in super::super) fn entries(&self) -> Vec<(Value<'a>, Value<'a>)> {
        match self {
            Self::Made(entries) => entries.values().cloned().collect(),
            Self::Json { fields, declared } => match declared {
                Some(declared) if matches!(declared.ty, Type::Object(_)) => declared
                    .fields
                    .iter()
                    .filter_map(|(name, field)| {
                        let value = fields.get(&*field.name)?;
                        Some((Value::from(&**name), Value::json(value, Some(&field.declared))))
                    })
                    .collect(),
                declared => {
                    let entry = |(key, value): (&'a String, &'a Json)| {
                        (Value::from(key.as_str()), Value::json(value, element(*declared)))
                    };
                    let fields: &'a serde_json::Map<String, Json> = fields;
                    fields.iter().map(entry).collect()
                }
            },
        }
    }

    pub(super) fn equals(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.hidden() == other.hidden()
            && self
                .entries()
                .iter()
                .all(|(key, value)| other.get(key).is_some_and(|other| value.equals(&other)))
    }
}
