//! Objects as the API server holds them inside, which is how some of its messages show them.
//!
//! Go's internal types name fields as Go does, keep their order, and write what is not set. `internal.txt` holds
//! a line for each type that messages show: its fields, in order, with the field of the published object and the
//! type (`s`, `i`, `b`: a text, number, flag; `q`: a quantity; `p`: a number or text; `*`: anything, or null;
//! `T`, `*T`, `[T]`: a type, one or null, a list; `^T`: the fields of another type). Types marked with `!` are
//! written as they are published.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;
use windlass_machinery::go;
use windlass_machinery::invalid::Shown;

use super::diff;

static TYPES: LazyLock<HashMap<&'static str, Type>> =
    LazyLock::new(|| include_str!("internal.txt").lines().filter_map(Type::parse).collect());

/// The object as a message shows it.
pub(super) fn shown(ty: &str, value: &Value) -> Shown {
    Shown::raw(text(ty, value))
}

/// The object in JSON, with Go's own names.
pub(super) fn text(ty: &str, value: &Value) -> String {
    let mut out = String::new();
    tree(ty, value).write(&mut out);
    out
}

/// A list of objects as a message shows it.
pub(super) fn shown_list(ty: &str, list: &Value) -> Shown {
    let mut out = String::new();
    match list.as_array() {
        None => out.push_str("null"),
        Some(items) => Tree::List(items.iter().map(|item| tree(ty, item)).collect()).write(&mut out),
    }
    Shown::raw(out)
}

/// The difference of two objects as a message shows it.
pub(super) fn difference(ty: &str, old: &Value, new: &Value) -> String {
    let text = |value: &Value| {
        let mut out = String::new();
        tree(ty, value).write_pretty(&mut out, 0);
        out
    };
    diff::unified(&text(old), &text(new))
}

struct Type {
    published: bool,
    members: Vec<Member>,
}

struct Member {
    /// Go's name.
    name: &'static str,
    /// The published one; `../name` is a field of the object around this one.
    field: String,
    form: Form,
}

