//! Functions of text.

use super::super::Error;
use super::super::value::{List, Value};
use super::{Found, Tools, format};

/// Results larger than this are refused: no budget would have been enough for them.
const MAX_RESULT: usize = 16 << 20;

pub(super) fn call<'a>(function: &str, args: &[Value<'a>], tools: &Tools<'_>) -> Found<'a> {
    if let (Value::List(list), "join") = (args.first()?, function) {
        return Some(join(list, args.get(1).and_then(Value::as_str).unwrap_or_default()));
    }
    let text = args.first()?.as_str()?;
    let string = |index: usize| args.get(index).and_then(Value::as_str);
    let number = |index: usize| match args.get(index) {
        Some(Value::Int(value)) => Some(*value),
        _ => None,
    };
    let result = match (function, args.len()) {
        ("contains", 2) => Ok(text.contains(string(1)?).into()),
        ("startsWith", 2) => Ok(text.starts_with(string(1)?).into()),
        ("endsWith", 2) => Ok(text.ends_with(string(1)?).into()),
        ("matches", 2) => {
            tools.pattern(string(1)?).map(|pattern| pattern.is_match(text).into()).map_err(Error::new)
        }
        ("find", 2) => tools
            .pattern(string(1)?)
            .map(|pattern| pattern.find(text).map_or("", |found| found.as_str()).to_owned().into())
            .map_err(|why| Error::new(format!("Illegal regex: {why}"))),
        ("findAll", 2 | 3) => {
            let limit = number(2).map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
            tools
                .pattern(string(1)?)
                .map(|pattern| {
                    let found = pattern.find_iter(text).take(limit);
                    Value::list(found.map(|found| found.as_str().to_owned().into()).collect())
                })
                .map_err(|why| Error::new(format!("Illegal regex: {why}")))
        }
        ("charAt", 2) => char_at(text, number(1)?),
        ("indexOf", 2) => index_of(text, string(1)?, 0),
        ("indexOf", 3) => index_of(text, string(1)?, number(2)?),
        ("lastIndexOf", 2) => {
            let length = text.chars().count() as i64;
            let wanted = string(1)?;
            match (wanted.is_empty(), text.len() < wanted.len()) {
                (true, _) => Ok(length.into()),
                (false, true) => Ok(Value::Int(-1)),
                _ => last_index_of(text, wanted, length - 1),
            }
        }
        ("lastIndexOf", 3) => last_index_of(text, string(1)?, number(2)?),
        ("lowerAscii", 1) => Ok(text.to_ascii_lowercase().into()),
        ("upperAscii", 1) => Ok(text.to_ascii_uppercase().into()),
        ("trim", 1) => Ok(text.trim().to_owned().into()),
        ("replace", 3) => replace(text, string(1)?, string(2)?, -1),
        ("replace", 4) => replace(text, string(1)?, string(2)?, number(3)?),
        ("split", 2) => Ok(split(text, string(1)?, -1)),
        ("split", 3) => Ok(split(text, string(1)?, number(2)?)),
        ("substring", 2) => substring(text, number(1)?, text.chars().count() as i64),
        ("substring", 3) => substring(text, number(1)?, number(2)?),
        ("format", 2) => match args.get(1)? {
            Value::List(list) => format::apply(text, list).map(Into::into),
            _ => return None,
        },
        ("jsonpatch.escapeKey", 1) => Ok(text.replace('~', "~0").replace('/', "~1").into()),
        ("strings.quote", 1) => Ok(quote(text).into()),
        _ => return None,
    };
    Some(result)
}

fn range(index: i64) -> Error {
    Error::new(format!("index out of range: {index}"))
}

fn join<'a>(list: &List<'a>, separator: &str) -> Result<Value<'a>, Error> {
    let mut out = String::new();
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        let Some(text) = item.as_str() else {
            return Err(Error::new(format!("join: invalid input: {}", item.type_name())));
        };
        out.push_str(text);
        if out.len() > MAX_RESULT {
            return Err(Error::CostExceeded);
        }
    }
    Ok(out.into())
}

fn char_at<'a>(text: &str, index: i64) -> Result<Value<'a>, Error> {
    let length = text.chars().count();
    let at = usize::try_from(index).ok().filter(|at| *at <= length).ok_or_else(|| range(index))?;
    Ok(text.chars().nth(at).map(String::from).unwrap_or_default().into())
}

fn index_of<'a>(text: &str, wanted: &str, offset: i64) -> Result<Value<'a>, Error> {
    if wanted.is_empty() {
        return Ok(offset.into());
    }
    let start = usize::try_from(offset).map_err(|_| range(offset))?;
    let Some((byte, _)) = text.char_indices().nth(start) else {
        return Ok(Value::Int(-1));
    };
    let found = text[byte..].find(wanted).map(|at| start + text[byte..byte + at].chars().count());
    Ok(found.map_or(Value::Int(-1), Into::into))
}

fn last_index_of<'a>(text: &str, wanted: &str, offset: i64) -> Result<Value<'a>, Error> {
    if wanted.is_empty() {
        return Ok(offset.into());
    }
    let last = usize::try_from(offset).map_err(|_| range(offset))?;
    let Some((byte, _)) = text.char_indices().nth(last) else {
        return Ok(Value::Int(-1));
    };
    // A match may begin at the offset and reach beyond it.
    let end = (byte + wanted.len()).min(text.len());
    let end = (end..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    let found = text[..end].rfind(wanted).filter(|at| *at <= byte).map(|at| text[..at].chars().count());
    Ok(found.map_or(Value::Int(-1), Into::into))
}

fn replace<'a>(text: &str, old: &str, new: &str, limit: i64) -> Result<Value<'a>, Error> {
    let pieces = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() };
    let count = usize::try_from(limit).map_or(pieces, |limit| limit.min(pieces));
    if count.saturating_mul(new.len()).saturating_add(text.len()) > MAX_RESULT {
        return Err(Error::CostExceeded);
    }
    Ok(text.replacen(old, new, count).into())
}

fn split<'a>(text: &str, separator: &str, limit: i64) -> Value<'a> {
    let pieces: Vec<String> = match (separator.is_empty(), usize::try_from(limit)) {
        (_, Ok(0)) => Vec::new(),
        (true, limit) => {
            let limit = limit.unwrap_or(usize::MAX);
            let mut pieces: Vec<String> = text.chars().take(limit - 1).map(String::from).collect();
            let rest: String = text.chars().skip(limit - 1).collect();
            if !rest.is_empty() {
                pieces.push(rest);
            }
            pieces
        }
        (false, Ok(limit)) => text.splitn(limit, separator).map(ToOwned::to_owned).collect(),
        (false, Err(_)) => text.split(separator).map(ToOwned::to_owned).collect(),
    };
    Value::list(pieces.into_iter().map(Into::into).collect())
}

fn substring<'a>(text: &str, start: i64, end: i64) -> Result<Value<'a>, Error> {
    let length = text.chars().count();
    if start > end {
        let whole = end == length as i64;
        return Err(if whole && start > length as i64 {
            range(start)
        } else {
            Error::new(format!("invalid substring range. start: {start}, end: {end}"))
        });
    }
    let within =
        |index: i64| usize::try_from(index).ok().filter(|at| *at <= length).ok_or_else(|| range(index));
    let (from, to) = (within(start)?, within(end)?);
    Ok(text.chars().skip(from).take(to - from).collect::<String>().into())
}

fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
