//! What an expression costs at most.

use std::collections::HashMap;

use super::super::check::Checked;
use super::super::declared::Declared;
use super::super::expr::{ACCUMULATOR, Expr, Fold, Kind, Literal};
use super::super::ty::Type;
use super::actual::selector;
use super::range::{Range, scale};
use super::{PATTERN, TRAVERSAL};

/// The least and the most that an expression costs when its variables have the sizes of a type.
pub(in super::super) fn estimate(root: &Expr, checked: &Checked, sizes: Option<&Declared>) -> (u64, u64) {
    let mut coster = Coster {
        checked,
        root: sizes,
        paths: HashMap::new(),
        locals: Vec::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
    };
    let cost = coster.cost(root);
    (cost.min, cost.max)
}

type Path = Vec<Box<str>>;

/// The sizes of the keys and values of a list or map.
#[derive(Clone, Copy)]
struct Entries {
    list: bool,
    key: Range,
    value: Range,
}

impl Entries {
    fn union(one: Option<Self>, two: Option<Self>) -> Option<Self> {
        let (one, two) = (one?, two?);
        Some(Self { list: one.list, key: one.key.union(two.key), value: one.value.union(two.value) })
    }
}

struct Local<'e> {
    name: &'e str,
    path: Path,
    size: Option<Range>,
    entries: Option<Entries>,
}

struct Coster<'e> {
    checked: &'e Checked,
    root: Option<&'e Declared>,
    paths: HashMap<u32, Path>,
    locals: Vec<Local<'e>>,
    sizes: HashMap<u32, Range>,
    entries: HashMap<u32, Entries>,
}

/// What a call costs without its arguments, and how large its result is.
struct CallCost {
    cost: Range,
    result: Option<Range>,
    /// Whether the arguments' costs are already in it.
    whole: bool,
}

fn costs(cost: Range) -> CallCost {
    CallCost { cost, result: None, whole: false }
}

impl<'e> Coster<'e> {
    fn cost(&mut self, expr: &'e Expr) -> Range {
        match &expr.kind {
            Kind::Literal(_) => Range::ZERO,
            Kind::Ident(name) => {
                let path = self.local(name).map_or_else(|| vec![name.clone()], |local| local.path.clone());
                self.paths.insert(expr.id, path);
                Range::ONE
            }
            Kind::Select { operand, field, test } => {
                let sum = self.cost(operand);
                if *test {
                    return sum;
                }
                let mut path = self.path(operand);
                path.push(field.clone());
                self.paths.insert(expr.id, path);
                match self.checked.ty(operand) {
                    Type::Map(_) | Type::Object(_) | Type::Param(_) => sum.add(Range::ONE),
                    _ => sum,
                }
            }
            Kind::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            Kind::List { items, .. } => {
                let mut item = Range { min: if items.is_empty() { 0 } else { u64::MAX }, max: 0 };
                let mut sum = Range::ZERO;
                for one in items {
                    sum = sum.add(self.cost(one));
                    item = item.union(self.size(one));
                }
                self.entries.insert(expr.id, Entries { list: true, key: Range::ONE, value: item });
                sum.add(Range::fixed(10))
            }
            Kind::Map(entries) => {
                let least = if entries.is_empty() { 0 } else { u64::MAX };
                let (mut key, mut value) = (Range { min: least, max: 0 }, Range { min: least, max: 0 });
                let mut sum = Range::ZERO;
                for entry in entries {
                    sum = sum.add(self.cost(&entry.key)).add(self.cost(&entry.value));
                    key = key.union(self.size(&entry.key));
                    value = value.union(self.size(&entry.value));
                }
                self.entries.insert(expr.id, Entries { list: false, key, value });
                sum.add(Range::fixed(30))
            }
            Kind::Struct { fields, .. } => {
                fields.iter().fold(Range::fixed(40), |sum, field| sum.add(self.cost(&field.value)))
            }
            Kind::Fold(fold) => self.fold(expr, fold),
        }
    }

