//! A Service that lists the kubelets of all nodes, so that a ServiceMonitor can have them scraped.
//!
//! Kubelets are no pods, so no Service finds them by a selector: its Endpoints are kept here, one address for each node.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Node, ObjectReference, Service, ServicePort,
    ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::{Halt, Kind, Operator, Plan, Query, World};

use crate::kinds::Named as _;

/// The kubelet's ports: its metrics with and without TLS, and cAdvisor's where a kubelet still serves it.
const PORTS: [(&str, i32); 3] = [("https-metrics", 10250), ("http-metrics", 10255), ("cadvisor", 4194)];

/// Namespace and name of that Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletService {
    namespace: String,
    name: String,
}

/// What is no namespace and name.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not written as NAMESPACE/NAME, such as kube-system/kubelet")]
pub struct NotAName(String);

impl FromStr for KubeletService {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self { namespace: namespace.into(), name: name.into() })
            }
            _ => Err(NotAName(text.into())),
        }
    }
}

impl fmt::Display for KubeletService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Has the operator keep the Service and its Endpoints.
#[must_use]
pub fn with_kubelet_service(operator: Operator, service: KubeletService) -> Operator {
    let owns = vec![Kind::of::<Service>(), Kind::of::<Endpoints>()];
    let name = format!("kubelet-service {service}");
    operator.keeps(&name, owns, vec![Kind::of::<Node>()], move |world, plan| service.plan(world, plan))
}

impl KubeletService {
    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let nodes =
            world.derive(&Query::default(), &(), |_: &World, node: &Node, (): &()| Ok(address(node)))?;
        let mut addresses = Vec::new();
        for node in nodes {
            match node.as_ref() {
                Ok((ip, address)) => addresses.push((*ip, address.clone())),
                // The others are scraped nevertheless.
                Err(problem) => plan.fail("NoAddress", problem.clone()),
            }
        }
        // Nodes come by their names, and those of one address stay so.
        addresses.sort_by_key(|(ip, _)| *ip);
        let addresses: Vec<EndpointAddress> = addresses.into_iter().map(|(_, address)| address).collect();
        plan.add(self.service());
        plan.add(self.endpoints(addresses));
        Ok(())
    }

    fn metadata(&self) -> ObjectMeta {
        let labels = [("k8s-app", "kubelet"), ("app.kubernetes.io/name", "kubelet")];
        ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            labels: Some(labels.map(|(label, value)| (label.to_owned(), value.to_owned())).into()),
            ..ObjectMeta::default()
        }
    }

    fn service(&self) -> Service {
        let ports =
            PORTS.map(|(name, port)| ServicePort { name: Some(name.into()), port, ..Default::default() });
        Service {
            metadata: self.metadata(),
            spec: Some(ServiceSpec {
                type_: Some("ClusterIP".into()),
                cluster_ip: Some("None".into()),
                ports: Some(ports.into()),
                ..ServiceSpec::default()
            }),
            status: None,
        }
    }

    fn endpoints(&self, addresses: Vec<EndpointAddress>) -> Endpoints {
        let ports =
            PORTS.map(|(name, port)| EndpointPort { name: Some(name.into()), port, ..Default::default() });
        let subset = EndpointSubset {
            addresses: Some(addresses),
            ports: Some(ports.into()),
            not_ready_addresses: None,
        };
        let some = subset.addresses.as_ref().is_some_and(|addresses| !addresses.is_empty());
        Endpoints { metadata: self.metadata(), subsets: some.then(|| vec![subset]) }
    }
}

/// Where a node's kubelet is: the node's internal address, else its external one.
fn address(node: &Node) -> Result<(IpAddr, EndpointAddress), String> {
    let addresses = node.status.as_ref().and_then(|status| status.addresses.as_deref()).unwrap_or_default();
    let of =
        |kind: &str| addresses.iter().find(|address| address.type_ == kind).map(|address| &address.address);
    let ip = of("InternalIP").or_else(|| of("ExternalIP"));
    let ip =
        ip.ok_or_else(|| format!("Node {} has neither an InternalIP nor an ExternalIP", node.title()))?;
    let parsed = ip.parse().map_err(|_| format!("Node {}: {ip:?} is no IP address", node.title()))?;
    let reference = ObjectReference {
        kind: Some("Node".into()),
        name: node.metadata.name.clone(),
        uid: node.metadata.uid.clone(),
        ..ObjectReference::default()
    };
    Ok((parsed, EndpointAddress { ip: ip.clone(), target_ref: Some(reference), ..Default::default() }))
}
