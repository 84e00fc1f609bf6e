//! Rules in CEL (`x-kubernetes-validations`): compiled with the schema, evaluated on every object.

mod declare;
mod definition;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::openapi::field_path;
use super::props::{Additional, Props};
use crate::cel::{self, Activation, Declared, Environment, Error, Program, Type, Value};
use crate::invalid::{FieldError, Path};

pub(super) use declare::declare;
pub(super) use definition::check;

/// The rules of one level of a schema, and of all below.
#[derive(Debug)]
pub struct Rules {
    kind: Box<str>,
    declared: Arc<Declared>,
    rules: Vec<Rule>,
    items: Option<Box<Rules>>,
    properties: BTreeMap<Box<str>, Rules>,
    additional: Option<Box<Rules>>,
    all_of: Vec<Rules>,
    /// The keys of a list whose elements can be found again in an older one.
    keys: Option<Vec<Box<str>>>,
}

/// One rule.
#[derive(Debug)]
struct Rule {
    program: Result<Option<Program>, String>,
    text: Box<str>,
    message: Box<str>,
    expression: Option<Program>,
    reason: Option<Box<str>>,
    field: Box<str>,
    transition: bool,
    optional_old: bool,
}

/// The variables of the rules of a type.
fn environment(ty: &Type, optional_old: bool) -> Environment {
    let old = if optional_old { Type::optional(ty.clone()) } else { ty.clone() };
    Environment::default().with("self", ty.clone()).with("oldSelf", old)
}

impl Rules {
    /// The rules of a schema, if there are any.
    pub(super) fn compile(schema: Props<'_>) -> Option<Self> {
        if !schema.any(&|one| !one.list("x-kubernetes-validations").is_empty()) {
            return None;
        }
        Self::build(schema, schema, &Arc::new(declare(schema, true)?))
    }

    /// The rules of a part of a schema, if there are any; `whole` where that is an object with a type of its own.
    pub(super) fn of_part(schema: Props<'_>, whole: bool) -> Option<Self> {
        if !schema.any(&|one| !one.list("x-kubernetes-validations").is_empty()) {
            return None;
        }
        Self::build(schema, schema, &Arc::new(declare(schema, whole)?))
    }

    /// `says` has the rules, `schema` the structure.
    fn build(says: Props<'_>, schema: Props<'_>, declared: &Arc<Declared>) -> Option<Self> {
        let below = |says: Props<'_>, schema: Props<'_>, declared: Option<&Arc<Declared>>| {
            let own;
            let declared = match declared {
                Some(declared) => declared,
                None => {
                    own = Arc::new(declare(schema, schema.embedded())?);
                    &own
                }
            };
            Self::build(says, schema, declared)
        };
        let element = declared.element.as_ref();
        let items = match (says.item(), schema.item(), element) {
            (Some(says), Some(schema), Some(element)) => Self::build(says, schema, element).map(Box::new),
            _ => None,
        };
        let mut properties = BTreeMap::new();
        for (name, says) in says.map("properties") {
            let Some(schema) = schema.property(name) else {
                continue;
            };
            let field = match cel::escape(name) {
                Some(escaped) => match declared.fields.get(&*escaped) {
                    Some(field) => Some(&field.declared),
                    None => continue,
                },
                None => None,
            };
            if let Some(rules) = below(says, schema, field) {
                properties.insert(name.into(), rules);
            }
        }
        let additional = match (says.additional(), schema.additional(), element) {
            (Some(Additional::Schema(says)), Some(Additional::Schema(schema)), Some(element)) => {
                Self::build(says, schema, element).map(Box::new)
            }
            _ => None,
        };
        let all_of: Vec<Self> =
            says.schemas("allOf").filter_map(|one| Self::build(one, schema, declared)).collect();
        let rules: Vec<Rule> = says
            .schemas("x-kubernetes-validations")
            .map(|one| Rule::compile(one, schema, declared))
            .collect();
        let empty = rules.is_empty() && items.is_none() && properties.is_empty() && additional.is_none();
        if empty && all_of.is_empty() {
            return None;
        }
        let keys = (schema.text("x-kubernetes-list-type") == "map")
            .then(|| schema.strings("x-kubernetes-list-map-keys").map(Into::into).collect());
        Some(Self {
            kind: schema.kind().into(),
            declared: Arc::clone(declared),
            rules,
            items,
            properties,
            additional,
            all_of,
            keys,
        })
    }

    /// What is wrong with a value. With its older state, what did not change is only told in the second list.
    #[must_use]
    pub fn check(&self, value: &Json, old: Option<&Json>) -> (Vec<FieldError>, Vec<FieldError>) {
        self.check_at(value, old, &Path::default())
    }

