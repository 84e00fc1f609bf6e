//! Whether an apply would change anything, decided without asking the server.
//!
//! The desired object is compared with the observed one along our own share of its managedFields. The share is the
//! set of fields that our last apply had, minus those that somebody else has changed since; so, field by field:
//! one that is desired and not ours is a difference (new, or taken by somebody), one that is ours and not desired
//! is a difference (to be given up), and one that is both must have the desired value. All other fields (defaults,
//! those of other managers) do not matter. How the server merges a list is read off the share too: `k:` items by
//! key, `v:` items as a set, none of them as one value.

use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::quantity::same_quantity;

/// Fields whose texts, and those below them, are quantities.
const QUANTITIES: [&str; 8] =
    ["limits", "requests", "capacity", "hard", "overhead", "sizeLimit", "divisor", "storage"];

static NOTHING: Value = Value::Null;

fn none() -> &'static Map<String, Value> {
    static NONE: OnceLock<Map<String, Value>> = OnceLock::new();
    NONE.get_or_init(Map::new)
}

/// The path of the first difference, or nothing if an apply would change nothing.
///
/// `share` is `FieldsV1`. Owner references, name, namespace and uid are not looked at here.
pub(crate) fn difference(desired: &Value, observed: &Value, share: &Value) -> Option<String> {
    compare(desired, observed, share, Strictness::OursOnly)
}

/// The path of the first field whose value differs, whoever owns it: where somebody else has set a field to what
/// we want, an apply without force succeeds.
pub(crate) fn difference_in_value(desired: &Value, observed: &Value, share: &Value) -> Option<String> {
    compare(desired, observed, share, Strictness::Anybodys)
}

fn compare(desired: &Value, observed: &Value, share: &Value, strictness: Strictness) -> Option<String> {
    fn map(object: Option<&Value>) -> &Map<String, Value> {
        object.and_then(Value::as_object).unwrap_or_else(|| none())
    }
    let mut walk = Walk { path: Vec::new(), strictness };
    walk.enter("metadata", |walk| {
        let owned = share.get("f:metadata").unwrap_or(&NOTHING);
        let ours = |key: &str| matches!(key, "labels" | "annotations" | "finalizers");
        walk.map(map(desired.get("metadata")), map(observed.get("metadata")), owned, ours)
    })
    .or_else(|| {
        let ours = |key: &str| !matches!(key, "apiVersion" | "kind" | "metadata");
        walk.map(map(Some(desired)), map(Some(observed)), share, ours)
    })
}

/// Removes `null`s: a field that is not set is not desired.
pub(crate) fn without_nulls(mut value: Value) -> Value {
    remove_nulls(&mut value);
    value
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            // Most maps have none, and stay as they are.
            if map.values().any(Value::is_null) {
                map.retain(|_, value| !value.is_null());
            }
            map.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

struct Walk<'a> {
    path: Vec<&'a str>,
    strictness: Strictness,
}

/// Whether a desired field that is not ours is a difference by that alone.
#[derive(Clone, Copy, PartialEq)]
enum Strictness {
    OursOnly,
    Anybodys,
}

impl<'a> Walk<'a> {
    fn value(&mut self, desired: &'a Value, observed: &'a Value, owned: &'a Value) -> Option<String> {
        let atomic = owned.as_object().is_none_or(Map::is_empty);
        match desired {
            Value::Object(map) if !atomic => {
                self.map(map, observed.as_object().unwrap_or_else(|| none()), owned, |_| true)
            }
            Value::Array(items) if !atomic => self.list(items, observed, owned),
            _ => self.whole(desired, observed),
        }
    }

    /// Compares two maps in the fields that count.
    fn map(
        &mut self,
        desired: &'a Map<String, Value>,
        observed: &'a Map<String, Value>,
        owned: &'a Value,
        counts: impl Fn(&str) -> bool,
    ) -> Option<String> {
        for (key, value) in desired.iter().filter(|(key, _)| counts(key)) {
            let observed = observed.get(key).unwrap_or(&NOTHING);
            let difference = self.enter(key, |walk| match owned.get(format!("f:{key}")) {
                Some(owned) => walk.value(value, observed, owned),
                // What is empty may leave no trace at the server.
                None if is_empty(value) && is_empty(observed) => None,
                None if walk.strictness == Strictness::Anybodys => walk.whole(value, observed),
                None => walk.here(),
            });
            if difference.is_some() {
                return difference;
            }
        }
        let given_up = |key: &String| {
            key.strip_prefix("f:").is_some_and(|key| counts(key) && !desired.contains_key(key))
        };
        let key = owned.as_object()?.keys().find(|key| given_up(key))?;
        self.enter(key.trim_start_matches("f:"), |walk| walk.here())
    }

