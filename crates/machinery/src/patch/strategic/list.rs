//! Lists that merge, by key or as sets, and the order of what comes out.

use serde_json::Value;

use super::meta::Meta;
use super::{DIRECTIVE, Fields, bad_directive, bad_type, merge_maps, no_merge_key};
use crate::go;
use crate::patch::PatchError;

pub(super) fn merge_lists(
    original: Vec<Value>,
    patch: Vec<Value>,
    key: Option<&str>,
    meta: Meta<'_>,
    deletes: bool,
) -> Result<Vec<Value>, PatchError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    if !uniform(&original, &patch)? {
        if deletes {
            return Ok(original.into_iter().filter(|item| !patch.contains(item)).collect());
        }
        let mut merged = original.clone();
        for item in &patch {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        merged = unique(merged);
        let (listed, others) = partition(merged, &patch, key)?;
        return set_order(listed, others, &patch, &original, key);
    }
    let Some(key) = key else {
        let kind = meta.kind();
        return Err(PatchError::Internal(format!("cannot merge lists without merge key for {kind}")));
    };
    let (original, patch) = apply_directives(original, patch, key)?;
    let mut merged = original.clone();
    for item in &patch {
        let Value::Object(changes) = item else { continue };
        let value = changes.get(key).ok_or_else(|| no_merge_key(changes, key))?;
        match position(&merged, key, value)? {
            Some(index) => {
                let Value::Object(current) = merged[index].take() else {
                    continue;
                };
                merged[index] = Value::Object(merge_maps(current, changes.clone(), meta)?);
            }
            None => merged.push(item.clone()),
        }
    }
    let (listed, others) = partition(merged, &patch, Some(key))?;
    set_order(listed, others, &patch, &original, Some(key))
}

/// Elements that an order names, and those it does not.
pub(super) fn partition(
    items: Vec<Value>,
    order: &[Value],
    key: Option<&str>,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut listed = Vec::new();
    let mut others = Vec::new();
    for item in items {
        let found = match key {
            None => order.contains(&item),
            Some(key) => {
                let Value::Object(fields) = &item else {
                    return Err(bad_type("map[string]interface {}", &item));
                };
                let value = fields.get(key).ok_or_else(|| no_merge_key(fields, key))?;
                position(order, key, value)?.is_some()
            }
        };
        if found { listed.push(item) } else { others.push(item) }
    }
    Ok((listed, others))
}

/// Puts elements together: the listed ones in the order, the others where the live list has them.
pub(super) fn set_order(
    listed: Vec<Value>,
    others: Vec<Value>,
    order: &[Value],
    server_order: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let listed = sorted(listed, order, key)?;
    let others = sorted(others, server_order, key)?;
    let mut out = Vec::with_capacity(listed.len() + others.len());
    let (mut listed, mut others) = (listed.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(left), Some(right)) = (others.peek(), listed.peek()) {
        let (left, right) = (index(server_order, left, key), index(server_order, right, key));
        let before = left.zip(right).is_some_and(|(left, right)| left < right);
        out.extend(if before { others.next() } else { listed.next() });
    }
    out.extend(listed);
    out.extend(others);
    Ok(out)
}

/// Checks that the patch's elements come in the order that `$setElementOrder` names.
pub(super) fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut kept = Vec::new();
    for item in patch {
        match (key, item) {
            (Some(_), Value::Object(fields))
                if fields.get(DIRECTIVE).is_some_and(|directive| directive == "delete") => {}
            (Some(_), Value::Object(_)) | (None, _) => kept.push(item),
            (Some(_), other) => return Err(bad_type("map[string]interface {}", other)),
        }
    }
    let (mut at, mut turn) = (0, 0);
    while at < kept.len() && turn < order.len() {
        if kept[at].get(DIRECTIVE).is_some() {
            at += 1;
            continue;
        }
        let same = match key {
            None => *kept[at] == order[turn],
            Some(key) => key_of(kept[at], key)? == key_of(&order[turn], key)?,
        };
        at += usize::from(same);
        turn += 1;
    }
    if at == kept.len() {
        return Ok(());
    }
    // Directives at the end of the patch's list count as well, as they do in the original.
    Err(PatchError::Internal(format!(
        "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
        go::value(&Value::Array(patch.to_vec())),
        go::value(&Value::Array(order.to_vec())),
    )))
}

