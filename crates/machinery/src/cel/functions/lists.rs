//! Functions of lists, and of maps that loops build.

use std::sync::Arc;

use super::super::Error;
use super::super::value::{Key, List, Map, Value};
use super::{Found, operators};

/// Lists longer than this are refused: no budget would have been enough for them.
const MAX_LENGTH: i64 = 1_000_000;

pub(super) fn call<'a>(function: &str, args: &[Value<'a>]) -> Found<'a> {
    match (function, args) {
        ("lists.range", [Value::Int(end)]) => Some(if *end > MAX_LENGTH {
            Err(Error::CostExceeded)
        } else {
            Ok(Value::list((0..*end).map(Value::Int).collect()))
        }),
        ("cel.@mapInsert", [Value::Map(map), rest @ ..]) => Some(insert(map, rest)),
        ("sets.contains", [Value::List(one), Value::List(two)]) => Some(Ok(contains(one, two).into())),
        ("sets.equivalent", [Value::List(one), Value::List(two)]) => {
            Some(Ok((contains(one, two) && contains(two, one)).into()))
        }
        ("sets.intersects", [Value::List(one), Value::List(two)]) => {
            Some(Ok(one.iter().any(|item| two.iter().any(|other| item.equals(&other))).into()))
        }
        ("optional.unwrap" | "unwrapOpt", [Value::List(list)]) => Some(unwrap(list)),
        (_, [Value::List(list), rest @ ..]) => member(function, list, rest),
        _ => None,
    }
}

fn member<'a>(function: &str, list: &List<'a>, args: &[Value<'a>]) -> Found<'a> {
    let result = match (function, args) {
        ("isSorted", []) => is_sorted(list).map(Into::into),
        ("sum", []) => sum(list),
        ("min", []) => extreme(function, list, std::cmp::Ordering::Greater),
        ("max", []) => extreme(function, list, std::cmp::Ordering::Less),
        ("indexOf", [item]) => {
            Ok(list.iter().position(|one| one.equals(item)).map_or(Value::Int(-1), Into::into))
        }
        ("lastIndexOf", [item]) => {
            let found = (0..list.len()).rev().find(|at| list.get(*at).is_some_and(|one| one.equals(item)));
            Ok(found.map_or(Value::Int(-1), Into::into))
        }
        ("slice", [Value::Int(start), Value::Int(end)]) => slice(list, *start, *end),
        ("flatten", []) => {
            let mut out = Vec::new();
            flatten(list, 1, &mut out);
            Ok(Value::list(out))
        }
        ("flatten", [Value::Int(depth)]) if *depth < 0 => Err(Error::new("level must be non-negative")),
        ("flatten", [Value::Int(depth)]) => {
            let mut out = Vec::new();
            flatten(list, *depth, &mut out);
            Ok(Value::list(out))
        }
        ("reverse", []) => Ok(Value::list((0..list.len()).rev().filter_map(|at| list.get(at)).collect())),
        ("distinct", []) => {
            let mut out: Vec<Value<'a>> = Vec::new();
            for item in list.iter() {
                if !out.iter().any(|known| known.equals(&item)) {
                    out.push(item);
                }
            }
            Ok(Value::list(out))
        }
        ("sort", []) => sort(list, list),
        ("@sortByAssociatedKeys", [Value::List(keys)]) => sort(list, keys),
        ("first", []) => Ok(list.get(0).map_or(Value::Optional(None), Value::present)),
        ("last", []) => Ok(list
            .len()
            .checked_sub(1)
            .and_then(|at| list.get(at))
            .map_or(Value::Optional(None), Value::present)),
        _ => return None,
    };
    Some(result)
}

fn contains(one: &List<'_>, two: &List<'_>) -> bool {
    two.iter().all(|item| one.iter().any(|other| item.equals(&other)))
}

fn insert<'a>(map: &Map<'a>, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let new = match args {
        [key, value] => vec![(key.clone(), value.clone())],
        [Value::Map(more)] => more.entries(),
        _ => return Err(Error::overload()),
    };
    let mut entries = match map {
        Map::Made(entries) => (**entries).clone(),
        Map::Json { .. } => {
            map.entries().into_iter().filter_map(|entry| Some((Key::of(&entry.0)?, entry))).collect()
        }
    };
    for (key, value) in new {
        let id = Key::of(&key).ok_or_else(Error::overload)?;
        if entries.contains_key(&id) {
            let shown = super::convert::to_text(&key).unwrap_or_default();
            return Err(Error::new(format!("insert failed: key {shown} already exists")));
        }
        entries.insert(id, (key, value));
    }
    Ok(Value::Map(Map::Made(Arc::new(entries))))
}

