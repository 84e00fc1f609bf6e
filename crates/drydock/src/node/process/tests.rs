//! Pods that really run, as small shell programs. Time is real here: a process does not wait for tokio's.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    ConfigMap, ContainerState, ContainerStatus, Event, Pod, Secret, ServiceAccount,
};
use kube::api::{Api, DeleteParams, ListParams, LogParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::node::{Behaviour, NodeOptions, Program};
use crate::serve::{Endpoint, serve};
use crate::{Drydock, Options};

mod ending;
mod logging;
mod naming;
mod probing;
mod reaching;
mod volumes;

/// A drydock that is served, on which the image `sh` is a shell.
struct Yard {
    drydock: Drydock,
    endpoint: Endpoint,
}

impl Yard {
    async fn open() -> Self {
        let node = NodeOptions::default();
        node.images.set("sh", Program::new("/bin/sh").with_arguments(["-c"]));
        node.images.set("missing", Program::new("/nowhere/program"));
        node.images.set("broken", Program::new("/bin/true"));
        node.behaviours.set("broken", Behaviour::Unpullable);
        let drydock = Drydock::start(Options { node, ..Options::live() }).await.unwrap();
        let endpoint = serve(&drydock, 0).await.unwrap();
        let yard = Self { drydock, endpoint };
        let accounts: Api<ServiceAccount> = yard.api();
        eventually("the default account", async || accounts.get_opt("default").await.unwrap()).await;
        yard
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.drydock.client("test"), "default")
    }

    fn pods(&self) -> Api<Pod> {
        self.api()
    }

    async fn create(&self, pod: Value) {
        let pod: Pod = serde_json::from_value(pod).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }

    async fn config_map(&self, name: &str, data: Value) {
        let map: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": name}, "data": data})).unwrap();
        let apply = PatchParams::apply("test").force();
        let typed =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": map.data});
        self.api::<ConfigMap>().patch(name, &apply, &Patch::Apply(typed)).await.unwrap();
    }

    async fn secret(&self, name: &str, data: Value) {
        let secret = json!({"metadata": {"name": name}, "stringData": data});
        let secret: Secret = serde_json::from_value(secret).unwrap();
        self.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    }

    async fn phase(&self, name: &str, phase: &str) -> Pod {
        eventually(&format!("{name} {phase}"), async || {
            let pod = self.pods().get(name).await.unwrap();
            (pod.status.as_ref()?.phase.as_deref() == Some(phase)).then_some(pod)
        })
        .await
    }

    /// Waits until the first container's status is as wanted.
    async fn container(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&ContainerStatus) -> bool,
    ) -> ContainerStatus {
        eventually(&format!("{name}: {what}"), async || {
            let status =
                self.pods().get(name).await.unwrap().status?.container_statuses?.into_iter().next()?;
            wanted(&status).then_some(status)
        })
        .await
    }

    async fn log(&self, name: &str) -> String {
        self.pods().logs(name, &LogParams::default()).await.unwrap()
    }

    async fn log_has(&self, name: &str, text: &str) -> String {
        eventually(&format!("{name}: {text:?} in the log"), async || {
            let log = self.pods().logs(name, &LogParams::default()).await.unwrap_or_default();
            log.contains(text).then_some(log)
        })
        .await
    }

    async fn event(&self, reason: &str) -> String {
        eventually(&format!("the event {reason}"), async || {
            let events = self.api::<Event>().list(&ListParams::default()).await.unwrap();
            events.items.into_iter().find(|event| event.reason.as_deref() == Some(reason))?.message
        })
        .await
    }

    async fn close(self) {
        drop(self.endpoint);
        self.drydock.stop().await;
    }
}

/// A pod of one shell container that runs once.
fn script(name: &str, script: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "sh", "args": [script]}]},
    })
}

fn with(mut pod: Value, field: &str, value: Value) -> Value {
    pod["spec"]["containers"][0][field] = value;
    pod
}

/// Waits for something to be there.
async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..800 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{what} did not come");
}

fn terminated(state: Option<ContainerState>) -> (i32, String, Option<String>) {
    let ended = state.unwrap().terminated.unwrap();
    (ended.exit_code, ended.reason.unwrap_or_default(), ended.message)
}

fn is_alive(process: &str) -> bool {
    // One that has ended and that nobody has asked about yet is dead.
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z') && !line.contains('X'))
}

fn exists(path: &str) -> bool {
    Path::new(path).exists()
}

#[tokio::test]
async fn a_process_gets_its_arguments_and_environment() {
    let yard = Yard::open().await;
    yard.config_map("settings", json!({"colour": "blue", "size": "9"})).await;
    yard.secret("login", json!({"user": "anna", "word": "s3cret"})).await;
    let environment = json!([
        {"name": "PLAIN", "value": "a-$(FROM_size)-$(NOT_THERE)-$$(X)"},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
        {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}},
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "word"}}},
        {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "no", "key": "no", "optional": true}}},
    ]);
    let pod = script("p", "echo $PLAIN $NAME $LABEL $CPU $COLOUR $WORD ${NONE-unset} $FROM_user $0 $1; pwd");
    let pod = with(pod, "env", environment);
    let sources = json!([
        {"prefix": "FROM_", "configMapRef": {"name": "settings"}},
        {"prefix": "FROM_", "secretRef": {"name": "login"}},
        {"configMapRef": {"name": "absent", "optional": true}},
    ]);
    let pod = with(pod, "envFrom", sources);
    let pod = with(pod, "resources", json!({"limits": {"cpu": "250m"}}));
    let mut pod = with(pod, "workingDir", json!("/srv/app"));
    pod["spec"]["containers"][0]["args"].as_array_mut().unwrap().extend([json!("zero"), json!("$(NAME)!")]);
    yard.create(pod).await;
    yard.phase("p", "Succeeded").await;
    let log = yard.log("p").await;
    let (first, second) = log.split_once('\n').unwrap();
    assert_eq!(first, "a-9-$(NOT_THERE)-$(X) p p 250 blue s3cret unset anna zero p!");
    assert!(second.trim_end().ends_with("/root/c/srv/app"), "{second}");
    yard.close().await;
}

