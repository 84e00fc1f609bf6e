//! Structural schemas: the types of custom resources, and what the API server does with their values.
//!
//! [`compile`] turns the `openAPIV3Schema` of a CustomResourceDefinition into types of a [`Schemas`] arena.
//! With such a type, a value is first [`prune`]d, then given its [`default`]s, and at last [`validate`]d.
//! [`check`] tells what is wrong with a schema, [`check_definition`] with a whole definition. Rules in CEL
//! (`x-kubernetes-validations`) are compiled with the schema and evaluated with the rest ([`Rules`]).

mod check;
mod compile;
mod default;
mod defaults;
mod definition;
mod embedded;
pub(crate) mod format;
mod golang;
mod lists;
mod number;
mod openapi;
pub(crate) mod pattern;
mod props;
mod prune;
mod rule;
mod rules;
mod validate;

use serde_json::Value;

use crate::invalid::{FieldError, Path};
use crate::schema::Type;

pub use check::check;
pub use compile::{Compiled, compile};
pub use default::default;
pub use definition::{check_definition, check_definition_status, default_definition};
pub use embedded::coerce;
pub use prune::prune;
pub use rule::Rule;
pub use rules::Rules;

/// What is wrong with a value: by its schema's rules, by its embedded resources, by its list types.
///
/// With the value's older state, what was wrong already and did not change passes.
#[must_use]
pub fn validate(value: &Value, old: Option<&Value>, ty: Type<'_>) -> Vec<FieldError> {
    validate_change(value, old, ty).0
}

/// As [`validate`]; also the faults by CEL rules that pass because nothing changed there.
#[must_use]
pub fn validate_change(
    value: &Value,
    old: Option<&Value>,
    ty: Type<'_>,
) -> (Vec<FieldError>, Vec<FieldError>) {
    let mut passed = Vec::new();
    let mut out = validate_schema(value, old, ty, &Path::default());
    out.extend(embedded::check(value, ty, &Path::default()));
    // Duplicates that were there before do not become an error of whoever changes something else.
    if old.is_none_or(|old| lists::check(old, ty, &Path::default()).is_empty()) {
        out.extend(lists::check(value, ty, &Path::default()));
    }
    if let Some(rules) = ty.custom().and_then(|custom| custom.cel.as_deref()) {
        match blocking(&out) {
            Some(blocked) => out.push(blocked),
            None => {
                let (errors, unchanged) = rules.check(value, old);
                out.extend(errors);
                passed = unchanged;
            }
        }
    }
    (out, passed)
}

/// As [`validate`], by the schema's rules alone and for a value that is at some path: the server checks a
/// `status` that way, and its messages then name fields from there on.
#[must_use]
pub fn validate_schema(value: &Value, old: Option<&Value>, ty: Type<'_>, path: &Path) -> Vec<FieldError> {
    match ty.custom().and_then(|custom| custom.checks.as_deref()) {
        Some(rule) => validate::check(rule, value, old, path),
        None => Vec::new(),
    }
}

/// Tells of the formats in a schema that mean nothing to the server.
pub fn unknown_formats(schema: &Value, tell: &mut dyn FnMut(&str)) {
    let Some(map) = schema.as_object() else { return };
    if let Some(format) = map.get("format").and_then(Value::as_str) {
        let known = match map.get("type").and_then(Value::as_str) {
            Some("integer") => matches!(format, "int32" | "int64"),
            Some("number") => matches!(format, "float" | "double"),
            _ => format::is_known(format),
        };
        if !known {
            tell(format);
        }
    }
    for (name, below) in map {
        match (name.as_str(), below) {
            ("properties", Value::Object(all)) => all.values().for_each(|one| unknown_formats(one, tell)),
            ("items" | "additionalProperties" | "not", one) => unknown_formats(one, tell),
            ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                all.iter().for_each(|one| unknown_formats(one, tell));
            }
            _ => {}
        }
    }
}

/// Whether errors leave CEL rules without a chance, and the error that says so.
#[must_use]
pub fn blocking(errors: &[FieldError]) -> Option<FieldError> {
    use crate::invalid::Kind;
    let blocks = |kind| {
        matches!(
            kind,
            Kind::NotSupported | Kind::Required | Kind::TooLong | Kind::TooMany | Kind::TypeInvalid
        )
    };
    errors.iter().any(|error| blocks(error.kind)).then(|| {
        let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
        FieldError::invalid(Path::default(), Value::Null, why)
    })
}

#[cfg(test)]
mod tests;
