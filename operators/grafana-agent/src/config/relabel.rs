//! Relabeling rules: the user's, checked, and those that selectors come to.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{self, Ast};

use crate::assets::sanitize;
use crate::document::{Document, Fields};
use crate::fault::Fault;
use crate::kinds::Relabeling;

/// A rule under construction.
#[derive(Default)]
pub(super) struct Rule(Fields);

impl Rule {
    /// That looks at these labels.
    pub(super) fn of(labels: &[&str]) -> Self {
        let labels: Vec<Document> = labels.iter().map(|label| Document::from(*label)).collect();
        Self(Fields::new().with("source_labels", labels))
    }

    /// That looks at nothing.
    pub(super) fn constant(target: &str, value: &str) -> Self {
        Self::default().target(target).replacement(value)
    }

    pub(super) fn keep(self, regex: &str) -> Self {
        Self(self.0.with("regex", regex).with("action", "keep"))
    }

    pub(super) fn drop(self, regex: &str) -> Self {
        Self(self.0.with("regex", regex).with("action", "drop"))
    }

    pub(super) fn target(self, label: &str) -> Self {
        Self(self.0.with("target_label", label))
    }

    pub(super) fn regex(self, regex: &str) -> Self {
        Self(self.0.with("regex", regex))
    }

    pub(super) fn replacement(self, text: &str) -> Self {
        Self(self.0.with("replacement", text))
    }

    pub(super) fn separator(self, text: &str) -> Self {
        Self(self.0.with("separator", text))
    }

    pub(super) fn action(self, action: &str) -> Self {
        Self(self.0.with("action", action))
    }

    pub(super) fn modulus(self, modulus: i64) -> Self {
        Self(self.0.with("modulus", modulus))
    }
}

impl From<Rule> for Document {
    fn from(rule: Rule) -> Self {
        rule.0.into()
    }
}

/// The rule that every list begins with: the job's name is kept for later.
pub(super) fn job_name() -> Rule {
    Rule::of(&["job"]).target("__tmp_prometheus_job_name")
}

/// The rules that a selector of `object`s comes to.
pub(super) fn selector(object: &str, selector: &LabelSelector) -> Result<Vec<Document>, Fault> {
    let label = |name: &str| format!("__meta_kubernetes_{object}_label_{}", sanitize(name));
    let present = |name: &str| format!("__meta_kubernetes_{object}_labelpresent_{}", sanitize(name));
    let mut rules = Vec::new();
    for (name, value) in selector.match_labels.iter().flatten() {
        rules.push(Rule::of(&[&label(name)]).keep(value));
    }
    for expression in selector.match_expressions.iter().flatten() {
        let values = expression.values.clone().unwrap_or_default().join("|");
        let key = &expression.key;
        rules.push(match expression.operator.as_str() {
            "In" => Rule::of(&[&label(key)]).keep(&values),
            "NotIn" => Rule::of(&[&label(key)]).drop(&values),
            "Exists" => Rule::of(&[&present(key)]).keep("true"),
            "DoesNotExist" => Rule::of(&[&present(key)]).drop("true"),
            other => {
                let message =
                    format!("selector: {other:?} is no operator; use In, NotIn, Exists or DoesNotExist");
                return Err(Fault::new("BadSelector", message));
            }
        });
    }
    Ok(rules.into_iter().map(Into::into).collect())
}

/// A label of an object that becomes a label of the target, if it is there.
pub(super) fn copy(object: &str, label: &str, target: &str) -> Document {
    let source = format!("__meta_kubernetes_{object}_label_{}", sanitize(label));
    Rule::of(&[&source]).target(target).regex("(.+)").replacement("$1").into()
}

/// The user's rules.
pub(super) fn rules(field: &str, relabelings: &[Relabeling]) -> Result<Vec<Document>, Fault> {
    let indexed = relabelings.iter().enumerate();
    indexed
        .map(|(index, one)| rule(one).map_err(|fault| fault.within(&format!("{field}[{index}]"))))
        .collect()
}

fn rule(relabeling: &Relabeling) -> Result<Document, Fault> {
    check(relabeling)?;
    let labels: Vec<Document> = relabeling.source_labels.iter().map(|label| label.as_str().into()).collect();
    let fields = Fields::new()
        .filled("source_labels", labels)
        // Given and empty means that nothing stands between the values, and that the label is emptied.
        .maybe("separator", relabeling.separator.clone())
        .maybe("replacement", relabeling.replacement.clone())
        .text("regex", &relabeling.regex)
        .number("modulus", relabeling.modulus)
        .text("target_label", &relabeling.target_label)
        .text("action", &relabeling.action);
    Ok(fields.into())
}

