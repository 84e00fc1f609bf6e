//! What is wrong with a policy or a binding.

use serde_json::Value;
use windlass_machinery::cel::{Environment, Program, Type};
use windlass_machinery::invalid::{FieldError, Path};

use super::program::{Change, declare, environment};

/// What is wrong with a policy.
pub(in super::super::super) fn policy(out: &mut Vec<FieldError>, policy: &Value) {
    let (spec, at) = (&policy["spec"], Path::new("spec"));
    let list = |field: &str| spec[field].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let params = !spec["paramKind"].is_null();
    if spec["matchConstraints"].is_null() {
        out.push(FieldError::required(at.child("matchConstraints"), ""));
    } else if spec["matchConstraints"]["resourceRules"].as_array().is_none_or(Vec::is_empty) {
        out.push(FieldError::required(at.child("matchConstraints").child("resourceRules"), ""));
    }
    for (index, condition) in list("matchConditions").iter().enumerate() {
        let at = at.child("matchConditions").index(index);
        self::condition(out, &text(&condition["expression"]), params, &at.child("expression"));
        if text(&condition["name"]).is_empty() {
            out.push(FieldError::required(at.child("name"), ""));
        }
    }
    let known = variables(out, spec, &at);
    // Without variables nothing is called so.
    let of = |authorizer: bool| match known.as_slice() {
        [] => environment(params, authorizer),
        known => declare(environment(params, authorizer), known),
    };
    let (full, plain) = (of(true), of(false));
    if list("validations").is_empty() && list("auditAnnotations").is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        out.push(FieldError::required(at.child("validations"), why));
        out.push(FieldError::required(at.child("auditAnnotations"), why));
    }
    for (index, one) in list("validations").iter().enumerate() {
        validation(out, one, &full, &plain, &at.child("validations").index(index));
    }
    for (index, one) in list("auditAnnotations").iter().enumerate() {
        let at = at.child("auditAnnotations").index(index).child("valueExpression");
        let expression = text(&one["valueExpression"]);
        if expression.trim().is_empty() {
            out.push(FieldError::required(at, "valueExpression is not specified"));
        } else {
            compiled(out, expression.trim(), &full, None, &at);
        }
    }
}

/// The variables that a policy declares, with their types; what is wrong with them is added.
fn variables(out: &mut Vec<FieldError>, spec: &Value, at: &Path) -> Vec<(Box<str>, Type)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let params = !spec["paramKind"].is_null();
    let mut known: Vec<(Box<str>, Type)> = Vec::new();
    for (index, variable) in spec["variables"].as_array().into_iter().flatten().enumerate() {
        let at = at.child("variables").index(index);
        let (name, expression) = (text(&variable["name"]), text(&variable["expression"]));
        if name.trim().is_empty() {
            out.push(FieldError::required(at.child("name"), "name is not specified"));
        } else if !is_identifier(&name) {
            out.push(FieldError::invalid(at.child("name"), &name, "must be a valid CEL identifier"));
        }
        let mut ty = Type::Dyn;
        if expression.trim().is_empty() {
            out.push(FieldError::required(at.child("expression"), "expression is not specified"));
        } else {
            let environment = declare(environment(params, true), &known);
            ty = compiled(out, &expression, &environment, None, &at.child("expression")).unwrap_or(Type::Dyn);
        }
        known.push((name.into(), ty));
    }
    known
}

