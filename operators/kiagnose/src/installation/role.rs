//! What the checkup controller may do in its own namespace: hold the Lease of its replicas.

use k8s_openapi::api::rbac::v1::{PolicyRule, Role};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use windlass::Permissions;

use super::{Installation, named};

pub(super) fn build(installation: &Installation, owner: &OwnerReference) -> Role {
    Role { metadata: named(Some(&installation.namespace), owner), rules: Some(rules(installation)) }
}

/// Its rules.
pub(super) fn rules(installation: &Installation) -> Vec<PolicyRule> {
    let leader = Permissions::default().leader(&installation.lease());
    leader.in_namespaces().into_values().flatten().collect()
}
