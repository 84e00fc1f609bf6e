//! Checking values against rules, with the API server's words and in its order.
//!
//! On an update, what is wrong but unchanged is let pass: the server calls it ratcheting.

use serde_json::{Map, Value};

use super::format;
use super::number;
use super::rule::{Others, Rule};
use crate::go::quote;
use crate::invalid::{FieldError, Path};

/// What is wrong with a value. With an old one, what stayed as it was is not counted.
pub(super) fn check(rule: &Rule, value: &Value, old: Option<&Value>, path: &Path) -> Vec<FieldError> {
    let outcome = apply(rule, value, "", old);
    outcome.problems.into_iter().map(|problem| problem.place(path)).collect()
}

/// What came of checking one value.
#[derive(Default)]
pub(super) struct Outcome {
    problems: Vec<Problem>,
    /// How many checks went well or at least were made: of several alternatives that fail, the one with the
    /// most is reported.
    matches: usize,
}

/// One thing that is wrong.
pub(super) struct Problem {
    /// What tells it from others.
    text: String,
    name: String,
    error: FieldError,
}

impl Problem {
    /// About a named value.
    pub(super) fn new(name: &str, text: String, error: FieldError) -> Self {
        Self { text, name: name.to_owned(), error }
    }

    /// About a named value, in the words that also stand in the message.
    pub(super) fn invalid(name: &str, value: impl Into<crate::invalid::Shown>, text: String) -> Self {
        Self::new(name, text.clone(), FieldError::invalid("", value, text))
    }

    /// About no value in particular.
    pub(super) fn general(text: String) -> Self {
        Self::invalid("", "", text)
    }

    fn type_invalid(name: &str, wanted: &str, found: &str) -> Self {
        let text = format!("{name} in body must be of type {wanted}: {}", quote(found));
        Self::new(name, text.clone(), FieldError::type_invalid("", found, text))
    }

    fn place(self, path: &Path) -> FieldError {
        let name = self.name.strip_prefix('.').unwrap_or(&self.name);
        let field = if name.is_empty() { path.to_string() } else { path.child(name).to_string() };
        FieldError { field, ..self.error }
    }
}

impl Outcome {
    pub(super) fn add(&mut self, problem: Problem) {
        if !self.problems.iter().any(|known| known.text == problem.text) {
            self.problems.push(problem);
        }
    }

    fn merge(&mut self, other: Outcome) {
        self.matches += other.matches;
        other.problems.into_iter().for_each(|problem| self.add(problem));
    }

    fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }

    fn from(problem: Option<Problem>) -> Self {
        Self { problems: problem.into_iter().collect(), matches: 0 }
    }
}

fn apply(rule: &Rule, value: &Value, path: &str, old: Option<&Value>) -> Outcome {
    let mut out = apply_all(rule, value, path, old);
    if !out.is_valid() && old.is_some_and(|old| unchanged(rule, value, old)) {
        out.problems.clear();
    }
    out
}

fn apply_all(rule: &Rule, value: &Value, path: &str, old: Option<&Value>) -> Outcome {
    let mut out = Outcome::default();
    if value.is_null() {
        out.merge(of_type(rule, value, path));
        out.merge(Outcome::from(choice(rule, value, path)));
        return out;
    }
    let mut step = |result: Outcome| {
        out.merge(result);
        out.matches += 1;
    };
    if !rule.types.is_empty() || !rule.format.is_empty() {
        step(of_type(rule, value, path));
    }
    step(combinations(rule, value, path));
    if let Value::String(text) = value {
        step(Outcome::from(string(rule, text, path)));
        if format::is_known(&rule.format) {
            let wrong = !format::holds(&rule.format, text);
            step(Outcome::from(wrong.then(|| Problem::type_invalid(path, &rule.format, text))));
        }
    }
    if let Value::Number(given) = value {
        let mut result = Outcome { matches: 1, ..Outcome::default() };
        number::check(rule, given, path).into_iter().for_each(|problem| result.add(problem));
        step(result);
    }
    if let Value::Array(elements) = value {
        step(list(rule, elements, path, old));
    }
    step(Outcome::from(choice(rule, value, path)));
    if let Value::Object(fields) = value {
        step(object(rule, fields, path, old));
    }
    out.matches += 1;
    out
}

