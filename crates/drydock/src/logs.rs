//! What containers wrote, for `pods/NAME/log`: kept in memory, bounded, by container id.
//!
//! The node opens a log for every life of a container, simulated ones (whose log stays empty) included, and the
//! API server reads it. Nothing is written to disk.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::watch;

/// How much of one container's life is kept; the oldest lines go first.
pub const LIMIT: usize = 4 * 1024 * 1024;

/// The logs of all containers of a node. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Logs {
    logs: Arc<Mutex<BTreeMap<String, Log>>>,
}

impl Logs {
    /// Begins the log of a container's life.
    #[must_use]
    pub fn open(&self, id: &str) -> Log {
        let log = Log::default();
        self.lock().insert(id.to_owned(), log.clone());
        log
    }

    /// The log of a container's life.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Log> {
        self.lock().get(id).cloned()
    }

    /// Drops a log; whoever reads it can read on.
    pub fn forget(&self, id: &str) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Log>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The log of one life of a container. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Log {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    lines: Mutex<Lines>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<Line>,
    /// How many lines have been dropped: the number of the first one kept.
    first: u64,
    size: usize,
    closed: bool,
}

/// One line, with its line break if it has one.
#[derive(Clone, Debug)]
pub struct Line {
    /// When it was written.
    pub at: Timestamp,
    /// What was written.
    pub text: Bytes,
}

/// Lines of a log from some number on.
#[derive(Debug)]
pub struct Read {
    /// The lines.
    pub lines: Vec<Line>,
    /// The number of the line after them.
    pub next: u64,
    /// Whether there will be no more.
    pub closed: bool,
}

impl Log {
    /// Adds a line.
    pub fn write(&self, at: Timestamp, text: Bytes) {
        let mut lines = self.lock();
        lines.size += text.len();
        lines.kept.push_back(Line { at, text });
        while lines.size > LIMIT {
            let Some(dropped) = lines.kept.pop_front() else {
                break;
            };
            lines.size -= dropped.text.len();
            lines.first += 1;
        }
        drop(lines);
        self.inner.changed.send_replace(());
    }

    /// Says that there will be no more.
    pub fn close(&self) {
        self.lock().closed = true;
        self.inner.changed.send_replace(());
    }

    /// The lines from number `from` on, or from the first that is kept.
    #[must_use]
    pub fn read(&self, from: u64) -> Read {
        let lines = self.lock();
        let skipped = usize::try_from(from.saturating_sub(lines.first)).unwrap_or(usize::MAX);
        Read {
            lines: lines.kept.iter().skip(skipped).cloned().collect(),
            next: lines.first + lines.kept.len() as u64,
            closed: lines.closed,
        }
    }

    /// The end of the log: at most so many lines and bytes.
    #[must_use]
    pub fn tail(&self, most_lines: usize, most_bytes: usize) -> String {
        let lines = self.lock();
        let skipped = lines.kept.len().saturating_sub(most_lines);
        let text: Vec<u8> =
            lines.kept.iter().skip(skipped).flat_map(|line| line.text.iter().copied()).collect();
        String::from_utf8_lossy(&text[text.len().saturating_sub(most_bytes)..]).into_owned()
    }

    /// Tells of changes from now on.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.inner.changed.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.inner.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_lines_go_first() {
        let log = Log::default();
        let line = Bytes::from(vec![b'x'; LIMIT / 4]);
        for _ in 0..6 {
            log.write(Timestamp::UNIX_EPOCH, line.clone());
        }
        let read = log.read(0);
        assert_eq!((read.lines.len(), read.next, read.closed), (4, 6, false));
        log.close();
        let read = log.read(5);
        assert_eq!((read.lines.len(), read.next, read.closed), (1, 6, true));
        assert_eq!(log.tail(2, 10), "x".repeat(10));
    }
}