    fn list(&mut self, desired: &'a [Value], observed: &'a Value, owned: &'a Value) -> Option<String> {
        let observed = observed.as_array().map(Vec::as_slice).unwrap_or_default();
        let owned: Vec<(&String, &Value)> =
            owned.as_object()?.iter().filter(|(key, _)| *key != ".").collect();
        if owned.len() != desired.len() {
            return self.here();
        }
        let mut taken = vec![false; owned.len()];
        for item in desired {
            let fits = |at: &usize| !taken[*at] && names(owned[*at].0, item);
            let Some(at) = (0..owned.len()).find(fits) else {
                return self.here();
            };
            taken[at] = true;
            let (key, owned) = owned[at];
            let difference =
                self.enter(key, |walk| match observed.iter().find(|candidate| names(key, candidate)) {
                    Some(found) => walk.value(item, found, owned),
                    None => walk.here(),
                });
            if difference.is_some() {
                return difference;
            }
        }
        None
    }

    /// Compares what the server keeps as one value. Fields that it added are its defaults: had somebody else
    /// changed the value, it would not be ours any more.
    fn whole(&mut self, desired: &'a Value, observed: &'a Value) -> Option<String> {
        match (desired, observed) {
            (Value::Object(desired), Value::Object(observed)) => desired.iter().find_map(|(key, value)| {
                self.enter(key, |walk| walk.whole(value, observed.get(key).unwrap_or(&NOTHING)))
            }),
            (Value::Array(desired), Value::Array(observed)) if desired.len() == observed.len() => {
                desired.iter().zip(observed).find_map(|(desired, observed)| self.whole(desired, observed))
            }
            _ if desired == observed || self.same_quantity(desired, observed) => None,
            (desired, Value::Null) if is_zero(desired) => None,
            _ => self.here(),
        }
    }

    fn same_quantity(&self, desired: &Value, observed: &Value) -> bool {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        self.path.iter().any(|key| QUANTITIES.contains(key))
            && text(desired).zip(text(observed)).is_some_and(|(one, other)| same_quantity(&one, &other))
    }

    fn enter<T>(&mut self, key: &'a str, visit: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(key);
        let result = visit(self);
        self.path.pop();
        result
    }

    fn here(&self) -> Option<String> {
        Some(self.path.iter().fold(String::new(), |path, key| match item_title(key) {
            Some(item) => format!("{path}[{item}]"),
            None if path.is_empty() => (*key).to_owned(),
            None => format!("{path}.{key}"),
        }))
    }
}

/// How `k:{…}` or `v:…` is written for people: `name=main`.
fn item_title(key: &str) -> Option<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(value) = key.strip_prefix("v:") {
        return serde_json::from_str(value).ok().map(|value| text(&value));
    }
    let keys: Map<String, Value> = serde_json::from_str(key.strip_prefix("k:")?).ok()?;
    let keys: Vec<_> = keys.iter().map(|(key, value)| format!("{key}={}", text(value))).collect();
    Some(keys.join(","))
}

/// Whether `k:{…}` or `v:…` names this item of a list. A key that the item leaves to its default fits anything.
fn names(key: &str, item: &Value) -> bool {
    if let Some(value) = key.strip_prefix("v:") {
        return serde_json::from_str::<Value>(value).is_ok_and(|value| value == *item);
    }
    let keys: Map<String, Value> =
        key.strip_prefix("k:").and_then(|keys| serde_json::from_str(keys).ok()).unwrap_or_default();
    !keys.is_empty() && keys.iter().all(|(key, value)| item.get(key).is_none_or(|own| own == value))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Values that the server may leave out when it writes an object.
fn is_zero(value: &Value) -> bool {
    is_empty(value) || *value == Value::Bool(false) || value.as_f64() == Some(0.0)
}

#[cfg(test)]
mod tests;
