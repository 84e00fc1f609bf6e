//! The operator's port: `/metrics`, `/healthz`, `/readyz` and `/explain/{kind}/{namespace}/{name}`.
//!
//! Plain HTTP without authentication: keep it on the loopback address, or behind the cluster's own means. Nothing here
//! changes anything.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};

use crate::ObjectName;
use crate::cache::PrimaryKey;
use crate::explain::Explanation;
use crate::metrics::Moment;
use crate::reconcile::Reconciler;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the operator's port serves, without a socket: to be served in one's own way, and for tests.
#[derive(Clone, Default)]
pub struct Port(Arc<OnceLock<Arc<Reconciler>>>);

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The HTTP status.
    pub status: u16,
    /// The type of the content.
    pub content_type: &'static str,
    /// The content.
    pub body: String,
}

impl Page {
    fn plain(status: u16, body: impl Into<String>) -> Self {
        Self { status, content_type: PLAIN, body: body.into() }
    }
}

impl Port {
    /// The page at a path.
    #[must_use]
    pub fn get(&self, path: &str) -> Page {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let Some(reconciler) = self.0.get() else {
            return match parts.as_slice() {
                ["healthz"] => Page::plain(200, "ok\n"),
                _ => Page::plain(503, "starting\n"),
            };
        };
        match parts.as_slice() {
            ["metrics"] => metrics(reconciler),
            ["healthz"] => health(reconciler),
            ["readyz"] => readiness(reconciler),
            ["explain", kind, name] => explain(reconciler, kind, ObjectName::new("", *name)),
            ["explain", kind, namespace, name] => {
                explain(reconciler, kind, ObjectName::new(*namespace, *name))
            }
            _ => Page::plain(404, "try /metrics, /healthz, /readyz or /explain/KIND/NAMESPACE/NAME\n"),
        }
    }

    pub(crate) fn open(&self, reconciler: Arc<Reconciler>) {
        // A port belongs to one runtime, and a runtime runs once.
        let _ = self.0.set(reconciler);
    }

    /// Serves the pages for as long as it is polled.
    pub(crate) async fn serve(self, listener: tokio::net::TcpListener) {
        // Dropping the set ends all of them.
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "failed to take a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            while connections.try_join_next().is_some() {}
            let port = self.clone();
            connections.spawn(async move {
                let service =
                    service_fn(move |request| std::future::ready(Ok::<_, Infallible>(port.answer(&request))));
                let connection = hyper::server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(PATIENCE)
                    .serve_connection(TokioIo::new(stream), service);
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection to the port broke");
                }
            });
        }
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let page = if matches!(*request.method(), Method::GET | Method::HEAD) {
            self.get(request.uri().path())
        } else {
            Page::plain(405, "nothing can be changed here\n")
        };
        let mut response = Response::new(Full::new(Bytes::from(page.body)));
        *response.status_mut() = StatusCode::from_u16(page.status).unwrap_or_default();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, http::HeaderValue::from_static(page.content_type));
        headers.insert(ALLOW, http::HeaderValue::from_static("GET, HEAD"));
        response
    }
}

/// Makes a listener that was bound elsewhere one of this runtime's.
pub(crate) fn adopt(listener: TcpListener) -> std::io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

fn metrics(reconciler: &Reconciler) -> Page {
    let moment = Moment {
        depth: reconciler.queue.depth(),
        role: reconciler.replica.role(),
        explained: reconciler.journal.bytes(),
        kinds: reconciler.cache.survey(),
    };
    Page { status: 200, content_type: OPEN_METRICS, body: reconciler.metrics.text(&moment) }
}

/// Whether a restart would help: not where a watch fails and says so, but where one does nothing at all.
fn health(reconciler: &Reconciler) -> Page {
    let stuck = reconciler.cache.survey().into_iter().filter(|survey| survey.stuck);
    let stuck: String = stuck
        .map(|survey| format!("the watch of {} gives no sign of life\n", survey.kind.plural()))
        .collect();
    if stuck.is_empty() { Page::plain(200, "ok\n") } else { Page::plain(500, stuck) }
}

/// Whether the watches are loaded and get on: for the leader and for a replica that waits.
fn readiness(reconciler: &Reconciler) -> Page {
    let mut lines = String::new();
    for survey in reconciler.cache.survey() {
        match survey.error {
            Some(error) => lines.push_str(&format!("{error}\n")),
            None if !survey.loaded => lines.push_str(&format!("{} are being loaded\n", survey.kind.plural())),
            None => {}
        }
    }
    for trouble in reconciler.webhooks.troubles() {
        lines.push_str(&format!("webhooks: {trouble}\n"));
    }
    if lines.is_empty() {
        Page::plain(200, format!("ok ({})\n", reconciler.replica.role()))
    } else {
        Page::plain(503, lines)
    }
}

/// The record of an object, for each operator that keeps it.
fn explain(reconciler: &Reconciler, kind: &str, name: ObjectName) -> Page {
    let wanted = kind.to_lowercase();
    let mut known = false;
    let mut found = Vec::new();
    for (index, controller) in reconciler.controllers.iter().enumerate() {
        let kind = controller.kind();
        if kind.name().to_lowercase() != wanted && kind.plural() != wanted {
            continue;
        }
        known = true;
        let passes = reconciler.journal.passes(&PrimaryKey { controller: index, name: name.clone() });
        if !passes.is_empty() {
            found.push(Explanation {
                operator: controller.operator().to_owned(),
                kind: kind.name().to_owned(),
                namespace: name.namespace.clone(),
                name: name.name.clone(),
                passes,
            });
        }
    }
    match serde_json::to_string(&found) {
        _ if !known => {
            let kinds: Vec<_> = reconciler.controllers.iter().map(|one| one.kind().name()).collect();
            Page::plain(
                404,
                format!("no operator here keeps a kind {kind:?}; there is: {}\n", kinds.join(", ")),
            )
        }
        _ if found.is_empty() => {
            let role = reconciler.replica.role();
            Page::plain(404, format!("there has been no pass over {kind} {name} in this replica ({role})\n"))
        }
        Ok(body) => Page { status: 200, content_type: JSON, body },
        Err(error) => Page::plain(500, format!("{error}\n")),
    }
}