    /// As [`Rules::check`], of a value at a path.
    pub(super) fn check_at(
        &self,
        value: &Json,
        old: Option<&Json>,
        path: &Path,
    ) -> (Vec<FieldError>, Vec<FieldError>) {
        let mut run = Run { budget: cel::BUDGET, errors: Vec::new(), old: Vec::new() };
        let ratchet = Ratchet { current: old, parent: None, root: true };
        run.walk(self, value, old, ratchet, path);
        (run.errors, run.old)
    }
}

impl Rule {
    fn compile(rule: Props<'_>, schema: Props<'_>, declared: &Declared) -> Self {
        let text = rule.text("rule").trim();
        let optional_old = rule.flag("optionalOldSelf");
        let environment = environment(&declared.ty, optional_old);
        let program = match text {
            "" => Ok(None),
            _ => Program::compile(rule.text("rule"), &environment).map(Some),
        };
        let expression = rule.text("messageExpression");
        let expression =
            if expression.is_empty() { None } else { Program::compile(expression, &environment).ok() };
        let field = field_path(rule.text("fieldPath"), schema, true).map(|(names, _)| names.join("."));
        Self {
            transition: matches!(&program, Ok(Some(program)) if program.uses("oldSelf")),
            program,
            text: text.into(),
            message: rule.text("message").trim().into(),
            expression,
            reason: rule.pointer("reason").map(Into::into),
            field: field.unwrap_or_default().into(),
            optional_old,
        }
    }

    /// What messages call the rule.
    fn name(&self) -> &str {
        if self.message.is_empty() { &self.text } else { &self.message }
    }
}

/// `self` and `oldSelf`.
struct Selves<'v> {
    new: Value<'v>,
    old: Option<Value<'v>>,
}

impl<'v> Activation<'v> for Selves<'v> {
    fn resolve(&self, name: &str) -> Option<Result<Value<'v>, Error>> {
        match name {
            "self" => Some(Ok(self.new.clone())),
            "oldSelf" => self.old.clone().map(Ok),
            _ => None,
        }
    }
}

/// What a value was before, as far as it can be told.
#[derive(Clone, Copy)]
struct Ratchet<'v> {
    current: Option<&'v Json>,
    /// The nearest value around it of which it can be told, new and old.
    parent: Option<(&'v Json, &'v Json)>,
    root: bool,
}

impl<'v> Ratchet<'v> {
    fn is_unchanged(&self, value: &Json) -> bool {
        match (self.current, self.parent) {
            (Some(old), _) => old == value,
            (None, Some((new, old))) => new == old,
            (None, None) => false,
        }
    }

    fn below(self, value: &'v Json, find: impl FnOnce(&'v Json) -> Option<&'v Json>) -> Self {
        match self.current {
            Some(old) => Self { current: find(old), parent: Some((value, old)), root: false },
            None => self,
        }
    }
}

struct Run {
    budget: i64,
    errors: Vec<FieldError>,
    old: Vec<FieldError>,
}

const EXHAUSTED: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

