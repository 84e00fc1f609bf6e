//! The annotations that people set on any primary, whatever its operator, and those that the framework sets itself.
//!
//! All of them are under one prefix, [`PREFIX`]:
//!
//! | on a primary | effect | shown as |
//! |---|---|---|
//! | [`PAUSED`]`: "true"` | nothing is made, changed, pruned or cleaned up | condition `Paused` |
//! | [`FORCE`]`: <any new text>` | reconcile now: no pause, earlier fights forgotten, fields taken over, external things looked at again | the writes it leads to |
//! | [`IGNORE`]`: Deployment/a, Service/b` | these dependents are left as they are; the others go on | their entries, reason `Ignored` |
//! | [`ADOPT`]`: ConfigMap/c` | an existing object that nobody controls becomes this dependent | its entry, reason `NotOurs` until then |
//!
//! `*` stands for all dependents. What another controller owns is never taken over, not even by [`ADOPT`].

use std::collections::BTreeSet;

use serde_json::Value;

use crate::plan::Dependent;

/// The prefix of all labels, annotations and finalizers of the framework.
pub const PREFIX: &str = "windlass.dev/";
/// On a primary: `"true"` leaves it and all that belongs to it alone.
pub const PAUSED: &str = "windlass.dev/paused";
/// On a primary: a text that has not been there before reconciles at once and takes fields over.
pub const FORCE: &str = "windlass.dev/force";
/// On a primary: dependents to leave alone, as `Type/name`, separated by commas.
pub const IGNORE: &str = "windlass.dev/ignore";
/// On a primary: existing objects to take over, as `Type/name`, separated by commas.
pub const ADOPT: &str = "windlass.dev/adopt";
/// On a dependent without an owner reference: for whom it was made, as `Kind namespace/name`. Set by the framework.
pub const MADE_FOR: &str = "windlass.dev/made-for";
/// The label of a dependent that is owned, but where an owner reference cannot say so: the owner's uid. Set by the
/// framework.
pub const OWNER: &str = "windlass.dev/owner";
/// On a primary: the external things made for it, as `Type/id`. Set by the framework, before it makes them.
pub const HOLDS: &str = "windlass.dev/holds";

/// The finalizer of an operator.
pub(crate) fn finalizer(operator: &str) -> String {
    format!("{PREFIX}{operator}")
}

/// What the annotations of a primary ask for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wishes {
    pub(crate) paused: bool,
    pub(crate) force: Option<String>,
    ignore: BTreeSet<String>,
    adopt: BTreeSet<String>,
}

impl Wishes {
    pub(crate) fn of(primary: &Value) -> Self {
        let annotation = |name: &str| {
            let annotations = primary.pointer("/metadata/annotations");
            annotations.and_then(|all| all.get(name)).and_then(Value::as_str)
        };
        let list = |name: &str| -> BTreeSet<String> {
            let words = annotation(name).unwrap_or_default().split(',').map(str::trim);
            words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
        };
        Self {
            paused: annotation(PAUSED).is_some_and(|value| !matches!(value, "false" | "no")),
            force: annotation(FORCE).map(str::to_owned),
            ignore: list(IGNORE),
            adopt: list(ADOPT),
        }
    }

    pub(crate) fn ignores(&self, dependent: &Dependent) -> bool {
        names(&self.ignore, dependent)
    }

    /// Whether some dependent is to be left alone.
    pub(crate) fn ignores_some(&self) -> bool {
        !self.ignore.is_empty()
    }

    pub(crate) fn adopts(&self, dependent: &Dependent) -> bool {
        names(&self.adopt, dependent)
    }
}

fn names(list: &BTreeSet<String>, dependent: &Dependent) -> bool {
    let name = &dependent.name.name;
    let is_named = |kind: &str| list.contains(&format!("{kind}/{name}").to_lowercase());
    !list.is_empty()
        && (list.contains("*") || is_named(dependent.kind.name()) || is_named(dependent.type_name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, ObjectName};
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::json;

    fn wishes(annotations: Value) -> Wishes {
        Wishes::of(&json!({"metadata": {"annotations": annotations}}))
    }

    #[test]
    fn dependents_are_named_by_type_and_name() {
        let deployment = Dependent::new(Kind::of::<Deployment>(), ObjectName::new("n", "a"));
        assert!(wishes(json!({IGNORE: "Service/b, deployment/a"})).ignores(&deployment));
        assert!(wishes(json!({IGNORE: "*"})).ignores(&deployment));
        assert!(!wishes(json!({IGNORE: "Deployment/b,a"})).ignores(&deployment));
        assert!(!wishes(json!({IGNORE: "Deployment/a"})).adopts(&deployment));
        assert!(wishes(json!({ADOPT: "Deployment/a"})).adopts(&deployment));
    }

    #[test]
    fn paused_is_anything_but_false() {
        assert!(wishes(json!({PAUSED: "true"})).paused && wishes(json!({PAUSED: ""})).paused);
        assert!(!wishes(json!({PAUSED: "false"})).paused && !wishes(json!({})).paused);
    }
}
