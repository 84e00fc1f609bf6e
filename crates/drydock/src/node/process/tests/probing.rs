//! Probes that are really made.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// A server that answers every request with a status that can be changed; it stands for the container's.
async fn server(status: Arc<AtomicU16>) -> u16 {
    // Probes go to the pod's address, as with any kubelet: what listens on 127.0.0.1 alone is not found.
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
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
    let get = json!({"scheme": "HTTPS", "path": "/readyz", "port": port, "host": "127.0.0.1"});
    yard.create(with(idle("p"), "readinessProbe", json!({"httpGet": get, "periodSeconds": 1}))).await;
    yard.container("p", "is ready", |status| status.ready).await;
    yard.close().await;
}

/// A gRPC server that knows the service `checked` and says of it what it is told to.
async fn grpc_server(serving: Arc<AtomicU16>) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = move |request: Request<Incoming>| {
        let serving = Arc::clone(&serving);
        async move {
            assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
            let asked = request.into_body().collect().await?.to_bytes();
            let known = asked.ends_with(b"\x0a\x07checked");
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static(if known { "0" } else { "5" }));
            trailers
                .insert("grpc-message", HeaderValue::from_static(if known { "" } else { "unknown service" }));
            let status = u8::try_from(serving.load(Ordering::Relaxed)).unwrap();
            let content = Bytes::from(if known { vec![0, 0, 0, 0, 2, 8, status] } else { Vec::new() });
            let frames = [Ok::<_, hyper::Error>(Frame::data(content)), Ok(Frame::trailers(trailers))];
            let body = StreamBody::new(futures::stream::iter(frames));
            Ok::<_, hyper::Error>(
                Response::builder().header("content-type", "application/grpc").body(body).unwrap(),
            )
        }
    };
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service_fn(answer.clone()));
            tokio::spawn(connection);
        }
    });
    port
}

#[tokio::test]
async fn a_grpc_service_is_asked_for_its_health() {
    let yard = Yard::open().await;
    let serving = Arc::new(AtomicU16::new(2));
    let port = grpc_server(Arc::clone(&serving)).await;
    let probe = |service: &str| json!({"grpc": {"port": port, "service": service}, "periodSeconds": 1, "failureThreshold": 1});
    yard.create(with(idle("p"), "readinessProbe", probe("checked"))).await;
    let said = "Readiness probe failed: service unhealthy (responded with \"NOT_SERVING\")";
    assert_eq!(yard.event("Unhealthy").await, said);
    serving.store(1, Ordering::Relaxed);
    yard.container("p", "is ready", |status| status.ready).await;
    serving.store(2, Ordering::Relaxed);
    yard.container("p", "is ready no more", |status| !status.ready).await;
    yard.create(with(idle("q"), "readinessProbe", probe("other"))).await;
    eventually("the other to be unknown", async || {
        let events = yard.api::<Event>().list(&ListParams::default()).await.unwrap();
        let said = "Readiness probe failed: error: health rpc failed: unknown service";
        events.items.into_iter().any(|event| event.message.as_deref() == Some(said)).then_some(())
    })
    .await;
    yard.close().await;
}
