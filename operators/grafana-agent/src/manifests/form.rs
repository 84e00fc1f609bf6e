//! Whether an object has the form that its kind's definition says: what the API server would tell of it.
//!
//! Only what decoding cares for: the types of fields, those that are required, those that are unknown. Patterns and
//! enumerations are left to the rendering, which leaves out single objects.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use windlass::Kind;

use crate::kinds::{
    GrafanaAgent, Integration, LogsInstance, MetricsInstance, PodLogs, PodMonitor, Probe, ServiceMonitor,
};

/// The apiVersion that objects of this kind have, if it is one of ours and another than this.
pub(super) fn other_version(kind: &str, version: &str) -> Option<String> {
    let known = [
        Kind::of::<GrafanaAgent>(),
        Kind::of::<MetricsInstance>(),
        Kind::of::<LogsInstance>(),
        Kind::of::<PodLogs>(),
        Kind::of::<Integration>(),
        Kind::of::<ServiceMonitor>(),
        Kind::of::<PodMonitor>(),
        Kind::of::<Probe>(),
    ];
    let known = known.iter().find(|known| known.name() == kind)?.api_version();
    (known != version).then_some(known)
}

/// The fields of these objects that their kinds do not have.
pub(super) fn unknown_fields<'a>(objects: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut notes = Vec::new();
    for object in objects {
        let Some(found) = SCHEMAS.get(&kind_of(object)) else { continue };
        let mut findings = Findings::default();
        findings.walk(&object["spec"], found, "spec");
        let unknown = findings.unknown.into_iter();
        let (kind, path) = (object["kind"].as_str().unwrap_or_default(), path_of(object));
        notes.extend(unknown.map(|field| format!("{kind} {path}: {field} is no field of it; ignored")));
    }
    notes
}

/// What about an object does not fit its kind.
pub(super) fn misfits(object: &Value) -> Option<String> {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let metadata = json!({"type": "object", "properties": {"labels": texts, "annotations": texts}});
    let mut findings = Findings::default();
    findings.walk(&object["metadata"], &metadata, "metadata");
    findings.walk(&object["spec"], SCHEMAS.get(&kind_of(object))?, "spec");
    (!findings.wrong.is_empty()).then(|| findings.wrong.join("; "))
}

/// The schema of each kind's spec, by apiVersion and kind.
static SCHEMAS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let mut schemas = Map::new();
    for crd in crate::crds() {
        for version in &crd.spec.versions {
            let schema = serde_json::to_value(&version.schema).unwrap_or_default();
            let spec = schema.pointer("/openAPIV3Schema/properties/spec").cloned().unwrap_or_default();
            let key = format!("{}/{} {}", crd.spec.group, version.name, crd.spec.names.kind);
            schemas.insert(key, spec);
        }
    }
    schemas
});

fn kind_of(object: &Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    format!("{} {}", text("apiVersion"), text("kind"))
}

fn path_of(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

#[derive(Default)]
struct Findings {
    wrong: Vec<String>,
    unknown: Vec<String>,
}

impl Findings {
    fn walk(&mut self, value: &Value, schema: &Value, path: &str) {
        let is = |keyword: &str| schema[format!("x-kubernetes-{keyword}")] == true;
        let (wanted, fits) = match schema["type"].as_str() {
            _ if is("int-or-string") => ("a number or a text", value.is_string() || value.is_i64()),
            Some("object") => ("a map", value.is_object()),
            Some("array") => ("a list", value.is_array()),
            Some("string") => ("a text", value.is_string()),
            Some("boolean") => ("true or false", value.is_boolean()),
            Some("integer") => ("a whole number", value.is_i64() || value.is_u64()),
            Some("number") => ("a number", value.is_number()),
            _ => return,
        };
        if !fits {
            self.wrong.push(format!("{path}: is {}, and has to be {wanted}", shown(value)));
            return;
        }
        match value {
            Value::Object(fields) if !is("preserve-unknown-fields") => self.walk_fields(fields, schema, path),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.walk(item, &schema["items"], &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }

    fn walk_fields(&mut self, fields: &Map<String, Value>, schema: &Value, path: &str) {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                self.wrong.push(format!("{path}.{name}: is missing"));
            }
        }
        let others = schema.get("additionalProperties");
        for (name, value) in fields {
            let inner = format!("{path}.{name}");
            match schema["properties"].get(name).or(others) {
                Some(schema) => self.walk(value, schema, &inner),
                None => self.unknown.push(inner),
            }
        }
    }
}

/// A value in an error: never long, and of a map or list only what it is.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "a map".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) if text.chars().count() > 40 => "a text".to_owned(),
        scalar => scalar.to_string(),
    }
}
