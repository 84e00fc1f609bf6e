//! The objects that a binding gives its policy as parameters.

use serde_json::{Value, json};
use windlass_machinery::selector::Labels;

use super::super::super::write::decoded;
use super::super::Admission;
use super::matching::labels;
use crate::store::{Key, Scope};

/// The parameters to evaluate a policy with, one after the other; `None` is an evaluation without.
pub(super) fn collect(
    admission: &Admission<'_>,
    kind: &Value,
    reference: &Value,
) -> Result<Vec<Option<Value>>, String> {
    if kind.is_null() || reference.is_null() {
        return Ok(vec![None]);
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, name) = (text(&kind["apiVersion"]), text(&kind["kind"]));
    let registry = admission.server.registry();
    let Some(resource) = registry.of_kind(&version, &name) else {
        return Err(format!("paramKind kind `{version}, Kind={name}` not known"));
    };
    let given = text(&reference["namespace"]);
    let namespace = match (resource.namespaced, given.is_empty(), admission.namespace) {
        (true, false, _) => given,
        (true, true, "") => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                    .to_owned(),
            );
        }
        (true, true, own) => own.to_owned(),
        (false, true, _) => String::new(),
        (false, false, _) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
    };
    let store = &admission.server.store;
    let mut found = Vec::new();
    if let Some(name) = reference["name"].as_str().filter(|name| !name.is_empty()) {
        found.extend(store.get(resource.table, &Key::new(&namespace, name)));
    } else {
        let selector =
            Labels::from_object(Some(&reference["selector"])).map_err(|error| error.to_string())?;
        for stored in store.list(resource.table, &Scope::All).1 {
            let own = !resource.namespaced || *stored.key.namespace == *namespace;
            if own && decoded(&stored).is_ok_and(|param| selector.matches_map(labels(&param))) {
                found.push(stored);
            }
        }
    }
    if found.is_empty() && reference["parameterNotFoundAction"] == "Deny" {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    let typed = |mut param: Value| {
        param["apiVersion"] = json!(version);
        param["kind"] = json!(name);
        Some(param)
    };
    Ok(found.iter().filter_map(|stored| decoded(stored).ok()).map(typed).collect())
}
