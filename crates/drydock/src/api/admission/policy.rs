//! Admission policies: rules in CEL about writes, put to use by bindings. What ValidatingAdmissionPolicies refuse is
//! here, what MutatingAdmissionPolicies change in [`mutation`].

mod check;
mod mutation;
mod params;
mod program;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::StatusCode;
use serde_json::{Value, json};

pub(in super::super) use check::condition as check_condition;
pub(in super::super) use check::{
    binding as check_binding, mutations as check_mutations, policy as check_policy,
};
pub(super) use mutation::{Rounds, mutate};
pub(super) use program::Conditions;
use program::{Policy, Verdict};

use super::super::registry::Resource;
use super::super::server::Server;
use super::super::status::{Failure, Outcome};
use super::super::write::{decoded, name_of};
use super::{Admission, matching};
use crate::store::{Revision, Scope};

const GROUP: &str = "admissionregistration.k8s.io";

/// The policies that were compiled, by name and revision.
#[derive(Clone, Debug, Default)]
pub struct Policies(Arc<Mutex<Compiled>>);

/// Both kinds of policies may have the same names.
type Compiled = HashMap<(&'static str, String), (Revision, Arc<Policy>)>;

impl Policies {
    fn get(
        &self,
        plural: &'static str,
        name: &str,
        revision: Revision,
        make: impl FnOnce() -> Policy,
    ) -> Arc<Policy> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (plural, name.to_owned());
        match known.get(&key) {
            Some((at, policy)) if *at == revision => Arc::clone(policy),
            _ => {
                let policy = Arc::new(make());
                known.insert(key, (revision, Arc::clone(&policy)));
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
    let mut denials = Vec::new();
    let mut warnings = Vec::new();
    let of = ("validatingadmissionpolicies", "validatingadmissionpolicybindings");
    for Bound { definition, policy, bindings } in bound(admission, object, of)? {
        let name = name_of(&definition);
        for binding in &bindings {
            let who = (name, name_of(binding));
            let spec = &definition["spec"];
            run(admission, object, &policy, binding, spec, who, &mut denials, &mut warnings);
        }
    }
    admission.warnings.append(&mut warnings);
    match denials.into_iter().next() {
        Some(denial) => Err(refusal(admission, object, &denial)),
        None => Ok(()),
    }
}

/// A policy that is about a write, with the bindings that are.
struct Bound {
    definition: Value,
    policy: Arc<Policy>,
    bindings: Vec<Value>,
}

/// The policies of a kind that are about a write.
fn bound(
    admission: &Admission<'_>,
    object: &Value,
    (plural, bindings): (&'static str, &str),
) -> Outcome<Vec<Bound>> {
    // Policies must not be able to keep themselves from being changed.
    if is_exempt(admission.resource) {
        return Ok(Vec::new());
    }
    let registry = admission.server.registry();
    let stored = |plural: &str| {
        let store = &admission.server.store;
        let found = registry.find(GROUP, "v1", plural).filter(|resource| store.is_used(resource.table));
        found.map(|resource| store.list(resource.table, &Scope::All).1).unwrap_or_default()
    };
    let bindings = stored(bindings);
    if bindings.is_empty() {
        return Ok(Vec::new());
    }
    let bindings = bindings.iter().map(|one| decoded(one)).collect::<Outcome<Vec<Value>>>()?;
    let mut out = Vec::new();
    for stored in stored(plural) {
        let definition = decoded(&stored)?;
        let name = name_of(&definition);
        let spec = &definition["spec"];
        if !matching::matches(admission, object, &spec["matchConstraints"], true) {
            continue;
        }
        let own = |binding: &&Value| {
            let rules = &binding["spec"]["matchResources"];
            binding["spec"]["policyName"] == name
                && (rules.is_null() || matching::matches(admission, object, rules, false))
        };
        let bindings: Vec<Value> = bindings.iter().filter(own).cloned().collect();
        if bindings.is_empty() {
            continue;
        }
        let policy = admission.server.policies.get(plural, name, stored.revision, || Policy::compile(spec));
        out.push(Bound { definition, policy, bindings });
    }
    Ok(out)
}

/// Whether there is anything that may change objects.
pub(super) fn may_mutate(server: &Server) -> bool {
    let registry = server.registry();
    let bindings = registry.find(GROUP, "v1", "mutatingadmissionpolicybindings");
    bindings.is_some_and(|bindings| server.store.is_used(bindings.table))
}

/// Whether a resource is one of the policies' own.
fn is_exempt(resource: &Resource) -> bool {
    const OWN: [&str; 4] = [
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ];
    resource.group == GROUP && OWN.contains(&resource.plural.as_str())
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
    let mut failure = Failure::forbidden(admission.resource, admission.called(object), &message);
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
