//! Which names of a definition are free: no other definition of its group has had them accepted before.

use serde_json::{Value, json};

use super::super::server::Server;
use super::super::write::{decoded, name_of};
use super::set_condition;
use crate::store::{Scope, TableId};

/// The names that the other definitions of a group have, for resources and for kinds.
#[derive(Debug, Default)]
pub(super) struct Taken {
    resources: Vec<String>,
    kinds: Vec<String>,
}

impl Taken {
    /// What is taken from the point of view of a definition.
    pub(super) fn by_others(server: &Server, table: TableId, definition: &Value) -> Self {
        let mut taken = Self::default();
        for other in of_group(server, table, &definition["spec"]["group"]) {
            if name_of(&other) == name_of(definition) {
                continue;
            }
            let names = &other["status"]["acceptedNames"];
            let texts = |value: &Value| -> Vec<String> {
                let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
                list.iter().chain([value]).filter_map(Value::as_str).map(ToOwned::to_owned).collect()
            };
            for field in ["plural", "singular", "shortNames"] {
                taken.resources.extend(texts(&names[field]));
            }
            for field in ["kind", "listKind"] {
                taken.kinds.extend(texts(&names[field]));
            }
        }
        taken
    }
}

/// The definitions of a group.
pub(super) fn of_group(server: &Server, table: TableId, group: &Value) -> Vec<Value> {
    let (_, stored) = server.store.list(table, &Scope::All);
    let all = stored.iter().filter_map(|stored| decoded(stored).ok());
    all.filter(|definition| definition["spec"]["group"] == *group).collect()
}

/// Accepts the names of a definition that are free, and says which are not.
pub(super) fn accept(definition: &mut Value, taken: &Taken, now: &str) {
    let wanted = definition["spec"]["names"].clone();
    let before = definition["status"]["acceptedNames"].clone();
    let mut accepted = before.clone();
    let mut conflict = None;
    let used = |name: &Value, list: &[String]| {
        list.iter().any(|taken| name == taken.as_str()).then(|| format!("{name} is already in use"))
    };
    let fields = [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ];
    for (field, reason, list) in fields {
        let had = |name: &Value| {
            before[field] == *name || before[field].as_array().is_some_and(|l| l.contains(name))
        };
        let names =
            wanted[field].as_array().map(Vec::as_slice).unwrap_or(std::slice::from_ref(&wanted[field]));
        let faults: Vec<String> =
            names.iter().filter(|name| !had(name)).filter_map(|name| used(name, list)).collect();
        match faults.as_slice() {
            [] if wanted[field].is_null() => drop(accepted.as_object_mut().and_then(|map| map.remove(field))),
            [] => accepted[field] = wanted[field].clone(),
            [one] => conflict = Some((reason, one.clone())),
            several => conflict = Some((reason, format!("[{}]", several.join(", ")))),
        }
    }
    match wanted["categories"].is_null() {
        true => drop(accepted.as_object_mut().and_then(|map| map.remove("categories"))),
        false => accepted["categories"] = wanted["categories"].clone(),
    }
    definition["status"]["acceptedNames"] = accepted;
    match conflict {
        None => {
            set_condition(definition, now, "NamesAccepted", true, "NoConflicts", "no conflicts found");
            let message = "the initial names have been accepted";
            set_condition(definition, now, "Established", true, "InitialNamesAccepted", message);
        }
        Some((reason, message)) => {
            set_condition(definition, now, "NamesAccepted", false, reason, &message);
            // What was established stays so.
            let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
            if conditions.iter().all(|known| known["type"] != "Established") {
                let message = "not all names are accepted";
                set_condition(definition, now, "Established", false, "NotAccepted", message);
            }
        }
    }
}

/// Whether the names of a definition are not all accepted.
pub(super) fn wants_names(definition: &Value) -> bool {
    let (wanted, accepted) = (&definition["spec"]["names"], &definition["status"]["acceptedNames"]);
    *wanted != *accepted || *accepted == json!(null)
}