impl Run {
    fn walk<'v>(
        &mut self,
        rules: &Rules,
        value: &'v Json,
        old: Option<&'v Json>,
        ratchet: Ratchet<'v>,
        path: &Path,
    ) {
        if value.is_null() || self.budget < 0 {
            return;
        }
        self.level(rules, value, old.filter(|old| !old.is_null()), ratchet, path);
        for all_of in &rules.all_of {
            self.walk(all_of, value, old, Ratchet { current: None, ..ratchet }, path);
        }
        match value {
            Json::Array(items) => {
                let Some(below) = &rules.items else { return };
                for (index, item) in items.iter().enumerate() {
                    let find = |old: &'v Json| same_element(rules.keys.as_deref(), item, old);
                    let at = path.index(index);
                    self.walk(below, item, old.and_then(find), ratchet.below(value, find), &at);
                }
            }
            Json::Object(fields) => {
                for (name, field) in fields {
                    let find = |old: &'v Json| old.get(name);
                    // Both versions of an object have the same type once they are converted, so that says nothing.
                    let hidden = ratchet.root && matches!(name.as_str(), "apiVersion" | "kind");
                    let next = if hidden {
                        Ratchet { current: None, parent: None, root: false }
                    } else {
                        ratchet.below(value, find)
                    };
                    if let Some(below) = &rules.additional {
                        self.walk(below, field, old.and_then(find), next, &path.key(name));
                    }
                    if let Some(below) = rules.properties.get(name.as_str()) {
                        self.walk(below, field, old.and_then(find), next, &path.child(name));
                    }
                }
            }
            _ => {}
        }
    }

    fn level<'v>(
        &mut self,
        rules: &Rules,
        value: &'v Json,
        old: Option<&'v Json>,
        ratchet: Ratchet<'v>,
        path: &Path,
    ) {
        if rules.rules.is_empty() {
            return;
        }
        if self.budget == 0 {
            return self.stop(path, rules, EXHAUSTED.to_owned());
        }
        // The declared type lives as long as the rules; the value as long as the object.
        let declared: &Declared = &rules.declared;
        let new = Value::json(value, Some(declared));
        for rule in &rules.rules {
            let program = match &rule.program {
                Ok(Some(program)) => program,
                Ok(None) => continue,
                Err(why) => {
                    let why = format!("rule compile error: {why}");
                    self.errors.push(FieldError::invalid(path, &*rules.kind, why));
                    continue;
                }
            };
            if rule.transition && old.is_none() && !rule.optional_old {
                continue;
            }
            let old = old.map(|old| Value::json(old, Some(declared)));
            let old = match (rule.optional_old, old) {
                (true, Some(old)) => Some(Value::present(old)),
                (true, None) => Some(Value::Optional(None)),
                (false, old) => old,
            };
            let selves = Selves { new: new.clone(), old };
            let evaluation = program.evaluate(&selves, cel::CALL_LIMIT);
            if !self.pay(evaluation.cost) {
                return self.stop(path, rules, EXHAUSTED.to_owned());
            }
            match evaluation.result {
                Ok(Value::Bool(true)) => {}
                Ok(_) => {
                    let Some(error) = self.refusal(rule, rules, &selves, value, path) else {
                        return;
                    };
                    if !rule.transition && ratchet.is_unchanged(value) {
                        self.old.push(error);
                    } else {
                        self.errors.push(error);
                    }
                }
                Err(Error::CostExceeded) => {
                    let why = format!(
                        "'{}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        Error::CostExceeded,
                        rule.name()
                    );
                    return self.stop(path, rules, why);
                }
                Err(Error::Message(message)) => {
                    let name = rule.name();
                    let why = if message.starts_with("no such overload") {
                        format!(
                            "'{message}': call arguments did not match a supported operator, function or macro signature for rule: {name}"
                        )
                    } else {
                        format!("{message} evaluating rule: {name}")
                    };
                    self.errors.push(FieldError::invalid(path, &*rules.kind, why));
                }
            }
        }
    }

    fn pay(&mut self, cost: u64) -> bool {
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.budget => {
                self.budget -= cost;
                true
            }
            _ => false,
        }
    }

    fn stop(&mut self, path: &Path, rules: &Rules, why: String) {
        self.errors.push(FieldError::invalid(path, &*rules.kind, why));
        self.budget = -1;
    }

    /// The error of a rule that does not hold.
    fn refusal(
        &mut self,
        rule: &Rule,
        rules: &Rules,
        selves: &Selves<'_>,
        value: &Json,
        path: &Path,
    ) -> Option<FieldError> {
        let path = if rule.field.is_empty() { path.clone() } else { path.child(&rule.field) };
        let mut detail = None;
        if let Some(expression) = &rule.expression {
            let evaluation = expression.evaluate(selves, cel::CALL_LIMIT);
            if !self.pay(evaluation.cost) {
                let why = "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run";
                self.stop(&path, rules, why.to_owned());
                return None;
            }
            if let Ok(Value::String(text)) = evaluation.result {
                let text = text.trim();
                let good = !text.is_empty() && text.len() <= cel::MAX_MESSAGE && !text.contains('\n');
                detail = good.then(|| text.to_owned());
            }
        }
        let detail = detail.unwrap_or_else(|| match &*rule.message {
            "" => format!("failed rule: {}", rule.text),
            message => message.to_owned(),
        });
        let mut error = match rule.reason.as_deref() {
            Some("FieldValueForbidden") => return Some(FieldError::forbidden(path, detail)),
            Some("FieldValueRequired") => return Some(FieldError::required(path, detail)),
            Some("FieldValueDuplicate") => FieldError::duplicate(path, value),
            _ => FieldError::invalid(path, value, detail),
        };
        if matches!(&*rules.kind, "object" | "array") {
            error.value = None;
        }
        Some(error)
    }
}

/// The element of an old list that has the same keys.
fn same_element<'v>(keys: Option<&[Box<str>]>, element: &Json, old: &'v Json) -> Option<&'v Json> {
    let keys = keys?;
    old.as_array()?.iter().find(|one| keys.iter().all(|key| one.get(&**key) == element.get(&**key)))
}