fn of_type(rule: &Rule, value: &Value, path: &str) -> Outcome {
    let has = |wanted: &str| rule.types.iter().any(|one| &**one == wanted);
    let wrong = |wanted: &str, found: &str| Outcome::from(Some(Problem::type_invalid(path, wanted, found)));
    let good = Outcome { matches: 1, ..Outcome::default() };
    let (kind, format) = match value {
        Value::Null if rule.types.is_empty() || has("null") || rule.nullable => return good,
        Value::Null => return wrong(&rule.types.join(","), "null"),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.as_i64().is_none() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    };
    let whole = kind == "number" && value.as_f64().is_some_and(number::is_whole) && has("integer");
    let fits = has(kind) || whole || (kind == "integer" && has("number"));
    let textual = matches!(value, Value::String(_) | Value::Array(_));
    if !textual && !rule.format.is_empty() && !fits && format != &*rule.format {
        return wrong(&rule.format, format);
    }
    let numeric = has("number") || has("integer");
    if fits || (textual && !numeric && !rule.format.is_empty()) {
        good
    } else {
        wrong(&rule.types.join(","), kind)
    }
}

fn choice(rule: &Rule, value: &Value, path: &str) -> Option<Problem> {
    let same = |choice: &Value| match (choice, value) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(choice), Value::Number(given)) => number::same(choice, given),
        _ => choice == value,
    };
    if rule.choices.is_empty() || rule.choices.iter().any(same) {
        return None;
    }
    let choices = rule.choices.iter().map(|choice| match choice {
        Value::String(text) => text.clone(),
        other => crate::go::json(other),
    });
    Some(Problem::new(path, format!("{path} enum"), FieldError::not_supported("", value, choices)))
}

fn string(rule: &Rule, text: &str, path: &str) -> Option<Problem> {
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(most) = rule.max_length.filter(|most| length > *most) {
        let error = FieldError::too_long("", usize::try_from(most).unwrap_or_default());
        return Some(Problem::new(path, format!("{path} maxLength"), error));
    }
    if let Some(least) = rule.min_length.filter(|least| length < *least) {
        return Some(Problem::invalid(
            path,
            text,
            format!("{path} in body should be at least {least} chars long"),
        ));
    }
    let pattern = rule.pattern.as_ref()?;
    match &pattern.regex {
        Ok(regex) if regex.is_match(text) => None,
        Ok(_) => {
            Some(Problem::invalid(path, text, format!("{path} in body should match '{}'", pattern.text)))
        }
        Err(error) => {
            let text_of =
                format!("{path} in body should match '{}, but pattern is invalid: {error}'", pattern.text);
            Some(Problem::invalid(path, text, text_of))
        }
    }
}

fn list(rule: &Rule, elements: &[Value], path: &str, old: Option<&Value>) -> Outcome {
    let mut out = Outcome::default();
    if let Some(items) = &rule.items {
        for (index, element) in elements.iter().enumerate() {
            let old = old.and_then(|old| same_element(rule, element, old));
            out.merge(apply(items, element, &format!("{path}[{index}]"), old));
        }
    }
    let size = i64::try_from(elements.len()).unwrap_or(i64::MAX);
    if let Some(least) = rule.min_items.filter(|least| size < *least) {
        out.add(Problem::invalid(path, size, format!("{path} in body should have at least {least} items")));
    }
    if let Some(most) = rule.max_items.filter(|most| size > *most) {
        let most = usize::try_from(most).unwrap_or_default();
        let error = FieldError::too_many("", elements.len(), most);
        out.add(Problem::new(path, format!("{path} maxItems"), error));
    }
    let repeated = |at: usize| elements[..at].contains(&elements[at]);
    if rule.unique_items && (0..elements.len()).any(repeated) {
        out.add(Problem::invalid(path, "", format!("{path} in body shouldn't contain duplicates")));
    }
    out.matches += 1;
    out
}

