//! Any bytes as a request: the server must answer, and in JSON, YAML or plain text.

use std::cell::LazyCell;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use windlass_drydock::controllers::Selection;
use windlass_drydock::{Drydock, Options, User};

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const TYPES: [&str; 7] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

thread_local! {
    static SERVER: LazyCell<(tokio::runtime::Runtime, Drydock)> = LazyCell::new(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let options = Options { controllers: Selection::none(), ..Options::seeded(1) };
        let drydock = runtime.block_on(Drydock::start(options)).expect("a drydock starts");
        (runtime, drydock)
    });
}

/// The first byte chooses the method, the second the content type, the rest up to a zero byte is the path and the
/// query, and what follows is the body.
pub(crate) fn request(bytes: &[u8]) {
    let [method, kind, rest @ ..] = bytes else { return };
    let (path, body) = match rest.iter().position(|byte| *byte == 0) {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, &[][..]),
    };
    let path = String::from_utf8_lossy(path);
    let path = if path.contains("watch") { format!("{path}&timeoutSeconds=0") } else { path.into_owned() };
    let request = http::Request::builder()
        .method(METHODS[usize::from(*method) % METHODS.len()])
        .uri(format!("/{path}"))
        .header("content-type", TYPES[usize::from(*kind) % TYPES.len()])
        .header("user-agent", "fuzz");
    // What is no request in HTTP never reaches the server.
    let Ok(mut request) = request.body(Full::new(Bytes::copy_from_slice(body))) else { return };
    request.extensions_mut().insert(User::master("admin"));
    SERVER.with(|started| {
        let (runtime, drydock) = &**started;
        runtime.block_on(async {
            let answer = drydock.server().handle(request).await;
            let status = answer.status();
            let body = tokio::time::timeout(Duration::from_secs(5), answer.into_body().collect()).await;
            let body = body.unwrap_or_else(|_| panic!("/{path} is answered without end"));
            let body = body.expect("an answer can be read").to_bytes();
            assert!(status.as_u16() < 600 && std::str::from_utf8(&body).is_ok(), "/{path}: {status}");
        });
    });
}
