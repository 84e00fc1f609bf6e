//! Clusters that start from a snapshot, or go back to one.

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::Role;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;

use super::Snapshot;
use crate::{Drydock, Options, User};

async fn settle(drydock: &Drydock) {
    let revision = || drydock.server().store.revision();
    let mut before = revision();
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        if revision() == before {
            return;
        }
        before = revision();
    }
}

/// A cluster with something of everything in it, at rest.
async fn lived_in() -> Drydock {
    let drydock = Drydock::start(Options::seeded(1)).await.unwrap();
    settle(&drydock).await;
    let client = drydock.client("test");
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    });
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    });
    let set = json!({
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "web"}}, "template": template,
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }],
        },
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    });
    let role = json!({
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
    });
    let post = PostParams::default();
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.create(&post, &serde_json::from_value(deployment).unwrap()).await.unwrap();
    let sets: Api<StatefulSet> = Api::default_namespaced(client.clone());
    sets.create(&post, &serde_json::from_value(set).unwrap()).await.unwrap();
    let roles: Api<Role> = Api::default_namespaced(client.clone());
    roles.create(&post, &serde_json::from_value(role).unwrap()).await.unwrap();
    let binding = json!({
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "default"}],
    });
    let bindings: Api<k8s_openapi::api::rbac::v1::RoleBinding> = Api::default_namespaced(client.clone());
    bindings.create(&post, &serde_json::from_value(binding).unwrap()).await.unwrap();
    let request = http::Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
    let request = request.header("content-type", "application/json");
    client.request_text(request.body(definition.to_string().into_bytes()).unwrap()).await.unwrap();
    settle(&drydock).await;
    drydock
}

