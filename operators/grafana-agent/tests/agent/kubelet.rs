//! The Service of the kubelets, on the drydock.

use k8s_openapi::api::core::v1::{Endpoints, Node, Service};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass::Operator;
use windlass_grafana_agent::kubelet::{KubeletService, with_kubelet_service};
use windlass_testkit::Harbour;

fn operator() -> Operator {
    with_kubelet_service(windlass_grafana_agent::operator(), "default/kubelet".parse().unwrap())
}

async fn node(harbour: &Harbour, name: &str, addresses: Value) {
    let nodes: Api<Node> = Api::all(harbour.client());
    let node = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let status = Patch::Merge(json!({"status": {"addresses": addresses}}));
    nodes.patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

async fn addresses(harbour: &Harbour) -> Vec<(String, String)> {
    let endpoints: Endpoints = harbour.api().get("kubelet").await.unwrap();
    let subsets = endpoints.subsets.unwrap_or_default();
    let addresses = subsets.into_iter().flat_map(|subset| subset.addresses.unwrap_or_default());
    addresses.map(|address| (address.target_ref.unwrap().name.unwrap(), address.ip)).collect()
}

#[tokio::test(start_paused = true)]
async fn every_node_has_its_address_and_a_bad_one_is_left_out_alone() {
    let mut harbour = Harbour::start(operator).await;
    harbour.settle().await;
    let own = addresses(&harbour).await;
    assert_eq!(own.len(), 1, "the drydock's own node");
    node(&harbour, "b", json!([{"type": "ExternalIP", "address": "10.24.0.11"}])).await;
    node(
        &harbour,
        "c",
        json!([{"type": "ExternalIP", "address": "10.24.0.12"}, {"type": "InternalIP", "address": "9.0.0.12"}]),
    )
    .await;
    node(&harbour, "nowhere", json!([{"type": "Hostname", "address": "nowhere"}])).await;
    harbour.settle().await;
    let mut found = addresses(&harbour).await;
    found.retain(|one| *one != own[0]);
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(found, [pair("c", "9.0.0.12"), pair("b", "10.24.0.11")], "by address, as numbers");

    let service: Service = harbour.api().get("kubelet").await.unwrap();
    let labels = service.metadata.labels.unwrap();
    assert_eq!(labels["app.kubernetes.io/name"], "kubelet");
    assert_eq!(labels["app.kubernetes.io/managed-by"], "grafana-agent-operator");
    let spec = service.spec.unwrap();
    assert_eq!(spec.cluster_ip.as_deref(), Some("None"));
    let ports: Vec<i32> = spec.ports.unwrap().iter().map(|port| port.port).collect();
    assert_eq!(ports, [10250, 10255, 4194]);

    let nodes: Api<Node> = Api::all(harbour.client());
    nodes.delete("b", &DeleteParams::default()).await.unwrap();
    harbour.api::<Endpoints>().delete("kubelet", &DeleteParams::default()).await.unwrap();
    harbour.settle().await;
    assert_eq!(addresses(&harbour).await.len(), 2, "a node is gone, and the Endpoints are healed");

    let before = harbour.revision();
    harbour.restart().await;
    harbour.settle().await;
    assert_eq!(harbour.revision(), before, "nothing is written after a restart");
}

#[test]
fn its_name_is_read_and_written() {
    let service: KubeletService = "kube-system/kubelet".parse().unwrap();
    assert_eq!(service.to_string(), "kube-system/kubelet");
    for bad in ["kubelet", "/kubelet", "kube-system/", "a/b/c"] {
        assert!(bad.parse::<KubeletService>().is_err(), "{bad}");
    }
}
