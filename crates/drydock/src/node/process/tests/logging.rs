//! `pods/NAME/log`: what a client can ask for, and what it is told when there is nothing.

use std::process::Stdio;

use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use tokio::io::AsyncBufReadExt as _;

use super::*;

fn refused(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} {} {}", status.code, status.reason, status.message),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_log_is_read_in_parts() {
    let yard = Yard::open().await;
    yard.create(script("p", "for i in 1 2 3; do echo line $i; done; printf unfinished")).await;
    yard.phase("p", "Succeeded").await;
    let read = async |params: LogParams| yard.pods().logs("p", &params).await.unwrap();
    let all = LogParams::default;
    assert_eq!(read(all()).await, "line 1\nline 2\nline 3\nunfinished");
    assert_eq!(read(LogParams { tail_lines: Some(2), ..all() }).await, "line 3\nunfinished");
    assert_eq!(read(LogParams { limit_bytes: Some(9), ..all() }).await, "line 1\nli");
    assert_eq!(read(LogParams { follow: true, ..all() }).await, "line 1\nline 2\nline 3\nunfinished");
    assert_eq!(read(LogParams { since_seconds: Some(600), ..all() }).await.lines().count(), 4);
    let soon = yard.drydock.context().now() + jiff::SignedDuration::from_secs(60);
    assert_eq!(read(LogParams { since_time: Some(soon), ..all() }).await, "");
    let dated = read(LogParams { timestamps: true, tail_lines: Some(2), ..all() }).await;
    let (time, rest) = dated.lines().next().unwrap().split_once(' ').unwrap();
    assert!(time.parse::<jiff::Timestamp>().is_ok() && rest == "line 3", "{dated}");
    let error = yard.pods().logs("p", &LogParams { previous: true, ..all() }).await.unwrap_err();
    assert_eq!(refused(error), "400 BadRequest previous terminated container \"c\" in pod \"p\" not found");
    let error = yard.pods().logs("p", &LogParams { tail_lines: Some(-1), ..all() }).await.unwrap_err();
    assert!(refused(error).starts_with("422 Invalid PodLogOptions \"p\" is invalid: tailLines"));
    let other = LogParams { container: Some("x".into()), ..all() };
    let error = yard.pods().logs("p", &other).await.unwrap_err();
    assert_eq!(refused(error), "400 BadRequest container x is not valid for pod p");
    yard.close().await;
}

#[tokio::test]
async fn a_log_is_followed_to_its_end() {
    let yard = Yard::open().await;
    let text = "echo one; echo $WINDLASS_ROOT; while ! test -f /gate/open; do sleep 0.02; done; echo two";
    let mut pod = script("p", text);
    pod["spec"]["volumes"] = json!([{"name": "gate", "emptyDir": {}}]);
    let mut pod = with(pod, "volumeMounts", json!([{"name": "gate", "mountPath": "/gate"}]));
    let gate = json!({
        "name": "d", "image": "sh", "args": ["while ! test -f /gate/go; do sleep 0.02; done; touch /gate/open"],
        "volumeMounts": [{"name": "gate", "mountPath": "/gate"}],
    });
    pod["spec"]["containers"].as_array_mut().unwrap().push(gate);
    yard.create(pod).await;
    let ask = LogParams { container: Some("c".into()), follow: true, ..LogParams::default() };
    yard.phase("p", "Running").await;
    let mut lines = yard.pods().log_stream("p", &ask).await.unwrap().lines();
    assert_eq!(lines.try_next().await.unwrap().unwrap(), "one");
    let root = lines.try_next().await.unwrap().unwrap();
    std::fs::write(format!("{root}/gate/go"), "").unwrap();
    assert_eq!(lines.try_next().await.unwrap().unwrap(), "two");
    assert_eq!(lines.try_next().await.unwrap(), None);
    let error = yard.pods().logs("p", &LogParams::default()).await.unwrap_err();
    let message = "400 BadRequest a container name must be specified for pod p, choose one of: [c d]";
    assert_eq!(refused(error), message);
    yard.close().await;
}

#[tokio::test]
async fn a_waiting_container_has_no_log_and_a_simulated_one_an_empty_one() {
    let yard = Yard::open().await;
    let source = json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "later", "key": "a"}}}]);
    yard.create(with(script("waits", ""), "env", source)).await;
    yard.create(with(script("broken", ""), "image", json!("broken"))).await;
    let message = async |name: &str, message: &str| {
        eventually(message, async || {
            let error = yard.pods().logs(name, &LogParams::default()).await.unwrap_err();
            (refused(error) == format!("400 BadRequest container \"c\" in pod \"{name}\" {message}"))
                .then_some(())
        })
        .await;
    };
    message("waits", "is waiting to start: CreateContainerConfigError").await;
    message("broken", "is waiting to start: trying and failing to pull image").await;
    yard.create(with(script("simulated", ""), "image", json!("nginx"))).await;
    yard.phase("simulated", "Succeeded").await;
    assert_eq!(yard.log("simulated").await, "");
    yard.close().await;
}

#[tokio::test]
async fn the_log_of_the_life_before_is_kept() {
    let yard = Yard::open().await;
    let mut pod =
        script("p", "echo life; test -f /keep/x && exec sleep 1000; touch /keep/x; echo crash; exit 1");
    pod["spec"]["restartPolicy"] = "Always".into();
    pod["spec"]["volumes"] = json!([{"name": "keep", "emptyDir": {}}]);
    yard.create(with(pod, "volumeMounts", json!([{"name": "keep", "mountPath": "/keep"}]))).await;
    yard.container("p", "runs again", |status| {
        status.restart_count == 1 && status.state.as_ref().is_some_and(|state| state.running.is_some())
    })
    .await;
    yard.log_has("p", "life").await;
    assert_eq!(yard.log("p").await, "life\n");
    let before = yard.pods().logs("p", &LogParams { previous: true, ..LogParams::default() }).await.unwrap();
    assert_eq!(before, "life\ncrash\n");
    yard.close().await;
}

#[tokio::test]
async fn kubectl_follows_a_log() {
    if !kubectl_is_there() {
        return;
    }
    let yard = Yard::open().await;
    yard.create(script("p", "echo one; trap 'echo two; exit 0' TERM; while :; do sleep 0.02; done")).await;
    yard.phase("p", "Running").await;
    let file = std::env::temp_dir().join(format!("windlass-kubectl-{}", std::process::id()));
    std::fs::write(&file, &yard.endpoint.kubeconfig).unwrap();
    let mut kubectl = tokio::process::Command::new("kubectl")
        .args(["logs", "-f", "p"])
        .env("KUBECONFIG", &file)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = tokio::io::BufReader::new(kubectl.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "one");
    yard.pods().delete("p", &DeleteParams::default()).await.unwrap();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "two");
    assert_eq!(lines.next_line().await.unwrap(), None);
    assert!(kubectl.wait().await.unwrap().success());
    std::fs::remove_file(file).unwrap();
    yard.close().await;
}

pub(super) fn kubectl_is_there() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join("kubectl").is_file())
}
