//! From a schema in JSON to types.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::props::{Additional, Props};
use super::rule::{Others, Purpose, Rule};
use super::rules::Rules;
use crate::schema::{
    Custom, Field, ListKind, Node, NodeId, Omit, Patch, Scalar, Schemas, Shape, Struct, Type,
};

/// The types of one version of a custom resource.
#[derive(Debug)]
pub struct Compiled {
    /// The arena.
    pub types: Schemas,
    /// The whole object.
    pub root: NodeId,
}

impl Compiled {
    /// The type of the whole object.
    #[must_use]
    pub fn root(&self) -> Type<'_> {
        self.types.at(self.root)
    }
}

/// Builds the types of a schema that [`check`](super::check) has nothing against. `object_meta` is the
/// built-in type of metadata, which objects and embedded resources have whatever their schema says.
#[must_use]
pub fn compile(schema: &Value, object_meta: Type<'_>) -> Compiled {
    let mut builder = Builder { types: Schemas::default(), object_meta };
    let rule = Arc::new(Rule::new(Props(schema), Purpose::Objects));
    let root = builder.node(Props(schema), &rule, true);
    Compiled { types: builder.types, root }
}

struct Builder<'a> {
    types: Schemas,
    object_meta: Type<'a>,
}

impl Builder<'_> {
    fn node(&mut self, schema: Props<'_>, rule: &Arc<Rule>, root: bool) -> NodeId {
        let (shape, atomic) = self.shape(schema, rule, root);
        let custom = Custom {
            rules: schema.0.clone(),
            checks: Some(Arc::clone(rule)),
            cel: if root { Rules::compile(schema).map(Arc::new) } else { None },
            default: schema.get("default").cloned(),
            nullable: schema.flag("nullable"),
            preserve: schema.preserves(),
            embedded: schema.embedded(),
        };
        self.types.add(Node { shape, atomic, custom: Some(Box::new(custom)) })
    }

    fn shape(&mut self, schema: Props<'_>, rule: &Arc<Rule>, root: bool) -> (Shape, bool) {
        let scalar = |scalar| (Shape::Scalar(scalar, None), false);
        if schema.int_or_string() {
            return scalar(Scalar::IntOrString);
        }
        match schema.kind() {
            "boolean" => scalar(Scalar::Bool),
            "integer" if schema.text("format") == "int32" => scalar(Scalar::Int32),
            "integer" => scalar(Scalar::Int64),
            "number" => scalar(Scalar::Float),
            "string" => scalar(Scalar::String),
            "array" => {
                let items = match (schema.item(), &rule.items) {
                    (Some(items), Some(rule)) => self.node(items, rule, false),
                    _ => self.anything(true),
                };
                let kind = match schema.text("x-kubernetes-list-type") {
                    "set" => ListKind::Set,
                    "map" => {
                        ListKind::Map(schema.strings("x-kubernetes-list-map-keys").map(Into::into).collect())
                    }
                    _ => ListKind::Atomic,
                };
                let atomic = kind == ListKind::Atomic;
                (Shape::List { items, kind }, atomic)
            }
            "object" => (self.object(schema, rule, root), schema.text("x-kubernetes-map-type") == "atomic"),
            _ if schema.has_map("properties") || root => (self.object(schema, rule, root), false),
            _ => (Shape::Any, false),
        }
    }

    fn object(&mut self, schema: Props<'_>, rule: &Arc<Rule>, root: bool) -> Shape {
        let whole = root || schema.embedded();
        let additional = match (schema.additional(), &rule.additional) {
            (Some(Additional::Schema(values)), Others::Rule(rule)) => Some(self.node(values, rule, false)),
            (Some(_), _) => Some(self.anything(false)),
            _ if schema.preserves() => Some(self.anything(true)),
            _ => None,
        };
        if let (Some(values), false, false) = (additional, whole, schema.has_map("properties")) {
            return Shape::Map(values);
        }
        let mut fields = BTreeMap::new();
        let required = |name: &str| schema.strings("required").any(|one| one == name);
        for (name, property) in schema.map("properties") {
            let Some(rule) = rule.properties.get(name) else {
                continue;
            };
            let node = self.node(property, rule, false);
            let default = property.get("default").cloned();
            fields.insert(name.into(), field(node, required(name), default));
        }
        if whole {
            for name in ["apiVersion", "kind"] {
                let shape = Shape::Scalar(Scalar::String, None);
                let node = self.types.add(Node { shape, atomic: false, custom: None });
                fields.entry(name.into()).or_insert_with(|| field(node, false, None));
            }
            let meta = self.types.copy(self.object_meta);
            fields.insert("metadata".into(), field(meta, false, None));
        }
        Shape::Struct(self.types.add_struct(Struct { fields, additional, ..Struct::default() }))
    }

    /// A value without a schema; its fields are kept or pruned.
    fn anything(&mut self, preserve: bool) -> NodeId {
        let custom = Custom { preserve, ..Custom::default() };
        self.types.add(Node { shape: Shape::Any, atomic: false, custom: Some(Box::new(custom)) })
    }
}

fn field(node: NodeId, required: bool, default: Option<Value>) -> Field {
    Field {
        node,
        pointer: true,
        omit: Omit::Never,
        required,
        default,
        patch: Patch::default(),
        embedded: None,
    }
}
