//! What a checkup may do, before, while and after it runs; and what the controller itself may do.

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass::Permissions;
use windlass_kiagnose::{Phase, controller};
use windlass_testkit::Harbour;

use super::play::{ENDS_WELL, as_checkup, checkup, ended, play, running, start};

/// What the service account may do to what.
async fn may(harbour: &Harbour, verb: &str, resource: &str, name: &str) -> bool {
    let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
        "user": "system:serviceaccount:default:checker",
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
        "resourceAttributes": {"namespace": "default", "verb": verb, "resource": resource, "name": name},
    }}))
    .unwrap();
    let reviews: Api<SubjectAccessReview> = Api::all(harbour.client());
    reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed
}

async fn allowed(harbour: &Harbour) -> Vec<String> {
    let mut found = Vec::new();
    for name in ["one-results", "other"] {
        for verb in ["get", "update", "patch", "delete", "list", "create"] {
            if may(harbour, verb, "configmaps", name).await {
                found.push(format!("{verb} {name}"));
            }
        }
    }
    for resource in ["secrets", "pods", "serviceaccounts"] {
        if may(harbour, "get", resource, "one-results").await {
            found.push(resource.to_owned());
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn a_checkup_may_write_its_results_while_it_runs_and_nothing_more() {
    let mut harbour = start().await;
    assert!(allowed(&harbour).await.is_empty());
    play(&harbour, ENDS_WELL);
    harbour.apply(&checkup("one", json!({}))).await;
    running(&harbour, "one").await;
    assert_eq!(allowed(&harbour).await, ["get one-results", "update one-results", "patch one-results"]);
    ended(&harbour, "one").await;
    assert_eq!(allowed(&harbour).await, ["get one-results"]);
    let late = json!({"data": {"status.succeeded": "false"}});
    let maps = as_checkup(&harbour);
    assert!(maps.patch("one-results", &PatchParams::default(), &Patch::Merge(late.clone())).await.is_err());
    // Not even who may write ConfigMaps can change the verdict's source.
    let maps: Api<ConfigMap> = harbour.api();
    assert!(maps.patch("one-results", &PatchParams::default(), &Patch::Merge(late)).await.is_err());
}

#[test]
fn the_controller_never_holds_escalate_or_bind() {
    let permissions = Permissions::of(&controller());
    let requests = permissions.requests();
    assert!(
        !requests
            .iter()
            .any(|one| one.starts_with("escalate") || one.starts_with("bind") || one.contains('*'))
    );
    for wanted in ["get configmaps", "update configmaps", "patch configmaps", "get pods/log"] {
        assert!(requests.contains(wanted), "{wanted} in {requests:?}");
    }
    let rules = serde_json::to_value(permissions.in_cluster()).unwrap();
    assert!(!rules.as_array().unwrap().iter().any(|rule| rule["resources"] == Value::from(vec!["secrets"])));
}

#[tokio::test(start_paused = true)]
async fn it_runs_where_only_restricted_pods_may_and_as_the_spec_says() {
    let mut harbour = start().await;
    let strict = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let spaces: Api<Namespace> = Api::all(harbour.client());
    spaces.patch("default", &PatchParams::default(), &Patch::Merge(strict)).await.unwrap();
    play(&harbour, ENDS_WELL);
    let wishes = json!({"resources": {"limits": {"memory": "64Mi"}}, "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "spare", "operator": "Exists"}]});
    harbour.apply(&checkup("one", wishes.clone())).await;
    assert_eq!(ended(&harbour, "one").await.status.unwrap().phase, Some(Phase::Succeeded));
    let job = harbour.api::<Job>().get("one").await.unwrap();
    let pod = serde_json::to_value(job.spec.unwrap().template.spec.unwrap()).unwrap();
    assert_eq!(pod["nodeSelector"], wishes["nodeSelector"]);
    assert_eq!(pod["tolerations"], wishes["tolerations"]);
    assert_eq!(pod["containers"][0]["resources"], wishes["resources"]);
}
