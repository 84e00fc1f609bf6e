//! Something that is waited for once, by many.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Closed until it is opened. Those who wait go on in the order of arrival: two runs with one seed are equal.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    is_open: AtomicBool,
    opened: Notify,
}

impl Gate {
    pub(crate) fn open(&self) {
        if !self.is_open.swap(true, Ordering::AcqRel) {
            self.opened.notify_waiters();
        }
    }

    pub(crate) async fn wait(&self) {
        // Made before looking, it also hears of what comes in between.
        let opened = self.opened.notified();
        if !self.is_open.load(Ordering::Acquire) {
            opened.await;
        }
    }
}
