//! The way to webhooks: of admission, and of conversion between versions.
//!
//! A call goes to a host over TLS, as a real API server calls it, unless something in this process [serves] that
//! host: then it is a function call, without a socket, a certificate or a thread. That is how operators under test
//! serve their webhooks in virtual time, since a call that takes no real time cannot run into a timeout:
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::{BodyExt, Full};
//! use windlass_drydock::{Drydock, Options};
//!
//! let drydock = Drydock::start(Options::seeded(1)).await?;
//! // What configurations name as service `greeter` of namespace `default`, at port 443.
//! drydock.webhooks().serve("greeter.default.svc", tower::service_fn(|request: Request<Full<Bytes>>| async move {
//!     let review = request.into_body().collect().await?.to_bytes();
//!     Ok::<_, std::convert::Infallible>(Response::new(Full::new(answer(&review))))
//! }));
//! # fn answer(review: &Bytes) -> Bytes { review.clone() }
//! # Ok(()) }
//! ```
//!
//! Calls over sockets run on a runtime of their own, in real time: a paused clock stands still until they are
//! done, so that a test may use sockets too. What is answered is not understood here.
//!
//! [serves]: Webhooks::serve

mod network;
mod verifier;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use tower::ServiceExt as _;

use network::Network;

/// The most that is read of an answer.
const ANSWER_LIMIT: usize = 16 * 1024 * 1024;
const AGENT: &str = "kube-apiserver-admission";

/// Where webhooks are, and the connections to them. Cloning shares it.
#[derive(Clone, Default)]
pub struct Webhooks(Arc<Inner>);

#[derive(Default)]
struct Inner {
    served: RwLock<HashMap<String, Handler>>,
    network: OnceLock<Arc<Network>>,
}

type Handler = Arc<dyn Fn(Request<Full<Bytes>>) -> BoxFuture<'static, Result<Answer, String>> + Send + Sync>;

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Webhooks").finish_non_exhaustive()
    }
}

