//! The Role that lets a checkup write its results: that one ConfigMap, and nothing else.

use k8s_openapi::api::rbac::v1::{PolicyRule, Role};

use super::Checkup;

/// What a checkup may do to its results while it runs.
pub(super) const WRITE: &[&str] = &["get", "update", "patch"];
/// What it may do once it is over.
pub(super) const READ: &[&str] = &["get"];

pub(super) fn build(checkup: &Checkup, verbs: &[&str]) -> Role {
    Role {
        metadata: checkup.named(checkup.writer()),
        rules: Some(vec![PolicyRule {
            api_groups: Some(vec![String::new()]),
            resources: Some(vec!["configmaps".into()]),
            resource_names: Some(vec![checkup.results()]),
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            ..PolicyRule::default()
        }]),
    }
}
