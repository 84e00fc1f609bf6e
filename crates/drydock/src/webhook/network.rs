//! Calls over sockets: HTTP/1.1 on TLS, as the real server's, with connections that are used again.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio::runtime::{Handle, Runtime};
use tokio_rustls::TlsConnector;

use super::verifier::{self, Verifier};
use super::{Address, Answer, Call};

/// How many idle connections to one webhook are kept.
const IDLE: usize = 8;
/// How many sets of authorities are kept ready.
const AUTHORITIES: usize = 64;

/// Sockets, and a runtime for them whose clock is the machine's.
pub(super) struct Network {
    runtime: Option<Runtime>,
    handle: Handle,
    idle: Mutex<HashMap<Place, Vec<SendRequest<Full<Bytes>>>>>,
    authorities: Mutex<HashMap<Bytes, Arc<ClientConfig>>>,
}

/// What makes a connection fit for a call: an address, the name in its certificate, and who signed that.
type Place = (String, u16, String, Bytes);

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Network {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("webhooks")
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Some(runtime), handle, idle: Mutex::default(), authorities: Mutex::default() })
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// What verifies certificates of these authorities.
    pub(super) fn tls(&self, pem: &Bytes) -> Result<Arc<ClientConfig>, String> {
        let mut known = lock(&self.authorities);
        if let Some(config) = known.get(pem) {
            return Ok(Arc::clone(config));
        }
        if known.len() >= AUTHORITIES {
            known.clear();
        }
        let config = Arc::new(config(pem)?);
        known.insert(pem.clone(), Arc::clone(&config));
        Ok(config)
    }

    /// Sends a call and reads the answer.
    pub(super) async fn exchange(
        &self,
        call: &Call,
        address: &Address,
        tls: Arc<ClientConfig>,
    ) -> Result<Answer, String> {
        let place: Place =
            (address.host.clone(), address.port, call.name().to_owned(), call.authority.clone());
        let mut request = call.request();
        while let Some(mut connection) = self.take(&place) {
            if connection.ready().await.is_err() {
                continue;
            }
            match connection.try_send_request(request).await {
                Ok(response) => return self.finish(place, connection, response).await,
                // The webhook had closed the connection: it never saw the request.
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(words(&failed.into_error())),
                },
            }
        }
        let mut connection = connect(call, address, tls).await?;
        let response = connection.send_request(request).await.map_err(|error| words(&error))?;
        self.finish(place, connection, response).await
    }

    fn take(&self, place: &Place) -> Option<SendRequest<Full<Bytes>>> {
        lock(&self.idle).get_mut(place)?.pop()
    }

    async fn finish(
        &self,
        place: Place,
        connection: SendRequest<Full<Bytes>>,
        response: http::Response<hyper::body::Incoming>,
    ) -> Result<Answer, String> {
        let answer = Answer::read(response).await?;
        let mut idle = lock(&self.idle);
        idle.retain(|_, connections| {
            connections.retain(|connection| !connection.is_closed());
            !connections.is_empty()
        });
        let connections = idle.entry(place).or_default();
        if connections.len() < IDLE && !connection.is_closed() {
            connections.push(connection);
        }
        Ok(answer)
    }
}

async fn connect(
    call: &Call,
    address: &Address,
    tls: Arc<ClientConfig>,
) -> Result<SendRequest<Full<Bytes>>, String> {
    let Address { host, port } = address;
    let mut found = tokio::net::lookup_host((host.as_str(), *port))
        .await
        .map_err(|_| format!("dial tcp: lookup {host}: no such host"))?
        .collect::<Vec<_>>();
    // The loopback of pods is that of IPv4.
    found.sort_by_key(std::net::SocketAddr::is_ipv6);
    let mut stream = Err(format!("dial tcp: lookup {host}: no such host"));
    for one in found {
        stream =
            TcpStream::connect(one).await.map_err(|error| format!("dial tcp {one}: {}", dialled(&error)));
        if stream.is_ok() {
            break;
        }
    }
    let stream = stream?;
    let _ = stream.set_nodelay(true);
    let name = ServerName::try_from(call.name().to_owned()).map_err(|error| error.to_string())?;
    let stream =
        TlsConnector::from(tls).connect(name, stream).await.map_err(|error| verifier::words(&error))?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| words(&error))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a webhook ended early");
        }
    });
    Ok(sender)
}

fn dialled(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}

/// Go's words for a connection that did not hold.
fn words(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_closed() {
        return "EOF".to_owned();
    }
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

fn config(pem: &Bytes) -> Result<ClientConfig, String> {
    let certificates: Vec<CertificateDer<'static>> = if pem.is_empty() {
        rustls_native_certs::load_native_certs().certs
    } else {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        match read {
            Ok(certificates) if !certificates.is_empty() => certificates,
            _ => {
                return Err("unable to load root certificates: unable to parse bytes as PEM block".to_owned());
            }
        }
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new(certificates, roots, &provider);
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(config)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
