//! Jobs on a drydock whose node and scheduler stand still: the tests say how each pod ends.

use std::time::Duration;

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::{Event, Pod, ServiceAccount};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::super::Selection;
use crate::{Drydock, Options};

struct World {
    drydock: Drydock,
    jobs: Api<Job>,
    pods: Api<Pod>,
}

impl World {
    /// A drydock with one Job, `j`.
    async fn with(spec: Value) -> Self {
        let controllers = Selection::parse("*,-node,-scheduler").unwrap();
        let drydock = Drydock::start(Options { controllers, ..Options::seeded(1) }).await.unwrap();
        let client = drydock.client("test");
        let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
        while accounts.get_opt("default").await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let world = Self {
            jobs: Api::default_namespaced(client.clone()),
            pods: Api::default_namespaced(client),
            drydock,
        };
        let mut job = json!({"metadata": {"name": "j"}, "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}}});
        for (key, value) in spec.as_object().unwrap() {
            job["spec"][key] = value.clone();
        }
        world.jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
        world.rest().await;
        world
    }

    /// Lets the controllers come to rest, without time for a backoff to pass.
    async fn rest(&self) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    async fn active(&self) -> Vec<Pod> {
        let all = self.pods.list(&ListParams::default()).await.unwrap().items;
        let mut active: Vec<_> = all.into_iter().filter(super::pods::is_active).collect();
        active.sort_by_key(|pod| (super::index_of(pod), pod.metadata.name.clone()));
        active
    }

    /// Ends an active pod, by its place among them.
    async fn end(&self, at: usize, code: i32) {
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let pod = self.active().await.swap_remove(at);
        let now = self.drydock.context().now_text();
        let state = json!({"terminated": {"exitCode": code, "finishedAt": now, "startedAt": now}});
        let status = json!({"status": {"phase": phase, "containerStatuses": [{
            "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state,
        }]}});
        let name = pod.metadata.name.unwrap();
        self.pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
        self.rest().await;
    }

    async fn status(&self) -> JobStatus {
        self.jobs.get("j").await.unwrap().status.unwrap()
    }

    /// The types and reasons of the conditions that are true.
    async fn conditions(&self) -> Vec<(String, String)> {
        let all = self.status().await.conditions.unwrap_or_default();
        all.into_iter()
            .filter(|one| one.status == "True")
            .map(|one| (one.type_, one.reason.unwrap()))
            .collect()
    }

    async fn events(&self) -> Vec<(String, String)> {
        let events: Api<Event> = Api::default_namespaced(self.drydock.client("test"));
        let all = events.list(&ListParams::default()).await.unwrap().items;
        let about = all.into_iter().filter(|event| event.involved_object.kind.as_deref() == Some("Job"));
        about.map(|event| (event.reason.unwrap(), event.message.unwrap())).collect()
    }

    async fn change(&self, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.jobs.patch("j", &PatchParams::default(), &patch).await.unwrap();
        self.rest().await;
    }
}

fn pairs(kinds: [&str; 2], reason: &str) -> Vec<(String, String)> {
    kinds.map(|kind| (kind.to_owned(), reason.to_owned())).to_vec()
}

#[tokio::test(start_paused = true)]
async fn indexed_jobs_run_a_pod_for_each_index() {
    let world = World::with(json!({"completions": 5, "parallelism": 3, "completionMode": "Indexed"})).await;
    let pod = world.active().await.remove(2);
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("j-2-"));
    assert_eq!(pod.metadata.labels.unwrap()[super::indexes::INDEX], "2");
    let spec = pod.spec.unwrap();
    assert_eq!(spec.hostname.as_deref(), Some("j-2"));
    let variable = spec.containers[0].env.as_ref().unwrap()[0].clone();
    assert_eq!(variable.name, "JOB_COMPLETION_INDEX");
    let path = variable.value_from.unwrap().field_ref.unwrap().field_path;
    assert_eq!(path, "metadata.labels['batch.kubernetes.io/job-completion-index']");

    world.end(2, 0).await;
    world.end(0, 0).await;
    let status = world.status().await;
    assert_eq!(
        (status.completed_indexes.as_deref(), status.succeeded, status.active),
        (Some("0,2"), Some(2), Some(3))
    );
    for _ in 0..3 {
        world.end(0, 0).await;
    }
    assert_eq!(world.status().await.completed_indexes.as_deref(), Some("0-4"));
    assert_eq!(world.conditions().await, pairs(["SuccessCriteriaMet", "Complete"], "CompletionsReached"));
    world.drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_index_has_its_own_limit_and_waits() {
    let spec =
        json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1});
    let world = World::with(spec).await;
    world.end(0, 1).await;
    assert_eq!(world.active().await.len(), 1, "it waits");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let again = world.active().await.remove(0);
    assert_eq!(again.metadata.annotations.unwrap()["batch.kubernetes.io/job-index-failure-count"], "1");
    world.end(0, 1).await;
    let status = world.status().await;
    assert_eq!((status.failed_indexes.as_deref(), status.failed), (Some("0"), Some(2)));
    tokio::time::sleep(Duration::from_secs(700)).await;
    assert_eq!(world.active().await.len(), 1, "the index is given up");
    world.end(0, 0).await;
    assert_eq!(world.conditions().await, pairs(["FailureTarget", "Failed"], "FailedIndexes"));
    world.drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn too_many_failed_indexes_end_the_job_and_each_pod_is_counted_once() {
    let world = World::with(json!({
        "completions": 4, "parallelism": 4, "completionMode": "Indexed", "backoffLimitPerIndex": 0,
        "maxFailedIndexes": 1,
    }))
    .await;
    world.end(0, 1).await;
    world.end(0, 1).await;
    let status = world.status().await;
    assert_eq!((status.failed, status.failed_indexes.as_deref()), (Some(4), Some("0,1")));
    assert_eq!(world.conditions().await, pairs(["FailureTarget", "Failed"], "MaxFailedIndexesExceeded"));
    assert!(world.active().await.is_empty());
    world.drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_success_policy_ends_the_job_before_all_its_pods() {
    let rule = json!({"succeededIndexes": "0,1", "succeededCount": 1});
    let world = World::with(json!({
        "completions": 4, "parallelism": 4, "completionMode": "Indexed", "successPolicy": {"rules": [rule]},
    }))
    .await;
    world.end(2, 0).await;
    assert!(world.conditions().await.is_empty());
    world.end(0, 0).await;
    assert_eq!(world.conditions().await, pairs(["SuccessCriteriaMet", "Complete"], "SuccessPolicy"));
    let status = world.status().await;
    assert_eq!((status.succeeded, status.failed), (Some(2), None), "what was not needed has not failed");
    assert!(world.events().await.contains(&("Completed".to_owned(), "Job completed".to_owned())));
    world.drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_policy_ignores_counts_and_fails() {
    let code = |action: &str, code: i32| json!({"action": action, "onExitCodes": {"operator": "In", "values": [code]}});
    let rules = json!([code("Ignore", 4), code("Count", 3), code("FailJob", 42)]);
    let world = World::with(json!({"backoffLimit": 6, "podFailurePolicy": {"rules": rules}})).await;
    world.end(0, 4).await;
    assert_eq!(world.status().await.failed, None);
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.end(0, 3).await;
    assert_eq!(world.status().await.failed, Some(1));
    tokio::time::sleep(Duration::from_secs(20)).await;
    let name = world.active().await[0].metadata.name.clone().unwrap();
    world.end(0, 42).await;
    assert_eq!(world.conditions().await, pairs(["FailureTarget", "Failed"], "PodFailurePolicy"));
    let message = format!(
        "Container c for pod default/{name} failed with exit code 42 matching FailJob rule at index 2"
    );
    assert!(world.events().await.contains(&("PodFailurePolicy".to_owned(), message)));
    world.drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_gives_up_its_pods_and_does_not_count_them() {
    let world = World::with(json!({"suspend": true, "parallelism": 2, "completions": 2})).await;
    assert!(world.active().await.is_empty());
    assert_eq!(world.status().await.start_time, None);
    world.change(json!({"suspend": false})).await;
    assert_eq!(world.active().await.len(), 2);
    world.change(json!({"suspend": true})).await;
    assert!(world.active().await.is_empty());
    let status = world.status().await;
    assert_eq!((status.failed, status.active, status.terminating), (None, None, Some(0)));
    let events = world.events().await;
    for reason in ["Suspended", "Resumed", "SuccessfulDelete"] {
        assert!(events.iter().any(|(known, _)| known == reason), "{reason}: {events:?}");
    }
    world.drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failures_in_a_row_make_the_job_wait_longer_and_longer() {
    let world = World::with(json!({"backoffLimit": 3})).await;
    for seconds in [10, 20, 40] {
        world.end(0, 1).await;
        tokio::time::sleep(Duration::from_secs(seconds - 3)).await;
        assert!(world.active().await.is_empty(), "after less than {seconds} s");
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(world.active().await.len(), 1, "after {seconds} s");
    }
    world.end(0, 1).await;
    assert_eq!(world.conditions().await, pairs(["FailureTarget", "Failed"], "BackoffLimitExceeded"));
    assert_eq!(world.status().await.failed, Some(4));
    world.drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_of_another_controller_is_left_alone() {
    let world = World::with(json!({"managedBy": "example.org/mine"})).await;
    assert!(world.active().await.is_empty());
    assert_eq!(world.status().await, JobStatus::default());
    world.drydock.stop().await;
}

#[tokio::test(start_paused = true)]
async fn fewer_pods_are_wanted_and_the_ready_one_stays() {
    let world = World::with(json!({"parallelism": 3, "completions": 3})).await;
    let kept = world.active().await[1].metadata.name.clone().unwrap();
    let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": world.drydock.context().now_text()}]);
    let patch = Patch::Merge(json!({"status": {"phase": "Running", "conditions": ready}}));
    world.pods.patch_status(&kept, &PatchParams::default(), &patch).await.unwrap();
    world.change(json!({"parallelism": 1})).await;
    let left = world.active().await;
    assert_eq!((left.len(), left[0].metadata.name.as_ref()), (1, Some(&kept)));
    let status = world.status().await;
    assert_eq!((status.active, status.ready, status.failed), (Some(1), Some(1), None));
    world.drydock.stop().await;
}
