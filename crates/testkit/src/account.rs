//! The account that an operator under test runs as: a service account with the permissions that its runtime says it
//! needs, and no others. So each test also shows that they suffice.

use std::collections::BTreeSet;

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use windlass::{ObjectName, Permissions, manifests};
use windlass_drydock::record::Record;
use windlass_drydock::{Drydock, User};

/// The namespace of the account; it need not be there.
const NAMESPACE: &str = "operators";

/// A client with an account of this name, recorded as `client`. It may do nothing until [`grant`] lets it.
#[must_use]
pub fn client(drydock: &Drydock, name: &str, client: &str) -> Client {
    drydock.client_as(&User::service_account(NAMESPACE, name), client)
}

/// Lets the account of this name do what these permissions say, by roles of the same name.
pub async fn grant(drydock: &Drydock, name: &str, permissions: &Permissions) {
    let admin = drydock.client("test");
    for object in manifests::roles(permissions, name, &ObjectName::new(NAMESPACE, name)) {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let types = object.types.clone().unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).unwrap());
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(admin.clone(), namespace, &resource),
            None => Api::all_with(admin.clone(), &resource),
        };
        let params = PatchParams::apply("test").force();
        api.patch(object.metadata.name.as_deref().unwrap(), &params, &Patch::Apply(&object)).await.unwrap();
    }
}

/// Which of these permissions a client has made no use of, as `delete secrets`.
#[must_use]
pub fn unused(record: &Record, client: &str, permissions: &Permissions) -> BTreeSet<String> {
    let mut unused = permissions.requests();
    for entry in record.entries(client).into_iter().filter(|entry| entry.code < 400) {
        let resource = match &entry.subresource {
            Some(part) => format!("{}/{part}", entry.resource),
            None => entry.resource,
        };
        unused.remove(&format!("{} {resource}", entry.verb));
        // An apply that makes an object needs both.
        if entry.verb == "patch" && entry.code == 201 {
            unused.remove(&format!("create {resource}"));
        }
    }
    unused
}
