//! What replicas share in a Secret: the certificate they serve, its successor while that waits for its turn, and the
//! authorities that clients have to trust. Pure: what is written where is decided elsewhere.
//!
//! A certificate is replaced in two steps, so that no client ever meets one that it does not trust. First its successor
//! is put beside it, and the successor's authority into the bundle. Once everybody who calls has that bundle, the
//! successor is served; the former authority stays in the bundle until the next time, for a replica that still serves the
//! former certificate.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::certificates::{Certificate, CertificateError, split};

/// The keys of the Secret; the first three are those of a Secret of type `kubernetes.io/tls`.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITIES: &str = "ca.crt";
const NEXT_CERTIFICATE: &str = "next.crt";
const NEXT_KEY: &str = "next.key";

/// The certificates of one group of replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keyring {
    /// What is served.
    pub(crate) serving: Certificate,
    /// What will be served once its authority is known everywhere.
    pub(crate) next: Option<Certificate>,
    /// Whom clients have to trust, the newest first.
    authorities: Vec<String>,
}

impl Keyring {
    /// A new one, for servers of these names.
    pub(crate) fn make(names: &[String], now: Timestamp) -> Result<Self, CertificateError> {
        let (serving, authority) = Certificate::make(names, now)?;
        Ok(Self { serving, next: None, authorities: vec![authority] })
    }

    /// The one in a Secret, if it can be used now for servers of these names. A successor that cannot be used is left
    /// out.
    pub(crate) fn read(secret: &Secret, names: &[String], now: Timestamp) -> Result<Self, CertificateError> {
        let text = |key: &str| {
            let bytes = secret.data.as_ref().and_then(|data| data.get(key));
            bytes.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()).unwrap_or_default()
        };
        let read = Self {
            serving: Certificate::read(text(CERTIFICATE), text(KEY))?,
            next: Certificate::read(text(NEXT_CERTIFICATE), text(NEXT_KEY)).ok(),
            authorities: split(&text(AUTHORITIES)),
        };
        let next = read.next.clone().filter(|next| next.check(names, &read.authorities, now).is_ok());
        match (read.check(names, now), next) {
            (Ok(()), next) => Ok(Self { next, ..read }),
            // Its time is over, and its successor never had its turn.
            (Err(_), Some(next)) => Ok(Self { serving: next, next: None, ..read }),
            (Err(error), None) => Err(error),
        }
    }

    /// Whether what is served can be used now.
    pub(crate) fn check(&self, names: &[String], now: Timestamp) -> Result<(), CertificateError> {
        self.serving.check(names, &self.authorities, now)
    }

    /// With a successor beside what is served.
    pub(crate) fn with_next(&self, names: &[String], now: Timestamp) -> Result<Self, CertificateError> {
        let (next, authority) = Certificate::make(names, now)?;
        // Of those before, the one of what is served now.
        let signed = |one: &&String| self.serving.check(names, std::slice::from_ref(*one), now).is_ok();
        let former = self.authorities.iter().filter(signed).take(1).cloned();
        let authorities = [authority].into_iter().chain(former).collect();
        Ok(Self { serving: self.serving.clone(), next: Some(next), authorities })
    }

    /// With the successor in place of what is served.
    pub(crate) fn succeeded(&self) -> Self {
        let serving = self.next.clone().unwrap_or_else(|| self.serving.clone());
        Self { serving, next: None, authorities: self.authorities.clone() }
    }

    /// The `caBundle` of webhook configurations and conversions.
    pub(crate) fn bundle(&self) -> String {
        self.authorities.concat()
    }

    /// What the Secret holds.
    pub(crate) fn data(&self) -> BTreeMap<String, ByteString> {
        let mut texts = vec![
            (CERTIFICATE, self.serving.certificate.clone()),
            (KEY, self.serving.key.clone()),
            (AUTHORITIES, self.bundle()),
        ];
        if let Some(next) = &self.next {
            texts.extend([(NEXT_CERTIFICATE, next.certificate.clone()), (NEXT_KEY, next.key.clone())]);
        }
        texts.into_iter().map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn names() -> Vec<String> {
        vec!["monocle.operators.svc".into(), "127.0.0.1".into()]
    }

    fn secret(data: BTreeMap<String, ByteString>) -> Secret {
        Secret { data: Some(data), ..Secret::default() }
    }

    fn start() -> Timestamp {
        "2026-01-31T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let made = Keyring::make(&names(), start()).unwrap();
        assert_eq!(Keyring::read(&secret(made.data()), &names(), start()).unwrap(), made);
        let with_next = made.with_next(&names(), start() + DAY * 60).unwrap();
        let read = Keyring::read(&secret(with_next.data()), &names(), start() + DAY * 60);
        assert_eq!(read.unwrap(), with_next);
    }

    #[test]
    fn clients_trust_what_is_served_before_during_and_after_a_change() {
        let first = Keyring::make(&names(), start()).unwrap();
        let later = first.serving.due();
        assert!(later > start() + DAY * 59 && later < first.serving.ends - DAY * 29);
        let both = first.with_next(&names(), later).unwrap();
        assert_eq!(both.serving, first.serving);
        let second = both.succeeded();
        for keyring in [&first, &both, &second] {
            keyring.check(&names(), later).unwrap();
        }
        // A client with the bundle of the middle believes all of them; a replica may be late.
        first.serving.check(&names(), &second.authorities, later).unwrap();
        second.serving.check(&names(), &both.authorities, later).unwrap();
        let third = second.with_next(&names(), second.serving.due()).unwrap();
        assert_eq!(third.authorities.len(), 2, "no more than are needed");
        assert!(second.serving.check(&names(), &first.authorities, later).is_err());
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        let made = Keyring::make(&names(), start()).unwrap();
        let other = Keyring::make(&names(), start()).unwrap();
        let broken = |change: &dyn Fn(&mut BTreeMap<String, ByteString>)| {
            let mut data = made.data();
            change(&mut data);
            Keyring::read(&secret(data), &names(), start()).is_err()
        };
        assert!(broken(&|data| drop(data.remove(KEY))));
        assert!(broken(&|data| drop(data.insert(CERTIFICATE.into(), ByteString(b"garbage\xff".to_vec())))));
        assert!(broken(&|data| drop(data.insert(KEY.into(), other.data()[KEY].clone()))), "another's key");
        assert!(broken(&|data| drop(data.insert(AUTHORITIES.into(), other.data()[AUTHORITIES].clone()))));
        assert!(broken(&|data| drop(data.remove(AUTHORITIES))));
        assert!(!broken(&|data| drop(data.insert(NEXT_CERTIFICATE.into(), ByteString(b"x".to_vec())))));
        let read = |names: &[String], now| Keyring::read(&secret(made.data()), names, now);
        assert!(read(&["other.operators.svc".to_owned()], start()).is_err());
        assert!(read(&names(), start() + DAY * 91).is_err());
        assert!(read(&names(), start() + DAY * 89).is_ok());
    }

    #[test]
    fn a_successor_that_never_had_its_turn_is_better_than_nothing() {
        let both = Keyring::make(&names(), start()).unwrap().with_next(&names(), start() + DAY * 60).unwrap();
        let read = Keyring::read(&secret(both.data()), &names(), start() + DAY * 91).unwrap();
        assert_eq!((Some(read.serving), read.next), (both.next, None));
    }

    #[test]
    fn keys_are_not_shown() {
        let made = Keyring::make(&names(), start()).unwrap();
        assert!(!format!("{made:?}").contains("PRIVATE"));
    }
}
