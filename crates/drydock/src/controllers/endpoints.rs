//! `endpoints-controller` and what it shares with [`super::endpoint_slices`]: which pods stand behind a Service.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, ObjectReference, Pod, Service, ServicePort,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::informer::{Change, Informer, ObjectKey};
use super::informers::Handle;
use super::queue::Queue;
use super::{Error, Reconciler, Setup, pods, queue_of};

const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
pub(super) const HEADLESS: &str = "service.kubernetes.io/headless";
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";

pub(crate) fn start(setup: &mut Setup<'_>) {
    let controller = Controller {
        endpoints: setup.handle(),
        services: setup.informers.of(),
        pods: setup.informers.of(),
        triggers: Triggers::default(),
    };
    let queue = queue_of(&controller.services);
    controller.pods.on_change(enqueue_services(controller.services.clone(), queue.clone()));
    setup.work(&queue, controller);
}

struct Controller {
    endpoints: Handle<Endpoints>,
    services: Arc<Informer<Service>>,
    pods: Arc<Informer<Pod>>,
    triggers: Triggers,
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let found = self.endpoints.get(key);
        let Some(service) = self.services.get(key) else {
            self.triggers.forget(key);
            return match found {
                Some(endpoints) => self.endpoints.delete(&endpoints).await,
                None => Ok(()),
            };
        };
        let Some(backends) = Backends::of(&service, &self.pods) else {
            return Ok(());
        };
        let subsets = subsets(&service, &backends);
        let mut labels = service.metadata.labels.clone().unwrap_or_default();
        labels.insert(MANAGED_BY.to_owned(), "endpoint-controller".to_owned());
        if is_headless(&service) {
            labels.insert(HEADLESS.to_owned(), String::new());
        }
        let written = match found {
            Some(had) => {
                if had.subsets.clone().unwrap_or_default() == subsets
                    && had.metadata.labels.as_ref() == Some(&labels)
                {
                    return Ok(());
                }
                let mut changed = (*had).clone();
                (changed.subsets, changed.metadata.labels) = (Some(subsets), Some(labels));
                self.triggers.annotate(&service, &backends, &mut changed.metadata);
                self.endpoints.update(&changed).await
            }
            None => {
                let mut endpoints = Endpoints {
                    metadata: ObjectMeta {
                        name: Some(key.name.clone()),
                        namespace: Some(key.namespace.clone()),
                        labels: Some(labels),
                        ..ObjectMeta::default()
                    },
                    subsets: Some(subsets).filter(|subsets| !subsets.is_empty()),
                };
                self.triggers.annotate(&service, &backends, &mut endpoints.metadata);
                self.endpoints.create(&endpoints).await
            }
        };
        written.map(|_| ())
    }
}

fn subsets(service: &Service, backends: &Backends) -> Vec<EndpointSubset> {
    // Pods with equal ports share a subset; named ports may differ from pod to pod.
    let mut groups: Vec<EndpointSubset> = Vec::new();
    for pod in backends.pods.iter().filter(|pod| backends.publish_not_ready || !pods::is_terminating(pod)) {
        let ports: Vec<EndpointPort> = service_ports(service)
            .filter_map(|port| {
                Some(EndpointPort {
                    name: port.name.clone(),
                    port: target_port(port, pod)?,
                    protocol: port.protocol.clone().or(Some("TCP".to_owned())),
                    app_protocol: port.app_protocol.clone(),
                })
            })
            .collect();
        if ports.is_empty() && !is_headless(service) {
            continue;
        }
        let ports = Some(ports).filter(|ports| !ports.is_empty());
        let at = groups.iter().position(|group| group.ports == ports).unwrap_or_else(|| {
            groups.push(EndpointSubset { ports, ..EndpointSubset::default() });
            groups.len() - 1
        });
        let ready = backends.publish_not_ready || pods::is_ready(pod);
        let group = &mut groups[at];
        let list = if ready { &mut group.addresses } else { &mut group.not_ready_addresses };
        list.get_or_insert_default().push(address(service, pod));
    }
    for list in
        groups.iter_mut().flat_map(|group| [&mut group.addresses, &mut group.not_ready_addresses]).flatten()
    {
        list.sort_by_key(|address| address.ip.parse::<std::net::IpAddr>().ok());
    }
    groups
}

fn address(service: &Service, pod: &Pod) -> EndpointAddress {
    EndpointAddress {
        ip: ip_of(pod).unwrap_or_default().to_owned(),
        node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        hostname: hostname(service, pod),
        target_ref: Some(target_ref(pod)),
    }
}

