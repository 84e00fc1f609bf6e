//! How the fields of a kind are shown in forms and on pages, from its schema: two levels of the spec and one of the status,
//! since a form of everything that a pod can have helps nobody.

use serde_json::{Value, json};

/// How the fields of a part of an object are shown.
pub(super) struct Form {
    /// What a field is shown as, in the first row that fits.
    hints: &'static [Hint],
    /// Whether people write them: then they choose from enumerations, and see what an object consists of.
    writable: bool,
}

struct Hint {
    /// The field's name, or the end of it.
    name: Name,
    /// The type in the schema, if it matters.
    kind: Option<&'static str>,
    /// The descriptor, below its prefix.
    shown_as: &'static str,
}

enum Name {
    Is(&'static str),
    EndsWith(&'static str),
    Any,
}

const fn hint(name: Name, kind: Option<&'static str>, shown_as: &'static str) -> Hint {
    Hint { name, kind, shown_as }
}

const PREFIX: &str = "urn:alm:descriptor:";

/// Specs.
pub(super) const SPEC: Form = Form { hints: FOR_SPECS, writable: true };
/// Statuses.
pub(super) const STATUS: Form = Form { hints: FOR_STATUSES, writable: false };

const FOR_SPECS: &[Hint] = &[
    hint(Name::Is("replicas"), Some("integer"), "com.tectonic.ui:podCount"),
    hint(Name::Is("resources"), Some("object"), "com.tectonic.ui:resourceRequirements"),
    hint(Name::Is("affinity"), Some("object"), "com.tectonic.ui:advanced"),
    hint(Name::Is("securityContext"), Some("object"), "com.tectonic.ui:advanced"),
    hint(Name::Is("tolerations"), None, "com.tectonic.ui:advanced"),
    hint(Name::Is("nodeSelector"), None, "com.tectonic.ui:advanced"),
    hint(Name::Is("storage"), Some("object"), "com.tectonic.ui:advanced"),
    hint(Name::Is("serviceAccountName"), Some("string"), "io.kubernetes:ServiceAccount"),
    hint(Name::Is("storageClassName"), Some("string"), "io.kubernetes:StorageClass"),
    hint(Name::EndsWith("Secret"), Some("string"), "io.kubernetes:Secret"),
    hint(Name::EndsWith("elector"), Some("object"), "com.tectonic.ui:advanced"),
    hint(Name::Any, Some("boolean"), "com.tectonic.ui:booleanSwitch"),
    hint(Name::Any, Some("integer"), "com.tectonic.ui:number"),
    hint(Name::Any, Some("number"), "com.tectonic.ui:number"),
    hint(Name::Any, Some("string"), "com.tectonic.ui:text"),
];

const FOR_STATUSES: &[Hint] = &[
    hint(Name::Is("conditions"), None, "io.kubernetes.conditions"),
    hint(Name::Is("phase"), Some("string"), "io.kubernetes.phase"),
    hint(Name::EndsWith("eason"), Some("string"), "io.kubernetes.phase:reason"),
    hint(Name::EndsWith("url"), Some("string"), "org.w3:link"),
    hint(Name::Any, Some("string"), "text"),
];

/// The descriptors of a schema's fields.
pub(super) fn of(schema: &Value, form: &Form) -> Vec<Value> {
    let mut found = Vec::new();
    for (name, field) in properties(schema) {
        let whole = shown_as(name, field, form);
        found.push(descriptor(name, name, field, &whole));
        if whole.is_empty() && form.writable {
            for (part, below) in properties(field) {
                let shown = shown_as(part, below, form);
                found.push(descriptor(&format!("{name}.{part}"), part, below, &shown));
            }
        }
    }
    found
}

/// What people call a field or a kind: `timeoutSeconds` is "Timeout Seconds", `publicURL` is "Public URL".
pub(super) fn display_name(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut words = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let begins = letter.is_uppercase()
            && index > 0
            && (letters[index - 1].is_lowercase()
                || letters.get(index + 1).is_some_and(|next| next.is_lowercase()));
        if begins {
            words.push(' ');
        }
        if index == 0 { words.extend(letter.to_uppercase()) } else { words.push(*letter) }
    }
    words
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn shown_as(name: &str, field: &Value, form: &Form) -> Vec<String> {
    if let Some(choices) = field["enum"].as_array().filter(|_| form.writable) {
        let choices = choices.iter().filter_map(Value::as_str);
        return choices.map(|choice| format!("{PREFIX}com.tectonic.ui:select:{choice}")).collect();
    }
    let fits = |hint: &&Hint| {
        let named = match hint.name {
            Name::Is(known) => name == known,
            Name::EndsWith(end) => name.ends_with(end),
            Name::Any => true,
        };
        named && hint.kind.is_none_or(|kind| field["type"] == kind)
    };
    form.hints.iter().find(fits).map(|hint| format!("{PREFIX}{}", hint.shown_as)).into_iter().collect()
}

fn descriptor(path: &str, name: &str, field: &Value, shown_as: &[String]) -> Value {
    let mut descriptor = json!({"path": path, "displayName": display_name(name)});
    if let Some(description) = field["description"].as_str() {
        descriptor["description"] = description.into();
    }
    if !shown_as.is_empty() {
        descriptor["x-descriptors"] = json!(shown_as);
    }
    descriptor
}
