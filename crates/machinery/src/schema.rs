//! The structure of API types: what a value may hold, how lists merge, what Go writes for it.
//!
//! One [`Schemas`] is an arena of [`Node`]s; types refer to each other by id, so recursive types are no
//! special case. Built-in types come from a table ([`Schemas::from_table`]), custom ones from the
//! `openAPIV3Schema` of a CustomResourceDefinition ([`crate::structural`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::structural::{Rule, Rules};

/// An arena of type nodes and the structures they refer to.
#[derive(Debug, Default)]
pub struct Schemas {
    nodes: Vec<Node>,
    structs: Vec<Struct>,
    names: BTreeMap<Box<str>, StructId>,
    /// Go's names of maps, where they have one.
    maps: BTreeMap<NodeId, Box<str>>,
}

/// A node of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// A structure of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StructId(u32);

/// One type as it stands in one place.
#[derive(Clone, Debug)]
pub struct Node {
    /// What values look like.
    pub shape: Shape,
    /// Owned and replaced as a whole by server-side apply.
    pub atomic: bool,
    /// Only for custom resources: what structural schemas add.
    pub custom: Option<Box<Custom>>,
}

/// What values of a node look like.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Any JSON at all.
    Any,
    /// A scalar, with the name Go's error messages give it.
    Scalar(Scalar, Option<Box<str>>),
    /// An array.
    List {
        /// The type of the elements.
        items: NodeId,
        /// How elements are told apart.
        kind: ListKind,
    },
    /// An object with arbitrary keys.
    Map(NodeId),
    /// An object with named fields.
    Struct(StructId),
}

/// Scalars of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// A boolean.
    Bool,
    /// A whole number of up to 32 bits.
    Int32,
    /// A whole number of up to 64 bits.
    Int64,
    /// A number.
    Float,
    /// A string.
    String,
    /// Bytes, in base64.
    Bytes,
    /// A time with whole seconds.
    Time,
    /// A time with microseconds.
    MicroTime,
    /// A duration as Go writes it (`1h0m5s`).
    Duration,
    /// A resource quantity.
    Quantity,
    /// An integer or a string.
    IntOrString,
}

/// How the elements of a list are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Not at all: the list is one value.
    Atomic,
    /// By their value.
    Set,
    /// By these fields.
    Map(Box<[Box<str>]>),
}

/// An object type with named fields.
#[derive(Clone, Debug, Default)]
pub struct Struct {
    /// The definition's name (`io.k8s.api.core.v1.PodSpec`); empty for anonymous ones.
    pub name: Box<str>,
    /// The name in Go's error messages (`v1.PodSpec`).
    pub go: Box<str>,
    /// Its fields, by name.
    pub fields: BTreeMap<Box<str>, Field>,
    /// The names of its fields in the order Go writes them.
    pub order: Vec<Box<str>>,
    /// The type of fields that are not named, where a custom schema allows both.
    pub additional: Option<NodeId>,
}

/// A field of a [`Struct`].
#[derive(Clone, Debug)]
pub struct Field {
    /// Its type.
    pub node: NodeId,
    /// Whether Go's type is a pointer, so that zero differs from absent.
    pub pointer: bool,
    /// When Go leaves it out.
    pub omit: Omit,
    /// Whether the published schema requires it.
    pub required: bool,
    /// A default that the published schema names; server-side apply uses it for list keys.
    pub default: Option<Value>,
    /// How strategic merge patches treat it.
    pub patch: Patch,
    /// The embedded structs that Go has it in, which messages name.
    pub embedded: Option<Box<str>>,
}

/// When Go's encoder leaves a field out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Omit {
    /// Never.
    #[default]
    Never,
    /// When it is empty: zero, an empty list or map, nil; but never a struct.
    Empty,
    /// When it is the zero value, an empty struct included.
    Zero,
}

/// How strategic merge patches treat a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// Lists are merged, by [`Patch::key`] or, without it, as a set.
    pub merge: bool,
    /// Objects are replaced, not merged.
    pub replace: bool,
    /// Keys that a patch does not name are dropped (unions).
    pub retain_keys: bool,
    /// The field that tells elements apart.
    pub key: Option<Box<str>>,
}

/// What a structural schema says beyond the shape.
#[derive(Clone, Debug, Default)]
pub struct Custom {
    /// Its JSON form, with its rules in CEL.
    pub rules: Value,
    /// What it asks of values, ready for checking them.
    pub checks: Option<Arc<Rule>>,
    /// Its rules in CEL and those below it; only the root of a resource has them.
    pub cel: Option<Arc<Rules>>,
    /// The value of an absent field.
    pub default: Option<Value>,
    /// `null` is a value.
    pub nullable: bool,
    /// Unknown fields are kept.
    pub preserve: bool,
    /// The value is a whole object with its own `apiVersion`, `kind` and `metadata`.
    pub embedded: bool,
}

/// A node together with its arena: how code walks types.
#[derive(Clone, Copy, Debug)]
pub struct Type<'a> {
    all: &'a Schemas,
    id: NodeId,
}

