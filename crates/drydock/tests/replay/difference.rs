//! What is different between two answers.

use serde_json::Value;

/// Each difference with its path, expected things first.
pub(crate) fn between(expected: &Value, got: &Value) -> Vec<String> {
    let mut out = Vec::new();
    walk(expected, got, "", &mut out);
    out
}

fn walk(expected: &Value, got: &Value, path: &str, out: &mut Vec<String>) {
    match (expected, got) {
        (Value::Object(wanted), Value::Object(given)) => {
            let mut keys: Vec<&String> = wanted.keys().chain(given.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                match (wanted.get(key), given.get(key)) {
                    (Some(wanted), Some(given)) => walk(wanted, given, &format!("{path}.{key}"), out),
                    (Some(wanted), None) => {
                        out.push(format!("{path}.{key}: missing, expected {}", short(wanted)))
                    }
                    (None, Some(given)) => out.push(format!("{path}.{key}: not expected: {}", short(given))),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(wanted), Value::Array(given)) if wanted.len() == given.len() => {
            for (index, (wanted, given)) in wanted.iter().zip(given).enumerate() {
                walk(wanted, given, &format!("{path}[{index}]"), out);
            }
        }
        (Value::Array(wanted), Value::Array(given)) => out.push(format!(
            "{path}: expected {} elements, got {}: {} / {}",
            wanted.len(),
            given.len(),
            short(expected),
            short(got)
        )),
        _ if expected == got => {}
        _ => out.push(format!("{path}: expected {}, got {}", short(expected), short(got))),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(400) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
