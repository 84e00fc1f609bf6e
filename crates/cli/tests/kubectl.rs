//! A walk through kubectl, unchanged, on the drydock that `windlass` serves over TLS.
//!
//! Skipped with a message where kubectl is not installed.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: 'nginx:1', ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
";

/// A drydock in a process of its own, ended with the test.
struct Served {
    process: Child,
    folder: PathBuf,
}

impl Served {
    fn start(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["drydock", "--kubeconfig"])
            .arg(folder.join("kubeconfig"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("drydock ready on https://127.0.0.1:"), "{line}");
        Self { process, folder }
    }

    /// Runs kubectl; gives what it prints, and whether it succeeded.
    fn try_kubectl(&self, arguments: &str, input: &str) -> (String, bool) {
        let mut child = Command::new("kubectl")
            .env("KUBECONFIG", self.folder.join("kubectl-unused"))
            .arg("--kubeconfig")
            .arg(self.folder.join("kubeconfig"))
            .args(arguments.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (String::from_utf8_lossy(&text).into_owned(), output.status.success())
    }

    /// Runs kubectl, which must succeed.
    fn kubectl(&self, arguments: &str, input: &str) -> String {
        let (text, success) = self.try_kubectl(arguments, input);
        assert!(success, "kubectl {arguments}: {text}");
        text
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn kubectl_is_missing() -> bool {
    let missing = Command::new("kubectl").arg("version").arg("--client").output().is_err();
    if missing {
        eprintln!("skipped: kubectl is not installed");
    }
    missing
}

#[test]
fn workloads_from_apply_to_delete() {
    if kubectl_is_missing() {
        return;
    }
    let served = Served::start("workloads");
    let run = |arguments: &str| served.kubectl(arguments, "");
    run("create namespace walk");
    let applied = served.kubectl("-n walk apply -f -", WEB);
    assert!(
        applied.contains("deployment.apps/web created") && applied.contains("service/web created"),
        "{applied}"
    );
    assert!(run("-n walk rollout status deploy/web --timeout=60s").contains("successfully rolled out"));
    let again = served.kubectl("-n walk apply -f -", WEB);
    assert!(again.contains("deployment.apps/web unchanged"), "{again}");

    let newer = WEB.replace("nginx:1", "nginx:2");
    let (diff, same) = served.try_kubectl("-n walk diff -f -", &newer);
    assert!(!same && diff.contains("+      - image: nginx:2"), "{diff}");
    served.kubectl("-n walk apply -f -", &newer);
    run("-n walk rollout status deploy/web --timeout=60s");
    assert_eq!(
        run("-n walk get deploy web -o jsonpath={.spec.template.spec.containers[0].image}"),
        "nginx:2"
    );
    run("-n walk rollout undo deploy/web");
    run("-n walk rollout status deploy/web --timeout=60s");
    assert_eq!(
        run("-n walk get deploy web -o jsonpath={.spec.template.spec.containers[0].image}"),
        "nginx:1"
    );
    run("-n walk scale deploy/web --replicas=3");
    run("-n walk wait --for=jsonpath={.status.readyReplicas}=3 deploy/web --timeout=60s");
    run(r#"-n walk patch deploy web --type=json -p [{"op":"replace","path":"/spec/replicas","value":1}]"#);
    run(r#"-n walk patch deploy web -p {"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}"#);
    run("-n walk rollout status deploy/web --timeout=60s");
    run("-n walk label deploy web tier=front");
    run("-n walk annotate deploy web note=hi");
    assert!(run("-n walk get deploy -l tier=front").contains("1/1"));
    let described = run("-n walk describe deploy web");
    assert!(
        described.contains("MinimumReplicasAvailable") && described.contains("ScalingReplicaSet"),
        "{described}"
    );

    run("-n walk delete deploy web --cascade=orphan --timeout=60s");
    assert!(run("-n walk get rs -o name").contains("replicaset.apps/web-"));
    run("-n walk delete rs --all --cascade=foreground --timeout=60s");
    assert!(run("-n walk get rs,pods").contains("No resources found"));
    run("delete namespace walk --timeout=60s");
    assert!(!run("get namespaces").contains("walk"));
}

#[test]
fn objects_roles_and_explanations() {
    if kubectl_is_missing() {
        return;
    }
    let served = Served::start("objects");
    let run = |arguments: &str| served.kubectl(arguments, "");
    run("create configmap cm --from-literal=a=b");
    let replaced = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm"},"data":{"a":"c"}}"#;
    served.kubectl("replace -f -", replaced);
    let wanted = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm"},"data":{"a":"d"}}"#;
    let (conflict, applied) = served.try_kubectl("apply --server-side -f -", wanted);
    assert!(
        !applied && conflict.contains(r#"conflict with "kubectl-replace" using v1: .data.a"#),
        "{conflict}"
    );
    served.kubectl("apply --server-side --force-conflicts -f -", wanted);
    assert_eq!(run("get cm cm -o jsonpath={.data.a}"), "d");

    run("create job j --image=busybox -- true");
    run("wait --for=condition=complete job/j --timeout=60s");
    let (refused, created) = served.try_kubectl(
        "create -f -",
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"dat":{}}"#,
    );
    assert!(!created && refused.contains(r#"unknown field "dat""#), "{refused}");
    let (missing, found) = served.try_kubectl("get nothings", "");
    assert!(!found && missing.contains("doesn't have a resource type"), "{missing}");

    run("create role r --verb=get --resource=pods");
    run("create rolebinding rb --role=r --serviceaccount=default:default");
    assert_eq!(run("auth can-i get pods --as=system:serviceaccount:default:default").trim(), "yes");
    let (no, _) = served.try_kubectl("auth can-i delete pods --as=system:serviceaccount:default:default", "");
    assert_eq!(no.trim(), "no");
    let explained = run("explain deployment.spec.strategy.type");
    assert!(explained.contains("Type of deployment."), "{explained}");
    assert!(run("api-resources").contains("statefulsets"));
}
