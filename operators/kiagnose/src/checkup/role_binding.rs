//! The RoleBinding that gives the Role to the checkup's service account.

use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use kube::ResourceExt as _;

use super::Checkup;

pub(super) fn build(checkup: &Checkup) -> RoleBinding {
    RoleBinding {
        metadata: checkup.named(checkup.writer()),
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".into()),
            kind: "Role".into(),
            name: checkup.writer(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".into(),
            name: checkup.spec.service_account_name.clone(),
            namespace: checkup.namespace(),
            ..Subject::default()
        }]),
    }
}
