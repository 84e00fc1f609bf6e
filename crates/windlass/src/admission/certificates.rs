//! The certificates that webhooks are served with: made by the operator itself, and made anew in good time.
//!
//! Each serving certificate has an authority of its own. The bundle that clients trust holds the authority before as
//! well, so that a replica which still serves the former certificate is believed until it has the new one.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// How long a certificate is valid.
const VALID: SignedDuration = SignedDuration::from_hours(24 * 90);
/// How long before its end it is made anew.
const EARLY: SignedDuration = SignedDuration::from_hours(24 * 30);

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It could not be made.
    #[error("failed to make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// A date does not exist.
    #[error("failed to make a certificate: its dates do not exist")]
    Dates,
}

/// A serving certificate, its key and what clients have to trust, all in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// The `caBundle` for webhook configurations and conversions: the authority, and the one before.
    pub bundle: String,
    /// The serving certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
    /// When they are to be made anew.
    pub renew_at: Timestamp,
    authority: String,
}

impl Certificates {
    /// Certificates for a Service, valid from now. `before` are those that they follow.
    ///
    /// # Errors
    /// If they cannot be made.
    pub fn make(
        service: &str,
        namespace: &str,
        now: Timestamp,
        before: Option<&Self>,
    ) -> Result<Self, CertificateError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, format!("{service}.{namespace} webhooks"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        dated(&mut params, now)?;
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let names = [String::new(), ".svc".into(), ".svc.cluster.local".into()];
        let names = names.map(|suffix| format!("{service}.{namespace}{suffix}"));
        let mut params = CertificateParams::new(names.to_vec())?;
        params.distinguished_name.push(DnType::CommonName, format!("{service}.{namespace}.svc"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        dated(&mut params, now)?;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?;

        let authority = authority.pem();
        let former = before.map(|before| before.authority.as_str()).unwrap_or_default();
        Ok(Self {
            bundle: format!("{authority}{former}"),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            renew_at: now + VALID - EARLY,
            authority,
        })
    }

    /// Whether it is time to make them anew.
    #[must_use]
    pub fn are_due(&self, now: Timestamp) -> bool {
        now >= self.renew_at
    }
}

/// Valid from a day before now: clocks differ.
fn dated(params: &mut CertificateParams, now: Timestamp) -> Result<(), CertificateError> {
    let day = |at: Timestamp| {
        let date = at.to_zoned(TimeZone::UTC).date();
        let part = |number: i8| u8::try_from(number).map_err(|_| CertificateError::Dates);
        Ok::<_, CertificateError>(rcgen::date_time_ymd(
            i32::from(date.year()),
            part(date.month())?,
            part(date.day())?,
        ))
    };
    params.not_before = day(now - SignedDuration::from_hours(24))?;
    params.not_after = day(now + VALID)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_made_anew_in_good_time_and_the_former_authority_is_still_trusted() {
        let start: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let first = Certificates::make("monocle", "operators", start, None).unwrap();
        assert!(!first.are_due(start) && first.are_due(start + SignedDuration::from_hours(24 * 61)));
        let second = Certificates::make("monocle", "operators", first.renew_at, Some(&first)).unwrap();
        assert_eq!(first.bundle.matches("BEGIN CERTIFICATE").count(), 1);
        assert_eq!(second.bundle.matches("BEGIN CERTIFICATE").count(), 2);
        assert!(second.bundle.contains(&first.bundle) && second.key != first.key);
        let third = Certificates::make("monocle", "operators", second.renew_at, Some(&second)).unwrap();
        assert_eq!(third.bundle.matches("BEGIN CERTIFICATE").count(), 2, "only the one before");
    }
}
