//! Verifies a webhook's certificate as Go does, and says in Go's words what is wrong with it.
//!
//! Beyond what webpki does, a certificate may stand for itself where the bundle holds it. Go looks at the dates
//! first, then at the names, then at who signed it.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

const PREFIX: &str = "tls: failed to verify certificate: ";

/// Verifies with the authorities of a bundle.
#[derive(Debug)]
pub(super) struct Verifier {
    bundle: Vec<CertificateDer<'static>>,
    /// `None` where there are no authorities.
    chains: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    pub(super) fn new(
        bundle: Vec<CertificateDer<'static>>,
        roots: RootCertStore,
        provider: &Arc<CryptoProvider>,
    ) -> Self {
        let chains =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build().ok();
        Self { bundle, chains, provider: Arc::clone(provider) }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        check_dates(&parsed, now)?;
        let matches = rustls::client::verify_server_name(&ParsedCertificate::try_from(certificate)?, name);
        if matches.is_err() {
            return Err(refused(wrong_name(&parsed, name)));
        }
        if self.bundle.iter().any(|known| known == certificate) {
            return Ok(ServerCertVerified::assertion());
        }
        let unknown = || refused("x509: certificate signed by unknown authority");
        let chains = self.chains.as_ref().ok_or_else(unknown)?;
        chains.verify_server_cert(certificate, intermediates, name, ocsp, now).map_err(|error| match error {
            Error::InvalidCertificate(
                CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
            ) => refused("x509: certificate specifies an incompatible key usage"),
            Error::InvalidCertificate(_) => unknown(),
            other => other,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn refused(why: impl std::fmt::Display) -> Error {
    Error::General(format!("{PREFIX}{why}"))
}

fn check_dates(certificate: &X509Certificate<'_>, now: UnixTime) -> Result<(), Error> {
    let at = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let text =
        |second: i64| jiff::Timestamp::from_second(second).map(|time| time.to_string()).unwrap_or_default();
    let validity = certificate.validity();
    let (first, last) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    let outside = |side: &str, bound: i64| {
        let (at, bound) = (text(at), text(bound));
        refused(format!(
            "x509: certificate has expired or is not yet valid: current time {at} is {side} {bound}"
        ))
    };
    match at {
        _ if at < first => Err(outside("before", first)),
        _ if at > last => Err(outside("after", last)),
        _ => Ok(()),
    }
}

fn wrong_name(certificate: &X509Certificate<'_>, name: &ServerName<'_>) -> String {
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.map(|found| found.value.general_names.as_slice()).unwrap_or_default();
    let addresses: Vec<String> = names.iter().filter_map(address).collect();
    let hosts: Vec<&str> = names
        .iter()
        .filter_map(|one| match one {
            GeneralName::DNSName(host) => Some(*host),
            _ => None,
        })
        .collect();
    let wanted = name.to_str();
    if matches!(name, ServerName::IpAddress(_)) {
        if addresses.is_empty() {
            return format!(
                "x509: cannot validate certificate for {wanted} because it doesn't contain any IP SANs"
            );
        }
        return format!("x509: certificate is valid for {}, not {wanted}", addresses.join(", "));
    }
    if names.is_empty() && certificate.subject().iter_common_name().next().is_some() {
        return "x509: certificate relies on legacy Common Name field, use SANs instead".to_owned();
    }
    if hosts.is_empty() {
        return format!("x509: certificate is not valid for any names, but wanted to match {wanted}");
    }
    format!("x509: certificate is valid for {}, not {wanted}", hosts.join(", "))
}

fn address(name: &GeneralName<'_>) -> Option<String> {
    let GeneralName::IPAddress(bytes) = name else { return None };
    let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
    let six = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
    four.or_else(|_| six()).ok().map(|address| address.to_string())
}

/// Go's words for a handshake that failed.
pub(super) fn words(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        Some(Error::General(message)) => message.clone(),
        Some(Error::InvalidMessage(_)) => "tls: first record does not look like a TLS handshake".to_owned(),
        Some(Error::AlertReceived(alert)) => {
            let name = format!("{alert:?}");
            let mut words = String::new();
            for char in name.chars() {
                if char.is_uppercase() && !words.is_empty() {
                    words.push(' ');
                }
                words.extend(char.to_lowercase());
            }
            format!("remote error: tls: {words}")
        }
        Some(other) => format!("tls: {other}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => error.to_string(),
    }
}
