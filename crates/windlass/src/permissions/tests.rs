use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::*;
use crate::test::Cluster;
use crate::{Halt, Plan, Primary, Status, World};

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Raft", namespaced, status = "Status")]
struct RaftSpec {}

impl Primary for Raft {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn adjusts() -> Vec<Kind> {
        vec![Kind::of::<PersistentVolumeClaim>()]
    }

    fn reads() -> Vec<Kind> {
        vec![Kind::of::<Secret>()]
    }

    fn plan(&self, world: &World, _: &mut Plan) -> Result<(), Halt> {
        world.get::<Secret>("x").map(drop)
    }
}

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Ship", namespaced, status = "Status")]
struct ShipSpec {}

impl Primary for Ship {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ClusterRole>()]
    }

    fn plan(&self, world: &World, _: &mut Plan) -> Result<(), Halt> {
        world.get::<Secret>("x").map(drop)
    }
}

fn tree(rules: &[PolicyRule]) -> Value {
    serde_json::to_value(rules).unwrap()
}

#[test]
fn they_follow_from_what_is_declared_and_nothing_else() {
    let permissions = Permissions::of(&Operator::new("rafter").manages::<Raft>());
    let expected = json!([
        {"apiGroups": [""], "resources": ["configmaps"],
            "verbs": ["create", "delete", "get", "list", "patch", "watch"]},
        {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["get", "list", "patch", "watch"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "get", "patch"]},
        {"apiGroups": ["example.org"], "resources": ["rafts"], "verbs": ["list", "watch"]},
        {"apiGroups": ["example.org"], "resources": ["rafts/status"], "verbs": ["patch"]},
    ]);
    assert_eq!(tree(&permissions.in_cluster()), expected);
    assert!(permissions.in_namespaces().is_empty());
}

#[test]
fn who_makes_what_garbage_collection_does_not_reach_may_set_a_finalizer() {
    let requests = Permissions::of(&Operator::new("shipper").manages::<Ship>()).requests();
    assert!(requests.contains("patch ships") && requests.contains("delete clusterroles"), "{requests:?}");
}

#[test]
fn in_namespaces_only_what_is_in_none_is_allowed_everywhere() {
    let raft = Operator::new("rafter").manages::<Raft>();
    let limited = Permissions::within(&raft, ["a", "b"]);
    assert!(limited.in_cluster().is_empty());
    let everywhere = Permissions::of(&raft).in_cluster();
    assert_eq!(limited.in_namespaces(), [("a".into(), everywhere.clone()), ("b".into(), everywhere)].into());
    let ship = Permissions::within(&Operator::new("shipper").manages::<Ship>(), ["a"]);
    let roles = tree(&ship.in_cluster());
    assert_eq!(roles.as_array().unwrap().len(), 1, "{roles}");
    assert_eq!(roles[0]["resources"], json!(["clusterroles"]));
}

#[test]
fn leases_are_allowed_in_their_namespace_only_and_the_leaders_by_its_name() {
    let lease = LeaseName { namespace: "ops".into(), name: "rafter".into() };
    let operator = Operator::new("rafter").manages::<Raft>();
    let leader = Permissions::of(&operator).leader(&lease);
    let expected = json!([
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["rafter"],
            "verbs": ["get", "update"]},
    ]);
    assert_eq!(tree(&leader.in_namespaces()["ops"]), expected);
    assert_eq!(leader.in_cluster(), Permissions::of(&operator).in_cluster());
    // What is allowed for all names is not said again for one.
    let both = tree(&leader.shards(&lease).in_namespaces()["ops"]);
    assert_eq!(both.as_array().unwrap().len(), 1, "{both}");
}

#[test]
fn what_an_operator_asks_for_besides_is_added_to_the_rest() {
    let more = PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec!["configmaps".into(), "pods/log".into()]),
        verbs: vec!["get".into(), "update".into()],
        ..PolicyRule::default()
    };
    let path = PolicyRule {
        non_resource_urls: Some(vec!["/metrics".into()]),
        verbs: vec!["get".into()],
        ..PolicyRule::default()
    };
    let operator = Operator::new("rafter").manages::<Raft>().needs([more, path]);
    let requests = Permissions::of(&operator).requests();
    for request in ["update configmaps", "patch configmaps", "get pods/log", "get /metrics"] {
        assert!(requests.contains(request), "{request} in {requests:?}");
    }
}

#[test]
fn a_plan_that_reads_what_is_not_declared_is_told_the_way_out() {
    assert!(Cluster::new().plan(&Raft::new("a", RaftSpec {})).halt().is_none());
    let planned = Cluster::new().plan(&Ship::new("a", ShipSpec {}));
    let message = planned.halt().unwrap().to_string();
    assert!(
        message.contains("plan of Ship reads secrets") && message.contains("Kind::of::<Secret>() to `reads`"),
        "{message}"
    );
}