impl Webhooks {
    /// Answers the calls to a host in this process, from now on; what answered them before no longer does.
    ///
    /// The host is what a configuration's URL has (`127.0.0.1:9443`), or for a service `name.namespace.svc`. Port
    /// 443 may be left out. Neither the service nor a certificate need be there. The request has the path, the
    /// `timeout` and the headers that a real API server sends.
    pub fn serve<S, B>(&self, host: &str, service: S)
    where
        S: tower::Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send,
        S::Error: std::fmt::Display + Send,
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let handler: Handler = Arc::new(move |request| {
            let service = service.clone();
            async move {
                let response = service.oneshot(request).await.map_err(|error| error.to_string())?;
                Answer::read(response).await
            }
            .boxed()
        });
        self.served().insert(with_port(host), handler);
    }

    /// Lets calls to a host take the way over the network again.
    pub fn forget(&self, host: &str) {
        self.served().remove(&with_port(host));
    }

    fn served(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<String, Handler>> {
        self.0.served.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn handler(&self, host: &str) -> Option<Handler> {
        self.0.served.read().unwrap_or_else(PoisonError::into_inner).get(&with_port(host)).map(Arc::clone)
    }

    /// Calls a webhook; the error is in the words of Go's client. `find` says where the host is, when a socket is
    /// needed.
    pub(crate) async fn call(
        &self,
        call: Call,
        find: impl FnOnce() -> Result<Address, String>,
    ) -> Result<Answer, CallError> {
        let url = call.url();
        let failed = |why: String| CallError::Call(format!("Post \"{url}\": {why}"));
        let late = || "context deadline exceeded".to_owned();
        if let Some(handler) = self.handler(&call.host) {
            let answer = tokio::time::timeout(call.timeout, handler(call.request())).await;
            return answer.unwrap_or_else(|_| Err(late())).map_err(failed);
        }
        let network = match self.0.network.get() {
            Some(network) => Arc::clone(network),
            None => {
                let network = Network::start().map_err(|error| failed(error.to_string()))?;
                Arc::clone(self.0.network.get_or_init(|| Arc::new(network)))
            }
        };
        let tls = network.tls(&call.authority).map_err(CallError::Client)?;
        let address = find().map_err(failed)?;
        let timeout = call.timeout;
        // A blocking task keeps a paused clock from moving on while the sockets are waited for.
        let done = tokio::task::spawn_blocking(move || {
            let handle = network.handle();
            handle.block_on(async move {
                tokio::time::timeout(timeout, network.exchange(&call, &address, tls)).await
            })
        });
        match done.await {
            Ok(Ok(answer)) => answer.map_err(failed),
            Ok(Err(_)) => Err(failed(late())),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

fn with_port(host: &str) -> String {
    let port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if port { host.to_owned() } else { format!("{host}:443") }
}

/// A call to be made.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The host as it is written, with its port where that is.
    pub(crate) host: String,
    /// Its path, from the slash on.
    pub(crate) path: String,
    /// The certificates that its own is verified with, in PEM; the machine's where there are none.
    pub(crate) authority: Bytes,
    /// How long it may take.
    pub(crate) timeout: Duration,
    /// What it is sent.
    pub(crate) body: Bytes,
}

/// Where a host is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// An address, or a name that the machine knows.
    pub(crate) host: String,
    /// The port.
    pub(crate) port: u16,
}

impl Call {
    fn target(&self) -> String {
        format!("{}?timeout={}s", self.path, self.timeout.as_secs())
    }

    fn url(&self) -> String {
        format!("https://{}{}", self.host, self.target())
    }

    /// The name that the certificate must be for.
    fn name(&self) -> &str {
        let host = self.host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
        host.map_or(self.host.as_str(), |(name, _)| name).trim_matches(['[', ']'])
    }

    fn request(&self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = Method::POST;
        // What cannot be a path was refused when it was configured.
        *request.uri_mut() = self.target().parse().unwrap_or_default();
        let headers = request.headers_mut();
        if let Ok(host) = self.host.parse() {
            headers.insert(HOST, host);
        }
        let fixed =
            [(USER_AGENT, AGENT), (ACCEPT, "application/json, */*"), (CONTENT_TYPE, "application/json")];
        for (name, value) in fixed {
            headers.insert(name, http::HeaderValue::from_static(value));
        }
        request
    }
}

/// What a webhook answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

impl Answer {
    async fn read<B>(response: Response<B>) -> Result<Self, String>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_LIMIT).collect().await.map_err(|error| error.to_string())?;
        let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        Ok(Self {
            status: parts.status,
            content_type: content_type.unwrap_or("application/json").to_owned(),
            body: body.to_bytes(),
        })
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The configuration is of no use.
    Client(String),
    /// The call failed.
    Call(String),
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn call(host: &str) -> Call {
        Call {
            host: host.into(),
            path: "/x".into(),
            authority: Bytes::new(),
            timeout: Duration::from_secs(3),
            body: Bytes::from_static(b"{}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_is_served_in_process_in_virtual_time() {
        let webhooks = Webhooks::default();
        webhooks.serve(
            "a.b.svc",
            tower::service_fn(|request: Request<Full<Bytes>>| async move {
                let uri = request.uri().to_string();
                if uri.starts_with("/slow") {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                }
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(uri))))
            }),
        );
        let nowhere = || Err("nobody asks".to_owned());
        let answer = webhooks.call(call("a.b.svc:443"), nowhere).await.unwrap();
        assert_eq!(answer.body, "/x?timeout=3s");
        let slow = webhooks.call(Call { path: "/slow".into(), ..call("a.b.svc") }, nowhere).await;
        let late = "Post \"https://a.b.svc/slow?timeout=3s\": context deadline exceeded";
        assert_eq!(slow.unwrap_err(), CallError::Call(late.into()));
        webhooks.forget("a.b.svc");
        let gone = webhooks.call(call("a.b.svc"), nowhere).await;
        let why = "Post \"https://a.b.svc/x?timeout=3s\": nobody asks";
        assert_eq!(gone.unwrap_err(), CallError::Call(why.into()));
    }
}