/// What is wrong with what a mutating policy declares and does.
pub(in super::super::super) fn mutations(out: &mut Vec<FieldError>, policy: &Value) {
    let (spec, at) = (&policy["spec"], Path::new("spec"));
    let known = variables(out, spec, &at);
    let changes = declare(environment(!spec["paramKind"].is_null(), true).with_changes(), &known);
    for (index, one) in spec["mutations"].as_array().into_iter().flatten().enumerate() {
        let at = at.child("mutations").index(index);
        let Some((_, field, wanted, _)) = Change::ALL.iter().find(|(name, ..)| one["patchType"] == *name)
        else {
            continue;
        };
        let text = one[field]["expression"].as_str().unwrap_or_default();
        let at = at.child(field).child("expression");
        if text.trim().is_empty() {
            continue;
        }
        let found = compiled(out, text, &changes, None, &at).map(|found| match found {
            Type::Null => "null_type".to_owned(),
            found => found.to_string(),
        });
        if let Some(found) = found.filter(|found| found != wanted) {
            out.push(FieldError::invalid(&at, text, format!("must evaluate to {wanted} but got {found}")));
        }
    }
}

/// What is wrong with the expression of a match condition.
pub(in super::super::super) fn condition(
    out: &mut Vec<FieldError>,
    expression: &str,
    params: bool,
    at: &Path,
) {
    match expression.trim() {
        "" => out.push(FieldError::required(at, "")),
        text => drop(compiled(out, text, &environment(params, true), Some(&Type::Bool), at)),
    }
}

fn validation(out: &mut Vec<FieldError>, one: &Value, full: &Environment, plain: &Environment, at: &Path) {
    const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
    let text = |field: &str| one[field].as_str().unwrap_or_default();
    if text("expression").trim().is_empty() {
        out.push(FieldError::required(at.child("expression"), "expression is not specified"));
    } else {
        compiled(out, text("expression"), full, Some(&Type::Bool), &at.child("expression"));
    }
    let message = text("messageExpression");
    if !message.is_empty() && message.trim().is_empty() {
        out.push(FieldError::invalid(
            at.child("messageExpression"),
            message,
            "must be non-empty if specified",
        ));
    } else if !message.is_empty() {
        compiled(out, message, plain, Some(&Type::String), &at.child("messageExpression"));
    }
    let message = text("message");
    if !message.is_empty() && message.trim().is_empty() {
        out.push(FieldError::invalid(at.child("message"), message, "must be non-empty if specified"));
    } else if message.trim().contains(['\n', '\r']) {
        out.push(FieldError::invalid(at.child("message"), message, "must not contain line breaks"));
    }
    if let Some(reason) = one["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
        out.push(FieldError::not_supported(at.child("reason"), reason, REASONS));
    }
}

/// The type of an expression; what is wrong with it is added.
fn compiled(
    out: &mut Vec<FieldError>,
    text: &str,
    environment: &Environment,
    wanted: Option<&Type>,
    at: &Path,
) -> Option<Type> {
    match Program::compile(text, environment) {
        Ok(program) => {
            let found = program.output();
            if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
                out.push(FieldError::invalid(at, text, format!("must evaluate to {wanted} but got {found}")));
            }
            Some(found.clone())
        }
        Err(issues) => {
            out.push(FieldError::invalid(at, text, format!("compilation failed: {issues}")));
            None
        }
    }
}

fn is_identifier(name: &str) -> bool {
    windlass_machinery::cel::escape(name).is_some_and(|escaped| escaped == name)
}

/// What is wrong with a binding.
pub(in super::super::super) fn binding(out: &mut Vec<FieldError>, binding: &Value) {
    const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
    let (spec, at) = (&binding["spec"], Path::new("spec"));
    if spec["policyName"].as_str().unwrap_or_default().is_empty() {
        out.push(FieldError::required(at.child("policyName"), ""));
    }
    let actions = spec["validationActions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let place = at.child("validationActions");
    if actions.is_empty() {
        out.push(FieldError::required(&place, "at least one validation action is required"));
    }
    for (index, action) in actions.iter().filter_map(Value::as_str).enumerate() {
        if !ACTIONS.contains(&action) {
            out.push(FieldError::not_supported(place.index(index), action, ACTIONS));
        }
    }
    let has = |action: &str| actions.iter().any(|one| one == action);
    if has("Deny") && has("Warn") {
        let shown = Value::Array(actions.to_vec());
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        out.push(FieldError::invalid(&place, shown, why));
    }
}
