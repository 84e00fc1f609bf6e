//! What the checkup controller may do: what follows from its plans, and nothing else. Never `escalate` or `bind`.

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use windlass::Permissions;

use super::named;

pub(super) fn build(owner: &OwnerReference) -> ClusterRole {
    ClusterRole { metadata: named(None, owner), rules: Some(rules()), ..ClusterRole::default() }
}

/// Its rules.
pub(super) fn rules() -> Vec<PolicyRule> {
    Permissions::of(&crate::controller()).in_cluster()
}
