//! The last touch to the schemas of the kinds.
//!
//! Types of Kubernetes itself come with descriptions of their own, which would make a CRD several times larger than
//! the API server is happy with: they are left out, but for references and selectors, which are described here and,
//! as in Kubernetes, replaced as a whole when they are applied.

use schemars::Schema;
use serde_json::{Map, Value};

/// The fields whose types are Kubernetes' own.
const FOREIGN: [&str; 13] = [
    "affinity",
    "containers",
    "emptyDir",
    "ephemeral",
    "imagePullSecrets",
    "initContainers",
    "resources",
    "securityContext",
    "tolerations",
    "topologySpreadConstraints",
    "volumeClaimTemplate",
    "volumeMounts",
    "volumes",
];

/// Applied to the schema of each spec.
pub(crate) fn refine(schema: &mut Schema) {
    if let Some(fields) = schema.as_object_mut() {
        walk(fields, false);
    }
}

fn walk(schema: &mut Map<String, Value>, foreign: bool) {
    if foreign {
        schema.remove("description");
    }
    // Nothing is filled in that the user did not say.
    if schema.get("default").is_some_and(|default| *default == Value::Object(Map::new())) {
        schema.remove("default");
    }
    unnamed(schema);
    reference(schema);
    selector(schema);
    for (name, inner) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        if let Some(inner) = inner.as_object_mut() {
            let enters = FOREIGN.contains(&name.as_str());
            let description = inner.get("description").cloned().filter(|_| !foreign);
            walk(inner, foreign || enters);
            // What the field is for is ours to say, wherever its type comes from.
            if let Some(description) = description {
                inner.insert("description".into(), description);
            }
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(keyword).and_then(Value::as_object_mut) {
            walk(inner, foreign);
        }
    }
}

/// The name in a reference may be missing, as in Kubernetes: `bearerTokenSecret: {key: ""}` is common, and means
/// nothing.
fn unnamed(schema: &mut Map<String, Value>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let is_reference = properties.contains_key("optional") || properties.len() == 1;
    if !(is_reference && properties.contains_key("name")) {
        return;
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|field| field != "name");
        if required.is_empty() {
            schema.remove("required");
        }
    }
}

/// A key of a Secret or ConfigMap.
fn reference(schema: &mut Map<String, Value>) {
    const FIELDS: [(&str, &str); 3] = [
        ("key", "The key."),
        ("name", "The name of the Secret or ConfigMap, in the namespace of this object."),
        ("optional", "Whether it may be missing; what refers to it is then left out."),
    ];
    describe(schema, &FIELDS);
}

/// A selector by labels.
fn selector(schema: &mut Map<String, Value>) {
    const FIELDS: [(&str, &str); 2] = [
        ("matchExpressions", "Conditions that must all hold."),
        ("matchLabels", "Labels that must all be there with these values."),
    ];
    const CONDITION: [(&str, &str); 3] = [
        ("key", "The label."),
        ("operator", "`In`, `NotIn`, `Exists` or `DoesNotExist`."),
        ("values", "The values, for `In` and `NotIn`."),
    ];
    if describe(schema, &FIELDS)
        && let Some(items) = schema
            .get_mut("properties")
            .and_then(|properties| properties.pointer_mut("/matchExpressions/items"))
            .and_then(Value::as_object_mut)
    {
        items.remove("description");
        set(items, &CONDITION);
    }
}

/// Describes a schema that has exactly these fields, and has it replaced as a whole.
fn describe(schema: &mut Map<String, Value>, fields: &[(&str, &str)]) -> bool {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return false };
    if properties.len() != fields.len() || !fields.iter().all(|(name, _)| properties.contains_key(*name)) {
        return false;
    }
    set(schema, fields);
    schema.insert("x-kubernetes-map-type".into(), "atomic".into());
    true
}

fn set(schema: &mut Map<String, Value>, fields: &[(&str, &str)]) {
    for (name, description) in fields {
        let field = schema.get_mut("properties").and_then(|properties| properties.get_mut(*name));
        if let Some(field) = field.and_then(Value::as_object_mut) {
            field.insert("description".into(), (*description).into());
        }
    }
}
