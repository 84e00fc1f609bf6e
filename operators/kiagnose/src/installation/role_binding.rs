//! The binding of the checkup controller's role in its own namespace.

use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::{Installation, named};
use crate::CONTROLLER;

pub(super) fn build(installation: &Installation, owner: &OwnerReference) -> RoleBinding {
    RoleBinding {
        metadata: named(Some(&installation.namespace), owner),
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".into()),
            kind: "Role".into(),
            name: CONTROLLER.into(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".into(),
            name: CONTROLLER.into(),
            namespace: Some(installation.namespace.clone()),
            ..Subject::default()
        }]),
    }
}
