//! Webhooks: recordings of a real kube-apiserver with webhooks, and calls over real sockets.
//!
//! A recording in `webhooks/transcripts` says besides its steps what each path of the webhooks at 127.0.0.1:21500
//! answers. Here the same answers are given in process, in virtual time. `REPLAY=webhook-denials cargo test … --
//! --nocapture` plays one of them.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

// The player of recordings is shared with the other recordings.
#[allow(dead_code)]
#[path = "replay"]
mod replay {
    pub(super) mod difference;
    pub(super) mod normal;
    pub(super) mod player;
    pub(super) mod scenario;
    pub(super) mod server;
}

mod webhooks {
    mod answers;
    mod network;
    mod recordings;
}
