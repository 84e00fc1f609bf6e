//! ValidatingAdmissionPolicy: rules in CEL about writes, put to use by bindings.

mod check;
mod params;
mod program;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::StatusCode;
use serde_json::{Value, json};

pub(in super::super) use check::condition as check_condition;
pub(in super::super) use check::{binding as check_binding, policy as check_policy};
pub(super) use program::Conditions;
use program::{Policy, Verdict};

use super::super::status::{Failure, Outcome};
use super::super::write::{decoded, name_of};
use super::{Admission, matching};
use crate::store::{Revision, Scope};

const GROUP: &str = "admissionregistration.k8s.io";

/// The policies that were compiled, by name and revision.
#[derive(Clone, Debug, Default)]
pub struct Policies(Arc<Mutex<Compiled>>);

type Compiled = HashMap<String, (Revision, Arc<Policy>)>;

impl Policies {
    fn get(&self, name: &str, revision: Revision, make: impl FnOnce() -> Policy) -> Arc<Policy> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(name) {
            Some((at, policy)) if *at == revision => Arc::clone(policy),
            _ => {
                let policy = Arc::new(make());
                known.insert(name.to_owned(), (revision, Arc::clone(&policy)));
                policy
            }
        }
    }
}

/// Why a write is refused.
struct Denial {
    policy: String,
    binding: Option<String>,
    message: String,
    reason: String,
}

/// Lets the policies refuse a write, or warn of it.
pub(super) fn validate(admission: &mut Admission<'_>, object: &Value) -> Outcome<()> {
    // Policies must not be able to keep themselves from being changed.
    if admission.resource.group == GROUP {
        return Ok(());
    }
    let registry = admission.server.registry();
    let stored = |plural: &str| {
        let found = registry.find(GROUP, "v1", plural);
        found.map(|resource| admission.server.store.list(resource.table, &Scope::All).1).unwrap_or_default()
    };
    let bindings = stored("validatingadmissionpolicybindings");
    if bindings.is_empty() {
        return Ok(());
    }
    let bindings = bindings.iter().map(|one| decoded(one)).collect::<Outcome<Vec<Value>>>()?;
    let mut denials = Vec::new();
    let mut warnings = Vec::new();
    for stored in stored("validatingadmissionpolicies") {
        let definition = decoded(&stored)?;
        let name = name_of(&definition);
        let spec = &definition["spec"];
        if !matching::matches(admission, object, &spec["matchConstraints"], true) {
            continue;
        }
        let policy = admission.server.policies.get(name, stored.revision, || Policy::compile(spec));
        for binding in bindings.iter().filter(|binding| binding["spec"]["policyName"] == name) {
            let rules = &binding["spec"]["matchResources"];
            if !rules.is_null() && !matching::matches(admission, object, rules, false) {
                continue;
            }
            let who = (name, name_of(binding));
            run(admission, object, &policy, binding, spec, who, &mut denials, &mut warnings);
        }
    }
    admission.warnings.append(&mut warnings);
    match denials.into_iter().next() {
        Some(denial) => Err(refusal(admission, object, &denial)),
        None => Ok(()),
    }
}

#[expect(clippy::too_many_arguments, reason = "a step of one loop, told apart to be read")]
fn run(
    admission: &Admission<'_>,
    object: &Value,
    policy: &Policy,
    binding: &Value,
    spec: &Value,
    (name, bound): (&str, &str),
    denials: &mut Vec<Denial>,
    warnings: &mut Vec<String>,
) {
    let denial = |message: String, reason: &str| Denial {
        policy: name.to_owned(),
        binding: Some(bound.to_owned()),
        message,
        reason: reason.to_owned(),
    };
    let params = match params::collect(admission, &spec["paramKind"], &binding["spec"]["paramRef"]) {
        Ok(params) => params,
        Err(why) => {
            if spec["failurePolicy"] != "Ignore" {
                denials.push(denial(format!("failed to configure binding: {why}"), ""));
            }
            return;
        }
    };
    let actions = binding["spec"]["validationActions"].as_array().map(Vec::as_slice).unwrap_or_default();
    for param in params {
        for Verdict { message, reason } in policy.evaluate(admission, object, param.as_ref()) {
            for action in actions {
                match action.as_str() {
                    Some("Deny") => denials.push(denial(message.clone(), &reason)),
                    Some("Warn") => warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{bound}': {message}"
                    )),
                    // There is no audit log to write to.
                    _ => {}
                }
            }
        }
    }
}

fn refusal(admission: &Admission<'_>, object: &Value, denial: &Denial) -> Failure {
    let Denial { policy, binding, message, reason } = denial;
    let message = match binding {
        Some(binding) => {
            format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {message}")
        }
        None => format!("ValidatingAdmissionPolicy '{policy}' denied request: {message}"),
    };
    // A request to delete many objects names none.
    let name = match admission.name(object) {
        "" => "Unknown",
        name => name,
    };
    let mut failure = Failure::forbidden(admission.resource, name, &message);
    let (code, reason) = match reason.as_str() {
        "Forbidden" => (StatusCode::FORBIDDEN, "Forbidden"),
        "Unauthorized" => (StatusCode::UNAUTHORIZED, "Unauthorized"),
        "RequestEntityTooLarge" => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
        _ => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
    };
    failure.code = code;
    failure.reason = reason;
    if let Some(details) = &mut failure.details {
        details.insert("causes".into(), json!([{"message": message}]));
    }
    failure
}
