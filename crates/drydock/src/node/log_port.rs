//! The port at which a real kube-apiserver asks the node for logs, as it asks a kubelet: `kubectl logs`.
//!
//! It is on 127.0.0.1 only, over TLS with a certificate that nobody has to know. Whoever can reach it can read the logs
//! of the pods that run here; it has nothing else. In the drydock itself the server reads logs without it.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::Pod;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use windlass_machinery::Context;

use crate::api::log;
use crate::api::request::Query;
use crate::controllers::informer::ObjectKey;
use crate::controllers::informers::Handle;
use crate::logs::Logs;
use crate::pki::Authority;

/// What answers.
#[derive(Clone)]
pub(super) struct LogPort {
    pub(super) pods: Handle<Pod>,
    pub(super) logs: Logs,
    pub(super) context: Context,
}

type Answer = Response<StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>;

impl LogPort {
    /// Takes a free port; what is returned with it serves for as long as it is polled.
    pub(super) async fn open(self) -> std::io::Result<(u16, impl Future<Output = ()> + Send)> {
        let acceptor = acceptor(&self.context).map_err(std::io::Error::other)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let number = listener.local_addr()?.port();
        let serving = async move {
            // Dropping the set ends all of them.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let (acceptor, port) = (acceptor.clone(), self.clone());
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = hyper::service::service_fn(move |request| {
                        std::future::ready(Ok::<_, Infallible>(port.answer(&request)))
                    });
                    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
                        tracing::debug!(%error, "a reader of logs left early");
                    }
                });
            }
        };
        Ok((number, serving))
    }

    fn answer(&self, request: &Request<Incoming>) -> Answer {
        let parts: Vec<&str> = request.uri().path().split('/').filter(|part| !part.is_empty()).collect();
        let ["containerLogs", namespace, name, container] = parts.as_slice() else {
            return told(StatusCode::NOT_FOUND, "this node only has logs\n".into());
        };
        let Some(pod) = self.pods.get(&ObjectKey::new(namespace, name)) else {
            return told(StatusCode::NOT_FOUND, format!("pod {name:?} does not exist\n"));
        };
        let mut query = Query::parse(request.uri().query().unwrap_or_default());
        query.push("container", container);
        let pod = serde_json::to_value(&*pod).unwrap_or_default();
        match log::of_pod(&pod, name, &query, &self.logs, self.context.now()) {
            Ok(Some(lines)) => {
                Response::new(StreamBody::new(lines.map(|line| Ok(Frame::data(line))).boxed()))
            }
            Ok(None) => told(StatusCode::NO_CONTENT, String::new()),
            Err(failure) => told(failure.code, failure.message),
        }
    }
}

fn told(code: StatusCode, text: String) -> Answer {
    let frames = stream::iter([Ok(Frame::data(Bytes::from(text)))]);
    let mut answer = Response::new(StreamBody::new(frames.boxed()));
    *answer.status_mut() = code;
    answer
}

/// TLS with a certificate of an authority that is made for it.
fn acceptor(context: &Context) -> Result<TlsAcceptor, Box<dyn std::error::Error + Send + Sync>> {
    let (certificate, key) = Authority::new(context)?.server()?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
