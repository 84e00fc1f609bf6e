//! Serves a drydock over TLS on loopback, and writes the kubeconfig that reaches it.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::Drydock;
use crate::api::auth::User;
use crate::api::server::Server;
use crate::pki::{self, PkiError};

/// Why a drydock could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Its certificates.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// TLS could not be set up.
    #[error("failed to set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// Clients' certificates could not be checked.
    #[error("failed to set up TLS for clients: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// The port could not be had.
    #[error("failed to listen on {address}: {source}; choose another port with --port")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// A drydock that can be reached over TLS. Dropping it stops serving.
#[derive(Debug)]
pub struct Endpoint {
    /// Where it listens.
    pub address: SocketAddr,
    /// A kubeconfig of a user that may do everything.
    pub kubeconfig: String,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves a drydock on a port of 127.0.0.1; port 0 takes any free one.
///
/// # Errors
/// When the port cannot be had.
pub async fn serve(drydock: &Drydock, port: u16) -> Result<Endpoint, ServeError> {
    let authority = drydock.authority();
    let (certificate, key) = authority.server()?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate())?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let failed = |source| ServeError::Listen { address: wanted, source };
    let listener = TcpListener::bind(wanted).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let identity = authority.client(&User::master("kubernetes-admin"))?;
    let kubeconfig = kubeconfig(address, &authority.certificate_pem(), &identity);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = drydock.server().clone();
    let task = tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => drop(tokio::spawn(connection(acceptor.clone(), stream, server.clone()))),
                // Out of file descriptors, say: the next connection may fare better.
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::task::yield_now().await;
                }
            }
        }
    });
    drydock.api_address().set(address);
    Ok(Endpoint { address, kubeconfig, task })
}

async fn connection(acceptor: TlsAcceptor, stream: TcpStream, server: Server) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY");
    }
    let stream = match acceptor.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!(%error, "a TLS handshake failed");
            return;
        }
    };
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let user = certificate.and_then(pki::user_of).map(Arc::new);
    let server = Arc::new(server);
    let service = hyper::service::service_fn(move |mut request: Request<hyper::body::Incoming>| {
        // Without a certificate it may still have a token.
        if let Some(user) = &user {
            request.extensions_mut().insert(Arc::clone(user));
        }
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(server.handle(request).await) }
    });
    let served = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

fn kubeconfig(address: SocketAddr, authority: &str, identity: &pki::Identity) -> String {
    let encode = |text: &str| STANDARD.encode(text);
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: windlass\n  cluster:\n    server: https://{address}\n    certificate-authority-data: {}\n\
         users:\n\
         - name: windlass-admin\n  user:\n    client-certificate-data: {}\n    client-key-data: {}\n\
         contexts:\n\
         - name: windlass\n  context:\n    cluster: windlass\n    user: windlass-admin\n\
         current-context: windlass\n",
        encode(authority),
        encode(&identity.certificate),
        encode(&identity.key),
    )
}
