//! The controllers and the node together, on a drydock of their own: what the world looks like in the end.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, Event, Namespace, PersistentVolume, PersistentVolumeClaim, Pod, Service,
    ServiceAccount,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::node::{Behaviour, NodeOptions};
use crate::{Drydock, Options};

async fn drydock() -> Drydock {
    Drydock::start(Options::seeded(1)).await.unwrap()
}

fn api<K>(drydock: &Drydock) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(drydock.client("test"), "default")
}

async fn create<K>(drydock: &Drydock, object: Value) -> K
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + DeserializeOwned
        + Clone
        + Debug
        + serde::Serialize,
{
    // Pods need the namespace's account, which a controller makes.
    let accounts: Api<ServiceAccount> = api(drydock);
    eventually("the default account", async || accounts.get_opt("default").await.unwrap()).await;
    let object: K = serde_json::from_value(object).unwrap();
    api::<K>(drydock).create(&PostParams::default(), &object).await.unwrap()
}

/// Waits for something to be there.
async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..400 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{what} did not come");
}

fn pod_template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image}]},
    })
}

fn deployment(replicas: i32, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": pod_template(image),
            "progressDeadlineSeconds": 2,
        },
    })
}

async fn available(drydock: &Drydock, replicas: i32) -> Deployment {
    let deployments: Api<Deployment> = api(drydock);
    eventually("the rollout", async || {
        let found = deployments.get("web").await.unwrap();
        let status = found.status.clone().unwrap_or_default();
        let whole = status.available_replicas == Some(replicas)
            && status.updated_replicas == Some(replicas)
            && status.replicas == Some(replicas)
            && status.observed_generation == found.metadata.generation;
        whole.then_some(found)
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_deployment_rolls_out_and_goes_with_all_it_owns() {
    let drydock = drydock().await;
    create::<Deployment>(&drydock, deployment(3, "nginx:1.25")).await;
    available(&drydock, 3).await;
    let pods: Api<Pod> = api(&drydock);
    let mut addresses: Vec<_> = pods
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .filter_map(|pod| pod.status?.pod_ip)
        .collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 3);

    let deployments: Api<Deployment> = api(&drydock);
    let image = json!({"spec": {"template": pod_template("nginx:1.26")}});
    deployments.patch("web", &PatchParams::default(), &Patch::Strategic(image)).await.unwrap();
    let found = available(&drydock, 3).await;
    assert_eq!(found.metadata.annotations.unwrap()["deployment.kubernetes.io/revision"], "2");
    let sets: Api<ReplicaSet> = api(&drydock);
    assert_eq!(sets.list(&ListParams::default()).await.unwrap().items.len(), 2);

    deployments.delete("web", &DeleteParams::background()).await.unwrap();
    eventually("the end of all", async || {
        let pods = pods.list(&ListParams::default()).await.unwrap().items.len();
        let sets = sets.list(&ListParams::default()).await.unwrap().items.len();
        (pods + sets == 0).then_some(())
    })
    .await;
    drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_rollout_of_an_unpullable_image_exceeds_its_deadline() {
    let options = NodeOptions::default();
    options.behaviours.set("*:missing", Behaviour::Unpullable);
    let drydock = Drydock::start(Options { node: options, ..Options::seeded(1) }).await.unwrap();
    create::<Deployment>(&drydock, deployment(1, "web:missing")).await;
    let deployments: Api<Deployment> = api(&drydock);
    let condition = eventually("the deadline", async || {
        let status = deployments.get("web").await.unwrap().status?;
        let conditions = status.conditions.unwrap_or_default();
        conditions.into_iter().find(|c| c.reason.as_deref() == Some("ProgressDeadlineExceeded"))
    })
    .await;
    let message = condition.message.unwrap();
    assert!(
        message.starts_with("ReplicaSet \"web-") && message.ends_with("has timed out progressing."),
        "{message}"
    );
    let pods: Api<Pod> = api(&drydock);
    let pod = pods.list(&ListParams::default()).await.unwrap().items.remove(0);
    let state = pod.status.unwrap().container_statuses.unwrap().remove(0).state.unwrap();
    assert_eq!(state.waiting.unwrap().reason.unwrap(), "ImagePullBackOff");
    drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_the_config_map_that_it_refers_to() {
    let drydock = drydock().await;
    let reference =
        json!([{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}}]);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "env": reference}]},
    });
    create::<Pod>(&drydock, pod).await;
    let pods: Api<Pod> = api(&drydock);
    let waiting = eventually("the wait", async || {
        let status = pods.get("p").await.unwrap().status?.container_statuses?.remove(0);
        status
            .state?
            .waiting
            .filter(|waiting| waiting.reason.as_deref() == Some("CreateContainerConfigError"))
    })
    .await;
    assert_eq!(waiting.message.unwrap(), "configmap \"settings\" not found");
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"},
    });
    create::<ConfigMap>(&drydock, settings).await;
    eventually("the start", async || {
        (pods.get("p").await.unwrap().status?.phase? == "Running").then_some(())
    })
    .await;
    drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_gets_its_pods_claims_and_endpoints() {
    let drydock = drydock().await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"},
        "spec": {"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80}]},
    });
    create::<Service>(&drydock, service).await;
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {
            "replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "web"}},
            "template": pod_template("db:1"),
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }],
        },
    });
    create::<StatefulSet>(&drydock, set).await;
    let sets: Api<StatefulSet> = api(&drydock);
    eventually("both replicas", async || {
        (sets.get("db").await.unwrap().status?.available_replicas? == 2).then_some(())
    })
    .await;
    let claims: Api<PersistentVolumeClaim> = api(&drydock);
    for name in ["data-db-0", "data-db-1"] {
        assert_eq!(claims.get(name).await.unwrap().status.unwrap().phase.unwrap(), "Bound");
    }
    let endpoints: Api<Endpoints> = api(&drydock);
    eventually("both addresses", async || {
        let addresses = endpoints.get_opt("db").await.unwrap()?.subsets?.remove(0).addresses?;
        let names: Vec<_> = addresses.into_iter().filter_map(|address| address.hostname).collect();
        (names == ["db-0", "db-1"]).then_some(())
    })
    .await;
    drydock.stop().await;
}

