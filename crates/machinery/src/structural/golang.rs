//! A definition as the API server holds it in memory, for messages that show whole parts of it.

use serde_json::Value;

use super::props::{Items, Props};
use crate::go;

/// How Go holds a field of a schema.
#[derive(Clone, Copy)]
enum Kind {
    /// Zero when it is not set.
    Text,
    Flag,
    /// Nil when it is not set.
    Json,
    Schema,
    Schemas,
    Map,
    Items,
    SchemaOrFlag,
    Docs,
    Rules,
}

/// The fields of a schema, in Go's order: Go's name, JSON's name, form.
const SCHEMA: [(&str, &str, Kind); 44] = [
    ("ID", "id", Kind::Text),
    ("Schema", "$schema", Kind::Text),
    ("Ref", "$ref", Kind::Json),
    ("Description", "description", Kind::Text),
    ("Type", "type", Kind::Text),
    ("Nullable", "nullable", Kind::Flag),
    ("Format", "format", Kind::Text),
    ("Title", "title", Kind::Text),
    ("Default", "default", Kind::Json),
    ("Maximum", "maximum", Kind::Json),
    ("ExclusiveMaximum", "exclusiveMaximum", Kind::Flag),
    ("Minimum", "minimum", Kind::Json),
    ("ExclusiveMinimum", "exclusiveMinimum", Kind::Flag),
    ("MaxLength", "maxLength", Kind::Json),
    ("MinLength", "minLength", Kind::Json),
    ("Pattern", "pattern", Kind::Text),
    ("MaxItems", "maxItems", Kind::Json),
    ("MinItems", "minItems", Kind::Json),
    ("UniqueItems", "uniqueItems", Kind::Flag),
    ("MultipleOf", "multipleOf", Kind::Json),
    ("Enum", "enum", Kind::Json),
    ("MaxProperties", "maxProperties", Kind::Json),
    ("MinProperties", "minProperties", Kind::Json),
    ("Required", "required", Kind::Json),
    ("Items", "items", Kind::Items),
    ("AllOf", "allOf", Kind::Schemas),
    ("OneOf", "oneOf", Kind::Schemas),
    ("AnyOf", "anyOf", Kind::Schemas),
    ("Not", "not", Kind::Schema),
    ("Properties", "properties", Kind::Map),
    ("AdditionalProperties", "additionalProperties", Kind::SchemaOrFlag),
    ("PatternProperties", "patternProperties", Kind::Map),
    ("Dependencies", "dependencies", Kind::Map),
    ("AdditionalItems", "additionalItems", Kind::SchemaOrFlag),
    ("Definitions", "definitions", Kind::Map),
    ("ExternalDocs", "externalDocs", Kind::Docs),
    ("Example", "example", Kind::Json),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Kind::Json),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Kind::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Kind::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Kind::Json),
    ("XListType", "x-kubernetes-list-type", Kind::Json),
    ("XMapType", "x-kubernetes-map-type", Kind::Json),
    ("XValidations", "x-kubernetes-validations", Kind::Rules),
];

