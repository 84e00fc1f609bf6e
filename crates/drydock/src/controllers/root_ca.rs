//! `root-ca-certificate-publisher-controller`: the ConfigMap `kube-root-ca.crt` in every namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::informer::{Informer, ObjectKey};
use super::informers::Handle;
use super::{Error, Reconciler, Setup, is_active_namespace, queue_of};

const NAME: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
    endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
    distributions of Kubernetes clusters.";

pub(crate) fn start(setup: &mut Setup<'_>, root_ca: &str) {
    let controller = Controller {
        maps: setup.informers.handle_of(NAME, &setup.client),
        namespaces: setup.informers.of(),
        root_ca: root_ca.to_owned(),
    };
    let queue = queue_of(&controller.namespaces);
    let adds = queue.clone();
    controller.maps.on_change(move |change| {
        let namespace = change.latest().metadata.namespace.as_deref();
        adds.add(ObjectKey::new("", namespace.unwrap_or_default()));
    });
    setup.work(&queue, controller);
}

struct Controller {
    maps: Handle<ConfigMap>,
    namespaces: Arc<Informer<Namespace>>,
    root_ca: String,
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let active = self.namespaces.get(key).is_some_and(|namespace| is_active_namespace(&namespace));
        if !active {
            return Ok(());
        }
        let data = BTreeMap::from([("ca.crt".to_owned(), self.root_ca.clone())]);
        let description = ("kubernetes.io/description".to_owned(), DESCRIPTION.to_owned());
        let written = match self.maps.get(&ObjectKey::new(&key.name, NAME)) {
            Some(map) if map.data.as_ref() == Some(&data) => return Ok(()),
            Some(map) => {
                let mut changed = (*map).clone();
                changed.data = Some(data);
                changed.metadata.annotations.get_or_insert_default().extend([description]);
                self.maps.update(&changed).await
            }
            None => {
                let map = ConfigMap {
                    metadata: ObjectMeta {
                        name: Some(NAME.to_owned()),
                        namespace: Some(key.name.clone()),
                        annotations: Some(BTreeMap::from([description])),
                        ..ObjectMeta::default()
                    },
                    data: Some(data),
                    ..ConfigMap::default()
                };
                self.maps.create(&map).await
            }
        };
        match written {
            Err(error) if !error.has_reason("AlreadyExists") && !error.namespace_terminating() => Err(error),
            _ => Ok(()),
        }
    }
}
