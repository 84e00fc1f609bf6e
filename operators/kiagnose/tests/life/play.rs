//! The test as checkup: writes the verdict as the checkup's service account, with that account's permissions.

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use windlass_drydock::api::auth::User;
use windlass_drydock::node::Behaviour;
use windlass_kiagnose::{Checkup, controller};
use windlass_testkit::Harbour;

pub(crate) const ACCOUNT: &str = r#"{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "checker", "namespace": "default"}}"#;

/// What a checkup writes, given its name.
pub(crate) type Script = fn(&str) -> Value;

pub(crate) const ENDS_WELL: Script =
    |name| json!({"status.succeeded": "true", "status.result.answer": "42", "status.result.of": name});

/// A drydock with the controller, images that end in different ways, and the service account.
pub(crate) async fn start() -> Harbour {
    let harbour = Harbour::start(controller).await;
    images(&harbour);
    harbour.put(ACCOUNT).await;
    harbour
}

pub(crate) fn images(harbour: &Harbour) {
    let exit = |code| Behaviour::Exit { after: Duration::from_secs(20), code };
    harbour.behaviours().set("sim/ok", exit(0));
    harbour.behaviours().set("sim/bad", exit(3));
    harbour.behaviours().set("sim/hang", Behaviour::Unready);
    harbour.behaviours().set("sim/nopull", Behaviour::Unpullable);
}

/// Writes the script's verdict for each checkup that runs.
pub(crate) fn play(harbour: &Harbour, script: Script) {
    images(harbour);
    let (pods, maps) = (Api::<Pod>::all(harbour.client()), as_checkup(harbour));
    tokio::spawn(async move {
        let mut events =
            watcher::watcher(pods, watcher::Config::default().labels("kiagnose.io/checkup")).boxed();
        while let Some(event) = events.next().await {
            let Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) = event else { continue };
            let runs = pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
            let name = pod.labels()["kiagnose.io/checkup"].clone();
            let Ok(map) = maps.get(&format!("{name}-results")).await else { continue };
            if runs && !map.data.is_some_and(|data| data.contains_key("status.succeeded")) {
                let data = json!({"data": script(&name)});
                let _ = maps
                    .patch(&map.metadata.name.unwrap(), &PatchParams::default(), &Patch::Merge(data))
                    .await;
            }
        }
    });
}

/// ConfigMaps as the checkup's service account may see and change them.
pub(crate) fn as_checkup(harbour: &Harbour) -> Api<ConfigMap> {
    let user = User::service_account("default", "checker");
    Api::namespaced(harbour.drydock().client_as(&user, "checkup"), "default")
}

/// A manifest; `change` is merged into a usual spec.
pub(crate) fn checkup(name: &str, change: Value) -> String {
    let mut spec = json!({"image": "sim/ok", "serviceAccountName": "checker", "timeout": "1m"});
    for (field, value) in change.as_object().unwrap() {
        if field == "timeoutSeconds" && change.get("timeout").is_none() {
            spec.as_object_mut().unwrap().remove("timeout");
        }
        spec[field] = value.clone();
    }
    let spec: Value = spec
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    json!({"apiVersion": "kiagnose.io/v1alpha1", "kind": "Checkup", "metadata": {"name": name}, "spec": spec})
        .to_string()
}

pub(crate) async fn try_apply(harbour: &Harbour, manifest: &str) -> kube::Result<Checkup> {
    let object: Value = serde_json::from_str(manifest).unwrap();
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    harbour.api::<Checkup>().patch(&name, &PatchParams::apply("test"), &Patch::Apply(object)).await
}

pub(crate) async fn patch(harbour: &Harbour, name: &str, change: Value) -> kube::Result<Checkup> {
    harbour.api::<Checkup>().patch(name, &PatchParams::default(), &Patch::Merge(change)).await
}

/// Waits until the checkup's pod runs, and its Checkup says so.
pub(crate) async fn running(harbour: &Harbour, name: &str) {
    harbour
        .until("the checkup to run", async || {
            let now = harbour.api::<Checkup>().get(name).await.unwrap();
            let recorded = now.status.and_then(|status| status.run).is_some_and(|run| run.job_uid.is_some());
            let pods = harbour.list::<Pod>().await;
            let runs = |pod: &Pod| {
                pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"))
            };
            recorded
                && pods.iter().any(|pod| {
                    pod.labels().get("kiagnose.io/checkup").is_some_and(|one| one == name) && runs(pod)
                })
        })
        .await;
}

/// Waits until there is a verdict.
pub(crate) async fn ended(harbour: &Harbour, name: &str) -> Checkup {
    let checkups = harbour.api::<Checkup>();
    harbour
        .until("a verdict", async || {
            let now = checkups.get(name).await.unwrap();
            now.status.is_some_and(|status| status.completion_time.is_some())
        })
        .await;
    checkups.get(name).await.unwrap()
}

/// Status and reason of a condition.
pub(crate) fn reason(checkup: &Checkup, kind: &str) -> (String, String) {
    let status = checkup.status.clone().unwrap_or_default();
    let found = status.common.conditions.into_iter().find(|one| one.type_ == kind);
    found.map(|one| (one.status, one.reason)).unwrap_or_default()
}

/// Waits until a condition has a reason, and gives its message.
pub(crate) async fn until_reason(harbour: &Harbour, name: &str, wanted: &[&str]) -> Checkup {
    let checkups = harbour.api::<Checkup>();
    harbour
        .until(&format!("the reason {wanted:?}"), async || {
            wanted.contains(&reason(&checkups.get(name).await.unwrap(), "Succeeded").1.as_str())
        })
        .await;
    checkups.get(name).await.unwrap()
}
