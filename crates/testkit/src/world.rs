//! What an operator has made, as far as two runs can be compared.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use windlass_drydock::Drydock;
use windlass_drydock::store::Scope;

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The objects that carry the operator's label, by kind and name, each with how often its spec was changed.
///
/// Content is left out: it may hold random values, which two runs need not share. That an object was made once, and
/// not rewritten since, shows in its generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World(BTreeMap<String, i64>);

impl World {
    pub(crate) fn of(drydock: &Drydock, operator: &str) -> Self {
        let server = drydock.server();
        let mut found = BTreeMap::new();
        for resource in server.registry().all() {
            if !resource.allows("list") {
                continue;
            }
            for stored in server.store.list(resource.table, &Scope::All).1 {
                if stored.label(MANAGED_BY) != Some(operator) {
                    continue;
                }
                let object: Value = serde_json::from_slice(&stored.body).unwrap_or_default();
                // What is made by what was made carries its labels too, and random names.
                let owner = &object["metadata"]["ownerReferences"][0]["apiVersion"];
                let built_in =
                    owner.as_str().is_some_and(|version| matches!(version, "v1" | "apps/v1" | "batch/v1"));
                if built_in || owner.is_null() {
                    continue;
                }
                let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
                found.insert(
                    format!("{} {}/{}", resource.kind, stored.key.namespace, stored.key.name),
                    generation,
                );
            }
        }
        Self(found)
    }

    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for World {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, generation) in &self.0 {
            writeln!(formatter, "{name} (generation {generation})")?;
        }
        Ok(())
    }
}
