//! How the fields of a type are patched.

use crate::go;
use crate::patch::PatchError;
use crate::schema::{Field, Patch, Scalar, Shape, Type};

/// A type whose fields are looked up.
#[derive(Clone, Copy)]
pub(super) struct Meta<'a>(Type<'a>);

impl<'a> Meta<'a> {
    pub(super) fn of(ty: Type<'a>) -> Self {
        Self(ty)
    }

    /// The type of a field that holds an object, and how it merges.
    pub(super) fn object(self, key: &str) -> Result<(Self, &'a Patch), PatchError> {
        let field = self.field(key)?;
        Ok((Self(self.0.to(field.node)), &field.patch))
    }

    /// The type of the elements of a field that holds a list, and how they merge.
    pub(super) fn list(self, key: &str) -> Result<(Self, &'a Patch), PatchError> {
        let field = self.field(key)?;
        let ty = self.0.to(field.node);
        match ty.list() {
            Some((items, _)) if items.list().is_some() => {
                Err(PatchError::Internal("unexpected slice of slice".to_owned()))
            }
            Some((items, _)) => Ok((Self(items), &field.patch)),
            None => Err(PatchError::Internal("expected slice or array type, but got: struct".to_owned())),
        }
    }

    /// What Go calls such a type.
    pub(super) fn kind(self) -> &'static str {
        match self.0.shape() {
            Shape::Map(_) => "map",
            Shape::List { .. } => "slice",
            Shape::Scalar(Scalar::Bool, _) => "bool",
            Shape::Scalar(Scalar::Int32, _) => "int32",
            Shape::Scalar(Scalar::Int64, _) => "int64",
            Shape::Scalar(Scalar::Float, _) => "float64",
            Shape::Scalar(Scalar::String, _) => "string",
            Shape::Scalar(Scalar::Bytes, _) => "slice",
            _ => "struct",
        }
    }

    fn field(self, key: &str) -> Result<&'a Field, PatchError> {
        if self.kind() != "struct" {
            return Err(PatchError::Internal(format!(
                "merging an object in json but data type is not struct, instead is: {}",
                self.kind()
            )));
        }
        let folded = || {
            let fields = &self.0.structure()?.fields;
            fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, field)| field)
        };
        self.0.field(key).or_else(folded).ok_or_else(|| {
            let name = self.0.structure().map_or("RawExtension", |structure| &structure.go);
            // The table may qualify the name with its package.
            let name = name.rsplit('.').next().unwrap_or_default();
            let key = go::quote(key);
            PatchError::Internal(format!(
                "unable to find api field in struct {name} for the json field {key}"
            ))
        })
    }
}
