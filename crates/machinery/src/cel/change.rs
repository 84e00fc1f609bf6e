//! What expressions make to change an object: parts of one, `Object.spec{replicas: 2}`, and steps of a JSON patch,
//! `JSONPatch{op: "add", …}`.
//!
//! Parts are checked no further than by their names, which repeat the path of fields from the root.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::Error;
use super::ty::{ObjectType, Type};
use super::value::Value;

const PATCH: &str = "JSONPatch";
const ROOT: &str = "Object";

/// The type that a name denotes, as a value.
pub(super) fn type_named(name: &str) -> Option<Type> {
    let (fields, open) = match name {
        PATCH => {
            let text = ["op", "path", "from"].map(|field| (field.into(), Type::String));
            (text.into_iter().chain([("value".into(), Type::Dyn)]).collect(), false)
        }
        _ if name == ROOT || name.strip_prefix(ROOT).is_some_and(|rest| rest.starts_with('.')) => {
            (BTreeMap::new(), true)
        }
        _ => return None,
    };
    let object = ObjectType { name: name.into(), fields, open };
    Some(Type::Type(Some(Box::new(Type::Object(Arc::new(object))))))
}

/// An object that an expression made.
#[derive(Clone, Debug)]
pub struct Made<'a>(Arc<Object<'a>>);

#[derive(Debug)]
struct Object<'a> {
    ty: Box<str>,
    fields: BTreeMap<Box<str>, Value<'a>>,
}

impl<'a> Made<'a> {
    pub(super) fn new(ty: &str, fields: BTreeMap<Box<str>, Value<'a>>) -> Result<Self, Error> {
        let texts = fields.iter().filter(|(name, _)| ty == PATCH && ***name != *"value");
        for (name, value) in texts {
            if value.as_str().is_none() {
                let found = value.type_name();
                return Err(Error::new(format!("unexpected type {found} for JSONPatchType '{name}' field")));
            }
        }
        Ok(Self(Arc::new(Object { ty: ty.into(), fields })))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.fields.is_empty()
    }

    pub(super) fn equals(&self, other: &Self) -> bool {
        let (one, two) = (&self.0, &other.0);
        one.ty == two.ty
            && one.fields.len() == two.fields.len()
            && one
                .fields
                .iter()
                .all(|(name, value)| two.fields.get(name).is_some_and(|other| value.equals(other)))
    }

    /// A field, if it was given.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value<'a>> {
        self.0.fields.get(name)
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        self.0.fields.iter().map(|(name, value)| (name.to_string(), value.to_json())).collect()
    }

    /// Checks that the names of its parts repeat the path of fields from the root.
    ///
    /// # Errors
    /// Each name that does not, one to a line.
    pub fn check_names(&self) -> Result<(), String> {
        let mut wrong = Vec::new();
        self.names(&self.0.ty, &mut wrong);
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    fn names(&self, path: &str, wrong: &mut Vec<String>) {
        let Object { ty, fields } = &*self.0;
        if **ty != *path {
            wrong.push(format!(
                "unexpected type name {ty:?}, expected {path:?}, which matches field name path from root Object type"
            ));
        }
        for (name, value) in fields {
            names_in(value, &format!("{path}.{name}"), wrong);
        }
    }
}

fn names_in(value: &Value<'_>, path: &str, wrong: &mut Vec<String>) {
    match value {
        Value::Made(made) => made.names(path, wrong),
        Value::List(list) => list.iter().for_each(|item| names_in(&item, path, wrong)),
        Value::Map(map) => map.entries().iter().for_each(|(_, item)| names_in(item, path, wrong)),
        _ => {}
    }
}