/// Why a table of types could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The table is not what it should be.
    #[error("failed to read the table of types: {0}")]
    Json(#[from] serde_json::Error),
    /// A type expression is not understood.
    #[error("failed to read the table of types: {0:?} in {1} is not a type")]
    Expression(String, String),
}

#[derive(Deserialize)]
struct TableStruct {
    go: String,
    f: Vec<TableField>,
    #[serde(default)]
    mt: Option<String>,
}

#[derive(Deserialize)]
struct TableField {
    n: String,
    t: String,
    #[serde(default)]
    o: u8,
    #[serde(default)]
    r: u8,
    #[serde(default)]
    d: Option<Value>,
    #[serde(default)]
    lt: Option<String>,
    #[serde(default)]
    lk: Vec<String>,
    #[serde(default)]
    ps: Option<String>,
    #[serde(default)]
    mk: Option<String>,
    #[serde(default)]
    mt: Option<String>,
    #[serde(default)]
    e: Option<String>,
    #[serde(default)]
    g: Option<String>,
}

impl Schemas {
    /// Reads the table of built-in types.
    ///
    /// # Errors
    /// When the table is not one.
    pub fn from_table(json: &str) -> Result<Self, TableError> {
        let table: BTreeMap<String, TableStruct> = serde_json::from_str(json)?;
        let mut all = Self::default();
        let mut atomic = Vec::with_capacity(table.len());
        for (index, (name, structure)) in table.iter().enumerate() {
            all.names.insert(name.as_str().into(), StructId(id(index)));
            atomic.push(structure.mt.as_deref() == Some("atomic"));
        }
        for (name, structure) in table {
            let mut fields = BTreeMap::new();
            let order = structure.f.iter().map(|field| field.n.as_str().into()).collect();
            for field in structure.f {
                let (pointer, expression) = match field.t.strip_prefix('*') {
                    Some(rest) => (true, rest),
                    None => (false, field.t.as_str()),
                };
                let node = all
                    .parse(expression, &field, &atomic)
                    .ok_or_else(|| TableError::Expression(field.t.clone(), name.clone()))?;
                if let Some(go) = field.g {
                    all.maps.insert(node, go.into());
                }
                let strategy = field.ps.as_deref().unwrap_or_default();
                fields.insert(
                    field.n.into(),
                    Field {
                        node,
                        pointer,
                        omit: match field.o {
                            0 => Omit::Never,
                            1 => Omit::Empty,
                            _ => Omit::Zero,
                        },
                        required: field.r == 1,
                        default: field.d,
                        patch: Patch {
                            merge: strategy.split(',').any(|word| word == "merge"),
                            replace: strategy.split(',').any(|word| word == "replace"),
                            retain_keys: strategy.split(',').any(|word| word == "retainKeys"),
                            key: field.mk.map(Into::into),
                        },
                        embedded: field.e.map(Into::into),
                    },
                );
            }
            all.structs.push(Struct {
                name: name.into(),
                go: structure.go.into(),
                fields,
                order,
                additional: None,
            });
        }
        Ok(all)
    }

    fn parse(&mut self, expression: &str, field: &TableField, atomic: &[bool]) -> Option<NodeId> {
        let expression = expression.strip_prefix('*').unwrap_or(expression);
        let field_atomic = field.mt.as_deref() == Some("atomic");
        let (shape, atomic) = if let Some(items) = expression.strip_prefix("[]") {
            let kind = match field.lt.as_deref() {
                Some("set") => ListKind::Set,
                Some("map") => ListKind::Map(field.lk.iter().map(|key| key.as_str().into()).collect()),
                _ => ListKind::Atomic,
            };
            // Hints of the field are about the list, not about its elements.
            let bare = TableField { lt: None, lk: Vec::new(), mt: None, ..TableField::named(&field.n) };
            let items = self.parse(items, &bare, atomic)?;
            let whole = kind == ListKind::Atomic;
            (Shape::List { items, kind }, whole)
        } else if let Some(values) = expression.strip_prefix("map:") {
            let values = self.parse(values, &TableField::named(&field.n), atomic)?;
            (Shape::Map(values), field_atomic)
        } else if let Some(name) = expression.strip_prefix('@') {
            let structure = *self.names.get(name)?;
            // What a field says of its map comes before what the type says of all of them.
            let granular = field.mt.as_deref() == Some("granular");
            (Shape::Struct(structure), field_atomic || (atomic[structure.0 as usize] && !granular))
        } else if expression == "any" {
            (Shape::Any, true)
        } else {
            let (kind, go) = match expression.split_once('#') {
                Some((kind, go)) => (kind, Some(go.into())),
                None => (expression, None),
            };
            let scalar = match kind {
                "bool" => Scalar::Bool,
                "int32" | "uint32" | "int16" | "uint16" => Scalar::Int32,
                "int" | "int64" | "uint64" => Scalar::Int64,
                "float64" | "float32" => Scalar::Float,
                "string" => Scalar::String,
                "bytes" => Scalar::Bytes,
                "time" => Scalar::Time,
                "microtime" => Scalar::MicroTime,
                "duration" => Scalar::Duration,
                "quantity" => Scalar::Quantity,
                "intstr" => Scalar::IntOrString,
                _ => return None,
            };
            (Shape::Scalar(scalar, go), false)
        };
        Some(self.add(Node { shape, atomic, custom: None }))
    }

