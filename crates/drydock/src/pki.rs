//! The cluster's certificates: an authority of its own, the server's certificate, clients' certificates.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};
use windlass_machinery::Context;

use crate::api::auth::{CREDENTIAL, User};

/// The address of the API server's own Service.
const SERVICE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// Why a certificate could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// It could not be made.
    #[error("failed to make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// A date does not exist.
    #[error("failed to make a certificate: its dates do not exist")]
    Dates,
    /// It could not be read.
    #[error("failed to read a certificate: {0}")]
    Read(String),
}

/// What signs the cluster's certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    not_before: (i32, u8, u8),
    not_after: (i32, u8, u8),
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl Authority {
    /// A new authority, valid for ten years from a day before now.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(context: &Context) -> Result<Self, PkiError> {
        let day = |offset: i64| {
            let at = context.now() + jiff::SignedDuration::from_hours(24 * offset);
            let date = at.to_zoned(jiff::tz::TimeZone::UTC).date();
            let part = |number: i8| u8::try_from(number).map_err(|_| PkiError::Dates);
            Ok::<_, PkiError>((i32::from(date.year()), part(date.month())?, part(date.day())?))
        };
        let (not_before, not_after) = (day(-1)?, day(3650)?);
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = name("windlass-drydock", &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        dated(&mut params, not_before, not_after);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let (pem, certificate) = (certificate.pem(), certificate.der().clone());
        Ok(Self { issuer: Issuer::new(params, key), certificate, pem, not_before, not_after })
    }

    /// The authority that [`Authority::identity`] told of.
    ///
    /// # Errors
    /// When that is not a certificate and its key.
    pub fn from_identity(identity: &Identity) -> Result<Self, PkiError> {
        let unreadable = |error: String| PkiError::Read(error);
        let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes())
            .map_err(|error| unreadable(error.to_string()))?;
        let (_, parsed) = x509_parser::parse_x509_certificate(&certificate)
            .map_err(|error| unreadable(error.to_string()))?;
        let validity = parsed.validity();
        let date = |time: x509_parser::time::ASN1Time| {
            let date = time.to_datetime();
            (date.year(), u8::from(date.month()), date.day())
        };
        let (not_before, not_after) = (date(validity.not_before), date(validity.not_after));
        let issuer = Issuer::from_ca_cert_der(&certificate, KeyPair::from_pem(&identity.key)?)?;
        let pem = identity.certificate.clone();
        Ok(Self { issuer, certificate: certificate.clone().into_owned(), pem, not_before, not_after })
    }

    /// The authority's own certificate and key: whoever has them can make certificates for this cluster.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity { certificate: self.pem.clone(), key: self.issuer.key().serialize_pem() }
    }

    /// The authority's own certificate.
    #[must_use]
    pub fn certificate_pem(&self) -> String {
        self.pem.clone()
    }

    /// The authority's own certificate.
    #[must_use]
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.certificate.clone()
    }

    /// The server's certificate and key.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn server(&self) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), PkiError> {
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(ToOwned::to_owned))?;
        for address in [Ipv4Addr::LOCALHOST, SERVICE_ADDRESS] {
            params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(address)));
        }
        params.distinguished_name = name("kube-apiserver", &[]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        dated(&mut params, self.not_before, self.not_after);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok((certificate.der().clone(), key))
    }

    /// A certificate by which a client is that user.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn client(&self, user: &User) -> Result<Identity, PkiError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = name(&user.name, &user.groups);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        dated(&mut params, self.not_before, self.not_after);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// The user that a client's certificate names: its common name, its organisations as groups.
#[must_use]
pub fn user_of(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let mut groups: Vec<String> =
        subject.iter_organization().filter_map(|group| group.as_str().ok()).map(ToOwned::to_owned).collect();
    groups.push("system:authenticated".to_owned());
    let credential = Sha256::digest(certificate).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let extra = BTreeMap::from([(CREDENTIAL.to_owned(), vec![format!("X509SHA256={credential}")])]);
    Some(User { name, groups, extra, ..User::default() })
}

fn name(common: &str, organisations: &[String]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    for organisation in organisations.iter().filter(|group| *group != "system:authenticated") {
        name.push(DnType::OrganizationName, organisation.as_str());
    }
    name.push(DnType::CommonName, common);
    name
}

fn dated(params: &mut CertificateParams, from: (i32, u8, u8), to: (i32, u8, u8)) {
    params.not_before = rcgen::date_time_ymd(from.0, from.1, from.2);
    params.not_after = rcgen::date_time_ymd(to.0, to.1, to.2);
}
