//! A Monocle's whole life uses what its operator is allowed, and the operator is allowed no more.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use serde_json::json;
use windlass_drydock::node::Behaviour;
use windlass_monocle::{Monocle, SAMPLE, operator};
use windlass_testkit::Harbour;

#[tokio::test(start_paused = true)]
async fn nothing_is_allowed_that_its_life_does_not_use() {
    let mut harbour = Harbour::start(operator).await;
    // There before anybody asks for them.
    let metadata = ObjectMeta { name: Some("theirs".into()), ..ObjectMeta::default() };
    let data = json!({"config.yaml": "workspaces: []\n"});
    let secret = Secret { metadata: metadata.clone(), ..Secret::default() };
    harbour.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    let config = ConfigMap { metadata, data: serde_json::from_value(data).unwrap(), ..ConfigMap::default() };
    harbour.api::<ConfigMap>().create(&PostParams::default(), &config).await.unwrap();
    harbour.apply(SAMPLE).await;
    harbour.ready().await;

    let merge = PatchParams::default();
    let monocles = harbour.api::<Monocle>();
    let change = async |spec: serde_json::Value| {
        monocles.patch("monocle-sample", &merge, &Patch::Merge(json!({"spec": spec}))).await.unwrap();
        harbour.settle().await;
    };
    // A Job for a new config, one more for the next: the first is pruned when it is done.
    for name in ["one", "two"] {
        let data =
            json!({"data": {"config.yaml": format!("workspaces:\n  - name: {name}\n    crawlers: []\n")}});
        let configs = harbour.api::<ConfigMap>();
        configs.patch("monocle-sample-api", &merge, &Patch::Merge(data)).await.unwrap();
        harbour.settle().await;
    }
    // A claim that grows, an Ingress that comes and goes.
    change(json!({"elastic": {"storageSize": "20Gi"}, "ingress": {"host": "monocle.example.org"}})).await;
    change(json!({"ingress": null})).await;
    // A rollout that stands still, whose pods are looked at, and one that gets on.
    harbour.behaviours().set("*monocle:bad", Behaviour::Unpullable);
    change(json!({"image": "quay.io/change-metrics/monocle:bad"})).await;
    harbour.condition("Degraded", "True").await;
    change(json!({"image": "quay.io/change-metrics/monocle:1.9.1"})).await;
    // What was made once and has lost its owner is given back.
    let lost = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
    harbour.api::<Secret>().patch("monocle-sample-api", &merge, &lost).await.unwrap();
    harbour.api::<ConfigMap>().patch("monocle-sample-api", &merge, &lost).await.unwrap();
    harbour.settle().await;
    // Twice the same trouble is one Event, counted.
    for config in ["workspaces: [broken", "workspaces: []", "workspaces: [broken"] {
        let data = Patch::Merge(json!({"data": {"config.yaml": config}}));
        harbour.api::<ConfigMap>().patch("monocle-sample-api", &merge, &data).await.unwrap();
        harbour.settle().await;
    }
    // Somebody else's Secret, config and Elasticsearch: the operator's own go.
    let theirs = json!({"name": "theirs"});
    let elastic = json!({"url": "http://elastic.example.org:9200"});
    change(json!({"secretRef": theirs, "configRef": theirs, "elastic": elastic})).await;
    monocles.delete("monocle-sample", &DeleteParams::background()).await.unwrap();
    harbour.settle().await;

    let unused = harbour.unused_permissions();
    let explained = [
        // Never pruned. But where OwnerReferencesPermissionEnforcement is on, only who may delete an object may give it
        // back to its owner.
        "delete deployments",
        "delete jobs",
        // An object that is there before its event, or that a list did not keep: no more than `list` shows.
        "get deployments",
        "get ingresses",
        "get jobs",
        "get pods",
        "get services",
        "get statefulsets",
    ];
    assert_eq!(unused, explained.map(str::to_owned).into(), "allowed, and neither used nor explained");
}
