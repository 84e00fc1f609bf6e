//! Who may write, and until when: a deposed replica's writes are never sent.
//!
//! A replica that holds a Lease may write until the renewal deadline counted from the moment *before* its last
//! successful renewal was sent; another replica takes over no sooner than the Lease's whole duration after it saw
//! that renewal. The time between the two (5 s of the usual 15) is for requests that were sent just before the end.
//! Clocks are never compared, only durations on one's own.
//!
//! Every write runs under a [`Permit`]: it is not begun once the time is over, each step of it looks at the clock
//! first (a process that was stopped and goes on later does not know how long it slept), and it is dropped when the
//! time runs out. What the API server does with a request that has left this process cannot be taken back.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The time up to which a replica may write; moved on by each renewal.
pub(crate) struct Fence(watch::Sender<Option<Instant>>);

impl Fence {
    /// A fence that nothing may pass yet.
    pub(crate) fn closed() -> Self {
        Self(watch::Sender::new(None))
    }

    pub(crate) fn extend(&self, until: Instant) {
        self.0.send_replace(Some(until));
    }

    pub(crate) fn close(&self) {
        self.0.send_replace(None);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// Resolves once the time is over, unless it is extended.
    pub(crate) async fn ended(&self) {
        let mut until = self.0.subscribe();
        loop {
            let Some(at) = *until.borrow_and_update() else { return };
            tokio::select! {
                () = sleep_until(at) => return,
                _ = until.changed() => {}
            }
        }
    }
}

/// What decides who may write what.
pub(crate) trait Authority: Send + Sync {
    fn fence(&self) -> &Fence;

    /// Begins a write for a key, if that may be; then [`Authority::end`] follows.
    fn begin(&self, _key: &str) -> bool {
        self.fence().is_open()
    }

    fn end(&self, _key: &str) {}

    /// Whether a write for a key might begin.
    fn allows(&self, _key: &str) -> bool {
        self.fence().is_open()
    }
}

/// What a write has to show: for one key, or always valid where nobody else could write.
#[derive(Clone, Default)]
pub(crate) struct Permit(Option<(Arc<dyn Authority>, Arc<str>)>);

/// This replica may not write, or not any more.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("another replica may be at work: nothing was written")]
pub(crate) struct Deposed;

impl Permit {
    pub(crate) fn of(authority: Arc<dyn Authority>, key: &str) -> Self {
        Self(Some((authority, key.into())))
    }

    /// Whether something may be begun.
    pub(crate) fn is_valid(&self) -> bool {
        let allows = |(authority, key): &(Arc<dyn Authority>, Arc<str>)| authority.allows(key);
        self.0.as_ref().is_none_or(allows)
    }

    /// Runs a write for as long as it is allowed.
    pub(crate) async fn guard<T>(&self, write: impl Future<Output = T>) -> Result<T, Deposed> {
        let Some((authority, key)) = &self.0 else {
            return Ok(write.await);
        };
        if !authority.begin(key) {
            return Err(Deposed);
        }
        let _underway = Underway(authority.as_ref(), key);
        within(authority.fence(), write).await
    }

    /// Runs something that may write by itself or not at all, for as long as it may be: it does not count as a write.
    pub(crate) async fn while_valid<T>(&self, work: impl Future<Output = T>) -> Result<T, Deposed> {
        match &self.0 {
            None => Ok(work.await),
            Some((authority, _)) => within(authority.fence(), work).await,
        }
    }
}

/// Ends a write also if it is dropped.
struct Underway<'a>(&'a dyn Authority, &'a str);

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        self.0.end(self.1);
    }
}

async fn within<T>(fence: &Fence, work: impl Future<Output = T>) -> Result<T, Deposed> {
    let mut ended = pin!(fence.ended());
    let mut work = pin!(work);
    poll_fn(|context| {
        // The timer may not have fired yet although its time has come.
        if !fence.is_open() || ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(Deposed));
        }
        work.as_mut().poll(context).map(Ok)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    struct Leader(Fence);

    impl Authority for Leader {
        fn fence(&self) -> &Fence {
            &self.0
        }
    }

    fn leader() -> (Arc<Leader>, Permit) {
        let leader = Arc::new(Leader(Fence::closed()));
        (Arc::clone(&leader), Permit::of(leader, "x"))
    }

    fn in_seconds(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_begun_before_or_after_the_time() {
        let (leader, permit) = leader();
        assert_eq!(permit.guard(async { 1 }).await, Err(Deposed));
        leader.0.extend(in_seconds(10));
        assert_eq!(permit.guard(async { 1 }).await, Ok(1));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(!permit.is_valid());
        assert_eq!(permit.guard(async { 1 }).await, Err(Deposed));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_under_way_ends_with_the_time_and_not_before() {
        let (leader, permit) = leader();
        leader.0.extend(in_seconds(10));
        let start = Instant::now();
        let slow = permit.guard(tokio::time::sleep(Duration::from_secs(60)));
        assert_eq!(slow.await, Err(Deposed));
        assert_eq!(start.elapsed().as_secs(), 10);

        leader.0.extend(in_seconds(10));
        let renewed = async {
            tokio::time::sleep(Duration::from_secs(8)).await;
            leader.0.extend(in_seconds(10));
        };
        let slow = permit.guard(tokio::time::sleep(Duration::from_secs(15)));
        assert_eq!(tokio::join!(slow, renewed).0, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_was_stopped_takes_no_further_step() {
        let (leader, permit) = leader();
        leader.0.extend(in_seconds(10));
        let steps = AtomicU32::new(0);
        let work = permit.guard(async {
            loop {
                steps.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let mut work: std::pin::Pin<Box<dyn Future<Output = Result<(), Deposed>>>> = Box::pin(work);
        assert!(futures::poll!(&mut work).is_pending());
        assert_eq!(steps.load(Ordering::Relaxed), 1);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert!(futures::poll!(&mut work).is_ready());
        assert_eq!(steps.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_ends_at_once_what_is_under_way() {
        let (leader, permit) = leader();
        leader.0.extend(in_seconds(10));
        let start = Instant::now();
        let close = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            leader.0.close();
        };
        let slow = permit.guard(tokio::time::sleep(Duration::from_secs(9)));
        assert_eq!(tokio::join!(slow, close).0, Err(Deposed));
        assert_eq!(start.elapsed().as_secs(), 1);
    }
}
