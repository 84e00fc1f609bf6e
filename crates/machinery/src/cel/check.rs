//! The types of all parts of an expression, and what is wrong with them in the words of the real server.

use std::collections::HashMap;

use regex::Regex;

use super::Environment;
use super::change;
use super::expr::{Entry, Expr, Fold, Kind, Literal};
use super::functions::{pattern, time};
use super::overloads::{self, Overload};
use super::source::Issues;
use super::ty::Type;
use super::unify::{Mapping, instantiate, most_general};

/// What is known about the parts of an expression, by their ids.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) types: Vec<Type>,
    pub(super) overloads: HashMap<u32, Vec<&'static Overload>>,
    /// The patterns that stand in the source, compiled.
    pub(super) patterns: HashMap<Box<str>, Regex>,
    /// Whether it may make what changes an object.
    pub(super) changes: bool,
}

impl Checked {
    pub(super) fn ty(&self, expr: &Expr) -> &Type {
        self.types.get(expr.id as usize).unwrap_or(&Type::Dyn)
    }

    pub(super) fn overloads(&self, expr: &Expr) -> &[&'static Overload] {
        self.overloads.get(&expr.id).map_or(&[], Vec::as_slice)
    }
}

/// Finds the types. Names that turn out to be of functions or variables with dots are written into the tree.
pub(super) fn check(
    root: &mut Expr,
    places: &[u32],
    environment: &Environment,
    issues: &mut Issues<'_>,
) -> Checked {
    let mut checker = Checker {
        environment,
        places,
        issues,
        mapping: Mapping::default(),
        scopes: Vec::new(),
        out: Checked {
            types: vec![Type::Dyn; places.len()],
            changes: environment.changes,
            ..Checked::default()
        },
    };
    checker.check(root);
    let Checker { mapping, mut out, .. } = checker;
    for ty in &mut out.types {
        *ty = mapping.substitute(ty, true);
    }
    if issues.is_empty() {
        let mut literals = Literals { places, issues, out: &mut out };
        literals.visit(root, false);
    }
    out
}

struct Checker<'a, 'i, 's> {
    environment: &'a Environment,
    places: &'a [u32],
    issues: &'i mut Issues<'s>,
    mapping: Mapping,
    /// The variables of loops, the innermost last.
    scopes: Vec<(Box<str>, Type)>,
    out: Checked,
}

