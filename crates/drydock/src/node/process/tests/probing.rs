//! Probes that are really made.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// A server that answers every request with a status that can be changed; it stands for the container's.
async fn server(status: Arc<AtomicU16>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer =
                format!("HTTP/1.1 {} X\r\ncontent-length: 0\r\n\r\n", status.load(Ordering::Relaxed));
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    port
}

fn idle(name: &str) -> Value {
    let mut pod = script(name, "trap 'exit 0' TERM; while :; do sleep 0.05; done");
    pod["spec"]["restartPolicy"] = "Always".into();
    pod
}

#[tokio::test]
async fn readiness_follows_the_answers() {
    let yard = Yard::open().await;
    let status = Arc::new(AtomicU16::new(500));
    let port = server(Arc::clone(&status)).await;
    let pod = with(idle("p"), "ports", json!([{"name": "web", "containerPort": port}]));
    let probe =
        json!({"httpGet": {"path": "/health", "port": "web"}, "periodSeconds": 1, "failureThreshold": 1});
    yard.create(with(pod, "readinessProbe", probe)).await;
    assert_eq!(
        yard.event("Unhealthy").await,
        "Readiness probe failed: HTTP probe failed with statuscode: 500"
    );
    let now = yard.container("p", "is there", |_| true).await;
    assert!(!now.ready && now.started == Some(true));
    status.store(204, Ordering::Relaxed);
    yard.container("p", "is ready", |status| status.ready).await;
    status.store(503, Ordering::Relaxed);
    yard.container("p", "is ready no more", |status| !status.ready).await;
    yard.close().await;
}

#[tokio::test]
async fn a_dead_container_is_restarted() {
    let yard = Yard::open().await;
    let mut pod = idle("p");
    pod["spec"]["volumes"] = json!([{"name": "keep", "emptyDir": {}}]);
    let pod = with(pod, "volumeMounts", json!([{"name": "keep", "mountPath": "/keep"}]));
    // It fails once, in the first life.
    let command =
        json!(["sh", "-c", "test -f /keep/failed || { touch /keep/failed; echo no pulse; exit 1; }"]);
    let probe = json!({"exec": {"command": command}, "periodSeconds": 1, "failureThreshold": 1});
    yard.create(with(pod, "livenessProbe", probe)).await;
    yard.container("p", "runs again", |status| {
        status.restart_count == 1 && status.state.as_ref().is_some_and(|state| state.running.is_some())
    })
    .await;
    assert_eq!(yard.event("Unhealthy").await, "Liveness probe failed: no pulse\n");
    assert_eq!(yard.event("Killing").await, "Container c failed liveness probe, will be restarted");
    yard.close().await;
}

#[tokio::test]
async fn nothing_is_ready_before_it_has_started() {
    let yard = Yard::open().await;
    let port = server(Arc::new(AtomicU16::new(200))).await;
    let pod = with(idle("p"), "readinessProbe", json!({"tcpSocket": {"port": port}, "periodSeconds": 1}));
    let command = json!(["test", "-f", "/tmp/windlass-never"]);
    let probe = json!({"exec": {"command": command}, "periodSeconds": 1, "failureThreshold": 2});
    yard.create(with(pod, "startupProbe", probe)).await;
    let status = yard.container("p", "runs", |status| status.started == Some(false)).await;
    assert!(!status.ready);
    assert_eq!(yard.event("Killing").await, "Container c failed startup probe, will be restarted");
    yard.close().await;
}

#[tokio::test]
async fn a_certificate_is_not_checked() {
    let yard = Yard::open().await;
    // The drydock's own endpoint has one that nobody here knows.
    let port = yard.endpoint.address.port();
    let get = json!({"scheme": "HTTPS", "path": "/readyz", "port": port});
    yard.create(with(idle("p"), "readinessProbe", json!({"httpGet": get, "periodSeconds": 1}))).await;
    yard.container("p", "is ready", |status| status.ready).await;
    yard.close().await;
}
