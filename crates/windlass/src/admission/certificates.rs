//! The certificates that webhooks are served with: made by the operator itself, and made anew in good time.
//!
//! Each serving certificate has an authority of its own, whose key is thrown away as soon as it has signed: nothing that
//! could sign another is ever kept. Keys come from the machine's own randomness, not from a seed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

/// How long a certificate is valid.
const VALID: SignedDuration = SignedDuration::from_hours(24 * 90);
/// How long before its end its successor is made.
const EARLY: SignedDuration = SignedDuration::from_hours(24 * 30);
/// How long before it was made it is valid: clocks differ.
const BACKDATED: SignedDuration = SignedDuration::from_hours(24);
/// The common name of all of them; nobody looks at it.
const COMMON_NAME: &str = "windlass webhooks";

/// What is wrong with a certificate, or why it could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error("failed to make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("failed to make a certificate: its dates do not exist")]
    Dates,
    #[error("{0} is not a certificate or key in PEM")]
    Garbage(&'static str),
    #[error("{0}")]
    Unusable(#[from] rustls::Error),
    #[error("{0:?} cannot be the name of a server")]
    Name(String),
}

/// A serving certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(crate) certificate: String,
    pub(crate) key: String,
    /// When it ends.
    pub(crate) ends: Timestamp,
}

/// The key is nobody's business.
impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("ends", &self.ends).finish_non_exhaustive()
    }
}

impl Certificate {
    /// A certificate for a server of these names, valid from now, and the authority that clients have to trust.
    pub(crate) fn make(names: &[String], now: Timestamp) -> Result<(Self, String), CertificateError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, COMMON_NAME);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        dated(&mut params, now)?;
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let mut params = CertificateParams::new(names.to_vec())?;
        params.distinguished_name.push(DnType::CommonName, COMMON_NAME);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        dated(&mut params, now)?;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?;
        let made = Self::read(certificate.pem(), key.serialize_pem())?;
        Ok((made, authority.pem()))
    }

    /// A certificate and its key as they were kept.
    pub(crate) fn read(certificate: String, key: String) -> Result<Self, CertificateError> {
        let der = der(&certificate)?;
        let garbage = || CertificateError::Garbage("the certificate");
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).map_err(|_| garbage())?;
        let ends = parsed.validity().not_after.timestamp();
        let ends = Timestamp::from_second(ends).map_err(|_| garbage())?;
        Ok(Self { certificate, key, ends })
    }

    /// When its successor is to be made.
    pub(crate) fn due(&self) -> Timestamp {
        self.ends - EARLY
    }

    /// In the form that TLS wants; an error if certificate and key do not belong together.
    pub(crate) fn certified(&self, provider: &CryptoProvider) -> Result<CertifiedKey, CertificateError> {
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes());
        let key = key.map_err(|_| CertificateError::Garbage("the key"))?;
        Ok(CertifiedKey::from_der(vec![der(&self.certificate)?], key, provider)?)
    }

    /// Whether a client that trusts these authorities believes it now to be the server of each of these names.
    pub(crate) fn check(
        &self,
        names: &[String],
        authorities: &[String],
        now: Timestamp,
    ) -> Result<(), CertificateError> {
        let provider = provider();
        self.certified(&provider)?;
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(der(authority)?)?;
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let verifier = verifier.map_err(|_| CertificateError::Garbage("the authority"))?;
        let certificate = der(&self.certificate)?;
        let now = UnixTime::since_unix_epoch(since_epoch(now)?);
        for name in names {
            let server = ServerName::try_from(name.as_str());
            let server = server.map_err(|_| CertificateError::Name(name.clone()))?;
            verifier.verify_server_cert(&certificate, &[], &server, &[], now)?;
        }
        Ok(())
    }
}

/// The cryptography that is used throughout.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificates of a bundle, one by one; those that are none are left out.
pub(crate) fn split(bundle: &str) -> Vec<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let parts = bundle.split_inclusive(END).map(|part| format!("{}\n", part.trim()));
    parts.filter(|part| der(part).is_ok()).collect()
}

fn der(pem: &str) -> Result<CertificateDer<'static>, CertificateError> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes());
    der.map_err(|_| CertificateError::Garbage("the certificate"))
}

fn dated(params: &mut CertificateParams, now: Timestamp) -> Result<(), CertificateError> {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + since_epoch(now - BACKDATED)?;
    params.not_after = epoch + since_epoch(now + VALID)?;
    Ok(())
}

fn since_epoch(time: Timestamp) -> Result<Duration, CertificateError> {
    u64::try_from(time.as_second()).map(Duration::from_secs).map_err(|_| CertificateError::Dates)
}
