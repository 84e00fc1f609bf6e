//! The service account of the checkup controller.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::{Installation, named};

pub(super) fn build(installation: &Installation, owner: &OwnerReference) -> ServiceAccount {
    ServiceAccount { metadata: named(Some(&installation.namespace), owner), ..ServiceAccount::default() }
}