impl Checker<'_, '_, '_> {
    fn error(&mut self, id: u32, message: String) {
        self.issues.add(self.places.get(id as usize).copied().unwrap_or_default(), message);
    }

    fn mismatch(&mut self, id: u32, expected: &Type, found: &Type) {
        self.error(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn undeclared(&mut self, id: u32, name: &str) {
        self.error(id, format!("undeclared reference to '{name}' (in container '')"));
    }

    fn check(&mut self, expr: &mut Expr) -> Type {
        let id = expr.id;
        let ty = match &mut expr.kind {
            Kind::Literal(literal) => literal_type(literal),
            Kind::Ident(name) => match self.lookup(name) {
                Some(ty) => {
                    if let Some(absolute) = name.strip_prefix('.') {
                        *name = absolute.into();
                    }
                    ty
                }
                None => {
                    let name = name.clone();
                    self.undeclared(id, &name);
                    Type::Error
                }
            },
            Kind::Select { .. } => self.select(expr),
            Kind::Call { .. } => self.call(expr),
            Kind::List { items, optional } => self.list(items, optional),
            Kind::Map(entries) => self.map(entries),
            Kind::Struct { name, fields } => self.made(id, name, fields),
            Kind::Fold(fold) => self.fold(fold),
        };
        self.set(id, ty.clone());
        ty
    }

    fn set(&mut self, id: u32, ty: Type) {
        if let Some(slot) = self.out.types.get_mut(id as usize) {
            *slot = ty;
        }
    }

    fn lookup(&self, name: &str) -> Option<Type> {
        let name = match name.strip_prefix('.') {
            Some(absolute) => absolute,
            None => {
                let local = self.scopes.iter().rev().find(|(known, _)| **known == *name);
                if let Some((_, ty)) = local {
                    return Some(ty.clone());
                }
                name
            }
        };
        let known = self.environment.variables.get(name).cloned().or_else(|| type_named(name));
        known.or_else(|| change::type_named(name).filter(|_| self.environment.changes))
    }

    /// The type of an object that is made.
    fn made(&mut self, id: u32, name: &mut Box<str>, fields: &mut [Entry]) -> Type {
        let ty = match self.lookup(name) {
            None => {
                let name = name.clone();
                self.undeclared(id, &name);
                return Type::Error;
            }
            Some(Type::Type(Some(of))) => match *of {
                Type::Object(object) => Some(object),
                of => {
                    self.error(id, format!("'{of}' is not a message type"));
                    None
                }
            },
            Some(_) => {
                let message = format!("'{name}' is not a type");
                self.error(id, message);
                None
            }
        };
        for field in fields {
            let mut found = self.check(&mut field.value);
            if field.optional {
                found = self.unwrapped(field.value.id, found);
            }
            let (Some(object), Kind::Literal(Literal::String(name))) = (&ty, &field.key.kind) else {
                continue;
            };
            let wanted = object.field(name);
            if wanted.as_ref().is_some_and(|wanted| self.mapping.assignable(&found, wanted)) {
                continue;
            }
            let (wanted, name) = (wanted.map(|ty| ty.to_string()).unwrap_or_default(), name.clone());
            let found = self.mapping.substitute(&found, true);
            self.error(
                field.id,
                format!("expected type of field '{name}' is '{wanted}' but provided type is '{found}'"),
            );
        }
        ty.map_or(Type::Error, Type::Object)
    }

    fn select(&mut self, expr: &mut Expr) -> Type {
        if let Some(name) = expr.qualified_name() {
            let local = name
                .split('.')
                .next()
                .is_some_and(|first| self.scopes.iter().any(|(known, _)| **known == *first));
            if let (false, Some(ty)) = (local, self.lookup(&name)) {
                expr.kind = Kind::Ident(name.trim_start_matches('.').into());
                return ty;
            }
        }
        let id = expr.id;
        let Kind::Select { operand, field, test } = &mut expr.kind else {
            return Type::Error;
        };
        let (field, test) = (field.clone(), *test);
        let result = self.field(id, operand, &field, false);
        if test { Type::Bool } else { self.mapping.substitute(&result, false) }
    }

    /// The type of a field of an operand.
    fn field(&mut self, id: u32, operand: &mut Expr, field: &str, optional: bool) -> Type {
        let operand = self.check(operand);
        let operand = self.mapping.substitute(&operand, false);
        let (target, is_optional) = match operand {
            Type::Optional(of) => (*of, true),
            other => (other, false),
        };
        let result = match &target {
            Type::Map(of) => of.1.clone(),
            Type::Object(object) => match object.field(field) {
                Some(ty) => ty,
                None => {
                    self.error(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Param(_) => {
                self.mapping.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Named(name) if name.starts_with("kubernetes.") => {
                self.error(id, format!("unexpected failed resolution of '{name}'"));
                Type::Error
            }
            other => {
                if !other.is_dyn_or_error() {
                    self.error(id, format!("type '{other}' does not support field selection"));
                }
                Type::Dyn
            }
        };
        if optional || is_optional { Type::optional(result) } else { result }
    }

    fn call(&mut self, expr: &mut Expr) -> Type {
        let id = expr.id;
        let Kind::Call { function, target, args } = &mut expr.kind else {
            return Type::Error;
        };
        if &**function == "_?._" {
            let [operand, field] = args.as_mut_slice() else {
                return Type::Error;
            };
            let Kind::Literal(Literal::String(name)) = &field.kind else {
                return Type::Error;
            };
            let name = name.clone();
            self.set(field.id, Type::String);
            let result = self.field(id, operand, &name, true);
            return self.mapping.substitute(&result, false);
        }
        let mut types: Vec<Type> = args.iter_mut().map(|arg| self.check(arg)).collect();
        let ids: Vec<u32> = args.iter().map(|arg| arg.id).collect();
        if let Some(before) = target {
            let qualified = before.qualified_name().map(|prefix| format!("{prefix}.{function}"));
            if let Some(qualified) = qualified.filter(|name| overloads::of(name).is_some()) {
                *function = qualified.as_str().into();
                *target = None;
            } else {
                let before = self.check(before);
                types.insert(0, before);
            }
        }
        if let Some(absolute) = function.strip_prefix('.') {
            *function = absolute.into();
        }
        let (function, member) = (function.clone(), target.is_some());
        match overloads::of(&function) {
            Some(all) => self.resolve(id, &function, all, member, &types, &ids),
            None => {
                self.undeclared(id, &function);
                Type::Error
            }
        }
    }

    fn resolve(
        &mut self,
        id: u32,
        function: &str,
        all: &'static [Overload],
        member: bool,
        types: &[Type],
        ids: &[u32],
    ) -> Type {
        if matches!(function, "_&&_" | "_||_") {
            let mut good = true;
            for (ty, id) in types.iter().zip(ids) {
                if !self.mapping.assignable(ty, &Type::Bool) {
                    self.mismatch(*id, &Type::Bool, ty);
                    good = false;
                }
            }
            self.out.overloads.insert(id, all.iter().collect());
            return if good { Type::Bool } else { Type::Error };
        }
        let mut found = Vec::new();
        let mut result: Option<Type> = None;
        for overload in
            all.iter().filter(|overload| overload.member == member && overload.args.len() == types.len())
        {
            let fresh: Vec<Type> = (0..overload.params).map(|_| self.mapping.fresh()).collect();
            let wanted: Vec<Type> = overload.args.iter().map(|arg| instantiate(arg, &fresh)).collect();
            if !self.mapping.all_assignable(types, &wanted) {
                continue;
            }
            found.push(overload);
            let ty = self.mapping.substitute(&instantiate(&overload.result, &fresh), false);
            result = Some(match result {
                None => ty,
                Some(Type::Dyn) => Type::Dyn,
                Some(known) if known == ty => known,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            let shown: Vec<String> =
                types.iter().map(|ty| self.mapping.substitute(ty, true).to_string()).collect();
            let signature = match (member, shown.split_first()) {
                (true, Some((first, rest))) => format!("{first}.({})", rest.join(", ")),
                _ => format!("({})", shown.join(", ")),
            };
            self.error(id, format!("found no matching overload for '{function}' applied to '{signature}'"));
            return Type::Error;
        };
        self.out.overloads.insert(id, found);
        result
    }

    fn list(&mut self, items: &mut [Expr], optional: &[usize]) -> Type {
        let mut joined = None;
        for (index, item) in items.iter_mut().enumerate() {
            let mut ty = self.check(item);
            if optional.contains(&index) {
                ty = self.unwrapped(item.id, ty);
            }
            joined = Some(self.join(joined, ty));
        }
        Type::list(joined.unwrap_or_else(|| self.mapping.fresh()))
    }

    fn map(&mut self, entries: &mut [Entry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            let key = self.check(&mut entry.key);
            keys = Some(self.join(keys, key));
            let mut value = self.check(&mut entry.value);
            if entry.optional {
                value = self.unwrapped(entry.value.id, value);
            }
            values = Some(self.join(values, value));
        }
        match (keys, values) {
            (Some(keys), Some(values)) => Type::map(keys, values),
            _ => {
                let keys = self.mapping.fresh();
                Type::map(keys, self.mapping.fresh())
            }
        }
    }

    fn unwrapped(&mut self, id: u32, ty: Type) -> Type {
        match ty {
            Type::Optional(of) => *of,
            Type::Dyn => Type::Dyn,
            other => {
                self.mismatch(id, &Type::optional(other.clone()), &other);
                other
            }
        }
    }

    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.mapping.assignable(&previous, &current) {
            return most_general(&previous, &current);
        }
        // Where that is not allowed is looked at in the end.
        Type::Dyn
    }

    fn fold(&mut self, fold: &mut Fold) -> Type {
        let range = self.check(&mut fold.range);
        let collected = self.check(&mut fold.init);
        let range = self.mapping.substitute(&range, false);
        let depth = self.scopes.len();
        self.scopes.push((fold.accumulator.clone(), collected.clone()));
        let two = fold.second.is_some();
        let (first, second) = match &range {
            Type::List(of) if two => (Type::Int, (**of).clone()),
            Type::List(of) => ((**of).clone(), Type::Dyn),
            Type::Map(of) => (of.0.clone(), of.1.clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.mapping.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let why = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.error(fold.range.id, why);
                (Type::Error, Type::Error)
            }
        };
        self.scopes.push((fold.item.clone(), first));
        if let Some(name) = &fold.second {
            self.scopes.push((name.clone(), second));
        }
        let condition = self.check(&mut fold.condition);
        self.assert(fold.condition.id, &Type::Bool, &condition);
        let step = self.check(&mut fold.step);
        self.assert(fold.step.id, &collected, &step);
        self.scopes.truncate(depth + 1);
        let result = self.check(&mut fold.result);
        self.scopes.truncate(depth);
        self.mapping.substitute(&result, false)
    }

    fn assert(&mut self, id: u32, wanted: &Type, found: &Type) {
        if !self.mapping.assignable(wanted, found) {
            self.mismatch(id, wanted, found);
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// The type that a name denotes, as a value.
fn type_named(name: &str) -> Option<Type> {
    let of = match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "dyn" => Type::Dyn,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "string" => Type::String,
        "null_type" => Type::Null,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "type" => Type::Type(None),
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        "net.IP" => super::ty::IP,
        "net.CIDR" => super::ty::CIDR,
        "kubernetes.URL" => Type::Named("kubernetes.URL"),
        "kubernetes.Quantity" => Type::Named("kubernetes.Quantity"),
        "kubernetes.Semver" => Type::Named("kubernetes.Semver"),
        _ => return None,
    };
    Some(Type::Type(Some(Box::new(of))))
}

/// Checks literals that functions would refuse, or that mix types, and keeps patterns.
struct Literals<'c, 'i, 's> {
    places: &'c [u32],
    issues: &'i mut Issues<'s>,
    out: &'c mut Checked,
}

impl Literals<'_, '_, '_> {
    fn error(&mut self, id: u32, message: String) {
        self.issues.add(self.places.get(id as usize).copied().unwrap_or_default(), message);
    }

    /// `mixed` where lists may have elements of several types: in what `format` is given.
    fn visit(&mut self, expr: &Expr, mixed: bool) {
        match &expr.kind {
            Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select { operand, .. } => self.visit(operand, mixed),
            Kind::List { items, optional } => {
                if !mixed {
                    let plain =
                        items.iter().enumerate().map(|(index, item)| (item, optional.contains(&index)));
                    self.same(plain);
                }
                items.iter().for_each(|item| self.visit(item, mixed));
            }
            Kind::Struct { fields, .. } => fields.iter().for_each(|field| self.visit(&field.value, mixed)),
            Kind::Map(entries) => {
                if !mixed {
                    self.same(entries.iter().map(|entry| (&entry.key, false)));
                    self.same(entries.iter().map(|entry| (&entry.value, entry.optional)));
                }
                for entry in entries {
                    self.visit(&entry.key, mixed);
                    self.visit(&entry.value, mixed);
                }
            }
            Kind::Fold(fold) => {
                for part in [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result] {
                    self.visit(part, mixed);
                }
            }
            Kind::Call { function, target, args } => {
                let mixed = mixed || &**function == "format";
                target.iter().for_each(|target| self.visit(target, mixed));
                args.iter().for_each(|arg| self.visit(arg, mixed));
                self.argument(function, args);
            }
        }
    }

    /// Tells of parts that have another type than the first.
    fn same<'e>(&mut self, parts: impl Iterator<Item = (&'e Expr, bool)>) {
        let mut first: Option<Type> = None;
        for (part, optional) in parts {
            let ty = match self.out.ty(part) {
                Type::Optional(of) if optional => (**of).clone(),
                ty => ty.clone(),
            };
            match &first {
                None => first = Some(ty),
                Some(wanted) if *wanted == ty => {}
                Some(wanted) => {
                    let message = format!("expected type '{wanted}' but found '{ty}'");
                    self.error(part.id, message);
                    return;
                }
            }
        }
    }

    fn argument(&mut self, function: &str, args: &[Expr]) {
        let Some(Expr { id, kind: Kind::Literal(Literal::String(text)) }) = args.last() else {
            return;
        };
        let good = match (function, args.len()) {
            ("matches" | "find" | "findAll", _) => match pattern::compile(text) {
                Ok(regex) => {
                    self.out.patterns.insert((**text).into(), regex);
                    true
                }
                Err(_) => function != "matches",
            },
            ("duration", 1) => time::parse_duration(text).is_some(),
            ("timestamp", 1) => time::parse_timestamp(text).is_some(),
            _ => true,
        };
        if !good {
            self.error(*id, format!("invalid {function} argument"));
        }
    }
}