/// What the agent would refuse, and the whole configuration with it.
fn check(relabeling: &Relabeling) -> Result<(), Fault> {
    let bad = |message: String| Err(Fault::new("BadRelabeling", message));
    let action = relabeling.action.as_deref().unwrap_or_default().to_ascii_lowercase();
    let target = relabeling.target_label.as_deref().unwrap_or_default();
    match action.as_str() {
        "" | "replace" | "hashmod" | "lowercase" | "uppercase" | "keepequal" | "dropequal"
            if target.is_empty() =>
        {
            let action = if action.is_empty() { "replace" } else { &action };
            return bad(format!("{action} needs a targetLabel"));
        }
        "hashmod" if relabeling.modulus.unwrap_or_default() <= 0 => {
            return bad("hashmod needs a modulus above 0".into());
        }
        "" | "replace" | "hashmod" | "lowercase" | "uppercase" | "keepequal" | "dropequal" | "keep"
        | "drop" | "labelmap" | "labeldrop" | "labelkeep" => {}
        other => return bad(format!("{other:?} is no action")),
    }
    match &relabeling.regex {
        Some(regex) => expression("regex", regex),
        None => Ok(()),
    }
}

/// Whether Go would take this for a regular expression.
pub(super) fn expression(field: &str, regex: &str) -> Result<(), Fault> {
    // Most expressions are a word.
    if regex.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'|' | b'.')) {
        return Ok(());
    }
    let outcome = parse(regex).or_else(|problem| {
        let like_go = literal_braces(regex);
        if like_go == regex { Err(problem) } else { parse(&like_go).map_err(|_| problem) }
    });
    outcome.map_err(|problem| {
        let message = format!("{field}: {regex:?} is no regular expression: {problem}");
        Fault::new("BadRegex", message)
    })
}

fn parse(regex: &str) -> Result<(), String> {
    let tree = Parser::new().parse(regex).map_err(|error| error.kind().to_string())?;
    ast::visit(&tree, Repetitions)
}

/// Go repeats no repetition, as in `a**`.
struct Repetitions;

impl ast::Visitor for Repetitions {
    type Output = ();
    type Err = String;

    fn finish(self) -> Result<(), String> {
        Ok(())
    }

    fn visit_pre(&mut self, tree: &Ast) -> Result<(), String> {
        match tree {
            Ast::Repetition(outer) if matches!(*outer.ast, Ast::Repetition(_)) => {
                Err("a repetition is repeated".into())
            }
            _ => Ok(()),
        }
    }
}

/// Go takes a brace that begins no repetition for itself; and `\Q…\E` quotes.
fn literal_braces(regex: &str) -> String {
    let mut out = String::new();
    let mut rest = regex;
    while let Some(letter) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix("\\Q") {
            let (inside, after) = quoted.split_once("\\E").unwrap_or((quoted, ""));
            inside.chars().for_each(|letter| out.extend(letter.is_alphanumeric().then_some(letter)));
            rest = after;
            continue;
        }
        let next = &rest[letter.len_utf8()..];
        match letter {
            '\\' => {
                out.push('\\');
                let escaped = next.chars().next();
                out.extend(escaped);
                rest = &next[escaped.map_or(0, char::len_utf8)..];
                continue;
            }
            '{' if !is_repetition(next) => out.push_str("\\{"),
            '}' if !out.rfind('{').is_some_and(|at| is_repetition(&format!("{}}}", &out[at + 1..]))) => {
                out.push_str("\\}");
            }
            other => out.push(other),
        }
        rest = next;
    }
    out
}

fn is_repetition(rest: &str) -> bool {
    let Some((inside, _)) = rest.split_once('}') else { return false };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && number(least) && number(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_checked_as_go_would() {
        for good in
            ["a.*", "(?P<year>\\d+)", "{app=\"x\"}", "a{2,3}", "a{,3}", "\\Q(\\E", "^(a|b)$", "[^/]+", "\\{"]
        {
            assert!(expression("regex", good).is_ok(), "{good}");
        }
        for bad in ["(", "[a", "a**", "(?=x)", "*"] {
            assert!(expression("regex", bad).is_err(), "{bad}");
        }
    }
}
