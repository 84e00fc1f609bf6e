//! Kiagnose as a user starts it: operator, controller and checkup as real processes.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

/// `windlass up`, ended with the test.
struct Up(Child);

impl Drop for Up {
    fn drop(&mut self) {
        // An interrupt, as from a terminal: what it started ends with it.
        let _ = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kiagnose");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

async fn up() -> (Up, Client) {
    let (images, kubeconfig) = (folder().join("images.yaml"), folder().join("kubeconfig"));
    let _ = std::fs::remove_file(&kubeconfig);
    let slow = "sim/slow: [sh, -c, 'echo looking; sleep 4; echo token=hunter2; exit 3']\n";
    // A checkup that knows nothing of the newer contract.
    let older = format!(
        "sim/older: [sh, -c, 'unset CONFIGMAP_NAMESPACE CONFIGMAP_NAME POD_UID; exec {} echo-checkup']\n",
        env!("CARGO_BIN_EXE_windlass")
    );
    std::fs::write(&images, format!("{slow}{older}")).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["up", "--operators", "kiagnose", "--kubeconfig"])
        .arg(&kubeconfig)
        .arg("--images")
        .arg(&images)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let up = Up(child);
    let config = until("a kubeconfig", async || Kubeconfig::read_from(&kubeconfig).ok()).await;
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    (up, Client::try_from(config).unwrap())
}

async fn until<T>(what: &str, found: impl AsyncFn() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = found().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    };
    match tokio::time::timeout(Duration::from_secs(60), found).await {
        Ok(found) => found,
        Err(_) => panic!("waited in vain for {what}"),
    }
}

fn of(client: &Client, group: &str, version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), namespace, &resource)
}

async fn phase(checkups: &Api<DynamicObject>, name: &str, wanted: &[&str]) -> Value {
    until(&format!("{name} to be {wanted:?}"), async || {
        let status = checkups.get(name).await.ok()?.data["status"].clone();
        wanted.contains(&status["phase"].as_str()?).then_some(status)
    })
    .await
}

/// What `kubectl auth can-i` says.
async fn can(client: &Client, account: &str, verb: &str, name: &str) -> bool {
    let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
        "user": format!("system:serviceaccount:default:{account}"), "groups": ["system:authenticated"],
        "resourceAttributes": {"namespace": "default", "verb": verb, "resource": "configmaps", "name": name}}}))
    .unwrap();
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed
}

#[tokio::test]
async fn checkups_run_as_processes_with_their_own_permissions() {
    let (_up, client) = up().await;
    let checkups = of(&client, "kiagnose.io", "v1alpha1", "Checkup", "default");

    let status = phase(&checkups, "echo", &["Succeeded", "Failed"]).await;
    assert_eq!(status["phase"], "Succeeded", "{status:#}");
    assert_eq!(status["results"], json!({"message": "Hello from the cluster"}));
    assert!(can(&client, "echo", "get", "echo-results").await);
    assert!(!can(&client, "echo", "patch", "echo-results").await);

    // Before, while and after it runs.
    assert!(!can(&client, "echo", "patch", "slow-results").await);
    let spec = json!({"image": "sim/slow", "serviceAccountName": "echo", "timeout": "1m"});
    let slow = json!({"apiVersion": "kiagnose.io/v1alpha1", "kind": "Checkup", "metadata": {"name": "slow"}, "spec": spec});
    checkups.patch("slow", &PatchParams::apply("test"), &Patch::Apply(slow)).await.unwrap();
    phase(&checkups, "slow", &["Running"]).await;
    assert!(can(&client, "echo", "patch", "slow-results").await);
    assert!(!can(&client, "echo", "delete", "slow-results").await);
    assert!(!can(&client, "echo", "get", "kube-root-ca.crt").await);
    let status = phase(&checkups, "slow", &["Succeeded", "Failed"]).await;
    assert!(!can(&client, "echo", "patch", "slow-results").await);
    let failed = status["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Failed").unwrap();
    assert_eq!(failed["reason"], "ExitCode", "{status:#}");
    assert_eq!(status["logTail"], "looking\ntoken=<left out>", "{status:#}");

    // Without a message the echo fails, and says why.
    let spec =
        json!({"image": "quay.io/kiagnose/echo-checkup", "serviceAccountName": "echo", "timeoutSeconds": 60});
    let mute = json!({"apiVersion": "kiagnose.io/v1alpha1", "kind": "Checkup", "metadata": {"name": "mute"}, "spec": spec});
    checkups.patch("mute", &PatchParams::apply("test"), &Patch::Apply(mute)).await.unwrap();
    let status = phase(&checkups, "mute", &["Succeeded", "Failed"]).await;
    assert_eq!(status["failureReason"], "the parameter message is missing", "{status:#}");

    // Of the older contract, its parameters are variables.
    let spec = json!({"image": "sim/older", "serviceAccountName": "echo", "timeoutSeconds": 60,
        "params": {"message": "as of old"}});
    let older = json!({"apiVersion": "kiagnose.io/v1alpha1", "kind": "Checkup", "metadata": {"name": "older"}, "spec": spec});
    checkups.patch("older", &PatchParams::apply("test"), &Patch::Apply(older)).await.unwrap();
    let status = phase(&checkups, "older", &["Succeeded", "Failed"]).await;
    assert_eq!(status["results"], json!({"message": "as of old"}), "{status:#}");

    // The controller is a process that comes back.
    let pods = of(&client, "", "v1", "Pod", "kiagnose");
    let name =
        async || Some(pods.list(&Default::default()).await.ok()?.items.first()?.metadata.name.clone()?);
    let first = until("the controller's pod", name).await;
    let deployments = of(&client, "apps", "v1", "Deployment", "kiagnose");
    deployments.delete("kiagnose-checkup-controller", &DeleteParams::default()).await.unwrap();
    until("another pod of the controller", async || name().await.filter(|now| *now != first)).await;
    let again = json!({"metadata": {"annotations": {"kiagnose.io/rerun": "1"}}});
    checkups.patch("echo", &PatchParams::default(), &Patch::Merge(again)).await.unwrap();
    until("another run", async || {
        let status = checkups.get("echo").await.ok()?.data["status"].clone();
        (status["run"]["rerun"] == "1" && status["phase"] == "Succeeded").then_some(())
    })
    .await;
}
