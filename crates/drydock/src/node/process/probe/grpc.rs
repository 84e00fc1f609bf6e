//! The gRPC health check of a probe: `grpc.health.v1.Health/Check`, without TLS, as the kubelet makes it.

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::GRPCAction;
use tokio::net::TcpStream;

use super::super::supervisor::Aborting;

/// The status of a service that is well.
const SERVING: u64 = 1;
/// What a server answers that has no health service.
const UNIMPLEMENTED: &str = "12";

/// Asks for the health of the service; that it serves is a success.
pub(super) async fn check(action: &GRPCAction, address: &str) -> Result<(), String> {
    let place = format!("{address}:{}", action.port);
    let unreachable = |why: String| format!("error: health rpc probe failed: {place}: {why}");
    let stream = TcpStream::connect(&place).await;
    let stream = stream.map_err(|error| unreachable(error.to_string()))?;
    let connected = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.map_err(|error| unreachable(error.to_string()))?;
    let _connection = Aborting(tokio::spawn(async move {
        // If it fails, the request is told too.
        let _ = connection.await;
    }));
    let request = Request::post(format!("http://{place}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("user-agent", "kube-probe/1.36 grpc")
        .body(Full::new(message(action.service.as_deref().unwrap_or_default())))
        .map_err(|error| unreachable(error.to_string()))?;
    let answer = sender.send_request(request).await.map_err(|error| unreachable(error.to_string()))?;
    let (head, body) = answer.into_parts();
    let body = body.collect().await.map_err(|error| unreachable(error.to_string()))?;
    // An answer without a message has its status in the head.
    let trailers = body.trailers().cloned().unwrap_or_default();
    let status = text(&trailers, "grpc-status").or_else(|| text(&head.headers, "grpc-status"));
    let said = text(&trailers, "grpc-message").or_else(|| text(&head.headers, "grpc-message"));
    match status.as_deref() {
        Some("0") => {}
        Some(UNIMPLEMENTED) => {
            return Err(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health)"
                    .to_owned(),
            );
        }
        _ => {
            let said = said.unwrap_or_else(|| format!("HTTP status {}", head.status.as_u16()));
            return Err(format!("error: health rpc failed: {said}"));
        }
    }
    match serving(&body.to_bytes()) {
        Some(SERVING) => Ok(()),
        Some(other) => Err(format!("service unhealthy (responded with {:?})", name_of(other))),
        None => Err("error: health rpc failed: the answer is no HealthCheckResponse".to_owned()),
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned)
}

/// A `HealthCheckRequest`, in the frame of a gRPC message: not compressed, its length, field 1 as text.
fn message(service: &str) -> Bytes {
    let mut content = Vec::new();
    if !service.is_empty() {
        content.push(0x0a);
        content.extend(varint(service.len() as u64));
        content.extend_from_slice(service.as_bytes());
    }
    let length = u32::try_from(content.len()).unwrap_or_default();
    let mut frame = vec![0];
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend(content);
    frame.into()
}

/// The status in the frame of a `HealthCheckResponse`: field 1, which is 0 where it is left out.
fn serving(frame: &[u8]) -> Option<u64> {
    let (head, content) = frame.split_at_checked(5)?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    match content.get(..length)? {
        [] => Some(0),
        [0x08, value, ..] => Some(u64::from(*value)),
        _ => None,
    }
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn name_of(status: u64) -> &'static str {
    match status {
        0 => "UNKNOWN",
        2 => "NOT_SERVING",
        3 => "SERVICE_UNKNOWN",
        _ => "an unknown status",
    }
}
