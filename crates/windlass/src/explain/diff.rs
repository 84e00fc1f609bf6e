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
    let secret = kind.group().is_empty() && kind.name() == "Secret";
    let mut walk = Walk { secret, whole, found: Vec::new() };
    walk.value("", Some(before), Some(after), false);
    if walk.found.len() > MOST {
        let more = walk.found.len() - MOST;
        walk.found.truncate(MOST);
        walk.found.push(Change { path: format!("and {more} more"), from: None, to: None });
    }
    walk.found
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
    fn items(&mut self, path: &str, key: &str, before: &[Value], after: &[Value], masked: bool) {
        let name = |item: &Value| item[key].as_str().unwrap_or_default().to_owned();
        for item in after {
            let known = before.iter().find(|known| known[key] == item[key]);
            self.value(&format!("{path}[{}]", name(item)), known, Some(item), masked);
        }
        for item in before.iter().filter(|item| !after.iter().any(|now| now[key] == item[key])) {
            self.value(&format!("{path}[{}]", name(item)), Some(item), None, masked);
        }
    }

    fn is_secret(&self, path: &str) -> bool {
        // Annotations too: `kubectl apply` keeps the whole Secret in one.
        let places = ["data", "stringData", "metadata.annotations"];
        self.secret && places.contains(&path)
    }
}

/// The field by which the items of a list are told apart, if there is one.
fn key_of(before: &[Value], after: &[Value]) -> Option<&'static str> {
    let tells_apart = |key: &str, items: &[Value]| {
        let names: BTreeSet<_> = items.iter().filter_map(|item| item[key].as_str()).collect();
        !items.is_empty() && names.len() == items.len()
    };
    let keys = ["name", "dependentName", "type"];
    keys.into_iter().find(|key| tells_apart(key, before) && tells_apart(key, after))
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
