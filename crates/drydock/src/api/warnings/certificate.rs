//! Whether a certificate and a key fit together, in the words of Go's TLS.

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::{PemObject as _, SectionKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// What is wrong with the pair, if anything is.
pub(super) fn complaint(certificate: &[u8], key: &[u8]) -> Option<String> {
    let found = sections(certificate);
    if found.is_empty() {
        return Some("tls: failed to find any PEM data in certificate input".to_owned());
    }
    if !found.contains(&SectionKind::Certificate) {
        let switched = found.iter().any(|kind| is_key(*kind));
        return Some(if switched {
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may \
             have been switched"
                .to_owned()
        } else {
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input".to_owned()
        });
    }
    let found = sections(key);
    if found.is_empty() {
        return Some("tls: failed to find any PEM data in key input".to_owned());
    }
    if !found.iter().any(|kind| is_key(*kind)) {
        return Some(if found.contains(&SectionKind::Certificate) {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        } else {
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input".to_owned()
        });
    }
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate).filter_map(Result::ok).collect();
    let key = PrivateKeyDer::from_pem_slice(key).ok().and_then(|key| any_supported_type(&key).ok());
    let Some(key) = key else { return Some("tls: failed to parse private key".to_owned()) };
    let mismatch = rustls::Error::InconsistentKeys(rustls::InconsistentKeys::KeyMismatch);
    (CertifiedKey::new(chain, key).keys_match().err() == Some(mismatch))
        .then(|| "tls: private key does not match public key".to_owned())
}

fn sections(pem: &[u8]) -> Vec<SectionKind> {
    <(SectionKind, Vec<u8>)>::pem_slice_iter(pem).filter_map(Result::ok).map(|(kind, _)| kind).collect()
}

fn is_key(kind: SectionKind) -> bool {
    matches!(kind, SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey)
}
