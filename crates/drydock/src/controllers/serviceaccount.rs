//! `serviceaccount-controller`: a `default` ServiceAccount in every namespace.

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::informer::{Informer, ObjectKey};
use super::informers::Handle;
use super::{Error, Reconciler, Setup, is_active_namespace, queue_of};

const NAME: &str = "default";

pub(crate) fn start(setup: &mut Setup<'_>) {
    let controller = Controller { accounts: setup.handle(), namespaces: setup.informers.of() };
    let queue = queue_of(&controller.namespaces);
    let adds = queue.clone();
    controller.accounts.on_change(move |change| {
        if let Some(gone) = change.old.as_ref().filter(|_| change.new.is_none()) {
            adds.add(ObjectKey::new("", gone.metadata.namespace.as_deref().unwrap_or_default()));
        }
    });
    setup.work(&queue, controller);
}

struct Controller {
    accounts: Handle<ServiceAccount>,
    namespaces: std::sync::Arc<Informer<Namespace>>,
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let active = self.namespaces.get(key).is_some_and(|namespace| is_active_namespace(&namespace));
        if !active || self.accounts.get(&ObjectKey::new(&key.name, NAME)).is_some() {
            return Ok(());
        }
        let account = ServiceAccount {
            metadata: ObjectMeta {
                name: Some(NAME.to_owned()),
                namespace: Some(key.name.clone()),
                ..ObjectMeta::default()
            },
            ..ServiceAccount::default()
        };
        match self.accounts.create(&account).await {
            Err(error) if !error.has_reason("AlreadyExists") && !error.namespace_terminating() => Err(error),
            _ => Ok(()),
        }
    }
}
