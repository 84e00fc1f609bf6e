//! Executes relabeling rules as Prometheus does.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

pub(crate) type Labels = BTreeMap<String, String>;

/// The labels after all rules; nothing if the target or sample is dropped. `$(SHARD)` is this shard.
pub(crate) fn run(rules: &Value, mut labels: Labels, shard: usize) -> Option<Labels> {
    for rule in rules.as_array().into_iter().flatten() {
        let text = |field: &str, default: &str| rule[field].as_str().unwrap_or(default).to_owned();
        let sources = rule["source_labels"].as_array().cloned().unwrap_or_default();
        let values: Vec<_> = sources.iter().map(|source| get(&labels, source.as_str().unwrap())).collect();
        let value = values.join(&text("separator", ";"));
        let pattern = text("regex", "(.*)").replace("$(SHARD)", &shard.to_string());
        let regex = Regex::new(&format!("^(?s:{pattern})$")).unwrap();
        let (target, replacement) = (text("target_label", ""), text("replacement", "$1"));
        let expand = |captures: &regex::Captures<'_>| {
            let mut out = String::new();
            captures.expand(&replacement, &mut out);
            out
        };
        match text("action", "replace").to_lowercase().as_str() {
            "replace" => {
                if let Some(captures) = regex.captures(&value) {
                    set(&mut labels, &target, expand(&captures));
                }
            }
            "keep" if !regex.is_match(&value) => return None,
            "drop" if regex.is_match(&value) => return None,
            "keep" | "drop" => {}
            "hashmod" => {
                let hash = value.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
                });
                let hash = (hash ^ (hash >> 32)) % rule["modulus"].as_u64().unwrap();
                set(&mut labels, &target, hash.to_string());
            }
            "labeldrop" => labels.retain(|name, _| !regex.is_match(name)),
            "labelkeep" => labels.retain(|name, _| regex.is_match(name)),
            "labelmap" => {
                for (name, value) in labels.clone() {
                    if let Some(captures) = regex.captures(&name) {
                        set(&mut labels, &expand(&captures), value);
                    }
                }
            }
            "uppercase" => set(&mut labels, &target, value.to_uppercase()),
            other => panic!("{other}"),
        }
    }
    Some(labels)
}

fn get(labels: &Labels, name: &str) -> String {
    labels.get(name).cloned().unwrap_or_default()
}

fn set(labels: &mut Labels, name: &str, value: String) {
    if value.is_empty() {
        labels.remove(name);
    } else {
        labels.insert(name.to_owned(), value);
    }
}
