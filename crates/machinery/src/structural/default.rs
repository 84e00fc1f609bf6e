//! Filling in what the schema has a default for.

use serde_json::Value;

use crate::schema::Type;

/// Gives absent fields their defaults, and also those that are `null` where that is not allowed.
pub fn default(value: &mut Value, ty: Type<'_>) {
    match value {
        Value::Object(entries) => {
            let declared = ty.structure().into_iter().flat_map(|structure| &structure.fields);
            for (name, field) in declared {
                let field = ty.to(field.node);
                let Some(default) = field.custom().and_then(|custom| custom.default.as_ref()) else {
                    continue;
                };
                if entries.get(&**name).is_none_or(|given| is_forbidden_null(given, field)) {
                    entries.insert(name.to_string(), default.clone());
                }
            }
            for (name, entry) in entries.iter_mut() {
                if let Some(member) = ty.member(name) {
                    instead_of_null(entry, member);
                    default(entry, member);
                }
            }
        }
        Value::Array(elements) => {
            let Some((items, _)) = ty.list() else { return };
            for element in elements {
                instead_of_null(element, items);
                default(element, items);
            }
        }
        _ => {}
    }
}

/// Drops nulls of fields that do not allow them and have no default.
pub(super) fn drop_nulls(value: &mut Value, ty: Option<Type<'_>>) {
    match value {
        Value::Object(entries) => entries.retain(|name, entry| {
            let member = ty.and_then(|ty| ty.member(name));
            let has_rules = |ty: &Type<'_>| ty.custom().is_some_and(|custom| custom.checks.is_some());
            let typed = member.filter(has_rules);
            let dropped = typed.is_some_and(|member| {
                is_forbidden_null(entry, member)
                    && member.custom().is_some_and(|custom| custom.default.is_none())
            });
            if !dropped {
                drop_nulls(entry, member);
            }
            !dropped
        }),
        Value::Array(elements) => {
            let items = ty.and_then(Type::list).map(|(items, _)| items);
            elements.iter_mut().for_each(|element| drop_nulls(element, items));
        }
        _ => {}
    }
}

fn instead_of_null(value: &mut Value, ty: Type<'_>) {
    if is_forbidden_null(value, ty) {
        *value = ty.custom().and_then(|custom| custom.default.clone()).unwrap_or_default();
    }
}

fn is_forbidden_null(value: &Value, ty: Type<'_>) -> bool {
    value.is_null() && ty.custom().is_some_and(|custom| !custom.nullable)
}
