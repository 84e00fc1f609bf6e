//! What budgets say while pods come and go.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::{Drydock, Options};

#[tokio::test(start_paused = true)]
async fn a_budget_counts_what_is_healthy_and_what_may_go() {
    let drydock = Drydock::start(Options::seeded(1)).await.unwrap();
    let client = drydock.client("test");
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    while accounts.get_opt("default").await.unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
    let limits = [
        ("least", json!({"minAvailable": 2})),
        ("share", json!({"minAvailable": "50%"})),
        ("most", json!({"maxUnavailable": "30%"})),
    ];
    for (name, limit) in &limits {
        let mut budget =
            json!({"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "w"}}}});
        for (key, value) in limit.as_object().unwrap() {
            budget["spec"][key] = value.clone();
        }
        budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
    }
    let counts = async |name: &str| {
        let status = budgets.get(name).await.unwrap().status.unwrap();
        let condition = status.conditions.unwrap().remove(0);
        (
            status.expected_pods.unwrap(),
            status.current_healthy.unwrap(),
            status.desired_healthy.unwrap(),
            status.disruptions_allowed.unwrap(),
            condition.reason,
        )
    };
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(counts("least").await, (0, 0, 2, 0, "InsufficientPods".to_owned()));

    let deployments: Api<Deployment> = Api::default_namespaced(client);
    let template =
        json!({"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment: Value = json!({
        "metadata": {"name": "w"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "w"}}, "template": template},
    });
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let enough = "SufficientPods".to_owned();
    assert_eq!(counts("least").await, (3, 3, 2, 1, enough.clone()));
    assert_eq!(counts("share").await, (3, 3, 2, 1, enough.clone()));
    assert_eq!(counts("most").await, (3, 3, 2, 1, enough.clone()));
    let more = Patch::Merge(json!({"spec": {"replicas": 10}}));
    deployments.patch("w", &PatchParams::default(), &more).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(counts("least").await, (10, 10, 2, 8, enough.clone()));
    assert_eq!(counts("share").await, (10, 10, 5, 5, enough.clone()));
    assert_eq!(counts("most").await, (10, 10, 7, 3, enough));
    drydock.stop().await;
}
