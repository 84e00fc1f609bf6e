//! What a checkup is told.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::env;

/// The longest name of a parameter: it is part of a ConfigMap's key.
const LONGEST_NAME: usize = 200;

/// Parameters as they are written in a spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Params {
    /// Texts by name.
    Map(BTreeMap<String, String>),
    /// A JSON object of texts.
    Text(String),
    /// Neither.
    Other(Value),
}

impl Default for Params {
    fn default() -> Self {
        Self::Map(BTreeMap::new())
    }
}

impl Params {
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Map(map) if map.is_empty())
    }

    /// Texts by name, or what is wrong with them and the way out.
    pub(super) fn read(&self) -> Result<BTreeMap<String, String>, String> {
        let map = match self {
            Self::Map(map) => map.clone(),
            Self::Text(text) if text.trim().is_empty() => BTreeMap::new(),
            Self::Text(text) => serde_json::from_str(text)
                .map_err(|error| format!("spec.params: not a JSON object of strings: {error}"))?,
            Self::Other(Value::Null) => BTreeMap::new(),
            Self::Other(_) => {
                return Err("spec.params: values must be strings; put numbers into quotes".into());
            }
        };
        let mut variables = BTreeSet::new();
        for name in map.keys() {
            let fits = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
            if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) {
                return Err(format!(
                    "spec.params: {name:?} is no name; use at most {LONGEST_NAME} letters, digits, '-', '.' and '_'"
                ));
            }
            let variable = env::variable(name);
            if env::is_reserved(&variable) {
                return Err(format!(
                    "spec.params.{name}: the variable {variable} is reserved; choose another name"
                ));
            }
            if !variables.insert(variable) {
                return Err(format!("spec.params.{name}: another parameter differs from it in case only"));
            }
        }
        Ok(map)
    }
}
