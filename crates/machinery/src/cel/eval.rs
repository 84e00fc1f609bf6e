//! Evaluating expressions, each step at its price.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::change::Made;
use super::cost::actual;
use super::expr::{Entry, Expr, Fold, Kind, Literal};
use super::functions::{self, Tools, operators};
use super::value::{Key, List, Map, Text, Value};
use super::{Activation, Error, Program};

pub(super) struct Evaluator<'p, 'a> {
    program: &'p Program,
    activation: &'p dyn Activation<'a>,
    /// The variables of loops, the innermost last. What a loop collects may be an error for a while.
    locals: Vec<(&'p str, Result<Value<'a>, Error>)>,
    tools: Tools<'p>,
    pub(super) cost: u64,
    limit: u64,
}

impl<'p, 'a> Evaluator<'p, 'a> {
    pub(super) fn new(program: &'p Program, activation: &'p dyn Activation<'a>, limit: u64) -> Self {
        let tools = Tools { patterns: &program.checked.patterns };
        Self { program, activation, locals: Vec::new(), tools, cost: 0, limit }
    }

    fn charge(&mut self, cost: u64) -> Result<(), Error> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(Error::CostExceeded) } else { Ok(()) }
    }

    pub(super) fn eval(&mut self, expr: &'p Expr) -> Result<Value<'a>, Error> {
        match &expr.kind {
            Kind::Literal(literal) => Ok(literal_value(literal)),
            Kind::Ident(name) => self.ident(name),
            Kind::Select { operand, field, test } => {
                let value = self.eval(operand)?;
                if *test {
                    return Ok(Value::Bool(has(&value, field)));
                }
                self.charge(1)?;
                select(&value, field)
            }
            Kind::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            Kind::List { items, optional } => self.list(items, optional),
            Kind::Map(entries) => self.map(entries),
            Kind::Struct { name, fields } => self.made(name, fields),
            Kind::Fold(fold) => self.fold(fold),
        }
    }

    fn ident(&mut self, name: &str) -> Result<Value<'a>, Error> {
        self.charge(1)?;
        if let Some((_, value)) = self.locals.iter().rev().find(|(known, _)| *known == name) {
            return value.clone();
        }
        match self.activation.resolve(name) {
            Some(value) => value,
            None => match name {
                "bool" | "bytes" | "double" | "int" | "uint" | "string" | "null_type" | "list" | "map"
                | "type" | "dyn" | "optional_type" => Ok(Value::Type(name.into())),
                _ if self.program.checked.changes && super::change::type_named(name).is_some() => {
                    Ok(Value::Type(name.into()))
                }
                _ if name.starts_with("google.protobuf.")
                    || name.starts_with("net.")
                    || name.starts_with("kubernetes.") =>
                {
                    Ok(Value::Type(name.into()))
                }
                _ => Err(Error::new(format!("no such attribute(s): {name}"))),
            },
        }
    }

    fn call(
        &mut self,
        expr: &'p Expr,
        function: &str,
        target: Option<&'p Expr>,
        args: &'p [Expr],
    ) -> Result<Value<'a>, Error> {
        match (function, target, args) {
            ("_&&_" | "_||_", None, [one, two]) => return self.logic(function == "_||_", one, two),
            ("_?_:_", None, [condition, yes, no]) => {
                return match self.eval(condition)? {
                    Value::Bool(true) => self.eval(yes),
                    Value::Bool(false) => self.eval(no),
                    _ => Err(Error::overload()),
                };
            }
            ("@not_strictly_false", None, [one]) => {
                let result = self.eval(one);
                self.charge(1)?;
                return match result {
                    Ok(Value::Bool(value)) => Ok(Value::Bool(value)),
                    Err(Error::CostExceeded) => Err(Error::CostExceeded),
                    _ => Ok(Value::Bool(true)),
                };
            }
            ("_?._", None, [operand, Expr { kind: Kind::Literal(Literal::String(field)), .. }]) => {
                let value = self.eval(operand)?;
                self.charge(1)?;
                return optional_select(&value, field);
            }
            ("or" | "orValue", Some(target), [other]) => {
                let value = self.eval(target)?;
                self.charge(1)?;
                return match (value, function) {
                    (Value::Optional(None), _) => self.eval(other),
                    (Value::Optional(Some(value)), "orValue") => Ok((*value).clone()),
                    (value @ Value::Optional(_), _) => Ok(value),
                    _ => Err(Error::overload()),
                };
            }
            _ => {}
        }
        let mut values = Vec::with_capacity(args.len() + 1);
        if let Some(target) = target {
            values.push(self.eval(target)?);
        }
        for arg in args {
            values.push(self.eval(arg)?);
        }
        let overloads = self.program.checked.overloads(expr);
        let overload = if let [one] = overloads { &*one.id } else { "" };
        self.charge(actual::before(function, overload, &values))?;
        let result = functions::call(function, &values, &self.tools)?;
        self.charge(actual::after(function, &result))?;
        Ok(result)
    }

    /// `&&` and `||`: one side that decides is enough, whatever becomes of the other.
    fn logic(&mut self, decisive: bool, one: &'p Expr, two: &'p Expr) -> Result<Value<'a>, Error> {
        let first = self.eval(one);
        match &first {
            Ok(Value::Bool(value)) if *value == decisive => return first,
            Err(Error::CostExceeded) => return first,
            _ => {}
        }
        match (first, self.eval(two)) {
            (_, Ok(Value::Bool(value))) if value == decisive => Ok(Value::Bool(decisive)),
            (_, Err(Error::CostExceeded)) => Err(Error::CostExceeded),
            (Ok(Value::Bool(_)), Ok(Value::Bool(_))) => Ok(Value::Bool(!decisive)),
            (Err(error), _) | (Ok(Value::Bool(_)), Err(error)) => Err(error),
            _ => Err(Error::overload()),
        }
    }

    fn list(&mut self, items: &'p [Expr], optional: &[usize]) -> Result<Value<'a>, Error> {
        let mut out = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let value = self.eval(item)?;
            match value {
                Value::Optional(Some(value)) if optional.contains(&index) => out.push((*value).clone()),
                Value::Optional(None) if optional.contains(&index) => {}
                value => out.push(value),
            }
        }
        self.charge(actual::LIST)?;
        Ok(Value::list(out))
    }

    fn made(&mut self, name: &str, fields: &'p [Entry]) -> Result<Value<'a>, Error> {
        let mut out = BTreeMap::new();
        for field in fields {
            let Kind::Literal(Literal::String(key)) = &field.key.kind else { continue };
            match self.eval(&field.value)? {
                Value::Optional(None) if field.optional => {}
                Value::Optional(Some(value)) if field.optional => {
                    out.insert((**key).into(), (*value).clone());
                }
                value => {
                    out.insert((**key).into(), value);
                }
            }
        }
        self.charge(actual::STRUCT)?;
        Made::new(name.trim_start_matches('.'), out).map(Value::Made)
    }

    fn map(&mut self, entries: &'p [Entry]) -> Result<Value<'a>, Error> {
        let mut out = BTreeMap::new();
        for entry in entries {
            let key = self.eval(&entry.key)?;
            let mut value = self.eval(&entry.value)?;
            if entry.optional {
                match value {
                    Value::Optional(Some(inner)) => value = (*inner).clone(),
                    Value::Optional(None) => continue,
                    _ => {}
                }
            }
            let id = Key::of(&key).ok_or_else(|| Error::new("unsupported key type"))?;
            out.insert(id, (key, value));
        }
        self.charge(actual::MAP)?;
        Ok(Value::Map(Map::Made(Arc::new(out))))
    }

    fn fold(&mut self, fold: &'p Fold) -> Result<Value<'a>, Error> {
        let range = self.eval(&fold.range)?;
        let init = self.eval(&fold.init);
        if matches!(init, Err(Error::CostExceeded)) {
            return init;
        }
        let depth = self.locals.len();
        self.locals.push((&fold.accumulator, init));
        let result = self.turns(fold, &range, depth).and_then(|()| {
            self.locals.truncate(depth + 1);
            self.eval(&fold.result)
        });
        self.locals.truncate(depth);
        result
    }

    fn turns(&mut self, fold: &'p Fold, range: &Value<'a>, slot: usize) -> Result<(), Error> {
        match range {
            Value::List(list) => {
                for index in 0..list.len() {
                    let Some(item) = list.get(index) else { break };
                    let (first, second) = match fold.second {
                        Some(_) => (Value::from(index), Some(item)),
                        None => (item, None),
                    };
                    if !self.turn(fold, first, second, slot)? {
                        break;
                    }
                }
                Ok(())
            }
            Value::Map(map) => {
                for (key, value) in map.entries() {
                    if !self.turn(fold, key, Some(value), slot)? {
                        break;
                    }
                }
                Ok(())
            }
            _ => Err(Error::overload()),
        }
    }

    /// One turn of a loop: whether there is to be another.
    fn turn(
        &mut self,
        fold: &'p Fold,
        first: Value<'a>,
        second: Option<Value<'a>>,
        slot: usize,
    ) -> Result<bool, Error> {
        self.locals.truncate(slot + 1);
        self.locals.push((&fold.item, Ok(first)));
        if let (Some(name), Some(value)) = (&fold.second, second) {
            self.locals.push((name, Ok(value)));
        }
        match self.eval(&fold.condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Err(Error::CostExceeded) => return Err(Error::CostExceeded),
            _ => {}
        }
        let step = match self.collect(&fold.step, &fold.accumulator, slot) {
            Some(step) => step,
            None => self.eval(&fold.step),
        };
        if matches!(step, Err(Error::CostExceeded)) {
            return Err(Error::CostExceeded);
        }
        self.locals[slot].1 = step;
        Ok(true)
    }

    /// A step that only adds to what is collected: in place, so that a loop does not take the square of its length.
    fn collect(&mut self, step: &'p Expr, name: &str, slot: usize) -> Option<Result<Value<'a>, Error>> {
        let is_collected = |expr: &Expr| matches!(&expr.kind, Kind::Ident(one) if **one == *name);
        let Kind::Call { function, target: None, args } = &step.kind else {
            return None;
        };
        match (&**function, args.as_slice()) {
            ("_?_:_", [filter, add, same]) if is_collected(same) && self.adds(add, name) => {
                Some(match self.eval(filter) {
                    Ok(Value::Bool(true)) => return self.collect(add, name, slot),
                    Ok(Value::Bool(false)) => self
                        .charge(1)
                        .and_then(|()| std::mem::replace(&mut self.locals[slot].1, Ok(Value::Null))),
                    Ok(_) => Err(Error::overload()),
                    Err(error) => Err(error),
                })
            }
            ("_+_", [one, Expr { kind: Kind::List { items, optional }, .. }]) if is_collected(one) => {
                if !matches!(self.locals[slot].1, Ok(Value::List(List::Made(_)))) {
                    return None;
                }
                let more = match self.charge(2).and_then(|()| self.list(items, optional)) {
                    Ok(Value::List(more)) => more,
                    Ok(_) => return None,
                    Err(error) => return Some(Err(error)),
                };
                let Ok(Value::List(List::Made(mut all))) =
                    std::mem::replace(&mut self.locals[slot].1, Ok(Value::Null))
                else {
                    return None;
                };
                Arc::make_mut(&mut all).extend(more.iter());
                Some(Ok(Value::List(List::Made(all))))
            }
            _ => None,
        }
    }

    fn adds(&self, step: &Expr, name: &str) -> bool {
        let Kind::Call { function, target: None, args } = &step.kind else {
            return false;
        };
        let collected = |expr: &Expr| matches!(&expr.kind, Kind::Ident(one) if **one == *name);
        matches!((&**function, args.as_slice()), ("_+_", [one, Expr { kind: Kind::List { .. }, .. }]) if collected(one))
    }
}

fn literal_value<'a>(literal: &Literal) -> Value<'a> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::String(Text::Shared(Arc::clone(text))),
        Literal::Bytes(bytes) => Value::Bytes(Arc::clone(bytes)),
    }
}

fn has(value: &Value<'_>, field: &str) -> bool {
    match value {
        Value::Map(map) => map.field(field).is_some(),
        Value::Optional(Some(value)) => has(value, field),
        _ => false,
    }
}

fn select<'a>(value: &Value<'a>, field: &str) -> Result<Value<'a>, Error> {
    match value {
        Value::Map(map) => map.field(field).ok_or_else(|| operators::missing(&Value::from(field))),
        Value::Optional(_) => optional_select(value, field),
        _ => Err(operators::missing(&Value::from(field))),
    }
}

fn optional_select<'a>(value: &Value<'a>, field: &str) -> Result<Value<'a>, Error> {
    Ok(match value {
        Value::Optional(None) => Value::Optional(None),
        Value::Optional(Some(value)) => optional_select(value, field)?,
        Value::Map(map) => map.field(field).map_or(Value::Optional(None), Value::present),
        _ => return Err(operators::missing(&Value::from(field))),
    })
}
