//! What an apply changes, field by field, with nothing in it that is secret.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Change;
use crate::Kind;

/// So many changes are kept of one write.
const MOST: usize = 40;
/// So many characters are kept of one value.
const LONGEST: usize = 160;
const MASKED: &str = "(masked)";

/// Words in a name that say that a value is not for everybody.
const SENSITIVE: [&str; 7] = ["password", "passwd", "secret", "token", "credential", "private", "key"];

/// What `after` changes in `before`. Fields that `after` does not have are left to others, and are not changes;
/// unless it is the `whole` object.
pub(crate) fn changes(kind: &Kind, before: &Value, after: &Value, whole: bool) -> Vec<Change> {
    let mut walk = Walk { secret: is_secret(kind), whole, found: Vec::new() };
    walk.value("", Some(before), Some(after), false);
    if walk.found.len() > MOST {
        let more = walk.found.len() - MOST;
        walk.found.truncate(MOST);
        walk.found.push(Change { path: format!("and {more} more"), from: None, to: None });
    }
    walk.found
}

/// A whole object, with nothing in it that is secret.
pub(crate) fn masked(kind: &Kind, object: &Value) -> Value {
    let mut object = masked_within(object);
    let places = SECRET.iter().filter_map(|(_, pointer)| object.pointer(pointer).map(|_| *pointer));
    let places: Vec<&str> = places.filter(|_| is_secret(kind)).collect();
    for pointer in places {
        if let Some(values) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
            values.values_mut().for_each(|value| *value = MASKED.into());
        }
    }
    object
}

/// What is secret in a Secret, as a path and as a pointer. Annotations too: `kubectl apply` keeps the whole Secret in one.
const SECRET: [(&str, &str); 3] =
    [("data", "/data"), ("stringData", "/stringData"), ("metadata.annotations", "/metadata/annotations")];

fn is_secret(kind: &Kind) -> bool {
    kind.group().is_empty() && kind.name() == "Secret"
}

struct Walk {
    secret: bool,
    whole: bool,
    found: Vec<Change>,
}

impl Walk {
    fn value(&mut self, path: &str, before: Option<&Value>, after: Option<&Value>, masked: bool) {
        if before == after {
            return;
        }
        let masked = masked || self.is_secret(path);
        if let (Some(Value::Array(before)), Some(Value::Array(after))) = (before, after)
            && let Some(key) = key_of(before, after)
        {
            return self.items(path, key, before, after, masked);
        }
        match (before, after) {
            (Some(Value::Object(before)), Some(Value::Object(after))) => {
                self.map(path, before, after, masked)
            }
            // Numbered, so that one field of one item is not shown as the whole list.
            (Some(Value::Array(before)), Some(Value::Array(after))) if before.len() == after.len() => {
                for (index, (before, after)) in before.iter().zip(after).enumerate() {
                    self.value(&format!("{path}[{index}]"), Some(before), Some(after), masked);
                }
            }
            _ => self.found.push(Change {
                path: path.to_owned(),
                from: before.map(|value| shown(value, masked)),
                to: after.map(|value| shown(value, masked)),
            }),
        }
    }

    fn map(&mut self, path: &str, before: &Map<String, Value>, after: &Map<String, Value>, masked: bool) {
        let sensitive = is_sensitive(after) || is_sensitive(before);
        for (key, value) in after {
            let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            if !is_noise(&below) {
                self.value(&below, before.get(key), Some(value), masked || (sensitive && key == "value"));
            }
        }
        let whole = self.whole;
        for (key, value) in before.iter().filter(|(key, _)| whole && !after.contains_key(*key)) {
            let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            self.value(&below, Some(value), None, masked || (sensitive && key == "value"));
        }
    }

    /// Lists of things with names, such as containers.
    fn items(&mut self, path: &str, keys: Keys, before: &[Value], after: &[Value], masked: bool) {
        for item in after {
            let known = before.iter().find(|known| name(keys, known) == name(keys, item));
            let path = format!("{path}[{}]", name(keys, item).unwrap_or_default());
            self.value(&path, known, Some(item), masked);
        }
        let gone = |item: &&Value| !after.iter().any(|now| name(keys, now) == name(keys, item));
        for item in before.iter().filter(gone) {
            let path = format!("{path}[{}]", name(keys, item).unwrap_or_default());
            self.value(&path, Some(item), None, masked);
        }
    }

    fn is_secret(&self, path: &str) -> bool {
        self.secret && SECRET.iter().any(|(place, _)| *place == path)
    }
}

/// The fields by which the items of a list are told apart.
type Keys = &'static [&'static str];

/// The fields by which the items of these lists are told apart, if there are any.
fn key_of(before: &[Value], after: &[Value]) -> Option<Keys> {
    let tells_apart = |keys: Keys, items: &[Value]| {
        let names: BTreeSet<_> = items.iter().filter_map(|item| name(keys, item)).collect();
        !items.is_empty() && names.len() == items.len()
    };
    let all: [Keys; 3] = [&["name"], &["dependentType", "dependentName"], &["type"]];
    all.into_iter().find(|keys| tells_apart(keys, before) && tells_apart(keys, after))
}

