//! Whether an apply would change anything, decided without asking the server.
//!
//! The desired object is compared with the observed one along our own share of its managedFields. The share is the
//! set of fields that our last apply had, minus those that somebody else has changed since; so, field by field:
//! one that is desired and not ours is a difference (new, or taken by somebody), one that is ours and not desired
//! is a difference (to be given up), and one that is both must have the desired value. All other fields (defaults,
//! those of other managers) do not matter. How the server merges a list is read off the share too: `k:` items by
//! key, `v:` items as a set, none of them as one value.

use serde_json::{Map, Value};

use super::quantity::same_quantity;

/// Fields whose texts, and those below them, are quantities.
const QUANTITIES: [&str; 8] =
    ["limits", "requests", "capacity", "hard", "overhead", "sizeLimit", "divisor", "storage"];

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
    let fields = |object: &Value| -> Map<String, Value> {
        let all = object.as_object().into_iter().flatten();
        let but_names = all.filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
        but_names.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let metadata = |object: &Value| -> Map<String, Value> {
        let metadata = object.get("metadata").and_then(Value::as_object).into_iter().flatten();
        let ours =
            metadata.filter(|(key, _)| matches!(key.as_str(), "labels" | "annotations" | "finalizers"));
        ours.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let nothing = Value::Object(Map::new());
    let mut share = share.clone();
    let owned_metadata = share.as_object_mut().and_then(|share| share.remove("f:metadata"));
    let mut walk = Walk { path: Vec::new(), strictness };
    walk.enter("metadata", |walk| {
        walk.map(&metadata(desired), &metadata(observed), owned_metadata.as_ref().unwrap_or(&nothing))
    })
    .or_else(|| walk.map(&fields(desired), &fields(observed), &share))
}

/// Removes `null`s: a field that is not set is not desired.
pub(crate) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let set = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(set.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

struct Walk {
    path: Vec<String>,
    strictness: Strictness,
}

/// Whether a desired field that is not ours is a difference by that alone.
#[derive(Clone, Copy, PartialEq)]
enum Strictness {
    OursOnly,
    Anybodys,
}

impl Walk {
    fn value(&mut self, desired: &Value, observed: &Value, owned: &Value) -> Option<String> {
        let atomic = owned.as_object().is_none_or(Map::is_empty);
        match desired {
            Value::Object(map) if !atomic => {
                let empty = Map::new();
                self.map(map, observed.as_object().unwrap_or(&empty), owned)
            }
            Value::Array(items) if !atomic => self.list(items, observed, owned),
            _ => self.whole(desired, observed),
        }
    }

    fn map(
        &mut self,
        desired: &Map<String, Value>,
        observed: &Map<String, Value>,
        owned: &Value,
    ) -> Option<String> {
        for (key, value) in desired {
            let observed = observed.get(key).unwrap_or(&Value::Null);
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
        let given_up = |key: &String| key.strip_prefix("f:").is_some_and(|key| !desired.contains_key(key));
        let key = owned.as_object()?.keys().find(|key| given_up(key))?;
        self.enter(key.trim_start_matches("f:"), |walk| walk.here())
    }

    fn list(&mut self, desired: &[Value], observed: &Value, owned: &Value) -> Option<String> {
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
    fn whole(&mut self, desired: &Value, observed: &Value) -> Option<String> {
        match (desired, observed) {
            (Value::Object(desired), Value::Object(observed)) => desired.iter().find_map(|(key, value)| {
                self.enter(key, |walk| walk.whole(value, observed.get(key).unwrap_or(&Value::Null)))
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
        self.path.iter().any(|key| QUANTITIES.contains(&key.as_str()))
            && text(desired).zip(text(observed)).is_some_and(|(one, other)| same_quantity(&one, &other))
    }

    fn enter<T>(&mut self, key: &str, visit: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(key.to_owned());
        let result = visit(self);
        self.path.pop();
        result
    }

    fn here(&self) -> Option<String> {
        Some(self.path.join("."))
    }
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
