//! What is wrong with the rules of a definition: those that do not compile, and those that could cost too much.

use super::super::golang;
use super::super::props::{Additional, Props};
use super::{declare, environment};
use crate::cel::{Declared, MAX_REQUEST, Program, Type};
use crate::invalid::{FieldError, Path, Shown};

/// What one rule may cost by estimate.
const RULE_LIMIT: u64 = 10_000_000;
/// What all rules of a version may cost by estimate.
const TOTAL_LIMIT: u64 = 100_000_000;

/// What is wrong with the rules of a schema that has nothing else wrong with it.
pub(in super::super) fn check(schema: Props<'_>, path: &Path) -> Vec<FieldError> {
    if !schema.any(&|one| !one.list("x-kubernetes-validations").is_empty()) {
        return Vec::new();
    }
    let mut checker = Checker { out: Vec::new(), total: 0, expensive: Vec::new() };
    checker.walk(schema, path, &Place { root: true, cardinality: Some(1), uncorrelated: None });
    if checker.total > TOTAL_LIMIT {
        for (at, _) in &checker.expensive {
            let why =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            checker.out.push(FieldError::forbidden(at, why));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        checker.out.push(FieldError::forbidden(path, too_expensive(what, checker.total, TOTAL_LIMIT)));
    }
    checker.out
}

struct Checker {
    out: Vec<FieldError>,
    total: u64,
    expensive: Vec<(Path, u64)>,
}

/// Where a schema stands.
#[derive(Clone)]
struct Place {
    root: bool,
    /// How many values it is for at most; `None` if there is no bound.
    cardinality: Option<u64>,
    /// Where the old value of something cannot be told any more.
    uncorrelated: Option<Path>,
}

impl Checker {
    fn walk(&mut self, schema: Props<'_>, path: &Path, place: &Place) {
        let factor = match (schema.kind(), schema.additional()) {
            ("object", Some(_)) => schema.integer("maxProperties").map(|most| most.max(0).unsigned_abs()),
            ("array", _) => schema.integer("maxItems").map(|most| most.max(0).unsigned_abs()),
            _ => Some(1),
        };
        let cardinality = place.cardinality.zip(factor).map(|(one, two)| one.saturating_mul(two));
        let below = Place { root: false, cardinality, uncorrelated: place.uncorrelated.clone() };
        if let Some(Additional::Schema(one)) = schema.additional() {
            self.walk(one, &path.child("additionalProperties"), &below);
        }
        for (name, property) in schema.map("properties") {
            self.walk(property, &path.child("properties").key(name), &below);
        }
        if let Some(items) = schema.item() {
            let mut below = below.clone();
            if schema.text("x-kubernetes-list-type") != "map" {
                below.uncorrelated.get_or_insert_with(|| path.clone());
            }
            self.walk(items, &path.child("items"), &below);
        }
        if !schema.list("x-kubernetes-validations").is_empty() {
            self.level(schema, path, place);
        }
    }

    fn level(&mut self, schema: Props<'_>, path: &Path, place: &Place) {
        let all = path.child("x-kubernetes-validations");
        let Some(declared) = declare(schema, place.root || schema.embedded()) else {
            let why = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            self.out.push(FieldError::internal(all, why));
            return;
        };
        let most = MAX_REQUEST / (declared.min_size + 1);
        let cardinality = place.cardinality.unwrap_or_else(|| u64::try_from(most).unwrap_or(0));
        for (index, rule) in schema.schemas("x-kubernetes-validations").enumerate() {
            self.rule(rule, &declared, cardinality, &all.index(index), place);
        }
    }

    fn rule(&mut self, rule: Props<'_>, declared: &Declared, cardinality: u64, at: &Path, place: &Place) {
        let environment = environment(&declared.ty, rule.flag("optionalOldSelf"));
        let shown = || Shown::raw(golang::rule(rule.0));
        let program = match Program::compile(rule.text("rule"), &environment) {
            Ok(program) if *program.output() == Type::Bool => Some(program),
            Ok(_) => {
                let why = "cel expression must evaluate to a bool";
                self.out.push(FieldError::invalid(at.child("rule"), shown(), why));
                None
            }
            Err(issues) => {
                let why = format!("compilation failed: {issues}");
                self.out.push(FieldError::invalid(at.child("rule"), shown(), why));
                None
            }
        };
        let uses_old = program.as_ref().is_some_and(|program| program.uses("oldSelf"));
        if let Some(program) = program {
            let cost = program.max_cost(Some(declared)).saturating_mul(cardinality);
            self.observe("estimated rule cost", cost, at.child("rule"));
            self.message(rule, declared, &environment, at);
        }
        if uses_old {
            if let Some(within) = &place.uncorrelated {
                let why = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                );
                self.out.push(FieldError::invalid(at.child("rule"), rule.text("rule"), why));
            }
        } else if rule.get("optionalOldSelf").is_some() {
            let why = "may not be set if oldSelf is not used in rule";
            self.out.push(FieldError::invalid(
                at.child("optionalOldSelf"),
                rule.flag("optionalOldSelf"),
                why,
            ));
        }
    }

    fn message(
        &mut self,
        rule: Props<'_>,
        declared: &Declared,
        environment: &crate::cel::Environment,
        at: &Path,
    ) {
        let expression = rule.text("messageExpression");
        if expression.is_empty() {
            return;
        }
        let at = at.child("messageExpression");
        let shown = Shown::raw(golang::rule(rule.0));
        match Program::compile(expression, environment) {
            Ok(program) if *program.output() == Type::String => {
                let cost = program.max_cost(Some(declared));
                self.observe("estimated messageExpression cost", cost, at);
            }
            Ok(_) => {
                self.out.push(FieldError::invalid(at, shown, "messageExpression must evaluate to a string"))
            }
            Err(issues) => {
                let why = format!("messageExpression compilation failed: {issues}");
                self.out.push(FieldError::invalid(at, shown, why));
            }
        }
    }

    fn observe(&mut self, what: &str, cost: u64, at: Path) {
        if cost > RULE_LIMIT {
            self.out.push(FieldError::forbidden(&at, too_expensive(what, cost, RULE_LIMIT)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= TOTAL_LIMIT / 100 {
            self.expensive.push((at, cost));
            self.expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.expensive.truncate(4);
        }
    }
}

fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