#[derive(Clone, Copy)]
enum Form {
    Text,
    Number,
    Flag,
    Quantity,
    Any,
    Struct(&'static str),
    Pointer(&'static str),
    List(&'static str),
    Inline(&'static str),
}

impl Type {
    fn parse(line: &'static str) -> Option<(&'static str, Self)> {
        let mut words = line.split(' ');
        let name = words.next()?;
        let published = name.starts_with('!');
        let members = words.map(Member::parse).collect();
        Some((name.trim_start_matches('!'), Self { published, members }))
    }
}

impl Member {
    fn parse(word: &'static str) -> Self {
        if let Some((field, ty)) = word.split_once('^') {
            return Self { name: "", field: field.to_owned(), form: Form::Inline(ty) };
        }
        let (name, form) = word.split_once(':').unwrap_or((word, "*"));
        let (name, field) = match name.split_once('=') {
            Some((name, field)) => (name, field.to_owned()),
            None => (name, lower_first(name)),
        };
        let form = match form {
            "s" => Form::Text,
            "i" | "p" => Form::Number,
            "b" => Form::Flag,
            "q" => Form::Quantity,
            "*" => Form::Any,
            _ => match (form.strip_prefix('*'), form.strip_prefix('[')) {
                (Some(ty), _) => Form::Pointer(ty),
                (_, Some(ty)) => Form::List(ty.trim_end_matches(']')),
                _ => Form::Struct(form),
            },
        };
        Self { name, field, form }
    }
}

fn lower_first(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(chars).collect()
}

/// A value with its fields in order.
enum Tree {
    Leaf(String),
    List(Vec<Tree>),
    Fields(Vec<(String, Tree)>),
}

fn tree(ty: &str, value: &Value) -> Tree {
    if value.is_null() {
        return Tree::Leaf("null".into());
    }
    let mut fields = Vec::new();
    members(ty, value, &Value::Null, &mut fields);
    Tree::Fields(fields)
}

fn members(ty: &str, value: &Value, around: &Value, out: &mut Vec<(String, Tree)>) {
    let Some(known) = TYPES.get(ty) else { return };
    for member in &known.members {
        if let Form::Inline(ty) = member.form {
            let inner = if member.field.is_empty() { value } else { &value[&member.field] };
            members(ty, inner, around, out);
            continue;
        }
        let found = match member.field.strip_prefix("../") {
            Some(field) => &around[field],
            None => &value[&member.field],
        };
        let absent = match member.form {
            Form::Any | Form::List(_) => {
                found.is_null()
                    || found.as_array().is_some_and(Vec::is_empty)
                    || found.as_object().is_some_and(serde_json::Map::is_empty)
            }
            Form::Pointer(_) => found.is_null(),
            _ => false,
        };
        if known.published && absent {
            continue;
        }
        out.push((member.name.to_owned(), part(member.form, found, value)));
    }
}

fn part(form: Form, found: &Value, around: &Value) -> Tree {
    let structure = |ty: &str, value: &Value| {
        let mut fields = Vec::new();
        members(ty, value, around, &mut fields);
        Tree::Fields(fields)
    };
    let zero = |text: &str| Tree::Leaf(text.to_owned());
    match form {
        Form::Struct(ty) => structure(ty, found),
        _ if !found.is_null() => match form {
            Form::Pointer(ty) => structure(ty, found),
            Form::List(ty) => {
                Tree::List(found.as_array().into_iter().flatten().map(|item| structure(ty, item)).collect())
            }
            _ => plain(found),
        },
        Form::Text => zero("\"\""),
        Form::Number => zero("0"),
        Form::Flag => zero("false"),
        Form::Quantity => zero("\"0\""),
        _ => zero("null"),
    }
}

fn plain(value: &Value) -> Tree {
    match value {
        Value::Array(items) => Tree::List(items.iter().map(plain).collect()),
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().map(|(name, value)| (name.clone(), plain(value))).collect();
            fields.sort_by(|left, right| left.0.cmp(&right.0));
            Tree::Fields(fields)
        }
        other => Tree::Leaf(go::json(other)),
    }
}

impl Tree {
    fn write(&self, out: &mut String) {
        match self {
            Self::Leaf(text) => out.push_str(text),
            Self::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Fields(fields) => {
                out.push('{');
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    out.push_str(&go::json(&Value::from(name.as_str())));
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    fn write_pretty(&self, out: &mut String, depth: usize) {
        let line = |out: &mut String, depth: usize| {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth));
        };
        match self {
            Self::List(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    out.push(if index == 0 { '[' } else { ',' });
                    line(out, depth + 1);
                    item.write_pretty(out, depth + 1);
                }
                line(out, depth);
                out.push(']');
            }
            Self::Fields(fields) if !fields.is_empty() => {
                for (index, (name, value)) in fields.iter().enumerate() {
                    out.push(if index == 0 { '{' } else { ',' });
                    line(out, depth + 1);
                    out.push_str(&go::json(&Value::from(name.as_str())));
                    out.push_str(": ");
                    value.write_pretty(out, depth + 1);
                }
                line(out, depth);
                out.push('}');
            }
            other => other.write(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_types_are_known() {
        for (name, ty) in TYPES.iter() {
            for member in &ty.members {
                if let Form::Struct(ty) | Form::Pointer(ty) | Form::List(ty) | Form::Inline(ty) = member.form
                {
                    assert!(TYPES.contains_key(ty), "{name} has a field of {ty}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_set_is_written() {
        let mut out = String::new();
        tree("DaemonSetUpdateStrategy", &json!({"type": "Wrong"})).write(&mut out);
        assert_eq!(out, r#"{"Type":"Wrong","RollingUpdate":null}"#);
    }
}