/// The pods behind a Service.
pub(super) struct Backends {
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) publish_not_ready: bool,
}

impl Backends {
    /// `None` for a Service that somebody else provides the endpoints of.
    pub(super) fn of(service: &Service, pods: &Informer<Pod>) -> Option<Self> {
        let spec = service.spec.as_ref()?;
        let selector = spec.selector.as_ref().filter(|selector| !selector.is_empty())?;
        if spec.type_.as_deref() == Some("ExternalName") {
            return None;
        }
        let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
        let chosen = pods.labelled(namespace, selector).into_iter();
        let pods = chosen.filter(|pod| !pods::is_finished(pod) && ip_of(pod).is_some()).collect();
        Some(Self { pods, publish_not_ready: spec.publish_not_ready_addresses == Some(true) })
    }

    /// When the last of what can lead to a change happened: the Service's making, a pod's readiness.
    fn latest(&self, service: &Service) -> Option<Timestamp> {
        let made = service.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let turned = self.pods.iter().filter_map(|pod| {
            pods::condition(pod, "Ready")
                .and_then(|ready| ready.last_transition_time.as_ref())
                .map(|time| time.0)
        });
        made.into_iter().chain(turned).max()
    }
}

/// Remembers what led to the last change of each Service's endpoints.
#[derive(Default)]
pub(super) struct Triggers(Mutex<BTreeMap<ObjectKey, Timestamp>>);

impl Triggers {
    /// Writes the annotation that says what led to this change, or takes it off where nothing new did.
    pub(super) fn annotate(&self, service: &Service, backends: &Backends, meta: &mut ObjectMeta) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = ObjectKey::of(&service.metadata);
        let latest =
            backends.latest(service).filter(|latest| known.get(&key).is_none_or(|before| before < latest));
        let annotations = meta.annotations.get_or_insert_default();
        match latest {
            Some(latest) => {
                annotations
                    .insert(TRIGGER_TIME.to_owned(), windlass_machinery::context::seconds_text(latest));
                known.insert(key, latest);
            }
            None => {
                annotations.remove(TRIGGER_TIME);
            }
        }
    }

    /// Forgets a Service that is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// Adds every Service that selects a changed pod, or did.
pub(super) fn enqueue_services(
    services: Arc<Informer<Service>>,
    queue: Queue<ObjectKey>,
) -> impl Fn(&Change<Pod>) {
    move |change| {
        let namespace = change.latest().metadata.namespace.as_deref().unwrap_or_default();
        let labels: Vec<&BTreeMap<String, String>> = [&change.old, &change.new]
            .into_iter()
            .flatten()
            .filter_map(|pod| pod.metadata.labels.as_ref())
            .collect();
        for service in services.in_namespace(namespace) {
            let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            let Some(selector) = selector.filter(|selector| !selector.is_empty()) else {
                continue;
            };
            if labels.iter().any(|labels| selector.iter().all(|(key, value)| labels.get(key) == Some(value)))
            {
                queue.add(ObjectKey::of(&service.metadata));
            }
        }
    }
}

pub(super) fn is_headless(service: &Service) -> bool {
    let address = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()).unwrap_or_default();
    matches!(address, "None" | "")
}

pub(super) fn service_ports(service: &Service) -> impl Iterator<Item = &ServicePort> {
    service.spec.iter().filter_map(|spec| spec.ports.as_ref()).flatten()
}

/// The port of a pod that a Service's port means. `None` where the pod has none of that name.
pub(super) fn target_port(port: &ServicePort, pod: &Pod) -> Option<i32> {
    match &port.target_port {
        None => Some(port.port),
        Some(IntOrString::Int(0)) => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => {
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let mut ports = containers.filter_map(|container| container.ports.as_ref()).flatten();
            let named = ports.find(|have| {
                have.name.as_ref() == Some(name) && have.protocol.as_deref().unwrap_or("TCP") == protocol
            });
            named.map(|have| have.container_port)
        }
    }
}

pub(super) fn ip_of(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref().filter(|ip| !ip.is_empty())
}

/// A pod's own name within its Service's domain.
pub(super) fn hostname(service: &Service, pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let same =
        spec.subdomain == service.metadata.name && pod.metadata.namespace == service.metadata.namespace;
    spec.hostname.clone().filter(|name| same && !name.is_empty())
}

pub(super) fn target_ref(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        name: pod.metadata.name.clone(),
        namespace: pod.metadata.namespace.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}
