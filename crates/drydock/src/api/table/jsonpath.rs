//! The part of JSONPath that printer columns and scale subresources use: fields, indexes, wildcards and filters
//! by equality.

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

fn bracket<'v>(value: &'v Value, inside: &str) -> Vec<&'v Value> {
    let inside = inside.trim();
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
    }
}
