//! The Node object as a kubelet registers it, and its heartbeat.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeStatus, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use windlass_machinery::Context;

use super::{ADDRESS, NAME};
use crate::controllers::Error;
use crate::controllers::informer::ObjectKey;
use crate::controllers::informers::Handle;

/// Between renewals of the Lease.
const BEAT: Duration = Duration::from_secs(10);
/// What the node says it has.
const CAPACITY: [(&str, &str); 6] = [
    ("cpu", "64"),
    ("ephemeral-storage", "1Ti"),
    ("hugepages-1Gi", "0"),
    ("hugepages-2Mi", "0"),
    ("memory", "256Gi"),
    ("pods", "65k"),
];
const LEASES: &str = "kube-node-lease";

/// Makes the Node, or its status right, and tries until it is done. With a port, a kube-apiserver on this machine asks
/// there for logs.
pub(super) async fn register(nodes: &Handle<Node>, context: &Context, port: Option<u16>) {
    let mut wait = Duration::from_millis(100);
    while let Err(error) = try_register(nodes, context, port).await {
        tracing::debug!(%error, "failed to register the node");
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(7));
    }
}

async fn try_register(nodes: &Handle<Node>, context: &Context, port: Option<u16>) -> Result<(), Error> {
    let described = described(context, port);
    let node = match nodes.get(&ObjectKey::new("", NAME)) {
        Some(node) => (*node).clone(),
        // The API drops no status of a Node when it is made, as the kubelet relies on.
        None => nodes.create(&described).await?,
    };
    let ready = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = ready.is_some_and(|all| {
        all.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    });
    let endpoints = |node: &Node| node.status.as_ref().and_then(|status| status.daemon_endpoints.clone());
    if ready && endpoints(&node) == endpoints(&described) {
        return untaint(nodes, node).await;
    }
    let mut changed = node;
    changed.status = described.status;
    let changed = nodes.update_status(&changed).await?;
    untaint(nodes, changed).await
}

/// A new node is tainted until it is ready, which this one is by now.
async fn untaint(nodes: &Handle<Node>, mut node: Node) -> Result<(), Error> {
    let Some(taints) = node.spec.as_mut().and_then(|spec| spec.taints.as_mut()) else { return Ok(()) };
    let all = taints.len();
    taints.retain(|taint| taint.key != "node.kubernetes.io/not-ready");
    if taints.len() == all {
        return Ok(());
    }
    nodes.update(&node).await.map(|_| ())
}

/// What the node has of a resource.
pub(super) fn capacity(resource: &str) -> Option<&'static str> {
    CAPACITY.iter().find(|(name, _)| *name == resource).map(|(_, amount)| *amount)
}

/// Renews the node's Lease for ever.
pub(super) async fn beat(leases: &Handle<Lease>, context: &Context) {
    let key = ObjectKey::new(LEASES, NAME);
    loop {
        let now = MicroTime(context.now());
        let mut lease = match leases.read(&key).await {
            Ok(found) => found.unwrap_or_default(),
            Err(_) => Lease::default(),
        };
        let made = lease.metadata.resource_version.is_some();
        lease.metadata.name = Some(NAME.to_owned());
        lease.metadata.namespace = Some(LEASES.to_owned());
        let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
        spec.holder_identity = Some(NAME.to_owned());
        spec.lease_duration_seconds = Some(40);
        spec.renew_time = Some(now);
        let written = if made { leases.update(&lease).await } else { leases.create(&lease).await };
        if let Err(error) = written {
            tracing::debug!(%error, "failed to renew the node's lease");
        }
        tokio::time::sleep(BEAT).await;
    }
}

fn described(context: &Context, port: Option<u16>) -> Node {
    let labels = [
        ("beta.kubernetes.io/arch", arch()),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", arch()),
        ("kubernetes.io/hostname", NAME),
        ("kubernetes.io/os", "linux"),
    ];
    let capacity: BTreeMap<String, Quantity> =
        CAPACITY.into_iter().map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).collect();
    let now = Time(context.now());
    let condition = |kind: &str, status: &str, reason: &str, message: &str| NodeCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: Some(now.clone()),
        last_transition_time: Some(now.clone()),
    };
    let address = |kind: &str, value: &str| NodeAddress { type_: kind.to_owned(), address: value.to_owned() };
    Node {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            labels: Some(labels.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect()),
            ..ObjectMeta::default()
        },
        spec: None,
        status: Some(NodeStatus {
            // A kube-apiserver would rather ask by name, and there is none that it could look up.
            addresses: Some(match port {
                Some(_) => vec![address("InternalIP", "127.0.0.1")],
                None => vec![address("InternalIP", ADDRESS), address("Hostname", NAME)],
            }),
            allocatable: Some(capacity.clone()),
            capacity: Some(capacity),
            conditions: Some(vec![
                condition(
                    "MemoryPressure",
                    "False",
                    "KubeletHasSufficientMemory",
                    "kubelet has sufficient memory available",
                ),
                condition(
                    "DiskPressure",
                    "False",
                    "KubeletHasNoDiskPressure",
                    "kubelet has no disk pressure",
                ),
                condition(
                    "PIDPressure",
                    "False",
                    "KubeletHasSufficientPID",
                    "kubelet has sufficient PID available",
                ),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ]),
            daemon_endpoints: Some(NodeDaemonEndpoints {
                kubelet_endpoint: Some(DaemonEndpoint { port: port.map_or(10250, i32::from) }),
            }),
            node_info: Some(NodeSystemInfo {
                architecture: arch().to_owned(),
                container_runtime_version: format!("drydock://{}", env!("CARGO_PKG_VERSION")),
                kernel_version: "none".to_owned(),
                kubelet_version: "v1.36.3".to_owned(),
                operating_system: "linux".to_owned(),
                os_image: "Windlass drydock".to_owned(),
                ..NodeSystemInfo::default()
            }),
            ..NodeStatus::default()
        }),
    }
}

/// The machine's architecture as Go names it.
fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
