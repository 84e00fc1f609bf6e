//! The macros that the parser does not know: those of optional values, of loops with two variables, and
//! `sortBy`.

use super::{ACCUMULATOR, Builder, Entry, Expr, Fold, Kind, Literal, MacroError};

/// What a call means: itself, or what a macro makes of it.
pub(super) fn expand(
    builder: &mut Builder,
    id: u32,
    function: &str,
    target: Option<Box<Expr>>,
    args: Vec<Expr>,
) -> Kind {
    if builder.too_deep {
        return Kind::Literal(Literal::Null);
    }
    let mut make = Maker { builder, at: id };
    let Some(target) = target else {
        return Kind::Call { function: function.into(), target: None, args };
    };
    match (function, args.len()) {
        ("optMap" | "optFlatMap", 2) => make.optional_map(function, *target, args),
        ("all" | "exists" | "existsOne" | "exists_one", 3)
        | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => {
            make.two_variables(function, *target, args)
        }
        ("sortBy", 2) => make.sort_by(*target, args),
        _ => Kind::Call { function: function.into(), target: Some(target), args },
    }
}

struct Maker<'a> {
    builder: &'a mut Builder,
    at: u32,
}

impl Maker<'_> {
    fn make(&mut self, kind: Kind) -> Expr {
        self.builder.make(self.at, kind)
    }

    fn literal(&mut self, literal: Literal) -> Expr {
        self.make(Kind::Literal(literal))
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.make(Kind::Ident(name.into()))
    }

    fn collected(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        self.make(Kind::Call { function: function.into(), target: None, args })
    }

    fn member(&mut self, function: &str, target: Expr) -> Expr {
        self.make(Kind::Call { function: function.into(), target: Some(Box::new(target)), args: Vec::new() })
    }

    fn list(&mut self, items: Vec<Expr>) -> Expr {
        self.make(Kind::List { items, optional: Vec::new() })
    }

    /// The name of a loop's variable.
    fn variable(&mut self, arg: &Expr, otherwise: &str) -> Box<str> {
        match &arg.kind {
            Kind::Ident(name) if !name.starts_with('.') => {
                if &**name == ACCUMULATOR || &**name == "__result__" {
                    let message = format!("iteration variable overwrites accumulator variable: {name}");
                    self.builder.errors.push(MacroError { id: arg.id, message });
                }
                name.clone()
            }
            _ => {
                self.builder.errors.push(MacroError { id: arg.id, message: otherwise.to_owned() });
                "@wrong".into()
            }
        }
    }

    /// A fresh copy: expressions are told apart by their ids.
    fn copy(&mut self, expr: &Expr) -> Expr {
        let kind = match &expr.kind {
            Kind::Select { operand, field, test } => {
                Kind::Select { operand: Box::new(self.copy(operand)), field: field.clone(), test: *test }
            }
            Kind::Call { function, target, args } => Kind::Call {
                function: function.clone(),
                target: target.as_ref().map(|target| Box::new(self.copy(target))),
                args: args.iter().map(|arg| self.copy(arg)).collect(),
            },
            Kind::List { items, optional } => Kind::List {
                items: items.iter().map(|item| self.copy(item)).collect(),
                optional: optional.clone(),
            },
            Kind::Map(entries) => Kind::Map(self.copy_entries(entries)),
            Kind::Struct { name, fields } => {
                Kind::Struct { name: name.clone(), fields: self.copy_entries(fields) }
            }
            Kind::Fold(fold) => Kind::Fold(Box::new(Fold {
                range: self.copy(&fold.range),
                init: self.copy(&fold.init),
                condition: self.copy(&fold.condition),
                step: self.copy(&fold.step),
                result: self.copy(&fold.result),
                ..(**fold).clone()
            })),
            other => other.clone(),
        };
        self.builder.make(expr.id, kind)
    }

    fn copy_entries(&mut self, entries: &[Entry]) -> Vec<Entry> {
        entries
            .iter()
            .map(|entry| Entry {
                id: entry.id,
                key: self.copy(&entry.key),
                value: self.copy(&entry.value),
                optional: entry.optional,
            })
            .collect()
    }

    fn bind(&mut self, name: Box<str>, init: Expr, result: Expr) -> Expr {
        let range = self.list(Vec::new());
        let condition = self.literal(Literal::Bool(false));
        let step = self.ident(&name);
        self.make(Kind::Fold(Box::new(Fold {
            range,
            item: "#unused".into(),
            second: None,
            accumulator: name,
            init,
            condition,
            step,
            result,
        })))
    }

    fn optional_map(&mut self, function: &str, target: Expr, mut args: Vec<Expr>) -> Kind {
        let (Some(body), Some(variable)) = (args.pop(), args.pop()) else {
            return Kind::Literal(Literal::Null);
        };
        let why = format!("{function}() variable name must be a simple identifier");
        let name = self.variable(&variable, &why);
        let copy = self.copy(&target);
        let has = self.member("hasValue", target);
        let value = self.member("value", copy);
        let mut present = self.bind(name, value, body);
        if function == "optMap" {
            present = self.call("optional.of", vec![present]);
        }
        let absent = self.call("optional.none", Vec::new());
        Kind::Call { function: "_?_:_".into(), target: None, args: vec![has, present, absent] }
    }

    fn two_variables(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Kind {
        let mut args = args.into_iter();
        let (Some(first), Some(second)) = (args.next(), args.next()) else {
            return Kind::Literal(Literal::Null);
        };
        let item = self.variable(&first, "argument must be a simple name");
        let other = self.variable(&second, "argument must be a simple name");
        if item == other {
            let message = format!("duplicate variable name: {item}");
            self.builder.errors.push(MacroError { id: second.id, message });
        }
        let (Some(body), last) = (args.next(), args.next()) else {
            return Kind::Literal(Literal::Null);
        };
        let (filter, body) = match last {
            Some(last) => (Some(body), last),
            None => (None, body),
        };
        let (init, condition, step, result) = match function {
            "all" => {
                let init = self.literal(Literal::Bool(true));
                let so_far = self.collected();
                let condition = self.call("@not_strictly_false", vec![so_far]);
                let so_far = self.collected();
                let step = self.call("_&&_", vec![so_far, body]);
                (init, condition, step, self.collected())
            }
            "exists" => {
                let init = self.literal(Literal::Bool(false));
                let so_far = self.collected();
                let none = self.call("!_", vec![so_far]);
                let condition = self.call("@not_strictly_false", vec![none]);
                let so_far = self.collected();
                let step = self.call("_||_", vec![so_far, body]);
                (init, condition, step, self.collected())
            }
            "transformList" => {
                let init = self.list(Vec::new());
                let one = self.list(vec![body]);
                let so_far = self.collected();
                let step = self.call("_+_", vec![so_far, one]);
                (init, self.literal(Literal::Bool(true)), step, self.collected())
            }
            "transformMap" | "transformMapEntry" => {
                let init = self.make(Kind::Map(Vec::new()));
                let so_far = self.collected();
                let mut insert = vec![so_far];
                if function == "transformMap" {
                    insert.push(self.ident(&item));
                }
                insert.push(body);
                let step = self.call("cel.@mapInsert", insert);
                (init, self.literal(Literal::Bool(true)), step, self.collected())
            }
            _ => {
                let init = self.literal(Literal::Int(0));
                let (so_far, one) = (self.collected(), self.literal(Literal::Int(1)));
                let more = self.call("_+_", vec![so_far, one]);
                let same = self.collected();
                let step = self.call("_?_:_", vec![body, more, same]);
                let (so_far, one) = (self.collected(), self.literal(Literal::Int(1)));
                let result = self.call("_==_", vec![so_far, one]);
                (init, self.literal(Literal::Bool(true)), step, result)
            }
        };
        let step = match filter {
            Some(filter) => {
                let same = self.collected();
                self.call("_?_:_", vec![filter, step, same])
            }
            None => step,
        };
        Kind::Fold(Box::new(Fold {
            range: target,
            item,
            second: Some(other),
            accumulator: ACCUMULATOR.into(),
            init,
            condition,
            step,
            result,
        }))
    }

    /// `list.sortBy(x, key)`: the list, sorted by what `key` makes of each element.
    fn sort_by(&mut self, target: Expr, mut args: Vec<Expr>) -> Kind {
        let (Some(body), Some(variable)) = (args.pop(), args.pop()) else {
            return Kind::Literal(Literal::Null);
        };
        let item = self.variable(
            &variable,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        );
        let name: Box<str> = "@__sortBy_input__".into();
        let init = self.list(Vec::new());
        let one = self.list(vec![body]);
        let so_far = self.collected();
        let step = self.call("_+_", vec![so_far, one]);
        let range = self.ident(&name);
        let condition = self.literal(Literal::Bool(true));
        let result = self.collected();
        let keys = self.make(Kind::Fold(Box::new(Fold {
            range,
            item,
            second: None,
            accumulator: ACCUMULATOR.into(),
            init,
            condition,
            step,
            result,
        })));
        let input = self.ident(&name);
        let sorted = self.make(Kind::Call {
            function: "@sortByAssociatedKeys".into(),
            target: Some(Box::new(input)),
            args: vec![keys],
        });
        self.bind(name, target, sorted).kind
    }
}