    /// Adds a node.
    pub fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(id(self.nodes.len() - 1))
    }

    /// Adds a structure.
    pub fn add_struct(&mut self, structure: Struct) -> StructId {
        self.structs.push(structure);
        StructId(id(self.structs.len() - 1))
    }

    /// A node with its arena.
    #[must_use]
    pub fn at(&self, id: NodeId) -> Type<'_> {
        Type { all: self, id }
    }

    /// The structure of a definition.
    #[must_use]
    pub fn named(&self, definition: &str) -> Option<StructId> {
        self.names.get(definition).copied()
    }

    /// All named structures.
    pub fn definitions(&self) -> impl Iterator<Item = &Struct> {
        self.structs.iter().filter(|structure| !structure.name.is_empty())
    }

    /// A node for the definition, added where it is not there yet.
    pub fn root(&mut self, definition: &str) -> Option<NodeId> {
        let structure = self.named(definition)?;
        Some(self.add(Node { shape: Shape::Struct(structure), atomic: false, custom: None }))
    }

    /// Copies a type, with all it refers to, from another arena.
    pub fn copy(&mut self, from: Type<'_>) -> NodeId {
        let shape = match &from.node().shape {
            Shape::List { items, kind } => {
                let items = self.copy(from.all.at(*items));
                Shape::List { items, kind: kind.clone() }
            }
            Shape::Map(values) => Shape::Map(self.copy(from.all.at(*values))),
            Shape::Struct(structure) => {
                let source = &from.all.structs[structure.0 as usize];
                match self.named(&source.name) {
                    Some(known) => Shape::Struct(known),
                    None => {
                        let new = self.add_struct(Struct::default());
                        self.names.insert(source.name.clone(), new);
                        let fields = source
                            .fields
                            .iter()
                            .map(|(name, field)| {
                                let node = self.copy(from.all.at(field.node));
                                (name.clone(), Field { node, ..field.clone() })
                            })
                            .collect();
                        self.structs[new.0 as usize] = Struct { fields, ..source.clone() };
                        Shape::Struct(new)
                    }
                }
            }
            other => other.clone(),
        };
        self.add(Node { shape, ..from.node().clone() })
    }
}

impl TableField {
    fn named(name: &str) -> Self {
        Self {
            n: name.to_owned(),
            t: String::new(),
            o: 0,
            r: 0,
            d: None,
            lt: None,
            lk: Vec::new(),
            ps: None,
            mk: None,
            mt: None,
            e: None,
            g: None,
        }
    }
}

impl<'a> Type<'a> {
    /// The node's id in its arena.
    #[must_use]
    pub fn id(self) -> NodeId {
        self.id
    }

    /// The node itself.
    #[must_use]
    pub fn node(self) -> &'a Node {
        &self.all.nodes[self.id.0 as usize]
    }

    /// What values look like.
    #[must_use]
    pub fn shape(self) -> &'a Shape {
        &self.node().shape
    }

    /// Another node of the same arena.
    #[must_use]
    pub fn to(self, id: NodeId) -> Type<'a> {
        self.all.at(id)
    }

    /// The structure, where the type is one.
    #[must_use]
    pub fn structure(self) -> Option<&'a Struct> {
        match self.shape() {
            Shape::Struct(id) => Some(&self.all.structs[id.0 as usize]),
            _ => None,
        }
    }

    /// The type's field of that name.
    #[must_use]
    pub fn field(self, name: &str) -> Option<&'a Field> {
        self.structure()?.fields.get(name)
    }

    /// The type of the value under a key: of a field, or of a map's values.
    #[must_use]
    pub fn member(self, name: &str) -> Option<Type<'a>> {
        match self.shape() {
            Shape::Struct(_) => {
                let structure = self.structure()?;
                let node = structure.fields.get(name).map(|field| field.node).or(structure.additional)?;
                Some(self.to(node))
            }
            Shape::Map(values) => Some(self.to(*values)),
            _ => None,
        }
    }

    /// What Go calls a map, where it has a name of its own.
    #[must_use]
    pub fn map_name(self) -> Option<&'a str> {
        self.all.maps.get(&self.id).map(AsRef::as_ref)
    }

    /// The type of a list's elements and how they are told apart.
    #[must_use]
    pub fn list(self) -> Option<(Type<'a>, &'a ListKind)> {
        match self.shape() {
            Shape::List { items, kind } => Some((self.to(*items), kind)),
            _ => None,
        }
    }

    /// What a structural schema adds.
    #[must_use]
    pub fn custom(self) -> Option<&'a Custom> {
        self.node().custom.as_deref()
    }

    /// Whether unknown fields are kept.
    #[must_use]
    pub fn preserves(self) -> bool {
        self.custom().is_some_and(|custom| custom.preserve)
    }
}

fn id(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