async fn uids(drydock: &Drydock) -> Vec<(Option<String>, Option<String>)> {
    let pods: Api<Pod> = Api::default_namespaced(drydock.client("test"));
    let all = pods.list(&ListParams::default()).await.unwrap().items;
    all.into_iter().map(|pod| (pod.metadata.name, pod.metadata.uid)).collect()
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "1"}})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_restored_cluster_is_at_rest_at_once_and_goes_on() {
    let first = lived_in().await;
    let snapshot = first.snapshot();
    let (revision, time, pods) = (snapshot.revision(), first.context().now_text(), uids(&first).await);
    assert_eq!(pods.len(), 4);
    first.stop().await;

    let second = Drydock::start(Options::restored(&snapshot)).await.unwrap();
    assert_eq!(second.context().now_text(), time);
    settle(&second).await;
    assert_eq!(second.server().store.revision(), revision, "somebody wrote");
    assert_eq!(uids(&second).await, pods);

    let boats = http::Request::get("/apis/example.org/v1/namespaces/default/boats").body(Vec::new()).unwrap();
    second.client("test").request_text(boats).await.unwrap();
    let account = second.client_as(&User::service_account("default", "default"), "test");
    let maps: Api<ConfigMap> = Api::default_namespaced(account);
    assert!(maps.get("kube-root-ca.crt").await.is_ok(), "roles are in force");
    assert!(maps.list(&ListParams::default()).await.is_err());

    let maps: Api<ConfigMap> = Api::default_namespaced(second.client("test"));
    let made = maps.create(&PostParams::default(), &config_map("new")).await.unwrap();
    assert_eq!(made.metadata.resource_version, Some((revision + 1).to_string()));
    let pods: Api<Pod> = Api::default_namespaced(second.client("test"));
    pods.delete("db-0", &DeleteParams::default()).await.unwrap();
    settle(&second).await;
    let sets: Api<StatefulSet> = Api::default_namespaced(second.client("test"));
    assert_eq!(sets.get("db").await.unwrap().status.unwrap().ready_replicas, Some(2), "controllers work");
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn two_that_start_from_one_snapshot_make_the_same_writes() {
    let first = lived_in().await;
    let snapshot = first.snapshot();
    first.stop().await;
    let mut ends = Vec::new();
    for _ in 0..2 {
        let drydock = Drydock::start(Options::restored(&snapshot)).await.unwrap();
        let pods: Api<Pod> = Api::default_namespaced(drydock.client("test"));
        pods.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
        settle(&drydock).await;
        ends.push((drydock.server().store.revision(), uids(&drydock).await));
        drydock.stop().await;
    }
    assert_eq!(ends[0], ends[1]);
}

#[tokio::test(start_paused = true)]
async fn watches_go_on_in_a_restored_cluster() {
    let first = lived_in().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(first.client("test"));
    let old = maps.create(&PostParams::default(), &config_map("old")).await.unwrap();
    maps.create(&PostParams::default(), &config_map("seen")).await.unwrap();
    let snapshot = first.snapshot();
    first.stop().await;

    let second = Drydock::start(Options::restored(&snapshot)).await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(second.client("test"));
    let from = old.metadata.resource_version.unwrap();
    let mut events = maps.watch(&WatchParams::default(), &from).await.unwrap().boxed();
    maps.create(&PostParams::default(), &config_map("new")).await.unwrap();
    for name in ["seen", "new"] {
        let Some(Ok(WatchEvent::Added(map))) = events.next().await else { panic!("no event for {name}") };
        assert_eq!(map.metadata.name.as_deref(), Some(name));
    }
    drop(events);
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_running_cluster_goes_back_and_its_watches_hear_of_it() {
    let drydock = lived_in().await;
    let snapshot = drydock.snapshot();
    let before = uids(&drydock).await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(drydock.client("test"));
    let deployments: Api<Deployment> = Api::default_namespaced(drydock.client("test"));
    let maps: Api<ConfigMap> = Api::default_namespaced(drydock.client("test"));
    deployments.delete("web", &DeleteParams::background()).await.unwrap();
    maps.create(&PostParams::default(), &config_map("new")).await.unwrap();
    let bindings: Api<k8s_openapi::api::rbac::v1::RoleBinding> =
        Api::default_namespaced(drydock.client("test"));
    bindings.delete("reader", &DeleteParams::default()).await.unwrap();
    settle(&drydock).await;
    assert_eq!(uids(&drydock).await.len(), 2);
    let revision = drydock.server().store.revision();
    let mut events = maps.watch(&WatchParams::default(), &revision.to_string()).await.unwrap().boxed();

    let changes = drydock.restore(&snapshot);
    assert!(changes > 4, "{changes}");
    let Some(Ok(WatchEvent::Deleted(gone))) = events.next().await else { panic!("no event") };
    assert_eq!(gone.metadata.name.as_deref(), Some("new"));
    assert!(gone.metadata.resource_version.unwrap().parse::<u64>().unwrap() > revision);
    assert_eq!(uids(&drydock).await, before);
    let restored = deployments.get("web").await.unwrap();
    assert!(restored.metadata.resource_version.unwrap().parse::<u64>().unwrap() > revision);
    assert!(accounts.get("default").await.is_ok());
    let account = drydock.client_as(&User::service_account("default", "default"), "test");
    assert!(
        Api::<ConfigMap>::default_namespaced(account).get("kube-root-ca.crt").await.is_ok(),
        "roles are back"
    );

    let after = drydock.server().store.revision();
    settle(&drydock).await;
    assert_eq!(drydock.server().store.revision(), after, "the controllers find nothing to do");
    assert_eq!(drydock.restore(&drydock.snapshot()), 0);
    drop(events);
    drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_file_holds_the_cluster_and_its_keys_but_no_history() {
    let first = lived_in().await;
    let before = uids(&first).await;
    let revision = first.server().store.revision();
    let certificate = first.authority().certificate_pem();
    let bytes = first.snapshot().to_bytes().unwrap();
    let snapshot = Snapshot::from_bytes(&bytes, first.context()).unwrap();
    first.stop().await;
    assert!(Snapshot::from_bytes(b"{}", &snapshot.context()).is_err());

    let second = Drydock::start(Options::restored(&snapshot)).await.unwrap();
    let start = second.server().store.revision();
    assert!(start > revision);
    settle(&second).await;
    assert_eq!(second.server().store.revision(), start, "somebody wrote");
    assert_eq!(uids(&second).await, before);
    assert_eq!(second.authority().certificate_pem(), certificate);
    let user = User::service_account("default", "default");
    assert!(second.authority().client(&user).is_ok());
    let maps: Api<ConfigMap> = Api::default_namespaced(second.client("test"));
    let mut events = maps.watch(&WatchParams::default(), &revision.to_string()).await.unwrap().boxed();
    let Some(Ok(WatchEvent::Error(gone))) = events.next().await else { panic!("no error") };
    assert_eq!((gone.code, gone.reason.as_str()), (410, "Expired"));
    drop(events);
    second.stop().await;
}