/// The fields of a schema that are set, by Go's names and in Go's order.
pub(super) fn set_fields(schema: Props<'_>) -> impl Iterator<Item = &'static str> {
    let set = move |name: &str, kind: Kind| match kind {
        Kind::Text => !schema.text(name).is_empty(),
        Kind::Flag => schema.flag(name),
        _ => schema.get(name).is_some(),
    };
    SCHEMA.iter().filter(move |(_, name, kind)| set(name, *kind)).map(|(go, ..)| *go)
}

/// A schema.
pub(super) fn schema(schema: Props<'_>) -> String {
    object(SCHEMA.iter().map(|(go, name, kind)| (*go, schema_field(schema, name, *kind))))
}

fn schema_field(from: Props<'_>, name: &str, kind: Kind) -> String {
    let nil = || "null".to_owned();
    let Some(value) = from.get(name) else {
        return match kind {
            Kind::Text => "\"\"".to_owned(),
            Kind::Flag => "false".to_owned(),
            _ => nil(),
        };
    };
    match kind {
        Kind::Text | Kind::Flag | Kind::Json => go::json(value),
        Kind::Schema => schema(Props(value)),
        Kind::Schemas => list(from.schemas(name).map(schema)),
        Kind::Map => object(from.map(name).map(|(key, one)| (key, schema(one)))),
        Kind::Items => match from.items() {
            Some(all) => items(all),
            None => nil(),
        },
        Kind::SchemaOrFlag => match value {
            Value::Bool(flag) => format!("{{\"Allows\":{flag},\"Schema\":null}}"),
            one => format!("{{\"Allows\":true,\"Schema\":{}}}", schema(Props(one))),
        },
        Kind::Docs => object(["Description", "URL"].into_iter().zip(texts(value, &["description", "url"]))),
        Kind::Rules => list(from.list(name).iter().map(rule)),
    }
}

/// `items`.
pub(super) fn items(items: Items<'_>) -> String {
    let (one, many) = match items {
        Items::One(one) => (schema(one), "null".to_owned()),
        Items::Many(all) => ("null".to_owned(), list(all.iter().map(|one| schema(Props(one))))),
    };
    format!("{{\"Schema\":{one},\"JSONSchemas\":{many}}}")
}

/// A rule in CEL.
pub(super) fn rule(rule: &Value) -> String {
    let names = ["rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf"];
    let values = names.into_iter().zip(texts(rule, &names)).map(|(name, text)| match name {
        "reason" | "optionalOldSelf" => go::json(&rule[name]),
        _ => text,
    });
    object(
        ["Rule", "Message", "MessageExpression", "Reason", "FieldPath", "OptionalOldSelf"]
            .into_iter()
            .zip(values),
    )
}

/// What the versions of a definition still have of their own once what they share has been moved up.
pub(super) struct Shared {
    pub(super) schema: bool,
    pub(super) subresources: bool,
    pub(super) columns: bool,
    pub(super) selectable: bool,
}

/// The versions of a definition.
pub(super) fn versions(versions: Option<&Value>, shared: &Shared) -> String {
    let Some(all) = versions.and_then(Value::as_array) else {
        return "null".to_owned();
    };
    list(all.iter().map(|one| version(Props(one), shared)))
}

fn version(version: Props<'_>, shared: &Shared) -> String {
    let own = |moved: bool, name: &str| version.get(name).filter(|_| !moved);
    let nil = || "null".to_owned();
    let validation = own(shared.schema, "schema").map_or_else(nil, |one| {
        let inner = Props(one).schema("openAPIV3Schema").map_or_else(nil, schema);
        format!("{{\"OpenAPIV3Schema\":{inner}}}")
    });
    let subresources = own(shared.subresources, "subresources").map_or_else(nil, subresources);
    let columns = own(shared.columns, "additionalPrinterColumns").and_then(Value::as_array);
    let selectable = own(shared.selectable, "selectableFields").and_then(Value::as_array);
    object([
        ("Name", go::json(&version.text("name").into())),
        ("Served", version.flag("served").to_string()),
        ("Storage", version.flag("storage").to_string()),
        ("Deprecated", version.flag("deprecated").to_string()),
        ("DeprecationWarning", version.get("deprecationWarning").map_or_else(nil, go::json)),
        ("Schema", validation),
        ("Subresources", subresources),
        ("AdditionalPrinterColumns", columns.map_or_else(nil, |all| list(all.iter().map(column)))),
        (
            "SelectableFields",
            selectable.map_or_else(nil, |all| {
                list(all.iter().map(|one| object(["JSONPath"].into_iter().zip(texts(one, &["jsonPath"])))))
            }),
        ),
    ])
}

fn subresources(value: &Value) -> String {
    let scale = Props(value).get("scale").map_or_else(
        || "null".to_owned(),
        |scale| {
            let [spec, status] = ["specReplicasPath", "statusReplicasPath"];
            let mut fields = texts(scale, &[spec, status]);
            fields.push(go::json(&scale["labelSelectorPath"]));
            object(["SpecReplicasPath", "StatusReplicasPath", "LabelSelectorPath"].into_iter().zip(fields))
        },
    );
    let status = if value["status"].is_null() { "null" } else { "{}" };
    format!("{{\"Status\":{status},\"Scale\":{scale}}}")
}

fn column(column: &Value) -> String {
    let mut fields = texts(column, &["name", "type", "format", "description"]);
    fields.push(column["priority"].as_i64().unwrap_or_default().to_string());
    fields.extend(texts(column, &["jsonPath"]));
    object(["Name", "Type", "Format", "Description", "Priority", "JSONPath"].into_iter().zip(fields))
}

fn texts(value: &Value, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| go::json(&Props(value).text(name).into())).collect()
}

fn object<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let fields = fields.into_iter().map(|(name, value)| format!("{}:{value}", go::json(&name.into())));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn list(elements: impl Iterator<Item = String>) -> String {
    format!("[{}]", elements.collect::<Vec<_>>().join(","))
}