/// What an item is called by these fields: `Deployment/api`.
fn name(keys: Keys, item: &Value) -> Option<String> {
    let words: Option<Vec<&str>> = keys.iter().map(|key| item[*key].as_str()).collect();
    words.map(|words| words.join("/"))
}

/// An environment variable, or the like, whose name says that its value is secret.
fn is_sensitive(map: &Map<String, Value>) -> bool {
    let Some(name) = map.get("name").and_then(Value::as_str) else { return false };
    let name = name.to_lowercase();
    SENSITIVE.iter().any(|word| name.contains(word))
}

/// What every write carries and none changes.
fn is_noise(path: &str) -> bool {
    matches!(
        path,
        "apiVersion"
            | "kind"
            | "metadata.uid"
            | "metadata.name"
            | "metadata.namespace"
            | "metadata.ownerReferences"
    )
}

fn shown(value: &Value, masked: bool) -> String {
    if masked {
        return MASKED.to_owned();
    }
    let text = match masked_within(value) {
        Value::String(text) => text,
        other => other.to_string(),
    };
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A whole value, as where an item is new, without the secret values in it.
fn masked_within(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let sensitive = is_sensitive(map);
            let mask = |(key, value): (&String, &Value)| match key.as_str() {
                "value" if sensitive => (key.clone(), MASKED.into()),
                _ => (key.clone(), masked_within(value)),
            };
            Value::Object(map.iter().map(mask).collect())
        }
        Value::Array(items) => items.iter().map(masked_within).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::Secret;
    use serde_json::json;

    use super::*;

    fn texts(changes: &[Change]) -> Vec<String> {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
        changes.iter().map(|one| format!("{}: {} > {}", one.path, text(&one.from), text(&one.to))).collect()
    }

    #[test]
    fn only_what_changes_is_shown() {
        let before = json!({"spec": {"replicas": 1, "paused": false, "containers": [
            {"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}});
        let after = json!({"spec": {"replicas": 2, "containers": [
            {"name": "b", "image": "b:2"}, {"name": "c", "image": "c:1"}]}});
        let found = changes(&Kind::of::<Deployment>(), &before, &after, false);
        assert_eq!(
            texts(&found),
            [
                r#"spec.containers[b].image: b:1 > b:2"#,
                r#"spec.containers[c]: - > {"image":"c:1","name":"c"}"#,
                r#"spec.containers[a]: {"image":"a:1","name":"a"} > -"#,
                "spec.replicas: 1 > 2",
            ]
        );
    }

    #[test]
    fn secret_values_are_masked() {
        let before = json!({"data": {"a": "b2xk"}, "metadata": {"annotations": {"last": "b2xk"}, "labels": {"a": "1"}}});
        let after = json!({"data": {"a": "bmV3", "b": "bmV3"}, "stringData": {"c": "new"},
            "metadata": {"annotations": {"last": "bmV3"}, "labels": {"a": "2"}}});
        let found = texts(&changes(&Kind::of::<Secret>(), &before, &after, false));
        assert!(found.contains(&"data.a: (masked) > (masked)".to_owned()), "{found:?}");
        assert!(found.contains(&"metadata.labels.a: 1 > 2".to_owned()), "{found:?}");
        let all = found.join("\n");
        assert!(!all.contains("bmV3") && !all.contains("new") && !all.contains("b2xk"), "{all}");
    }

    #[test]
    fn a_whole_object_is_shown_without_its_secrets() {
        let secret = json!({"metadata": {"name": "a"}, "data": {"key": "bmV3"}});
        let shown = masked(&Kind::of::<Secret>(), &secret);
        assert_eq!(shown, json!({"metadata": {"name": "a"}, "data": {"key": "(masked)"}}));
        let env = json!({"env": [{"name": "API_TOKEN", "value": "x"}, {"name": "MODE", "value": "y"}]});
        let shown = masked(&Kind::of::<Deployment>(), &env);
        assert_eq!((&shown["env"][0]["value"], &shown["env"][1]["value"]), (&json!("(masked)"), &json!("y")));
    }

    #[test]
    fn variables_named_like_secrets_are_masked() {
        let env = |value: &str| json!({"env": [{"name": "DB_PASSWORD", "value": value}, {"name": "MODE", "value": value}]});
        let found = texts(&changes(&Kind::of::<Deployment>(), &env("one"), &env("two"), false));
        assert_eq!(found, ["env[DB_PASSWORD].value: (masked) > (masked)", "env[MODE].value: one > two"]);
        let found = texts(&changes(&Kind::of::<Deployment>(), &json!({}), &env("one"), false));
        assert_eq!(found.len(), 1);
        assert!(
            found[0].contains("(masked)") && !found[0].contains(r#"PASSWORD","value":"one"#),
            "{found:?}"
        );
    }
}
