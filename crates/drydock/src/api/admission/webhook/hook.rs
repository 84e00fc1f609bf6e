//! One webhook of a configuration, compiled.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_machinery::selector::Labels;

use super::super::super::destination::Destination;
use super::super::super::write::name_of;
use super::super::policy::Conditions;

/// A webhook.
#[derive(Debug)]
pub(super) struct Hook {
    pub(super) name: String,
    /// What tells it from others with its name.
    pub(super) id: String,
    pub(super) destination: Destination,
    pub(super) namespaces: Value,
    pub(super) objects: Value,
    /// Rules name versions, and mean no others.
    pub(super) exact: bool,
    pub(super) conditions: Option<Conditions>,
    pub(super) ignores_failures: bool,
    pub(super) timeout: Duration,
    /// Whether a rehearsal may call it.
    pub(super) harmless: bool,
    /// The version of reviews that it is sent: none where it takes none of ours.
    pub(super) review: Option<&'static str>,
    /// Whether it is called again where others changed the object after it.
    pub(super) again: bool,
    rules: Value,
}

impl Hook {
    /// The webhooks of a configuration, in their order.
    pub(super) fn compile(configuration: &Value) -> Vec<Self> {
        let owner = name_of(configuration);
        let hooks = configuration["webhooks"].as_array().map(Vec::as_slice).unwrap_or_default();
        hooks.iter().enumerate().map(|(index, hook)| Self::new(owner, index, hook)).collect()
    }

    fn new(owner: &str, index: usize, hook: &Value) -> Self {
        let text = |field: &str| hook[field].as_str().unwrap_or_default();
        let versions = hook["admissionReviewVersions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let known = |version: &Value| ["v1", "v1beta1"].into_iter().find(|known| version == known);
        let conditions = hook["matchConditions"].as_array().filter(|list| !list.is_empty());
        let selector = |field: &str| {
            let labels = Labels::from_object(Some(&hook[field]).filter(|one| !one.is_null()));
            let plain = labels.is_ok_and(|labels| labels.is_everything() || labels.is_nothing());
            if plain { Value::Null } else { hook[field].clone() }
        };
        Self {
            name: text("name").to_owned(),
            id: format!("{owner}/{}/{index}", text("name")),
            destination: Destination::read(&hook["clientConfig"]),
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            exact: text("matchPolicy") == "Exact",
            conditions: conditions
                .map(|_| Conditions::compile(&json!({"matchConditions": hook["matchConditions"]}))),
            ignores_failures: text("failurePolicy") == "Ignore",
            timeout: Duration::from_secs(hook["timeoutSeconds"].as_u64().unwrap_or(10)),
            harmless: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            review: versions.iter().find_map(known),
            again: text("reinvocationPolicy") == "IfNeeded",
            rules: hook["rules"].clone(),
        }
    }

    pub(super) fn rules(&self) -> &[Value] {
        self.rules.as_array().map(Vec::as_slice).unwrap_or_default()
    }
}