fn object(rule: &Rule, fields: &Map<String, Value>, path: &str, old: Option<&Value>) -> Outcome {
    let mut out = Outcome::default();
    let size = i64::try_from(fields.len()).unwrap_or(i64::MAX);
    if let Some(least) = rule.min_properties.filter(|least| size < *least) {
        out.add(Problem::invalid(
            path,
            size,
            format!("{path} in body should have at least {least} properties"),
        ));
    }
    if let Some(most) = rule.max_properties.filter(|most| size > *most) {
        let error = FieldError::too_many("", fields.len(), usize::try_from(most).unwrap_or_default());
        out.add(Problem::new(path, format!("{path} maxProperties"), error));
    }
    let old_of = |name: &str| old.and_then(|old| old.get(name));
    for (name, value) in fields.iter().filter(|(name, _)| !rule.properties.contains_key(name.as_str())) {
        match &rule.additional {
            Others::Free => {}
            Others::Forbidden => {
                let text = format!("{path}.{name} in body is a forbidden property");
                out.add(Problem::invalid(path, name, text));
            }
            Others::Rule(others) => out.merge(apply(others, value, &format!("{path}.{name}"), old_of(name))),
        }
    }
    for (name, property) in &rule.properties {
        let Some(value) = fields.get(&**name) else {
            continue;
        };
        let at = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        // Both versions of an object have the same type once they are converted, so that says nothing.
        let type_meta = path.is_empty() && matches!(&**name, "kind" | "apiVersion");
        out.merge(apply(property, value, &at, old_of(name).filter(|_| !type_meta)));
    }
    for name in rule.required.iter().filter(|name| !fields.contains_key(&***name)) {
        let at = format!("{path}.{name}");
        out.add(Problem::new(&at, format!("{at} required"), FieldError::required("", "")));
    }
    out
}

/// `allOf`, `anyOf`, `oneOf` and `not`. Nothing in them is let pass because it is old.
fn combinations(rule: &Rule, value: &Value, path: &str) -> Outcome {
    let mut out = Outcome::default();
    let try_one = |rule: &Rule| apply(rule, value, path, None);
    let name = quote(path);
    if !rule.any_of.is_empty() {
        let mut best: Option<Outcome> = None;
        let mut valid = false;
        for alternative in &rule.any_of {
            let result = try_one(alternative);
            valid = result.is_valid();
            if valid || best.as_ref().is_none_or(|best| result.matches > best.matches) {
                best = Some(result);
            }
            if valid {
                break;
            }
        }
        if !valid {
            out.add(Problem::general(format!("{name} must validate at least one schema (anyOf)")));
        }
        best.into_iter().for_each(|best| out.merge(best));
    }
    if !rule.one_of.is_empty() {
        let results = rule.one_of.iter().map(try_one);
        let (good, bad): (Vec<_>, Vec<_>) = results.partition(Outcome::is_valid);
        let text = match good.len() {
            0 => "Found none valid".to_owned(),
            many => format!("Found {many} valid alternatives"),
        };
        if good.len() == 1 {
            good.into_iter().for_each(|result| out.merge(result));
        } else {
            out.add(Problem::general(format!(
                "{name} must validate one and only one schema (oneOf). {text}"
            )));
            if good.is_empty() {
                let best =
                    bad.into_iter().reduce(|best, one| if one.matches > best.matches { one } else { best });
                best.into_iter().for_each(|best| out.merge(best));
            }
        }
    }
    if !rule.all_of.is_empty() {
        let results: Vec<Outcome> = rule.all_of.iter().map(try_one).collect();
        let valid = results.iter().filter(|result| result.is_valid()).count();
        results.into_iter().for_each(|result| out.merge(result));
        if valid != rule.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            out.add(Problem::general(format!("{name} must validate all the schemas (allOf){none}")));
        }
    }
    if rule.not.as_ref().is_some_and(|not| try_one(not).is_valid()) {
        out.add(Problem::general(format!("{name} must not validate the schema (not)")));
    }
    out.matches += 1;
    out
}

/// Whether a value is what it was, as far as the rule can tell which part of the old one it was.
fn unchanged(rule: &Rule, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Array(elements), Value::Array(olds)) => {
            let (Some(items), Some(_)) = (&rule.items, &rule.keys) else {
                return elements == olds;
            };
            elements.len() == olds.len()
                && elements.iter().all(|element| {
                    same_element(rule, element, old).is_some_and(|old| unchanged(items, element, old))
                })
        }
        (Value::Object(fields), Value::Object(olds)) => {
            fields.len() == olds.len()
                && fields.iter().all(|(name, value)| {
                    let property = match (rule.properties.get(name.as_str()), &rule.additional) {
                        (Some(property), _) | (None, Others::Rule(property)) => property,
                        _ => return false,
                    };
                    olds.get(name).is_some_and(|old| unchanged(property, value, old))
                })
        }
        (new, old) => new == old,
    }
}

/// The element of an old list that has the same keys.
fn same_element<'a>(rule: &Rule, element: &Value, old: &'a Value) -> Option<&'a Value> {
    let keys = rule.keys.as_ref()?;
    let same = |one: &&Value| keys.iter().all(|key| one.get(&**key) == element.get(&**key));
    old.as_array()?.iter().find(same).filter(|one| !one.is_null())
}