/// The live list as the original's merge leaves it behind, which then counts as the server's order: what is
/// deleted is closed up in place, and new elements are written into the room that this makes.
pub(super) fn server_order(
    live: &[Value],
    patch: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let mut order = live.to_vec();
    let Some(key) = key else { return Ok(order) };
    let mut length = order.len();
    let directive = |item: &Value| item.get(DIRECTIVE).and_then(Value::as_str).map(str::to_owned);
    for item in patch.iter().filter(|item| directive(item).as_deref() == Some("delete")) {
        let Some(value) = item.get(key) else { continue };
        while let Some(index) = position(&order[..length], key, value)? {
            length -= 1;
            // What was last stays behind once more.
            let last = order[length].clone();
            order[index..=length].rotate_left(1);
            order[length] = last;
        }
    }
    if patch.iter().any(|item| directive(item).as_deref() == Some("replace")) {
        return Ok(order);
    }
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let Some(value) = item.get(key) else { continue };
        if length < order.len() && position(&order[..length], key, value)?.is_none() {
            order[length] = item.clone();
            length += 1;
        }
    }
    Ok(order)
}

/// Carries out the directives among a patch's elements; what is left of the original and of the patch.
fn apply_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut replace = false;
    for item in patch {
        let Value::Object(fields) = &item else { continue };
        let Some(directive) = fields.get(DIRECTIVE) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let value = fields.get(key).ok_or_else(|| no_merge_key(fields, key))?;
                while let Some(index) = position(&original, key, value)? {
                    original.remove(index);
                }
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(PatchError::Internal(
                    "merging lists cannot yet be specified in the patch".to_owned(),
                ));
            }
            _ => return Err(bad_directive(directive, fields)),
        }
    }
    Ok(if replace { (plain, Vec::new()) } else { (original, plain) })
}

/// Whether the elements are objects; they must all be of one type.
fn uniform(original: &[Value], patch: &[Value]) -> Result<bool, PatchError> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else {
        return Ok(false);
    };
    if first.is_array() {
        return Err(PatchError::Unprocessable("lists of lists are not supported".to_owned()));
    }
    if items.any(|item| go::type_of(item) != go::type_of(first)) {
        let lists = [original, patch].map(|list| go::value(&Value::Array(list.to_vec()))).join(" ");
        return Err(PatchError::Internal(format!("list element types are not identical: [{lists}]")));
    }
    Ok(first.is_object())
}

fn unique(items: Vec<Value>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::with_capacity(items.len());
    for item in items {
        if !out.contains(&item) {
            out.push(item);
        }
    }
    out
}

fn sorted(mut items: Vec<Value>, order: &[Value], key: Option<&str>) -> Result<Vec<Value>, PatchError> {
    let objects = items.iter().chain(order).any(Value::is_object);
    if let (Some(key), true) = (key, objects) {
        for item in items.iter().chain(order) {
            let Value::Object(fields) = item else {
                return Err(bad_type("map[string]interface {}", item));
            };
            if !fields.contains_key(key) {
                return Err(no_merge_key(fields, key));
            }
        }
    }
    items.sort_by_cached_key(|item| index(order, item, key).unwrap_or(usize::MAX));
    Ok(items)
}

fn index(order: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    match key {
        Some(key) if item.is_object() => order.iter().position(|other| other.get(key) == item.get(key)),
        _ => order.iter().position(|other| other == item),
    }
}

fn position(items: &[Value], key: &str, value: &Value) -> Result<Option<usize>, PatchError> {
    for (index, item) in items.iter().enumerate() {
        let Value::Object(fields) = item else {
            return Err(PatchError::Internal(format!("value for key {index} is not a map")));
        };
        if fields.get(key) == Some(value) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn key_of<'v>(item: &'v Value, key: &str) -> Result<&'v Value, PatchError> {
    let fields: &Fields = item.as_object().ok_or_else(|| bad_type("map[string]interface {}", item))?;
    fields.get(key).ok_or_else(|| no_merge_key(fields, key))
}
