//! The JSONPath of printer columns and scale subresources: fields, indexes, slices, unions, wildcards, descent and
//! filters by equality.

use serde_json::Value;

/// The values at a path such as `.spec.size` or `.status.conditions[?(@.type=="Ready")].status`.
#[must_use]
pub fn find<'v>(root: &'v Value, path: &str) -> Vec<&'v Value> {
    let mut found = vec![root];
    let mut rest = path.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
    while !rest.is_empty() && !found.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let Some(end) = closing(after) else { return Vec::new() };
            found = found.into_iter().flat_map(|value| bracket(value, &after[..end])).collect();
            rest = &after[end + 1..];
        } else if let Some(after) = rest.strip_prefix("..") {
            let (name, remainder) = field_name(after);
            let mut below = Vec::new();
            found.into_iter().for_each(|value| descend(value, &name, &mut below));
            found = below;
            rest = remainder;
        } else {
            let after = rest.strip_prefix('.').unwrap_or(rest);
            let (name, remainder) = field_name(after);
            if name.is_empty() {
                rest = remainder;
                continue;
            }
            found = found.into_iter().flat_map(|value| member(value, &name)).collect();
            rest = remainder;
        }
    }
    found
}

/// Sets the number at a path of plain fields.
pub fn set(root: &mut Value, path: &str, value: Value) {
    let mut place = root;
    for name in path.split('.').filter(|name| !name.is_empty()) {
        if !place.is_object() {
            *place = Value::Object(serde_json::Map::new());
        }
        place = &mut place[name];
    }
    *place = value;
}

fn field_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => {
                if let Some((_, escaped)) = chars.next() {
                    name.push(escaped);
                }
            }
            '.' | '[' => return (name, &text[at..]),
            _ => name.push(char),
        }
    }
    (name, "")
}

fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    for (at, char) in text.char_indices() {
        match (quote, char) {
            (Some(open), char) if char == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(char),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn member<'v>(value: &'v Value, name: &str) -> Vec<&'v Value> {
    match (value, name) {
        (Value::Object(map), "*") => map.values().collect(),
        (Value::Array(list), "*") => list.iter().collect(),
        (Value::Object(map), _) => map.get(name).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// All fields of a name, at any depth.
fn descend<'v>(value: &'v Value, name: &str, out: &mut Vec<&'v Value>) {
    out.extend(member(value, name));
    match value {
        Value::Object(fields) => fields.values().for_each(|value| descend(value, name, out)),
        Value::Array(items) => items.iter().for_each(|value| descend(value, name, out)),
        _ => {}
    }
}

/// The parts of a union, at the commas that are in no quotes.
fn parts(inside: &str) -> Vec<&str> {
    let (mut quote, mut start, mut out) = (None, 0, Vec::new());
    for (at, char) in inside.char_indices() {
        match (quote, char) {
            (Some(open), char) if char == open => quote = None,
            (None, '"' | '\'') => quote = Some(char),
            (None, ',') => {
                out.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(&inside[start..]);
    out
}

/// The elements of a slice `start:end:step`, each part of which may be left out.
fn slice<'v>(list: &'v [Value], inside: &str) -> Option<Vec<&'v Value>> {
    let length = i64::try_from(list.len()).ok()?;
    let mut numbers = inside.split(':').map(|part| match part.trim() {
        "" => Some(None),
        part => part.parse::<i64>().ok().map(Some),
    });
    let mut next = || numbers.next().unwrap_or(Some(None));
    let (start, end, step) = (next()?, next()?, next()?);
    let from_end = |index: i64| if index < 0 { index + length } else { index };
    let (start, end) = (from_end(start.unwrap_or(0)), from_end(end.unwrap_or(length)));
    if start < 0 || start > end || end > length {
        return None;
    }
    let step = usize::try_from(step.unwrap_or(1)).ok().filter(|step| *step > 0)?;
    let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
    Some(list[start..end].iter().step_by(step).collect())
}

fn bracket<'v>(value: &'v Value, inside: &str) -> Vec<&'v Value> {
    let inside = inside.trim();
    if !inside.starts_with('?')
        && let parts = parts(inside)
        && parts.len() > 1
    {
        return parts.into_iter().flat_map(|part| bracket(value, part)).collect();
    }
    if let Some(filter) = inside.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
        let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
        return list.iter().filter(|item| passes(item, filter)).collect();
    }
    if let Some(name) = unquote(inside) {
        return member(value, name);
    }
    match (value, inside.parse::<i64>()) {
        (Value::Array(list), Ok(index)) => {
            let index = if index < 0 { index + i64::try_from(list.len()).unwrap_or(0) } else { index };
            usize::try_from(index).ok().and_then(|index| list.get(index)).into_iter().collect()
        }
        (_, Err(_)) if inside == "*" => member(value, "*"),
        (Value::Array(list), Err(_)) if inside.contains(':') => slice(list, inside).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn passes(item: &Value, filter: &str) -> bool {
    for operator in ["==", "!="] {
        if let Some((left, right)) = filter.split_once(operator) {
            let path = left.trim().trim_start_matches('@');
            let right = right.trim();
            let found = find(item, path);
            let equal = found.first().is_some_and(|value| match unquote(right) {
                Some(text) => value.as_str() == Some(text),
                None => serde_json::from_str::<Value>(right).is_ok_and(|right| right == **value),
            });
            return equal == (operator == "==");
        }
    }
    !find(item, filter.trim().trim_start_matches('@')).is_empty()
}

fn unquote(text: &str) -> Option<&str> {
    ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn printer_columns_find_their_values() {
        let object = json!({"spec": {"size": 3, "a.b": 1}, "status": {"conditions": [
            {"type": "Ready", "status": "True"}, {"type": "Degraded", "status": "False"}]}});
        assert_eq!(find(&object, ".spec.size"), [&json!(3)]);
        assert_eq!(find(&object, r".spec.a\.b"), [&json!(1)]);
        assert_eq!(find(&object, r#".status.conditions[?(@.type=="Ready")].status"#), [&json!("True")]);
        assert_eq!(find(&object, ".status.conditions[1].type"), [&json!("Degraded")]);
        assert!(find(&object, ".status.nothing[0].x").is_empty());
        let list = json!({"l": ["a", "b", "c"], "m": {"x": 1, "y": {"x": 2}}});
        assert_eq!(find(&list, ".l[-1]"), [&json!("c")]);
        assert_eq!(find(&list, ".l[0:2]"), [&json!("a"), &json!("b")]);
        assert_eq!(find(&list, ".l[-2:]"), [&json!("b"), &json!("c")]);
        assert_eq!(find(&list, ".l[::2]"), [&json!("a"), &json!("c")]);
        assert!(find(&list, ".l[2:9]").is_empty());
        assert_eq!(find(&list, ".m['x','y']"), [&json!(1), &json!({"x": 2})]);
        assert_eq!(find(&list, "..x"), [&json!(1), &json!(2)]);
    }
}
