//! The HTTP request of a probe or hook. Certificates are not checked, as the kubelet does not.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::super::supervisor::Aborting;

/// Makes the request; any answer from 200 to 399 is a success.
pub(in super::super) async fn get(
    action: &HTTPGetAction,
    container: &Container,
    address: &str,
) -> Result<(), String> {
    let host = action.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(address);
    let port = super::port(&action.port, container)?;
    let secure = action.scheme.as_deref() == Some("HTTPS");
    let path = action.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/");
    let slash = if path.starts_with('/') { "" } else { "/" };
    let scheme = if secure { "https" } else { "http" };
    let url = format!("{scheme}://{host}:{port}{slash}{path}");
    let failed = |why: String| format!("Get {url:?}: {why}");

    let mut request = Request::get(format!("{slash}{path}")).header("user-agent", "kube-probe/1.36");
    let mut named = false;
    for header in action.http_headers.iter().flatten() {
        named |= header.name.eq_ignore_ascii_case("host");
        request = request.header(&header.name, &header.value);
    }
    if !named {
        request = request.header("host", format!("{host}:{port}"));
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| failed(error.to_string()))?;

    let stream = TcpStream::connect((host, port)).await;
    let stream =
        stream.map_err(|error| failed(format!("dial tcp {host}:{port}: {}", super::said(&error))))?;
    let status = if secure {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(error.to_string()))?;
        let connector = TlsConnector::from(Arc::new(trusting().map_err(|error| failed(error.to_string()))?));
        let stream = connector.connect(name, stream).await.map_err(|error| failed(error.to_string()))?;
        send(stream, request).await
    } else {
        send(stream, request).await
    };
    let status = status.map_err(|error| failed(error.to_string()))?;
    if (200..400).contains(&status.as_u16()) {
        return Ok(());
    }
    Err(format!("HTTP probe failed with statuscode: {}", status.as_u16()))
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Empty<Bytes>>,
) -> Result<StatusCode, hyper::Error> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let _connection = Aborting(tokio::spawn(async move {
        // If it fails, the request is told too.
        let _ = connection.await;
    }));
    Ok(sender.send_request(request).await?.status())
}

fn trusting() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(Unchecked(Arc::clone(&provider)));
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Takes any certificate.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