fn job(name: &str, image: &str, more: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": image}],
        }}},
    });
    for (key, value) in more.as_object().unwrap() {
        job["spec"][key] = value.clone();
    }
    job
}

#[tokio::test(start_paused = true)]
async fn jobs_end_well_or_badly_and_go_after_their_time() {
    let options = NodeOptions { completes_after: Duration::from_millis(50), ..NodeOptions::default() };
    options.behaviours.set("bad", Behaviour::Exit { after: Duration::ZERO, code: 3 });
    let drydock = Drydock::start(Options { node: options, ..Options::seeded(1) }).await.unwrap();
    create::<Job>(&drydock, job("good", "good", json!({"completions": 2}))).await;
    create::<Job>(&drydock, job("bad", "bad", json!({"backoffLimit": 0, "ttlSecondsAfterFinished": 1})))
        .await;
    let jobs: Api<Job> = api(&drydock);
    let types = async |name: &str| {
        let status = jobs.get_opt(name).await.unwrap()?.status?;
        let types: Vec<String> = status.conditions?.into_iter().map(|condition| condition.type_).collect();
        Some((types, status.succeeded, status.failed))
    };
    // The bad one first: it can be seen only for a second.
    eventually("the bad end", async || {
        let (types, _, failed) = types("bad").await?;
        (types == ["FailureTarget", "Failed"]).then(|| assert_eq!(failed, Some(1)))
    })
    .await;
    eventually("the good end", async || {
        let (types, succeeded, _) = types("good").await?;
        (types == ["SuccessCriteriaMet", "Complete"]).then(|| assert_eq!(succeeded, Some(2)))
    })
    .await;
    eventually("its removal", async || jobs.get_opt("bad").await.unwrap().is_none().then_some(())).await;
    let pods: Api<Pod> = api(&drydock);
    eventually("the removal of its pod", async || {
        let left = pods.list(&ListParams::default().labels("job-name=bad")).await.unwrap();
        left.items.is_empty().then_some(())
    })
    .await;
    drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_takes_everything_with_it() {
    let drydock = drydock().await;
    let namespaces: Api<Namespace> = Api::all(drydock.client("test"));
    let namespace = serde_json::from_value(json!({"metadata": {"name": "other"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(drydock.client("test"), "other");
    eventually("its account", async || accounts.get_opt("default").await.unwrap()).await;
    let sets: Api<DaemonSet> = Api::namespaced(drydock.client("test"), "other");
    let set = json!({
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": pod_template("i")},
    });
    sets.create(&PostParams::default(), &serde_json::from_value(set).unwrap()).await.unwrap();
    eventually("the daemon", async || (sets.get("d").await.unwrap().status?.number_ready == 1).then_some(()))
        .await;
    namespaces.delete("other", &DeleteParams::default()).await.unwrap();
    eventually("its end", async || namespaces.get_opt("other").await.unwrap().is_none().then_some(())).await;
    let pods: Api<Pod> = Api::namespaced(drydock.client("test"), "other");
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
    drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_tell_the_story_of_a_pod() {
    let drydock = drydock().await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    create::<Pod>(&drydock, pod).await;
    let events: Api<Event> = api(&drydock);
    eventually("the four events", async || {
        let all = events.list(&ListParams::default()).await.unwrap().items;
        let mut reasons: Vec<_> = all
            .into_iter()
            .filter(|event| event.involved_object.name.as_deref() == Some("p"))
            .filter_map(|event| event.reason)
            .collect();
        reasons.sort();
        (reasons == ["Created", "Pulled", "Scheduled", "Started"]).then_some(())
    })
    .await;
    drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn at_rest_nobody_asks_for_anything_and_a_pod_costs_one_status_write() {
    let drydock = drydock().await;
    create::<Deployment>(&drydock, deployment(2, "i")).await;
    available(&drydock, 2).await;
    let asked = || -> Vec<_> {
        let clients = super::NAMES.iter().copied().chain(["shared-informers"]);
        clients
            .map(|client| {
                let mut counts = drydock.record().counts(&super::user_agent(client));
                counts.remove("watch");
                (client, counts)
            })
            .collect()
    };
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before = asked();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(asked(), before);
    let node = drydock.record().counts(&super::user_agent("node"));
    assert_eq!(node.get("patch"), Some(&2), "{node:?}");
    drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_grows_if_its_class_lets_it() {
    let drydock = drydock().await;
    let classes: Api<StorageClass> = Api::all(drydock.client("test"));
    eventually("the default class", async || classes.get_opt("standard").await.unwrap()).await;
    let fixed = json!({"metadata": {"name": "fixed"}, "provisioner": "example.org/fixed"});
    classes.create(&PostParams::default(), &serde_json::from_value(fixed).unwrap()).await.unwrap();
    let claims: Api<PersistentVolumeClaim> = api(&drydock);
    let claim = |name: &str, class: Option<&str>| {
        json!({
            "metadata": {"name": name},
            "spec": {
                "storageClassName": class, "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        })
    };
    let made: PersistentVolumeClaim = create(&drydock, claim("grows", None)).await;
    assert_eq!(made.spec.unwrap().storage_class_name.as_deref(), Some("standard"));
    let _: PersistentVolumeClaim = create(&drydock, claim("stays", Some("fixed"))).await;
    for name in ["grows", "stays"] {
        eventually("binding", async || {
            (claims.get(name).await.unwrap().status?.phase.as_deref() == Some("Bound")).then_some(())
        })
        .await;
    }
    let more = Patch::Merge(json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}}));
    let refused = claims.patch("stays", &PatchParams::default(), &more).await.unwrap_err().to_string();
    assert!(refused.contains("the storageclass that provisions the pvc must support resize"), "{refused}");
    claims.patch("grows", &PatchParams::default(), &more).await.unwrap();
    let status = eventually("the size", async || {
        let status = claims.get("grows").await.unwrap().status?;
        (status.capacity.as_ref()?["storage"].0 == "3Gi").then_some(status)
    })
    .await;
    assert_eq!((status.conditions, status.allocated_resource_statuses), (None, None));
    let volumes: Api<PersistentVolume> = Api::all(drydock.client("test"));
    let name = claims.get("grows").await.unwrap().spec.unwrap().volume_name.unwrap();
    assert_eq!(volumes.get(&name).await.unwrap().spec.unwrap().capacity.unwrap()["storage"].0, "3Gi");
    drydock.stop().await;
}
