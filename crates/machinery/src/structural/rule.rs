//! What a schema asks of values, made ready for checking them.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use super::props::{Additional, Props};
use super::{format, pattern};

/// What one level of a schema asks of a value. Built once for a definition, used for every object.
#[derive(Debug, Default)]
pub struct Rule {
    pub(super) types: Vec<Box<str>>,
    pub(super) nullable: bool,
    pub(super) format: Box<str>,
    pub(super) maximum: Option<Bound>,
    pub(super) minimum: Option<Bound>,
    pub(super) multiple_of: Option<f64>,
    pub(super) max_length: Option<i64>,
    pub(super) min_length: Option<i64>,
    pub(super) pattern: Option<Pattern>,
    pub(super) max_items: Option<i64>,
    pub(super) min_items: Option<i64>,
    pub(super) unique_items: bool,
    pub(super) max_properties: Option<i64>,
    pub(super) min_properties: Option<i64>,
    pub(super) required: Vec<Box<str>>,
    pub(super) choices: Vec<Value>,
    pub(super) items: Option<Arc<Rule>>,
    pub(super) properties: BTreeMap<Box<str>, Arc<Rule>>,
    pub(super) additional: Others,
    pub(super) all_of: Vec<Rule>,
    pub(super) any_of: Vec<Rule>,
    pub(super) one_of: Vec<Rule>,
    pub(super) not: Option<Box<Rule>>,
    /// The keys of a list whose elements can be found again in an older one.
    pub(super) keys: Option<Vec<Box<str>>>,
}

/// A limit of numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) value: f64,
    pub(super) exclusive: bool,
}

/// A pattern of strings.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) text: Box<str>,
    pub(super) regex: Result<Regex, String>,
}

/// What is asked of fields that have no rule of their own.
#[derive(Debug, Default)]
pub(super) enum Others {
    /// Nothing.
    #[default]
    Free,
    /// That there be none.
    Forbidden,
    /// A rule.
    Rule(Arc<Rule>),
}

/// What a rule is built for. The server builds them twice, with small differences.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Objects: unknown formats do not count, and int-or-string is a type.
    Objects,
    /// The defaults of a schema.
    Defaults,
}

impl Rule {
    pub(super) fn new(schema: Props<'_>, purpose: Purpose) -> Self {
        let build = |schema: Props<'_>| Self::new(schema, purpose);
        let all = |name: &str| schema.schemas(name).map(build).collect();
        let bound = |name: &str, exclusive: &str| {
            schema.number(name).map(|value| Bound { value, exclusive: schema.flag(exclusive) })
        };
        let mut types: Vec<Box<str>> = Vec::new();
        if purpose == Purpose::Objects && schema.int_or_string() {
            types.extend(["integer".into(), "string".into()]);
        } else if !schema.kind().is_empty() {
            types.push(schema.kind().into());
        }
        let text = schema.text("format");
        let format = if purpose == Purpose::Defaults || format_counts(text, &types) { text } else { "" };
        let pattern = Some(schema.text("pattern")).filter(|text| !text.is_empty());
        Self {
            types,
            nullable: schema.flag("nullable"),
            format: format.into(),
            maximum: bound("maximum", "exclusiveMaximum"),
            minimum: bound("minimum", "exclusiveMinimum"),
            multiple_of: schema.number("multipleOf"),
            max_length: schema.integer("maxLength"),
            min_length: schema.integer("minLength"),
            pattern: pattern.map(|text| Pattern { text: text.into(), regex: pattern::compile(text) }),
            max_items: schema.integer("maxItems"),
            min_items: schema.integer("minItems"),
            unique_items: schema.flag("uniqueItems"),
            max_properties: schema.integer("maxProperties"),
            min_properties: schema.integer("minProperties"),
            required: schema.strings("required").map(Into::into).collect(),
            choices: schema.list("enum").to_vec(),
            items: schema.item().map(|items| Arc::new(build(items))),
            properties: schema
                .map("properties")
                .map(|(name, one)| (name.into(), Arc::new(build(one))))
                .collect(),
            additional: match schema.additional() {
                None | Some(Additional::Flag(true)) => Others::Free,
                Some(Additional::Flag(false)) => Others::Forbidden,
                Some(Additional::Schema(one)) => Others::Rule(Arc::new(build(one))),
            },
            all_of: all("allOf"),
            any_of: all("anyOf"),
            one_of: all("oneOf"),
            not: schema.schema("not").map(|one| Box::new(build(one))),
            keys: (schema.text("x-kubernetes-list-type") == "map")
                .then(|| schema.strings("x-kubernetes-list-map-keys").map(Into::into).collect()),
        }
    }
}

fn format_counts(name: &str, types: &[Box<str>]) -> bool {
    let one = if let [one] = types { one } else { "" };
    match one {
        "" | "string" => format::is_known(name),
        "integer" => matches!(name, "int32" | "int64"),
        "number" => matches!(name, "float" | "double"),
        _ => false,
    }
}
