//! A bundle on a cluster: what OLM makes of it by its rules, and the Kiagnose operator in it as real processes with exactly
//! the accounts and roles that OLM makes.
//!
//! On the drydock by default; `WINDLASS_E2E_KUBECONFIG` names another cluster, without nodes.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, Config, ResourceExt as _};
use serde_json::{Value, json};

/// The namespace that somebody chose for the operator; not the one that it proposes.
const NAMESPACE: &str = "olm-operators";
const IMAGE: &str = "registry.example.org/windlass";
const CONTROLLER: &str = "kiagnose-checkup-controller";
const DEFINITIONS: [&str; 2] = ["checkups.kiagnose.io", "checkupschedules.kiagnose.io"];

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // An interrupt, as from a terminal: what it started ends with it.
        let _ = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("olm");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A cluster whose node runs this project's program for its image.
async fn cluster() -> (Process, Client) {
    let given = std::env::var_os("WINDLASS_E2E_KUBECONFIG").map(PathBuf::from);
    let kubeconfig = given.clone().unwrap_or_else(|| folder().join("kubeconfig"));
    if given.is_none() {
        let _ = std::fs::remove_file(&kubeconfig);
    }
    let program = env!("CARGO_BIN_EXE_windlass");
    let child = Command::new(program)
        .args([if given.is_some() { "node" } else { "drydock" }, "--kubeconfig"])
        .arg(&kubeconfig)
        .args(["--image", &format!("{IMAGE}={program}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = Process(child);
    let config = until("a kubeconfig", async || Kubeconfig::read_from(&kubeconfig).ok()).await;
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    (process, Client::try_from(config).unwrap())
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
    match tokio::time::timeout(Duration::from_secs(90), found).await {
        Ok(found) => found,
        Err(_) => panic!("waited in vain for {what}"),
    }
}

fn of(client: &Client, version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Makes a bundle of the Kiagnose operator, as its publisher does.
fn bundle(version: &str, more: &[&str]) -> PathBuf {
    let output = folder().join(version);
    let made = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["bundle", "kiagnose", "--version", version, "--image", &format!("{IMAGE}:{version}")])
        .args(more)
        .arg("--output")
        .arg(&output)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    output
}

/// What OLM does with bundles, by its rules: `RBACForClusterServiceVersion`, its steps, and what it removes with a CSV.
struct Olm {
    client: Client,
}

impl Olm {
    async fn apply(&self, object: &Value) -> DynamicObject {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let kind = text("/kind").unwrap();
        let api = of(&self.client, text("/apiVersion").unwrap(), kind, text("/metadata/namespace"));
        let parameters = PatchParams::apply("olm").force();
        let name = text("/metadata/name").unwrap();
        let applied = api.patch(name, &parameters, &Patch::Apply(object)).await;
        applied.unwrap_or_else(|error| panic!("{kind} {name}: {error}"))
    }

    /// A namespace for operators, and what makes a cluster one with OLM.
    async fn set_up(&self) {
        self.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})).await;
        let names = json!({"plural": "clusterserviceversions", "singular": "clusterserviceversion",
            "kind": "ClusterServiceVersion", "listKind": "ClusterServiceVersionList"});
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = json!({"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        self.define(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "clusterserviceversions.operators.coreos.com"},
            "spec": {"group": "operators.coreos.com", "names": names, "scope": "Namespaced", "versions": [version]},
        }))
        .await;
    }

    async fn define(&self, definition: &Value) {
        let name = self.apply(definition).await.name_any();
        let definitions = of(&self.client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
        until(&name, async || {
            let found = definitions.get(&name).await.ok()?;
            let conditions = found.data["status"]["conditions"].as_array()?.clone();
            conditions.iter().any(|one| one["type"] == "Established" && one["status"] == "True").then_some(())
        })
        .await;
    }

    /// Installs a bundle beside what is there. The name of its ClusterServiceVersion.
    async fn install(&self, directory: &Path) -> String {
        let mut manifests: Vec<Value> = Vec::new();
        for entry in std::fs::read_dir(directory.join("manifests")).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            manifests.push(serde_saphyr::from_str(&text).unwrap());
        }
        let (csvs, others): (Vec<Value>, Vec<Value>) =
            manifests.into_iter().partition(|object| object["kind"] == "ClusterServiceVersion");
        let mut csv = csvs.into_iter().next().unwrap();
        for mut object in others {
            if object["kind"] == "CustomResourceDefinition" {
                self.define(&object).await;
                continue;
            }
            object["metadata"]["namespace"] = NAMESPACE.into();
            self.apply(&object).await;
        }
        csv["metadata"]["namespace"] = NAMESPACE.into();
        let name = csv["metadata"]["name"].as_str().unwrap().to_owned();
        let uid = self.apply(&csv).await.uid().unwrap();
        let owner = json!([{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "name": name, "uid": uid, "controller": false, "blockOwnerDeletion": false}]);
        let labels = json!({"olm.owner": name, "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": NAMESPACE});
        let install = &csv["spec"]["install"]["spec"];
        for (list, kind, namespace) in
            [("permissions", "Role", Some(NAMESPACE)), ("clusterPermissions", "ClusterRole", None)]
        {
            for permissions in install[list].as_array().into_iter().flatten() {
                let account = permissions["serviceAccountName"].as_str().unwrap();
                let mut metadata = json!({"name": account, "namespace": NAMESPACE, "ownerReferences": owner});
                self.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}))
                    .await;
                metadata["labels"] = labels.clone();
                // OLM makes up the end of the name from the rules.
                metadata["name"] = format!("{name}-{:x}", permissions.to_string().len()).into();
                if namespace.is_none() {
                    metadata = json!({"name": metadata["name"], "labels": labels});
                }
                let version = "rbac.authorization.k8s.io/v1";
                let rules = &permissions["rules"];
                self.apply(
                    &json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules}),
                )
                .await;
                self.apply(&json!({
                    "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata,
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": metadata["name"]},
                    "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}],
                }))
                .await;
            }
        }
        for deployment in install["deployments"].as_array().unwrap() {
            let mut spec = deployment["spec"].clone();
            spec["template"]["metadata"]["annotations"] =
                json!({"olm.targetNamespaces": "", "olm.operatorNamespace": NAMESPACE});
            self.apply(&json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "spec": spec,
                "metadata": {"name": deployment["name"], "namespace": NAMESPACE, "ownerReferences": owner,
                    "labels": deployment["label"]},
            }))
            .await;
        }
        name
    }

    /// Removes a ClusterServiceVersion, and what belongs to it but has no owner that garbage collection knows.
    async fn uninstall(&self, name: &str) {
        let csvs =
            of(&self.client, "operators.coreos.com/v1alpha1", "ClusterServiceVersion", Some(NAMESPACE));
        csvs.delete(name, &DeleteParams::default()).await.unwrap();
        let owned = ListParams::default().labels(&format!("olm.owner={name}"));
        for kind in ["ClusterRoleBinding", "ClusterRole"] {
            let api = of(&self.client, "rbac.authorization.k8s.io/v1", kind, None);
            for object in api.list(&owned).await.unwrap() {
                api.delete(&object.name_any(), &DeleteParams::default()).await.unwrap();
            }
        }
    }

    /// Waits until a Deployment runs an image.
    async fn runs(&self, deployment: &str, image: &str) -> DynamicObject {
        let deployments = of(&self.client, "apps/v1", "Deployment", Some(NAMESPACE));
        until(&format!("{deployment} to run {image}"), async || {
            let found = deployments.get_opt(deployment).await.ok()??;
            let container = &found.data["spec"]["template"]["spec"]["containers"][0];
            let status = &found.data["status"];
            let current = status["observedGeneration"].as_i64() == found.metadata.generation
                && status["updatedReplicas"] == 1
                && status["availableReplicas"] == 1
                && status.get("unavailableReplicas").is_none_or(|number| *number == 0);
            (container["image"] == image && current).then_some(found)
        })
        .await
    }

    async fn definitions(&self) -> Vec<(String, i64, Value)> {
        let definitions = of(&self.client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
        let mut found = Vec::new();
        for name in DEFINITIONS {
            let definition = definitions.get(name).await.unwrap();
            let managers =
                definition.managed_fields().iter().map(|entry| entry.manager.clone().unwrap_or_default());
            let managers: Vec<String> = managers.collect();
            found.push((definition.uid().unwrap(), definition.metadata.generation.unwrap(), json!(managers)));
        }
        found
    }
}

