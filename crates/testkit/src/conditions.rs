//! What objects say of themselves.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject};
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use windlass::Operator;

/// One of the standard conditions of an object.
pub(crate) fn condition_of(object: &DynamicObject, kind: &str) -> Option<Value> {
    let conditions = object.data["status"]["conditions"].as_array()?;
    conditions.iter().find(|one| one["type"] == kind).cloned()
}

/// Whether the kinds that an operator manages can be used.
pub(crate) async fn are_established(client: &Client, operator: &Operator) -> bool {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in operator.crds() {
        let Ok(found) = definitions.get(&crd.name_any()).await else { return false };
        let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
        if !conditions.iter().any(|one| one.type_ == "Established" && one.status == "True") {
            return false;
        }
    }
    true
}
