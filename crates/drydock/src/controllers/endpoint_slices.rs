//! `endpointslice-controller`: the pods behind a Service, in slices of at most a hundred.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::endpoints::{
    Backends, HEADLESS, Triggers, enqueue_services, hostname, ip_of, is_headless, service_ports, target_port,
    target_ref,
};
use super::informer::{Informer, ObjectKey};
use super::informers::Handle;
use super::ownership::{controller_ref, enqueue_controller};
use super::{Error, Reconciler, Setup, pods, queue_of};

const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const SERVICE: &str = "kubernetes.io/service-name";
const LARGEST: usize = 100;

pub(crate) fn start(setup: &mut Setup<'_>) {
    let controller = Controller {
        slices: setup.handle(),
        services: setup.informers.of(),
        pods: setup.informers.of(),
        triggers: Triggers::default(),
    };
    let queue = queue_of(&controller.services);
    controller.pods.on_change(enqueue_services(controller.services.clone(), queue.clone()));
    let owners = controller.services.clone();
    controller.slices.on_change(enqueue_controller::<Service, EndpointSlice>(owners, queue.clone()));
    setup.work(&queue, controller);
}

struct Controller {
    slices: Handle<EndpointSlice>,
    services: Arc<Informer<Service>>,
    pods: Arc<Informer<Pod>>,
    triggers: Triggers,
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        // The slices of a deleted Service go with it.
        let Some(service) = self.services.get(key) else {
            self.triggers.forget(key);
            return Ok(());
        };
        if service.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let Some(backends) = Backends::of(&service, &self.pods) else {
            return Ok(());
        };
        let uid = service.metadata.uid.as_deref().unwrap_or_default();
        let mut have = self.slices.controlled_by(uid);
        have.retain(|slice| label(slice, MANAGED_BY) == Some(MANAGER));
        let mut have = have.into_iter();
        for mut wanted in wanted(&service, &backends) {
            match have.next() {
                Some(had) if same(&had, &wanted) => {}
                Some(had) => {
                    let mut changed = (*had).clone();
                    (changed.endpoints, changed.ports) = (wanted.endpoints, wanted.ports);
                    changed.metadata.labels = wanted.metadata.labels;
                    self.triggers.annotate(&service, &backends, &mut changed.metadata);
                    self.slices.update(&changed).await?;
                }
                None => {
                    self.triggers.annotate(&service, &backends, &mut wanted.metadata);
                    self.slices.create(&wanted).await?;
                }
            }
        }
        for surplus in have {
            self.slices.delete(&surplus).await?;
        }
        Ok(())
    }
}

/// The slices a Service should have; at least one, even if it is empty.
fn wanted(service: &Service, backends: &Backends) -> Vec<EndpointSlice> {
    // Pods with equal ports share slices.
    let mut groups: Vec<(Vec<EndpointPort>, Vec<Endpoint>)> = Vec::new();
    for pod in &backends.pods {
        let ports: Vec<EndpointPort> = service_ports(service)
            .filter_map(|port| {
                Some(EndpointPort {
                    name: Some(port.name.clone().unwrap_or_default()),
                    port: Some(target_port(port, pod)?),
                    protocol: port.protocol.clone().or(Some("TCP".to_owned())),
                    app_protocol: port.app_protocol.clone(),
                })
            })
            .collect();
        let endpoint = endpoint(service, backends, pod);
        match groups.iter_mut().find(|(known, _)| *known == ports) {
            Some((_, endpoints)) => endpoints.push(endpoint),
            None => groups.push((ports, vec![endpoint])),
        }
    }
    if groups.is_empty() {
        groups.push((Vec::new(), Vec::new()));
    }
    let mut slices = Vec::new();
    for (ports, endpoints) in groups {
        let mut chunks: Vec<Vec<Endpoint>> = endpoints.chunks(LARGEST).map(<[Endpoint]>::to_vec).collect();
        if chunks.is_empty() {
            chunks.push(Vec::new());
        }
        for endpoints in chunks {
            slices.push(slice(service, &ports, endpoints));
        }
    }
    slices
}

fn slice(service: &Service, ports: &[EndpointPort], endpoints: Vec<Endpoint>) -> EndpointSlice {
    let name = service.metadata.name.clone().unwrap_or_default();
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(SERVICE.to_owned(), name.clone());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels),
            owner_references: Some(vec![controller_ref(service)]),
            ..ObjectMeta::default()
        },
        address_type: "IPv4".to_owned(),
        endpoints: Some(endpoints),
        ports: Some(ports.to_vec()),
    }
}

fn endpoint(service: &Service, backends: &Backends, pod: &Pod) -> Endpoint {
    let (serving, terminating) = (pods::is_ready(pod), pods::is_terminating(pod));
    Endpoint {
        addresses: ip_of(pod).map(str::to_owned).into_iter().collect(),
        conditions: Some(EndpointConditions {
            ready: Some(backends.publish_not_ready || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: hostname(service, pod),
        node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        target_ref: Some(target_ref(pod)),
        ..Endpoint::default()
    }
}

fn same(a: &EndpointSlice, b: &EndpointSlice) -> bool {
    a.endpoints.clone().unwrap_or_default() == b.endpoints.clone().unwrap_or_default()
        && a.ports.clone().unwrap_or_default() == b.ports.clone().unwrap_or_default()
        && a.metadata.labels == b.metadata.labels
}

fn label<'a>(slice: &'a EndpointSlice, key: &str) -> Option<&'a str> {
    slice.metadata.labels.as_ref()?.get(key).map(String::as_str)
}