#[tokio::test]
async fn a_command_replaces_the_program() {
    let yard = Yard::open().await;
    for (name, command, output) in [
        ("own", json!(["sh", "-c", "echo mapped"]), "mapped\n"),
        ("machine", json!(["echo", "of the machine"]), "of the machine\n"),
        ("image", json!(["/opt/in/the/image", "-c", "echo from the image"]), "from the image\n"),
    ] {
        let mut pod = with(script(name, ""), "command", command);
        pod["spec"]["containers"][0].as_object_mut().unwrap().remove("args");
        yard.create(pod).await;
        yard.phase(name, "Succeeded").await;
        assert_eq!(yard.log(name).await, output, "{name}");
    }
    yard.close().await;
}

#[tokio::test]
async fn init_containers_and_sidecars_run_in_their_order() {
    let yard = Yard::open().await;
    let mut pod = script("p", "cat /data/made; test -f /data/sidecar && echo beside");
    pod["spec"]["volumes"] = json!([{"name": "work", "emptyDir": {}}]);
    let mount = json!([{"name": "work", "mountPath": "/data"}]);
    pod["spec"]["containers"][0]["volumeMounts"] = mount.clone();
    pod["spec"]["initContainers"] = json!([
        {"name": "first", "image": "sh", "args": ["echo made > /data/made"], "volumeMounts": mount},
        {
            "name": "beside", "image": "sh", "restartPolicy": "Always", "volumeMounts": mount,
            "args": ["trap 'exit 0' TERM; touch /data/sidecar; while :; do sleep 0.05; done"],
            "startupProbe": {"exec": {"command": ["test", "-f", "/data/sidecar"]}, "periodSeconds": 1},
        },
    ]);
    yard.create(pod).await;
    let done = yard.phase("p", "Succeeded").await;
    assert_eq!(yard.log("p").await, "made\nbeside\n");
    let status = done.status.unwrap();
    // What was said of a condition before it changed is not said any more.
    let stale = status.conditions.iter().flatten().filter(|one| one.message.is_some());
    assert_eq!(stale.count(), 0, "{:?}", status.conditions);
    let beside = status.init_container_statuses.unwrap().remove(1);
    assert_eq!(terminated(beside.state).0, 0);
    yard.close().await;
}

#[tokio::test]
async fn sidecars_serve_the_others_to_their_end() {
    let yard = Yard::open().await;
    let mut pod =
        script("p", "trap 'sleep 0.3; date +%s%N > /data/main; exit 0' TERM; while :; do sleep 0.02; done");
    // A finalizer keeps the pod, so that its end can be seen.
    pod["metadata"]["finalizers"] = json!(["test/keep"]);
    pod["spec"]["volumes"] = json!([{"name": "work", "emptyDir": {}}]);
    let mount = json!([{"name": "work", "mountPath": "/data"}]);
    pod["spec"]["containers"][0]["volumeMounts"] = mount.clone();
    let beside = |name: &str, after: &str| {
        let text = format!(
            "trap 'ls /data/{after} && date > /data/{name} && exit 0; exit 9' TERM; touch /data/up-{name}; \
                            while :; do sleep 0.02; done"
        );
        json!({"name": name, "image": "sh", "restartPolicy": "Always", "volumeMounts": mount, "args": [text],
            "startupProbe": {"exec": {"command": ["test", "-f", format!("/data/up-{name}")]}, "periodSeconds": 1}})
    };
    // Each ends well only after the one that came after it.
    pod["spec"]["initContainers"] = json!([beside("first", "second"), beside("second", "main")]);
    yard.create(pod).await;
    yard.phase("p", "Running").await;
    yard.pods().delete("p", &DeleteParams::default()).await.unwrap();
    let codes = eventually("the end of all", async || {
        let status = yard.pods().get("p").await.unwrap().status?;
        let all = status.init_container_statuses?.into_iter().chain(status.container_statuses?);
        let codes: Option<Vec<i32>> = all.map(|one| Some(one.state?.terminated?.exit_code)).collect();
        codes
    })
    .await;
    assert_eq!(codes, [0, 0, 0]);
    yard.close().await;
}

#[tokio::test]
async fn what_is_not_mapped_is_simulated() {
    let yard = Yard::open().await;
    let mut pod = script("mixed", "exit 7");
    pod["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "d", "image": "nginx"}));
    yard.create(pod).await;
    yard.phase("mixed", "Succeeded").await;
    yard.create(with(script("broken", ""), "image", json!("broken"))).await;
    yard.container("broken", "is not pulled", |status| {
        let waiting = status.state.as_ref().and_then(|state| state.waiting.as_ref());
        waiting.is_some_and(|waiting| waiting.reason.as_deref() == Some("ImagePullBackOff"))
    })
    .await;
    yard.close().await;
}