    fn fold(&mut self, expr: &'e Expr, fold: &'e Fold) -> Range {
        let mut sum = self.cost(&fold.range).add(self.cost(&fold.init));
        let collected = Local {
            name: &fold.accumulator,
            path: self.path(&fold.init),
            size: self.known_size(&fold.init),
            entries: self.entry_sizes(&fold.init),
        };
        self.locals.push(collected);
        let is_empty = matches!(&fold.range.kind, Kind::List { items, .. } if items.is_empty());
        let never = matches!(fold.condition.kind, Kind::Literal(Literal::Bool(false)));
        if is_empty && never && &*fold.accumulator != ACCUMULATOR {
            sum = sum.add(self.cost(&fold.result));
            self.locals.pop();
            if let Some(size) = self.known_size(&fold.result) {
                self.sizes.insert(expr.id, size);
            }
            if let Some(entries) = self.entry_sizes(&fold.result) {
                self.entries.insert(expr.id, entries);
            }
            return sum;
        }
        let entries = self.entry_sizes(&fold.range);
        let is_list =
            entries.map_or(matches!(self.checked.ty(&fold.range), Type::List(_)), |entries| entries.list);
        let path = self.path(&fold.range);
        let local = |name: &'e str, step: &str, size: Option<Range>| {
            let mut path = path.clone();
            path.push(step.into());
            Local { name, path, size, entries: None }
        };
        let (key, value) = (entries.map(|entries| entries.key), entries.map(|entries| entries.value));
        match &fold.second {
            Some(second) => {
                self.locals.push(local(&fold.item, if is_list { "@indices" } else { "@keys" }, key));
                self.locals.push(local(second, if is_list { "@items" } else { "@values" }, value));
            }
            None if is_list => self.locals.push(local(&fold.item, "@items", value)),
            None => self.locals.push(local(&fold.item, "@keys", key)),
        }
        let turn = self.cost(&fold.condition).add(self.cost(&fold.step));
        self.locals.pop();
        if fold.second.is_some() {
            self.locals.pop();
        }
        sum = sum.add(self.cost(&fold.result));
        self.locals.pop();
        let count = self.size(&fold.range);
        match &fold.init.kind {
            Kind::Literal(_) => {
                if let Some(size) = self.known_size(&fold.init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            Kind::List { .. } | Kind::Map(_) => {
                self.sizes.insert(expr.id, count);
                if let Some(entries) = self.entry_sizes(&fold.step) {
                    self.entries.insert(expr.id, entries);
                }
            }
            _ => {}
        }
        sum.add(count.times(turn))
    }

    fn call(&mut self, expr: &'e Expr, function: &str, target: Option<&'e Expr>, args: &'e [Expr]) -> Range {
        if let ("dyn", [arg]) = (function, args) {
            let cost = self.cost(arg).add(Range::ONE);
            if let Some(size) = self.known_size(arg) {
                self.sizes.insert(expr.id, size);
            }
            if let Some(entries) = self.entry_sizes(arg) {
                self.entries.insert(expr.id, entries);
            }
            return cost;
        }
        let arg_costs: Vec<Range> = args.iter().map(|arg| self.cost(arg)).collect();
        let overloads: Vec<&str> = match function {
            "_?._" => vec!["select_optional_field"],
            _ => self.checked.overloads(expr).iter().map(|overload| &*overload.id).collect(),
        };
        if overloads.is_empty() {
            return Range::ZERO;
        }
        let sum = target.map_or(Range::ZERO, |target| self.cost(target));
        let all_args = arg_costs.iter().fold(Range::ZERO, |sum, cost| sum.add(*cost));
        let mut total = Range { min: u64::MAX, max: 0 };
        let mut result: Option<Range> = None;
        for overload in overloads {
            let call = self.call_cost(expr, function, overload, target, args, &arg_costs);
            total = total.union(if call.whole { call.cost } else { call.cost.add(all_args) });
            if let Some(size) = call.result {
                result = Some(result.map_or(size, |known| known.union(size)));
            }
            let step = match overload {
                "index_list" => "@items",
                "index_map" => "@values",
                _ => "",
            };
            if let (false, Some(of)) = (step.is_empty(), args.first()) {
                result = self.entry_sizes(of).map(|entries| entries.value);
                let mut path = self.path(of);
                path.push(step.into());
                self.paths.insert(expr.id, path);
            }
            result = result.or_else(|| self.known_size(expr));
        }
        if let Some(size) = result {
            self.sizes.insert(expr.id, size);
        }
        sum.add(total)
    }

    fn call_cost(
        &mut self,
        expr: &'e Expr,
        function: &str,
        overload: &str,
        target: Option<&'e Expr>,
        args: &'e [Expr],
        arg_costs: &[Range],
    ) -> CallCost {
        if let Some(cost) = self.library_cost(function, overload, target, args) {
            return cost;
        }
        match (overload, target, args) {
            ("string_format", Some(target), _) => costs(self.size(target).scaled(TRAVERSAL)),
            ("string_to_bytes" | "bytes_to_string" | "strings_quote", None, [arg]) => {
                let size = self.size(arg);
                let result = match overload {
                    "string_to_bytes" => Range { min: size.min, max: size.max.saturating_mul(4) },
                    "bytes_to_string" => Range { min: size.min / 4, max: size.max },
                    _ => Range {
                        min: size.min.saturating_add(2),
                        max: size.max.saturating_mul(2).saturating_add(2),
                    },
                };
                CallCost { result: Some(result), ..costs(size.scaled(TRAVERSAL)) }
            }
            ("starts_with_string" | "ends_with_string", _, [arg]) => costs(self.size(arg).scaled(TRAVERSAL)),
            ("in_list", _, [_, list]) => costs(self.size(list)),
            ("matches_string", Some(target), [pattern]) => {
                let text = self.size(target).add(Range::ONE).scaled(TRAVERSAL);
                costs(text.times(self.size(pattern).scaled(PATTERN)))
            }
            ("contains_string", Some(target), [arg]) => {
                costs(self.size(target).scaled(TRAVERSAL).times(self.size(arg).scaled(TRAVERSAL)))
            }
            ("logical_or" | "logical_and", ..) => {
                let (one, two) = (arg_costs[0], arg_costs[1]);
                CallCost { whole: true, ..costs(Range { min: one.min, max: one.add(two).max }) }
            }
            ("conditional", _, [_, yes, no]) => {
                let size = self.size(yes).union(self.size(no));
                if let Some(entries) = Entries::union(self.entry_sizes(yes), self.entry_sizes(no)) {
                    self.entries.insert(expr.id, entries);
                }
                let cost = arg_costs[0].add(arg_costs[1].union(arg_costs[2]));
                CallCost { cost, result: Some(size), whole: true }
            }
            ("add_string" | "add_bytes" | "add_list", _, [one, two]) => {
                let size = self.size(one).add(self.size(two));
                if let Some(entries) = Entries::union(self.entry_sizes(one), self.entry_sizes(two)) {
                    self.entries.insert(expr.id, entries);
                }
                let cost = if overload == "add_list" { Range::ONE } else { size.scaled(TRAVERSAL) };
                CallCost { result: Some(size), ..costs(cost) }
            }
            (_, _, [one, two]) if compares(overload) => {
                let most = self.size(one).max.min(self.size(two).max);
                costs(Range { min: u64::from(most > 0), max: most }.scaled(TRAVERSAL))
            }
            _ => costs(Range::ONE),
        }
    }

    fn library_cost(
        &mut self,
        function: &str,
        overload: &str,
        target: Option<&'e Expr>,
        args: &'e [Expr],
    ) -> Option<CallCost> {
        let listed = |factor: f64, size: Range| CallCost {
            result: Some(size),
            ..costs(size.scaled(factor).add(Range::ONE).add(Range::fixed(10)))
        };
        Some(match (function, target, args) {
            ("slice", Some(target), [start, end]) => {
                let start = literal(start).unwrap_or(0);
                let end = literal(end).unwrap_or(self.size(target).max);
                listed(1.0, Range::fixed(end.wrapping_sub(start)))
            }
            ("lists.range", None, [end]) => listed(1.0, Range::fixed(literal(end).unwrap_or(u64::MAX))),
            ("reverse", Some(target), []) => listed(1.0, self.size(target)),
            ("flatten", Some(target), depth) => {
                let depth = depth.first().map_or(1, |depth| literal(depth).unwrap_or(u64::MAX));
                listed(depth as f64, self.size(target))
            }
            ("distinct", Some(target), []) => {
                let size = self.size(target);
                listed(2.0, size.times(size))
            }
            ("sort" | "@sortByAssociatedKeys", Some(target), keys) => {
                let size = self.size(keys.first().unwrap_or(target));
                let text = overload.starts_with("list_string") || overload.starts_with("list_bytes");
                listed(if text { 2.0 + TRAVERSAL } else { 2.0 }, size.times(size))
            }
            ("check", ..) => costs(Range::fixed(350_000)),
            ("fieldSelector" | "labelSelector", _, [arg]) => costs(selector(self.size(arg))),
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
                let size = self.size(target);
                match self.element(target) {
                    Some((ty, element)) => {
                        let mut each = Range::ONE;
                        if matches!(ty, Type::String | Type::Bytes) {
                            each = each.add(element.scaled(TRAVERSAL));
                        }
                        costs(size.times(each))
                    }
                    None => costs(size.scaled(TRAVERSAL)),
                }
            }
            ("url", None, [arg]) => self.same_size(arg, 1.0),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                self.same_size(target, 1.0)
            }
            ("replace", Some(target), [old, new, ..]) => {
                let (size, old, new) = (self.size(target), self.size(old), self.size(new));
                CallCost { result: Some(replaced(size, old, new)), ..costs(size.scaled(2.0 * TRAVERSAL)) }
            }
            ("split", Some(target), [_, rest @ ..]) => {
                let size = self.size(target);
                let max = rest.first().and_then(literal).unwrap_or(size.max);
                CallCost { result: Some(Range { min: 0, max }), ..costs(size.scaled(2.0 * TRAVERSAL)) }
            }
            ("join", Some(target), separator) => {
                let length = self.size(target);
                let mut size = self.element(target).map_or(Range::ZERO, |(_, element)| length.times(element));
                if let Some(separator) = separator.first() {
                    let between =
                        Range { min: length.min.saturating_sub(1), max: length.max.saturating_sub(1) };
                    size = size.add(self.size(separator).times(between));
                }
                CallCost { result: Some(size), ..costs(size.scaled(TRAVERSAL)) }
            }
            ("find" | "findAll", Some(target), [pattern, ..]) => {
                let size = self.size(target);
                let text = size.add(Range::ONE).scaled(TRAVERSAL);
                let cost = text.times(self.size(pattern).scaled(PATTERN));
                CallCost { result: Some(Range { min: 0, max: size.max }), ..costs(cost) }
            }
            ("ip", Some(_), _) => costs(Range::ONE),
            (
                "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver",
                _,
                [arg, ..],
            ) => costs(self.size(arg).scaled(TRAVERSAL)),
            ("ip.isCanonical", _, [arg]) => costs(self.size(arg).scaled(2.0 * TRAVERSAL)),
            ("containsIP" | "containsCIDR", _, [arg]) => {
                let bytes = Range { min: 4, max: 16 };
                let mut cost = bytes.add(bytes).scaled(TRAVERSAL);
                if function == "containsCIDR" {
                    cost = cost.add(bytes.scaled(TRAVERSAL)).add(Range::ONE);
                }
                if overload.ends_with("string") {
                    cost = cost.add(self.size(arg).scaled(TRAVERSAL));
                }
                costs(cost)
            }
            ("validate", _, [arg]) => costs(self.size(arg).scaled(TRAVERSAL).scaled(128.0 * PATTERN)),
            ("_==_", _, [one, two]) => match (self.checked.ty(one), self.checked.ty(two)) {
                (Type::Named(one), Type::Named(two)) if one == two && *one != "kubernetes.URL" => {
                    costs(Range::ONE)
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    fn same_size(&mut self, of: &Expr, factor: f64) -> CallCost {
        let size = self.size(of);
        CallCost { result: Some(size), ..costs(size.scaled(factor * TRAVERSAL)) }
    }

    /// The type and size of the elements of a list; `None` for anything that has none.
    fn element(&mut self, list: &Expr) -> Option<(Type, Range)> {
        let ty = match self.checked.ty(list) {
            Type::List(of) => (**of).clone(),
            Type::Map(of) => of.0.clone(),
            _ => return None,
        };
        let mut path = self.path(list);
        let size = if path.is_empty() || &*path[0] == ACCUMULATOR {
            None
        } else {
            path.push("@items".into());
            self.declared_size(&path)
        };
        Some((ty, size.unwrap_or(Range::UNKNOWN)))
    }

    fn local(&self, name: &str) -> Option<&Local<'e>> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn path(&self, expr: &Expr) -> Path {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    fn size(&mut self, expr: &Expr) -> Range {
        self.known_size(expr).unwrap_or(Range::UNKNOWN)
    }

    fn known_size(&mut self, expr: &Expr) -> Option<Range> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        let fixed = match &expr.kind {
            Kind::Literal(Literal::String(text)) => Some(text.chars().count()),
            Kind::Literal(Literal::Bytes(bytes)) => Some(bytes.len()),
            Kind::Literal(_) => Some(1),
            Kind::List { items, .. } => Some(items.len()),
            Kind::Map(entries) => Some(entries.len()),
            _ => None,
        };
        if let Some(size) = fixed {
            return Some(Range::fixed(size as u64));
        }
        if let Some(size) = self.declared_size(&self.path(expr)) {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(self.checked.ty(expr)) {
            return Some(Range::ONE);
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    /// The size that a schema allows at a path. The first step names a variable, and all are of one type.
    fn declared_size(&self, path: &[Box<str>]) -> Option<Range> {
        let mut at = self.root?;
        let (_, steps) = path.split_first()?;
        for step in steps {
            at = match &**step {
                "@items" | "@values" => at.element.as_deref()?,
                "@keys" => {
                    // The server knows of no bound for keys, and counts that as none at all.
                    return matches!(at.ty, Type::Map(_)).then_some(Range::ZERO);
                }
                field => &at.fields.get(field)?.declared,
            };
        }
        Some(Range { min: 0, max: at.max_elements as u64 })
    }

    fn entry_sizes(&self, expr: &Expr) -> Option<Entries> {
        if let Some(entries) = self.entries.get(&expr.id) {
            return Some(*entries);
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.entries),
            _ => None,
        }
    }
}

fn compares(overload: &str) -> bool {
    let order = ["less", "less_equals", "greater", "greater_equals"];
    matches!(overload, "equals" | "not_equals")
        || order
            .iter()
            .any(|word| overload.strip_prefix(word).is_some_and(|rest| matches!(rest, "_string" | "_bytes")))
}

fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Optional(of) => is_scalar(of),
        _ => false,
    }
}

fn literal(expr: &Expr) -> Option<u64> {
    match expr.kind {
        Kind::Literal(Literal::Int(value)) => Some(u64::try_from(value).unwrap_or(0)),
        _ => None,
    }
}

/// How large text can be after replacements.
fn replaced(size: Range, old: Range, new: Range) -> Range {
    let times = |size: u64, by: u64| scale(size, 1.0 / by as f64);
    let (count_max, kept_max) = if old.min == 0 {
        (size.max.saturating_add(1), size.max)
    } else if new.max <= old.min {
        (0, size.max)
    } else {
        (times(size.max, old.min), 0)
    };
    let (count_min, kept_min) = if old.max == 0 {
        (size.min.saturating_add(1), size.min)
    } else if old.max <= new.min {
        (0, size.min)
    } else {
        (times(size.min, old.max), 0)
    };
    Range { min: count_min, max: count_max }.times(new).add(Range { min: kept_min, max: kept_max })
}
