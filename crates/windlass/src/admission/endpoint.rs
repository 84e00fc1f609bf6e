//! Serves the reviews over TLS: `/mutate`, `/validate` and `/convert`, each followed by the operator and the resource.
//!
//! Whoever reaches the port may ask, so everything is bounded: connections, requests at once, the size of a body, the
//! time to send it. An answer holds nothing but what was sent and what the operator's code says of it. Each connection has
//! the certificate that was the newest when it was made.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::certificates::{Certificate, CertificateError, provider};
use super::{CONVERT, MUTATE, VALIDATE};
use crate::Operator;

/// The largest review of one write: two objects of the largest size that an API server takes, and some.
const LARGEST_WRITE: usize = 8 << 20;
/// The largest review of a conversion: a page of a list.
const LARGEST_CONVERSION: usize = 64 << 20;
/// How many of them are read at once.
const WRITES: usize = 16;
const CONVERSIONS: usize = 2;
/// How many connections there may be at once; an API server has a handful.
const CONNECTIONS: usize = 256;
/// How long a client may take for a handshake, for the head of a request, and for its body.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection lasts: the next one has the newest certificate, and nobody keeps a place for ever.
const LASTING: Duration = Duration::from_secs(600);
/// How long what is under way may take when serving ends.
const DRAIN: Duration = Duration::from_secs(5);

/// What a process' webhooks answer, without a socket: to be served in one's own way, and for tests.
#[derive(Clone, Default)]
pub struct Endpoint(Arc<Inner>);

struct Inner {
    /// Nothing until the runtime runs.
    open: OnceLock<Open>,
    current: Arc<Current>,
    has_certificate: watch::Sender<bool>,
    stopping: watch::Sender<bool>,
    connections: Arc<Semaphore>,
    writes: Semaphore,
    conversions: Semaphore,
    troubles: Mutex<Troubles>,
}

struct Open {
    operators: Vec<Operator>,
    acceptor: TlsAcceptor,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            open: OnceLock::new(),
            current: Arc::default(),
            has_certificate: watch::Sender::new(false),
            stopping: watch::Sender::new(false),
            connections: Arc::new(Semaphore::new(CONNECTIONS)),
            writes: Semaphore::new(WRITES),
            conversions: Semaphore::new(CONVERSIONS),
            troubles: Mutex::default(),
        }
    }
}

/// What keeps the webhooks from working, by who found it.
#[derive(Default)]
struct Troubles {
    certificates: Option<String>,
    registration: Option<String>,
}

/// Who found a trouble.
#[derive(Clone, Copy)]
pub(crate) enum Trouble {
    Certificates,
    Registration,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

impl Endpoint {
    pub(crate) fn open(&self, operators: Vec<Operator>) -> Result<(), CertificateError> {
        let current = Arc::clone(&self.0.current) as Arc<dyn ResolvesServerCert>;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(current);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // An endpoint belongs to one runtime, and a runtime runs once.
        let _ = self.0.open.set(Open { operators, acceptor: TlsAcceptor::from(Arc::new(config)) });
        Ok(())
    }

    /// Answers a request to a path: the HTTP status and the body.
    #[must_use]
    pub fn answer(&self, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let Some((call, operator)) = self.find(path) else {
            return (404, b"try /mutate, /validate or /convert, with OPERATOR/RESOURCE.GROUP\n".to_vec());
        };
        let review: Value = match serde_json::from_slice(body) {
            Ok(review) => review,
            Err(error) => return (400, format!("not a review: {error}\n").into_bytes()),
        };
        let (kind, answer) = match call {
            Call::Mutate => ("AdmissionReview", Operator::mutate as fn(&Operator, &Value) -> Value),
            Call::Validate => ("AdmissionReview", Operator::validate as _),
            Call::Convert => ("ConversionReview", Operator::convert as _),
        };
        if review["kind"] != kind || !review["request"]["uid"].is_string() {
            return (400, format!("not a request for a {kind}\n").into_bytes());
        }
        match serde_json::to_vec(&answer(operator, &review)) {
            Ok(answer) => (200, answer),
            Err(error) => (500, format!("failed to write the answer: {error}\n").into_bytes()),
        }
    }

