//! The form of a snapshot in a file: objects, keys and the revision, without history.
//!
//! Who read the cluster before it stopped may have seen later revisions than the file has. Its clients are told that
//! their history is gone: revisions start again far beyond what anybody can have seen.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use windlass_machinery::Context;

use super::{Arc, Authority, BuiltIn, Signer, Snapshot, Store, store};
use crate::api::registry::LoadError;
use crate::pki::{Identity, PkiError};
use crate::store::{Key, Revision, Stored};

const FORMAT: &str = "windlass-drydock-snapshot/1";
/// How far revisions go on beyond those of the file.
const GAP: Revision = 1_000_000;

/// Why a snapshot could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// It is not one.
    #[error("failed to read the snapshot")]
    Json(#[from] serde_json::Error),
    /// It has another form.
    #[error("failed to read the snapshot: its format is {0:?}, this program reads {FORMAT:?}")]
    Format(String),
    /// Its keys are not keys.
    #[error("failed to read the snapshot: its key for tokens is not a key")]
    Key,
    /// Its certificate.
    #[error("failed to read the snapshot's certificate")]
    Pki(#[from] PkiError),
    /// The program's tables.
    #[error(transparent)]
    Tables(#[from] LoadError),
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    format: Cow<'a, str>,
    revision: Revision,
    certificate: String,
    certificate_key: String,
    token_key: String,
    #[serde(borrow)]
    tables: Vec<(Cow<'a, str>, Vec<Object<'a>>)>,
}

#[derive(Deserialize, Serialize)]
struct Object<'a> {
    #[serde(default, skip_serializing_if = "str::is_empty")]
    namespace: Cow<'a, str>,
    name: Cow<'a, str>,
    revision: Revision,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    #[serde(borrow)]
    body: &'a RawValue,
}

impl Snapshot {
    /// Its form for a file. It holds the cluster's private keys and Secrets in the clear.
    ///
    /// # Errors
    /// Never, unless the store was tampered with.
    pub fn to_bytes(&self) -> Result<Vec<u8>, SnapshotError> {
        let mut tables = Vec::new();
        for (name, objects) in self.store.objects() {
            let objects = objects.map(|stored| object_of(stored)).collect::<Result<Vec<_>, _>>()?;
            tables.push((Cow::Borrowed(name), objects));
        }
        let Identity { certificate, key } = self.authority.identity();
        let file = File {
            format: FORMAT.into(),
            revision: self.revision(),
            certificate,
            certificate_key: key,
            token_key: BASE64_STANDARD.encode(self.signer.pkcs8()),
            tables,
        };
        Ok(serde_json::to_vec(&file)?)
    }

    /// Reads what [`Snapshot::to_bytes`] gave. A drydock that starts from it goes on with the time and the randomness
    /// of `context`.
    ///
    /// # Errors
    /// When it is no snapshot.
    pub fn from_bytes(bytes: &[u8], context: &Context) -> Result<Self, SnapshotError> {
        let file: File<'_> = serde_json::from_slice(bytes)?;
        if file.format != FORMAT {
            return Err(SnapshotError::Format(file.format.into_owned()));
        }
        let token_key = BASE64_STANDARD.decode(&file.token_key).map_err(|_| SnapshotError::Key)?;
        let signer = Signer::from_pkcs8(&token_key).map_err(|_| SnapshotError::Key)?;
        let identity = Identity { certificate: file.certificate, key: file.certificate_key };
        let tables = file
            .tables
            .into_iter()
            .map(|(name, objects)| (name.into_owned(), objects.into_iter().map(stored_of).collect()));
        let store = Store::default();
        let built_in = BuiltIn::load(&store)?;
        store.start_from(&store::Snapshot::without_history(file.revision + GAP, tables.collect()));
        Ok(Self {
            store: store.snapshot(),
            built_in: Arc::new(built_in),
            signer: Arc::new(signer),
            authority: Arc::new(Authority::from_identity(&identity)?),
            moment: context.moment(),
        })
    }
}

fn object_of(stored: &Stored) -> Result<Object<'_>, serde_json::Error> {
    Ok(Object {
        namespace: Cow::Borrowed(&stored.key.namespace),
        name: Cow::Borrowed(&stored.key.name),
        revision: stored.revision,
        labels: stored
            .labels
            .iter()
            .map(|(key, value)| (Cow::Borrowed(&**key), Cow::Borrowed(&**value)))
            .collect(),
        body: serde_json::from_slice(&stored.body)?,
    })
}

fn stored_of(object: Object<'_>) -> Stored {
    Stored {
        key: Key::new(&object.namespace, &object.name),
        revision: object.revision,
        body: Bytes::copy_from_slice(object.body.get().as_bytes()),
        labels: object
            .labels
            .into_iter()
            .map(|(key, value)| (key.into_owned().into(), value.into_owned().into()))
            .collect(),
    }
}
