//! The tree of an expression, after parsing and with its macros expanded.

mod macros;

use std::sync::Arc;

use cel::common::ast::{self, EntryExpr, IdedExpr, LiteralValue};

/// How many parts an expression may have once its macros are expanded.
const MAX_NODES: usize = 500_000;

/// The name that expanded macros give what they collect.
pub(super) const ACCUMULATOR: &str = "@result";

/// An expression.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    /// What tells it from others, and names its place in the source.
    pub(super) id: u32,
    pub(super) kind: Kind,
}

/// What an expression is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Literal(Literal),
    Ident(Box<str>),
    Select {
        operand: Box<Expr>,
        field: Box<str>,
        test: bool,
    },
    Call {
        function: Box<str>,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    List {
        items: Vec<Expr>,
        optional: Vec<usize>,
    },
    Map(Vec<Entry>),
    /// An object of a type. No type that could be named can be made so, but the checker says why.
    Struct {
        name: Box<str>,
        fields: Vec<Entry>,
    },
    Fold(Box<Fold>),
}

/// A value that stands in the source.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

/// An entry of a map.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: u32,
    pub(super) key: Expr,
    pub(super) value: Expr,
    pub(super) optional: bool,
}

/// A loop over a list or a map.
#[derive(Clone, Debug)]
pub(super) struct Fold {
    pub(super) range: Expr,
    pub(super) item: Box<str>,
    pub(super) second: Option<Box<str>>,
    pub(super) accumulator: Box<str>,
    pub(super) init: Expr,
    pub(super) condition: Expr,
    pub(super) step: Expr,
    pub(super) result: Expr,
}

/// What is wrong with the use of a macro, and at which expression.
pub(super) struct MacroError {
    pub(super) id: u32,
    pub(super) message: String,
}

/// Takes over what the parser made.
pub(super) struct Builder {
    /// The place of each expression, by its id: an offset in the source.
    pub(super) places: Vec<u32>,
    pub(super) errors: Vec<MacroError>,
    depth: usize,
    max_depth: usize,
    /// Whether the tree is deeper than is allowed. What is below is not in it then.
    pub(super) too_deep: bool,
}

impl Builder {
    pub(super) fn new(places: Vec<u32>, max_depth: usize) -> Self {
        Self { places, errors: Vec::new(), depth: 0, max_depth, too_deep: false }
    }

    pub(super) fn build(&mut self, from: &IdedExpr) -> Expr {
        let id = u32::try_from(from.id).unwrap_or_default();
        self.depth += 1;
        let kind = if self.depth > self.max_depth {
            self.too_deep = true;
            Kind::Literal(Literal::Null)
        } else {
            self.kind(id, &from.expr)
        };
        self.depth -= 1;
        Expr { id, kind }
    }

    fn boxed(&mut self, from: &IdedExpr) -> Box<Expr> {
        Box::new(self.build(from))
    }

    fn all(&mut self, from: &[IdedExpr]) -> Vec<Expr> {
        from.iter().map(|one| self.build(one)).collect()
    }

    fn kind(&mut self, id: u32, from: &ast::Expr) -> Kind {
        match from {
            ast::Expr::Unspecified => Kind::Literal(Literal::Null),
            ast::Expr::Literal(literal) => Kind::Literal(match literal {
                LiteralValue::Null => Literal::Null,
                LiteralValue::Boolean(value) => Literal::Bool(*value.inner()),
                LiteralValue::Int(value) => Literal::Int(*value.inner()),
                LiteralValue::UInt(value) => Literal::Uint(*value.inner()),
                LiteralValue::Double(value) => Literal::Double(*value.inner()),
                LiteralValue::String(value) => Literal::String(value.inner().into()),
                LiteralValue::Bytes(value) => Literal::Bytes(value.inner().into()),
            }),
            ast::Expr::Ident(name) => Kind::Ident(name.as_str().into()),
            ast::Expr::Select(select) => Kind::Select {
                operand: self.boxed(&select.operand),
                field: select.field.as_str().into(),
                test: select.test,
            },
            ast::Expr::Call(call) => {
                let target = call.target.as_ref().map(|target| self.boxed(target));
                let args = self.all(&call.args);
                macros::expand(self, id, &call.func_name, target, args)
            }
            ast::Expr::List(list) => {
                Kind::List { items: self.all(&list.elements), optional: list.optional_indices.clone() }
            }
            ast::Expr::Map(map) => Kind::Map(map.entries.iter().filter_map(|one| self.entry(one)).collect()),
            ast::Expr::Struct(made) => Kind::Struct {
                name: made.type_name.as_str().into(),
                fields: made.entries.iter().filter_map(|one| self.entry(one)).collect(),
            },
            ast::Expr::Comprehension(fold) => Kind::Fold(Box::new(Fold {
                range: self.build(&fold.iter_range),
                item: fold.iter_var.as_str().into(),
                second: fold.iter_var2.as_deref().map(Into::into),
                accumulator: fold.accu_var.as_str().into(),
                init: self.build(&fold.accu_init),
                condition: self.build(&fold.loop_cond),
                step: self.build(&fold.loop_step),
                result: self.build(&fold.result),
            })),
        }
    }

    fn entry(&mut self, from: &ast::IdedEntryExpr) -> Option<Entry> {
        let id = u32::try_from(from.id).unwrap_or_default();
        Some(match &from.expr {
            EntryExpr::MapEntry(entry) => Entry {
                id,
                key: self.build(&entry.key),
                value: self.build(&entry.value),
                optional: entry.optional,
            },
            EntryExpr::StructField(field) => Entry {
                id,
                key: Expr { id, kind: Kind::Literal(Literal::String(field.field.as_str().into())) },
                value: self.build(&field.value),
                optional: field.optional,
            },
        })
    }

    /// A new expression that stands where another does.
    fn make(&mut self, at: u32, kind: Kind) -> Expr {
        // Macros copy what they are called on, which multiplies when they are chained.
        if self.places.len() > MAX_NODES {
            self.too_deep = true;
            return Expr { id: 0, kind: Kind::Literal(Literal::Null) };
        }
        let place = self.places.get(at as usize).copied().unwrap_or_default();
        self.places.push(place);
        Expr { id: u32::try_from(self.places.len() - 1).unwrap_or_default(), kind }
    }
}

impl Expr {
    /// The name that an identifier, or selections on one, spell: `a.b.c`.
    pub(super) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.to_string()),
            Kind::Select { operand, field, test: false } => {
                Some(format!("{}.{field}", operand.qualified_name()?))
            }
            _ => None,
        }
    }

    /// Whether a variable is used somewhere in it.
    pub(super) fn uses(&self, name: &str) -> bool {
        match &self.kind {
            Kind::Literal(_) => false,
            Kind::Ident(one) => &**one == name,
            Kind::Select { operand, .. } => operand.uses(name),
            Kind::Call { target, args, .. } => {
                target.as_ref().is_some_and(|one| one.uses(name)) || args.iter().any(|one| one.uses(name))
            }
            Kind::List { items, .. } => items.iter().any(|one| one.uses(name)),
            Kind::Map(entries) | Kind::Struct { fields: entries, .. } => {
                entries.iter().any(|one| one.key.uses(name) || one.value.uses(name))
            }
            Kind::Fold(fold) => [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result]
                .into_iter()
                .any(|one| one.uses(name)),
        }
    }
}