/// Runs the echo checkup (again) until it has succeeded with this message.
async fn checked(client: &Client, run: &str) -> Value {
    let accounts = of(client, "v1", "ServiceAccount", Some("default"));
    let echo = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "echo"}});
    accounts.patch("echo", &PatchParams::apply("test"), &Patch::Apply(echo)).await.unwrap();
    let checkups = of(client, "kiagnose.io/v1alpha1", "Checkup", Some("default"));
    let spec = json!({"image": "quay.io/kiagnose/echo-checkup:main", "serviceAccountName": "echo", "timeout": "1m",
        "params": {"message": "hello"}});
    let checkup = json!({"apiVersion": "kiagnose.io/v1alpha1", "kind": "Checkup",
        "metadata": {"name": "olm", "annotations": {"kiagnose.io/rerun": run}}, "spec": spec});
    checkups.patch("olm", &PatchParams::apply("test").force(), &Patch::Apply(checkup)).await.unwrap();
    until(&format!("run {run} of the checkup to succeed"), async || {
        let status = checkups.get("olm").await.ok()?.data["status"].clone();
        (status["run"]["rerun"] == run && status["phase"] == "Succeeded").then_some(status)
    })
    .await
}

#[tokio::test]
async fn kiagnose_lives_under_olm() {
    let (_cluster, client) = cluster().await;
    let olm = Olm { client: client.clone() };
    olm.set_up().await;

    let first = olm.install(&bundle("0.1.0", &[])).await;
    let definitions = olm.definitions().await;
    olm.runs("kiagnose-operator", &format!("{IMAGE}:0.1.0")).await;
    let controller = olm.runs(CONTROLLER, &format!("{IMAGE}:0.1.0")).await;
    let status = checked(&client, "1").await;
    assert_eq!(status["results"], json!({"message": "hello"}), "{status:#}");
    let owner = &controller.owner_references()[0];
    assert_eq!(owner.kind, "ClusterRoleBinding");
    assert!(owner.name.starts_with(&first), "{owner:?}");
    assert_eq!(olm.definitions().await, definitions, "OLM's definitions are left alone");
    assert!(definitions.iter().all(|(_, _, managers)| !managers.to_string().contains("kiagnose")));

    // The next version follows without a gap: what the first installed is not collected with its roles.
    let second = olm.install(&bundle("0.2.0", &["--replaces", "0.1.0"])).await;
    olm.runs("kiagnose-operator", &format!("{IMAGE}:0.2.0")).await;
    let newer = olm.runs(CONTROLLER, &format!("{IMAGE}:0.2.0")).await;
    olm.uninstall(&first).await;
    checked(&client, "2").await;
    let newest = olm.runs(CONTROLLER, &format!("{IMAGE}:0.2.0")).await;
    assert_eq!((controller.uid(), newer.uid()), (newest.uid(), newest.uid()), "it was never deleted");
    assert!(newest.owner_references()[0].name.starts_with(&second), "{:?}", newest.owner_references());

    // Uninstalled: the controller goes with the operator, checkups and their results stay.
    olm.uninstall(&second).await;
    for (version, kind, namespace) in [
        ("apps/v1", "Deployment", Some(NAMESPACE)),
        ("v1", "ServiceAccount", Some(NAMESPACE)),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", None),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", None),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", None),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", None),
    ] {
        let api = of(&client, version, kind, namespace);
        until(&format!("{kind} to be gone"), async || {
            api.get_opt(CONTROLLER).await.ok()?.is_none().then_some(())
        })
        .await;
    }
    let checkups = of(&client, "kiagnose.io/v1alpha1", "Checkup", Some("default"));
    assert_eq!(checkups.get("olm").await.unwrap().data["status"]["results"], json!({"message": "hello"}));
}