fn unwrap<'a>(list: &List<'a>) -> Result<Value<'a>, Error> {
    let mut out = Vec::new();
    for item in list.iter() {
        match item {
            Value::Optional(Some(value)) => out.push((*value).clone()),
            Value::Optional(None) => {}
            _ => return Err(Error::overload()),
        }
    }
    Ok(Value::list(out))
}

fn is_sorted(list: &List<'_>) -> Result<bool, Error> {
    let mut previous: Option<Value<'_>> = None;
    for item in list.iter() {
        if let Some(previous) = previous {
            match previous.compare(&item) {
                Some(std::cmp::Ordering::Greater) => return Ok(false),
                Some(_) => {}
                None => return Err(Error::overload()),
            }
        }
        previous = Some(item);
    }
    Ok(true)
}

fn sum<'a>(list: &List<'a>) -> Result<Value<'a>, Error> {
    let mut total: Option<Value<'a>> = None;
    for item in list.iter() {
        total = Some(match total {
            Some(total) => operators::arithmetic("_+_", &total, &item)?,
            None => item,
        });
    }
    Ok(total.unwrap_or(Value::Int(0)))
}

fn extreme<'a>(name: &str, list: &List<'a>, worse: std::cmp::Ordering) -> Result<Value<'a>, Error> {
    let mut best: Option<Value<'a>> = None;
    for item in list.iter() {
        best = Some(match best {
            Some(best) => {
                let order = best.compare(&item).ok_or_else(Error::overload)?;
                if order == worse { item } else { best }
            }
            None => item,
        });
    }
    best.ok_or_else(|| Error::new(format!("{name} called on empty list")))
}

fn slice<'a>(list: &List<'a>, start: i64, end: i64) -> Result<Value<'a>, Error> {
    let length = list.len();
    let refuse = |why: String| Err(Error::new(format!("cannot slice({start}, {end}), {why}")));
    if start < 0 || end < 0 {
        return refuse("negative indexes not supported".to_owned());
    }
    if start > end {
        return refuse("start index must be less than or equal to end index".to_owned());
    }
    if end > length as i64 {
        return refuse(format!("list is length {length}"));
    }
    Ok(Value::list((start..end).filter_map(|at| list.get(usize::try_from(at).ok()?)).collect()))
}

fn flatten<'a>(list: &List<'a>, depth: i64, out: &mut Vec<Value<'a>>) {
    for item in list.iter() {
        match item {
            Value::List(inner) if depth > 0 => flatten(&inner, depth - 1, out),
            other => out.push(other),
        }
    }
}

fn sort<'a>(list: &List<'a>, keys: &List<'a>) -> Result<Value<'a>, Error> {
    if list.len() != keys.len() {
        return Err(Error::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively",
            list.len(),
            keys.len()
        )));
    }
    let keys: Vec<Value<'a>> = keys.iter().collect();
    let Some(first) = keys.first() else {
        return Ok(Value::list(Vec::new()));
    };
    if first.compare(first).is_none() {
        return Err(Error::new("list elements must be comparable"));
    }
    if keys.iter().any(|key| key.type_name() != first.type_name()) {
        return Err(Error::new("list elements must have the same type"));
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|one, two| keys[*one].compare(&keys[*two]).unwrap_or(std::cmp::Ordering::Equal));
    Ok(Value::list(order.into_iter().filter_map(|at| list.get(at)).collect()))
}