    /// Serves one connection: TLS with the newest certificate, then HTTP/1.1 or HTTP/2. Where there is no certificate yet,
    /// it waits for one.
    pub async fn connection(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let mut ready = self.0.has_certificate.subscribe();
        if ready.wait_for(|ready| *ready).await.is_err() {
            return;
        }
        let Some(open) = self.0.open.get() else { return };
        let stream = match timeout(PATIENCE, open.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake of a webhook failed"),
            Err(_) => return tracing::debug!("a client took too long for its TLS handshake"),
        };
        let endpoint = self.clone();
        let service = service_fn(move |request| {
            let endpoint = endpoint.clone();
            async move { Ok::<_, Infallible>(endpoint.respond(request).await) }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
        builder.http2().timer(TokioTimer::new()).keep_alive_interval(Some(3 * PATIENCE));
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let mut stopping = self.0.stopping.subscribe();
        let ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            _ = stopping.wait_for(|stop| *stop) => None,
            () = tokio::time::sleep(LASTING) => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                connection.as_mut().graceful_shutdown();
                timeout(3 * PATIENCE, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection to the webhooks broke");
        }
    }

    /// Serves connections until [`Endpoint::stop`], and then what is under way.
    pub(crate) async fn serve(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        let mut stopping = self.0.stopping.subscribe();
        loop {
            let free = Arc::clone(&self.0.connections).acquire_owned();
            let accepted = tokio::select! {
                _ = stopping.wait_for(|stop| *stop) => break,
                accepted = async { (free.await, listener.accept().await) } => accepted,
            };
            while connections.try_join_next().is_some() {}
            match accepted {
                (Ok(place), Ok((stream, _))) => {
                    // Small answers should not wait for more.
                    let _ = stream.set_nodelay(true);
                    let endpoint = self.clone();
                    connections.spawn(async move {
                        endpoint.connection(stream).await;
                        drop(place);
                    });
                }
                (_, Err(error)) => {
                    tracing::warn!(%error, "failed to take a connection to the webhooks");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                (Err(_), _) => break,
            }
        }
        drop(listener);
        let _ = timeout(DRAIN, async { while connections.join_next().await.is_some() {} }).await;
    }

    /// Has [`Endpoint::serve`] end.
    pub(crate) fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    /// Serves new connections with this certificate.
    pub(crate) fn present(&self, certificate: &Certificate) -> Result<(), CertificateError> {
        self.0.current.set(certificate.certified(&provider())?);
        self.0.has_certificate.send_if_modified(|ready| !std::mem::replace(ready, true));
        Ok(())
    }

    /// Notes what keeps the webhooks from working, or that it does no more.
    pub(crate) fn note(&self, trouble: Trouble, what: Option<String>) {
        let mut troubles = self.0.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        let place = match trouble {
            Trouble::Certificates => &mut troubles.certificates,
            Trouble::Registration => &mut troubles.registration,
        };
        if let Some(what) = &what
            && place.as_ref() != Some(what)
        {
            tracing::error!("webhooks: {what}");
        }
        *place = what;
    }

    /// What keeps the webhooks from working.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let troubles = self.0.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        [&troubles.certificates, &troubles.registration].into_iter().flatten().cloned().collect()
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let plain =
            |status: u16, text: String| response(status, text.into_bytes(), "text/plain; charset=utf-8");
        if request.method() != Method::POST {
            return plain(405, "reviews are posted here\n".into());
        }
        let path = request.uri().path().to_owned();
        let Some((call, _)) = self.find(&path) else {
            let (status, text) = self.answer(&path, b"");
            return response(status, text, "text/plain; charset=utf-8");
        };
        let (turns, largest) = match call {
            Call::Convert => (&self.0.conversions, LARGEST_CONVERSION),
            Call::Mutate | Call::Validate => (&self.0.writes, LARGEST_WRITE),
        };
        let read = async {
            let turn = turns.acquire().await;
            let body = Limited::new(request.into_body(), largest).collect().await;
            (turn, body.map(|body| body.to_bytes()))
        };
        let (_turn, body) = match timeout(PATIENCE, read).await {
            Ok((turn, Ok(body))) => (turn, body),
            Ok((_, Err(error))) if error.is::<LengthLimitError>() => {
                return plain(413, format!("a review has at most {largest} bytes\n"));
            }
            Ok((_, Err(error))) => return plain(400, format!("failed to read the review: {error}\n")),
            Err(_) => return plain(408, "the review took too long to arrive\n".into()),
        };
        // A page of a list takes a while, and would hold up everything else.
        let endpoint = self.clone();
        let answered = if matches!(call, Call::Convert) {
            tokio::task::spawn_blocking(move || endpoint.answer(&path, &body)).await
        } else {
            Ok(self.answer(&path, &body))
        };
        match answered {
            Ok((200, answer)) => response(200, answer, "application/json"),
            Ok((status, text)) => response(status, text, "text/plain; charset=utf-8"),
            Err(error) => plain(500, format!("failed to answer: {error}\n")),
        }
    }

    /// What a path asks for, of whom.
    fn find(&self, path: &str) -> Option<(Call, &Operator)> {
        let calls = [(MUTATE, Call::Mutate), (VALIDATE, Call::Validate), (CONVERT, Call::Convert)];
        let (rest, call) =
            calls.into_iter().find_map(|(prefix, call)| Some((path.strip_prefix(prefix)?, call)))?;
        let (operator, resource) = rest.strip_prefix('/')?.split_once('/')?;
        let operators = &self.0.open.get()?.operators;
        let operator = operators.iter().find(|one| one.name() == operator)?;
        let known = operator.controllers().iter().any(|one| {
            let kind = one.kind();
            resource.strip_prefix(kind.plural()).and_then(|rest| rest.strip_prefix('.')) == Some(kind.group())
        });
        known.then_some((call, operator))
    }
}

#[derive(Clone, Copy)]
enum Call {
    Mutate,
    Validate,
    Convert,
}

fn response(status: u16, body: Vec<u8>, content_type: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The certificate for new connections.
#[derive(Debug, Default)]
struct Current(RwLock<Option<Arc<CertifiedKey>>>);

impl Current {
    fn set(&self, key: CertifiedKey) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(key));
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
