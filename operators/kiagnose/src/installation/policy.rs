//! The admission policy that keeps a Checkup from giving anyone more than they have.
//!
//! Whoever makes, changes or reruns a Checkup runs an image as a service account. They may if they may `impersonate`
//! that service account, which Kubernetes' own roles `edit` and `admin` allow, or `use` it: a verb without any other
//! effect, for those who are to run checkups and nothing else.

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec,
    Validation, Variable,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::{Installation, named};
use crate::CONTROLLER;

/// The service account that is to be used.
const ACCOUNT: &str = "request.kind.kind == 'CheckupSchedule' ? object.spec.checkupTemplate.spec.serviceAccountName \
                       : object.spec.serviceAccountName";
/// Whether a change can lead to a run.
const MATTERS: &str = "request.operation == 'CREATE' || object.spec != oldObject.spec || \
    (has(object.metadata.annotations) && 'kiagnose.io/rerun' in object.metadata.annotations && \
     !(has(oldObject.metadata.annotations) && 'kiagnose.io/rerun' in oldObject.metadata.annotations && \
       oldObject.metadata.annotations['kiagnose.io/rerun'] == object.metadata.annotations['kiagnose.io/rerun']))";
const ALLOWED: &str = "['use', 'impersonate'].exists(verb, authorizer.group('').resource('serviceaccounts')\
    .namespace(request.namespace).name(variables.account).check(verb).allowed())";

pub(super) fn build(installation: &Installation, owner: &OwnerReference) -> ValidatingAdmissionPolicy {
    let text = |text: &str| Some(vec![text.to_owned()]);
    let controller = format!("system:serviceaccount:{}:{CONTROLLER}", installation.namespace);
    let condition = |name: &str, expression: String| MatchCondition { name: name.into(), expression };
    ValidatingAdmissionPolicy {
        metadata: named(None, owner),
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some("Fail".into()),
            match_constraints: Some(MatchResources {
                resource_rules: Some(vec![NamedRuleWithOperations {
                    api_groups: text("kiagnose.io"),
                    api_versions: text("*"),
                    operations: Some(vec!["CREATE".into(), "UPDATE".into()]),
                    resources: Some(vec!["checkups".into(), "checkupschedules".into()]),
                    ..NamedRuleWithOperations::default()
                }]),
                ..MatchResources::default()
            }),
            match_conditions: Some(vec![
                // It makes the Checkups of schedules, whose makers were checked.
                condition("not-the-controller", format!("request.userInfo.username != '{controller}'")),
                condition("matters", MATTERS.into()),
            ]),
            variables: Some(vec![Variable { name: "account".into(), expression: ACCOUNT.into() }]),
            validations: Some(vec![Validation {
                expression: ALLOWED.into(),
                message_expression: Some(
                    "'you may not use service account ' + variables.account + ': a role has to allow the verb use, \
                     or impersonate, on it'"
                        .into(),
                ),
                reason: Some("Forbidden".into()),
                ..Validation::default()
            }]),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        ..ValidatingAdmissionPolicy::default()
    }
}

pub(super) fn binding(owner: &OwnerReference) -> ValidatingAdmissionPolicyBinding {
    ValidatingAdmissionPolicyBinding {
        metadata: named(None, owner),
        spec: ValidatingAdmissionPolicyBindingSpec {
            policy_name: CONTROLLER.into(),
            validation_actions: vec!["Deny".into()],
            ..ValidatingAdmissionPolicyBindingSpec::default()
        },
    }
}
