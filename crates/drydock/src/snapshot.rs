//! A whole cluster at one moment.
//!
//! A snapshot shares what it holds with the cluster it was taken of, so it costs little more than a list of the
//! objects. Any number of drydocks can start from one: each goes on with its revisions, uids, keys, time and
//! randomness as if nothing had happened. [`Snapshot::to_bytes`] is its form for a file.

use std::sync::Arc;

use windlass_machinery::Context;
use windlass_machinery::context::Moment;

use crate::api::auth::token::Signer;
use crate::api::registry::BuiltIn;
use crate::api::server::Server;
use crate::api::write;
use crate::pki::Authority;
use crate::store::{self, Store};

mod file;
#[cfg(test)]
mod tests;

pub use file::SnapshotError;

/// A whole cluster at one moment. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    store: store::Snapshot,
    built_in: Arc<BuiltIn>,
    signer: Arc<Signer>,
    authority: Arc<Authority>,
    moment: Moment,
}

impl Snapshot {
    pub(crate) fn of(server: &Server, authority: &Arc<Authority>) -> Self {
        Self {
            store: server.store.snapshot(),
            built_in: Arc::clone(&server.built_in),
            signer: Arc::clone(&server.auth.signer),
            authority: Arc::clone(authority),
            moment: server.context.moment(),
        }
    }

    /// The revision it was taken at.
    #[must_use]
    pub fn revision(&self) -> store::Revision {
        self.store.revision()
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether there are none, which no cluster has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// A context that goes on with the snapshot's time and randomness. Call it within a tokio runtime.
    #[must_use]
    pub fn context(&self) -> Context {
        Context::from_moment(&self.moment)
    }

    /// A server that starts from it, and the authority that goes with it.
    pub(crate) fn unpack(&self, context: Context) -> (Server, Arc<Authority>) {
        // The tables come in the order in which they were made, so that what names them by number still does.
        let store = Store::default();
        store.start_from(&self.store);
        let server = Server::restored(context, store, Arc::clone(&self.built_in), Arc::clone(&self.signer));
        (server, Arc::clone(&self.authority))
    }

    pub(crate) fn put_back(&self, server: &Server) -> usize {
        let changes = server.store.go_back(&self.store, |stored, revision| match write::decoded(stored) {
            Ok(mut object) => write::committed(&mut object, revision).0,
            // What is in the store was encoded by it.
            Err(_) => stored.body.clone(),
        });
        server.reload();
        changes
    }
}
