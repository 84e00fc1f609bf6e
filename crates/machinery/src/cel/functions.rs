//! The functions of expressions. Which one is meant is decided by the values: the types of many are not known
//! before.

pub(super) mod convert;
mod format;
mod lists;
mod named;
mod net;
pub(super) mod operators;
mod quantity;
pub(super) mod semver;
mod text;
pub(super) mod time;
pub(super) mod url;

pub(super) use crate::structural::pattern;

use std::borrow::Cow;
use std::collections::HashMap;

use regex::Regex;

use super::Error;
use super::value::Value;

/// What functions need besides their arguments.
pub(super) struct Tools<'p> {
    /// Patterns that are already compiled.
    pub(super) patterns: &'p HashMap<Box<str>, Regex>,
}

impl Tools<'_> {
    fn pattern(&self, text: &str) -> Result<Cow<'_, Regex>, String> {
        match self.patterns.get(text) {
            Some(known) => Ok(Cow::Borrowed(known)),
            None => pattern::compile(text).map(Cow::Owned),
        }
    }
}

/// The result of a function. Members have what stands before the dot as their first argument.
pub(super) fn call<'a>(function: &str, args: &[Value<'a>], tools: &Tools<'_>) -> Result<Value<'a>, Error> {
    if let [Value::Authorizer(authorizer), rest @ ..] = args
        && function != "_==_"
        && function != "_!=_"
    {
        return authorizer.call(function, rest);
    }
    let result = match args {
        [] => none(function),
        [one] => unary(function, one),
        [one, two] => binary(function, one, two, tools),
        _ => text::call(function, args, tools).or_else(|| lists::call(function, args)),
    };
    result.unwrap_or_else(|| Err(Error::overload()))
}

/// What a function comes to, if these are arguments for it.
type Found<'a> = Option<Result<Value<'a>, Error>>;

fn none<'a>(function: &str) -> Found<'a> {
    match function {
        "optional.none" => Some(Ok(Value::Optional(None))),
        _ => named::constant(function.strip_prefix("format.")?).map(|format| Ok(Value::Format(format))),
    }
}

fn unary<'a>(function: &str, one: &Value<'a>) -> Found<'a> {
    match function {
        "!_" => one.as_bool().map(|value| Ok(Value::Bool(!value))),
        "@not_strictly_false" => Some(Ok(Value::Bool(one.as_bool() != Some(false)))),
        "-_" => Some(operators::negate(one)),
        "size" => match one {
            Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) => {
                Some(Ok(Value::Int(i64::try_from(one.size()).unwrap_or(i64::MAX))))
            }
            _ => None,
        },
        "dyn" => Some(Ok(one.clone())),
        "type" => Some(Ok(Value::text(one.type_name()))).map(|named: Result<Value<'a>, Error>| match named {
            Ok(Value::String(name)) => Ok(Value::Type((*name).into())),
            other => other,
        }),
        "optional.of" => Some(Ok(Value::present(one.clone()))),
        "optional.ofNonZeroValue" => {
            Some(Ok(if one.is_zero() { Value::Optional(None) } else { Value::present(one.clone()) }))
        }
        "hasValue" => match one {
            Value::Optional(value) => Some(Ok(Value::Bool(value.is_some()))),
            _ => None,
        },
        "value" => match one {
            Value::Optional(Some(value)) => Some(Ok((**value).clone())),
            Value::Optional(None) => Some(Err(Error::new("optional.none() dereference"))),
            _ => None,
        },
        _ => convert::call(function, one)
            .or_else(|| text::call(function, std::slice::from_ref(one), &NO_TOOLS))
            .or_else(|| lists::call(function, std::slice::from_ref(one)))
            .or_else(|| time::call(function, one, None))
            .or_else(|| net::call(function, std::slice::from_ref(one)))
            .or_else(|| url::call(function, one))
            .or_else(|| quantity::call(function, std::slice::from_ref(one)))
            .or_else(|| semver::call(function, std::slice::from_ref(one)))
            .or_else(|| named::call(function, std::slice::from_ref(one))),
    }
}

static NO_TOOLS: std::sync::LazyLock<Tools<'static>> = std::sync::LazyLock::new(|| {
    static NONE: std::sync::LazyLock<HashMap<Box<str>, Regex>> = std::sync::LazyLock::new(HashMap::new);
    Tools { patterns: &NONE }
});

fn binary<'a>(function: &str, one: &Value<'a>, two: &Value<'a>, tools: &Tools<'_>) -> Found<'a> {
    let args = [one.clone(), two.clone()];
    match function {
        "_==_" => Some(Ok(Value::Bool(one.equals(two)))),
        "_!=_" => Some(Ok(Value::Bool(!one.equals(two)))),
        "_<_" | "_<=_" | "_>_" | "_>=_" => Some(operators::order(function, one, two)),
        "_+_" | "_-_" | "_*_" | "_/_" | "_%_" => Some(operators::arithmetic(function, one, two)),
        "@in" => Some(operators::within(one, two)),
        "_[_]" => Some(operators::index(one, two)),
        "_[?_]" => Some(operators::optional_index(one, two)),
        "or" => match one {
            Value::Optional(None) => Some(Ok(two.clone())),
            Value::Optional(_) => Some(Ok(one.clone())),
            _ => None,
        },
        "orValue" => match one {
            Value::Optional(None) => Some(Ok(two.clone())),
            Value::Optional(Some(value)) => Some(Ok((**value).clone())),
            _ => None,
        },
        _ => text::call(function, &args, tools)
            .or_else(|| lists::call(function, &args))
            .or_else(|| time::call(function, one, Some(two)))
            .or_else(|| net::call(function, &args))
            .or_else(|| quantity::call(function, &args))
            .or_else(|| semver::call(function, &args))
            .or_else(|| named::call(function, &args)),
    }
}
